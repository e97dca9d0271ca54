"""Models by name: registered, from entry points, dotted; errors that help; listing that never breaks."""

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hardlook.errors import MissingExtra, ModelError
from hardlook.models import registry
from hardlook.models.registry import (
    ModelCard,
    RegistryEntry,
    build,
    find,
    list_models,
    register,
    resolve,
    suggest_names,
)
from hardlook.models.roles import ROLES
from hardlook.models.weights.install import CATALOGUE

EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]

CARDS = (
    ModelCard("planted-segmenter", ("semantic-segmenter",)),
    ModelCard("planted-panoptic", ("panoptic-segmenter",)),
    ModelCard("planted-saliency", ("saliency",)),
    ModelCard("planted-anything", ()),
)


@pytest.mark.parametrize(
    ("name", "role", "said"),
    [
        ("planted-segmentor", "semantic-segmenter", "did you mean 'planted-segmenter'"),
        ("planted-segmentor", None, "did you mean 'planted-segmenter'"),
        ("plantd-anything", "saliency", "did you mean 'planted-anything'"),
        ("planted-salience", "saliency", "did you mean 'planted-saliency'"),
    ],
)
def test_the_nearest_name_that_fits_comes_first(name, role, said):
    assert suggest_names(name, role, CARDS).startswith(said)


def test_a_nearer_name_of_another_role_is_not_proposed():
    said = suggest_names("planted-segmentor", "panoptic-segmenter", CARDS)
    assert "planted-panoptic" in said
    assert "planted-segmenter" not in said


def test_where_no_name_fits_the_near_one_is_called_what_it_is():
    assert suggest_names("planted-segmentor", "text-encoder", CARDS[:3]) == (
        "'planted-segmenter' is near, but a semantic-segmenter; "
    )
    assert suggest_names("xyzzy", "saliency", CARDS) == ""


def test_names_whose_role_is_not_known_count_too():
    assert suggest_names("my-modle", "saliency", CARDS, ["my-model"]) == "did you mean 'my-model'? "


@pytest.mark.parametrize("name", ["planted-segmentor", "planted-segmenter"])
def test_the_registry_asks_for_the_role(name):
    with pytest.raises(ModelError) as told:
        resolve(name, "panoptic-segmenter")
    assert "did you mean 'planted-panoptic'" in told.value.remedy
    assert "--role panoptic-segmenter" in told.value.remedy
    assert "'planted-segmenter'" not in told.value.remedy


PLANTED = {
    "planted-encoder": "encoder",
    "planted-text-encoder": "text-encoder",
    "planted-image-text-encoder": "image-text-encoder",
    "planted-saliency": "saliency",
    "planted-segmenter": "semantic-segmenter",
    "planted-instances": "instance-segmenter",
    "planted-panoptic": "panoptic-segmenter",
    "planted-one-shot": "one-shot-segmenter",
    "planted-learner": "few-shot-learner",
    "disc": "promptable-segmenter",
    "planted-clicks": "click-model",
}

OUTSIDE = """
class Stare:
    "Looks straight ahead."
    hardlook_card = {"role": "saliency", "licence": "BSD-3-Clause", "summary": "stares"}
    def __init__(self, level: float = 0.5):
        self.level = level
    def saliency(self, images):
        return [(image[..., 0] * 0 + self.level).astype("float32") for image in images]

class Plain:
    "Says nothing of itself."
    def saliency(self, images):
        return []
"""


@pytest.fixture(autouse=True)
def registry_left_as_it_was(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", dict(registry._REGISTERED))


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """An installed package with good and broken entry points."""
    (tmp_path / "outside_models.py").write_text(OUTSIDE)
    (tmp_path / "outside_broken.py").write_text("import no_such_module_anywhere\n")
    (tmp_path / "outside_exits.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "outside_decorated.py").write_text(
        "from hardlook.models.registry import register\n"
        "@register('decorated', role='saliency', summary='by decorator')\n"
        "class Decorated:\n    def saliency(self, images):\n        return []\n"
    )
    info = tmp_path / "outside_models-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-models\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[hardlook.models]\nstare = outside_models:Stare\nplain = outside_models:Plain\n"
        "broken = outside_broken:Model\nexits = outside_exits:Model\nlost = outside_models:Gone\n"
        "disc = outside_models:Stare\ndecorated = outside_decorated:Decorated\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("outside_")]:
        del sys.modules[name]


def test_every_role_has_a_planted_model():
    assert set(PLANTED.values()) == set(ROLES)
    for name, role in PLANTED.items():
        assert find(name).card.roles == (role,)
        assert isinstance(build(name, role), ROLES[role])


def test_unknown_names_get_near_ones():
    with pytest.raises(ModelError) as caught:
        find("planted-segmentor")
    assert "'planted-segmenter'" in caught.value.remedy
    assert "hardlook models" in caught.value.remedy


def test_wrong_role_names_the_right_one():
    with pytest.raises(ModelError, match="does not have the role saliency; it is a semantic-segmenter"):
        build("planted-segmenter", "saliency")
    with pytest.raises(ModelError, match="no role 'painter'") as caught:
        build("planted-segmenter", "painter")
    assert "click-model" in caught.value.remedy


def test_arguments_are_converted_and_refused():
    assert build("planted-segmenter", "semantic-segmenter", {"sibling": "0.25", "seed": "3"}).seed == 3
    with pytest.raises(ModelError) as caught:
        build("planted-segmenter", "semantic-segmenter", {"siblings": "1"})
    assert "sibling: float = 0.0" in caught.value.remedy
    with pytest.raises(ModelError, match="the dial sibling is 2"):
        build("planted-segmenter", "semantic-segmenter", {"sibling": 2})


def test_a_constructor_that_fails_is_reported():
    @register("faulty", role="saliency")
    class Faulty:
        def __init__(self, size: int = 1) -> None:
            raise ValueError("no room")

    with pytest.raises(ModelError, match="could not be made with size=2: ValueError: no room"):
        build("faulty", "saliency", {"size": "2"})


def test_a_missing_extra_passes_through():
    @register("hungry", role="saliency", extra="onnx")
    def hungry():
        from hardlook.extras import require

        return require("no_such_package_at_all", extra="onnx")

    with pytest.raises(MissingExtra) as caught:
        build("hungry", "saliency")
    assert "hardlook[onnx]" in caught.value.remedy


def test_names_are_taken_once():
    with pytest.raises(ModelError, match=r"'disc' is taken by hardlook\.models\.planted\.disc:Disc"):
        register("disc", role="saliency")(lambda: None)
    with pytest.raises(ModelError, match="painter"):
        register("new", role="painter")(lambda: None)


def test_a_dotted_target_is_imported_when_the_model_is_built():
    registry._REGISTERED["lazy"] = RegistryEntry(ModelCard("lazy", ("saliency",)), "no_such_module_yet:Model")
    assert find("lazy").card.roles == ("saliency",)
    with pytest.raises(ModelError, match="could not be imported: ModuleNotFoundError"):
        build("lazy", "saliency")


def test_a_class_that_is_defined_again_replaces_itself():
    for summary in ("first", "second"):

        @register("again", role="saliency", summary=summary)
        class Again:
            def saliency(self, images):
                return []

    assert find("again").card.summary == "second"
    assert find("again").card.origin == __name__


def test_dotted_names(outside):
    assert build("outside_models:Stare", "saliency", {"level": "0.25"}).level == 0.25
    with pytest.raises(ModelError, match="cannot serve as click-model: it lacks click_map; it serves as saliency"):
        build("outside_models:Plain", "click-model")
    with pytest.raises(ModelError, match="does not have the role click-model; it is a saliency"):
        build("outside_models:Stare", "click-model")
    with pytest.raises(ModelError, match="could not be imported: AttributeError"):
        build("outside_models:Gone", "saliency")
    with pytest.raises(ModelError, match="is a str, not a class"):
        build("outside_models:__name__", "saliency")
    for wrong, remedy in (
        ("outside_models:Star", "did you mean Stare?"),
        ("outside_models.py:Stare", " outside_models:Stare"),
    ):
        with pytest.raises(ModelError) as refused:
            build(wrong, "saliency")
        assert remedy in refused.value.remedy


def test_entry_points_are_found_and_built(outside):
    card = find("stare").card
    assert (card.roles, card.licence, card.summary) == (("saliency",), "BSD-3-Clause", "stares")
    assert card.origin == "outside-models 1.2"
    assert build("stare", "saliency", {"level": "0.75"}).level == 0.75
    assert find("plain").card.summary == "Says nothing of itself."
    with pytest.raises(ModelError, match="no_such_module_anywhere"):
        build("broken", "saliency")


def test_a_package_that_is_installed_later_is_found(outside):
    assert find("stare") and registry._entry_points()
    info = outside / "later_models-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: later-models\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[hardlook.models]\nlater = outside_models:Plain\n")
    assert find("later").card.origin == "later-models 2.0"


def test_listing_survives_broken_entry_points(outside):
    cards = {(card.name, card.origin): card for card in list_models()}
    outside_card = lambda name: cards[name, "outside-models 1.2"]  # noqa: E731
    assert "no_such_module_anywhere" in outside_card("broken").problem
    assert "SystemExit" in outside_card("exits").problem
    assert "Gone" in outside_card("lost").problem
    assert "hidden by the built-in model" in outside_card("disc").problem
    assert cards["disc", "built-in"].problem == outside_card("stare").problem == ""
    assert {name for name, _ in cards} >= set(PLANTED) | {"u2netp", "minilm"}


def test_a_decorated_outside_model_is_listed_once_with_its_card(outside):
    assert find("decorated").card.summary == "by decorator"
    assert [card.summary for card in list_models("decorated")] == ["by decorator"]


def test_listing_by_pattern_and_role(outside):
    assert [card.name for card in list_models("planted-s*")] == ["planted-saliency", "planted-segmenter"]
    names = [card.name for card in list_models(role="saliency")]
    assert {"planted-saliency", "u2netp", "stare", "plain"} <= set(names)
    assert "planted-segmenter" not in names
    assert names == sorted(names)


def test_an_outside_card_with_an_unknown_role_says_so(outside):
    (outside / "outside_odd.py").write_text("class Odd:\n    hardlook_card = {'role': 'painter'}\n")
    with pytest.raises(ModelError, match=r"there is no role 'painter' \(the hardlook_card of 'outside_odd:Odd'\)"):
        find("outside_odd:Odd")


BUILT_IN = sorted(registry._read_built_in())


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_row_of_the_table_is_what_its_class_says(name):
    entry = registry._read_built_in()[name]
    factory, card = entry.factory(), entry.card
    assert card.roles and card.summary and card.licence and set(card.roles) <= set(ROLES)
    assert card.marks == registry.read_marks(factory)
    assert set(card.marks) <= set(registry.MARKS)
    assert not card.extra or card.extra in EXTRAS
    assert set(card.weights) <= {package.name for package in CATALOGUE}
    source = "".join(inspect.getsource(kind) for kind in factory.__mro__[:-1])
    for role in card.roles:
        attributes = inspect.get_annotations(ROLES[role])
        for member in registry.missing_members(factory, role):
            assert member in attributes and f"self.{member}" in source, f"{name} lacks {member}"


def test_the_table_covers_all_roles():
    assert {role for entry in registry._read_built_in().values() for role in entry.card.roles} == set(ROLES)


def imported_by(script):
    """The modules of hardlook's models and systems that a fresh process has imported after the script."""
    code = f"import sys\n{script}\nprint(*sorted(sys.modules))"
    return subprocess.check_output([sys.executable, "-c", code], text=True).split()


def test_building_a_segmenter_imports_no_learner():
    script = (
        "from hardlook.models.registry import build\n"
        "assert build('planted-segmenter', 'semantic-segmenter', {'sibling': '0.3'}).faults.sibling == 0.3"
    )
    imported = imported_by(script)
    assert "hardlook.models.planted.segmenters" in imported
    unwanted = ("few_shot", "one_shot", "interactive", "click_models", "disc", "encoders", "rclicks", "u2netp")
    assert [name for name in imported if name.startswith("hardlook") and set(name.split(".")) & set(unwanted)] == []


def test_listing_imports_no_model_and_no_framework():
    imported = imported_by("from hardlook.models.registry import list_models\nlist_models()")
    targets = {entry.path.partition(":")[0] for entry in registry._read_built_in().values()}
    assert targets.isdisjoint(imported)
    assert {"torch", "onnxruntime", "ai_edge_litert", "transformers", "polars"}.isdisjoint(imported)


def test_an_encoder_in_place_of_a_learner_is_pointed_to_its_option():
    with pytest.raises(ModelError, match="it is an encoder") as caught:
        build("planted-encoder", "few-shot-learner")
    assert "--encoder planted-encoder" in str(caught.value)
    with pytest.raises(ModelError, match="timm:NAME"):
        build("resnet18", "encoder")
