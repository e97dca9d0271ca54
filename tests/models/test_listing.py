"""Lists of models: ours by pattern and role, those of a library by its names, and what is said without the library."""

import importlib.util

import pytest

import hardlook as hl
from hardlook.errors import MissingExtra, ModelError, OptionError
from hardlook.models import families
from hardlook.models.families import PREFIXES, Family


def find_roles(name):
    if name == "broken":
        raise ModelError("no role for this one")
    return ("encoder",) if name.startswith("net") else ("saliency",)


@pytest.fixture
def small_family(monkeypatch):
    """A family of three names in place of timm."""
    names = ["broken", "map", "net-1"]
    family = Family(
        "timm", "small networks", "timm", ("encoder", "saliency"),
        lambda pattern: [name for name in names if pattern in ("*", name)], find_roles, lambda name: None,
    )  # fmt: skip
    monkeypatch.setattr("hardlook.models.listing.load_family", lambda prefix: family)
    return family


def test_a_familys_models_are_listed_with_prefix_roles_and_problems(small_family):
    cards = hl.models(family="timm")
    assert [card.name for card in cards] == ["timm:broken", "timm:map", "timm:net-1"]
    assert [card.problem for card in cards] == ["no role for this one", "", ""]
    assert cards[2].roles == ("encoder",) and cards[2].extra == "timm"
    assert [card.name for card in hl.models("timm:net-1", family="timm")] == ["timm:net-1"]
    assert [card.name for card in hl.models(family="timm", role="saliency")] == ["timm:broken", "timm:map"]
    assert "timm:net-1" in cards._repr_html_()


def test_the_command_prints_names_and_roles(small_family, hardlook):
    lines = hardlook("models", "--family", "timm").out.splitlines()
    assert lines == [
        "timm:broken  cannot be used: no role for this one",
        "timm:map     saliency",
        "timm:net-1   encoder",
    ]
    assert hardlook("models", "--family", "timm", "nothing").out == "no model matches 'nothing'\n"
    assert '"timm:map"' in hardlook("models", "--family", "timm", "map", "--json").out


def test_the_list_without_a_family_ends_with_the_families(hardlook):
    lines = hardlook("models", "planted-*").out.splitlines()
    assert "planted-segmenter" in "".join(lines)
    assert lines[-1] == f"models of other libraries: {', '.join(PREFIXES)} (hardlook models --family timm)"
    with pytest.raises(OptionError, match="--family onnx: there is no such family"):
        hl.models(family="onnx")


@pytest.mark.parametrize(("family", "module", "extra"), [
    ("timm", "timm", "timm"), ("torchvision", "torchvision", "torchvision"),
    ("smp", "segmentation_models_pytorch", "smp"),
])  # fmt: skip
def test_without_the_library_the_command_to_install_it_is_named(family, module, extra, hardlook):
    if importlib.util.find_spec(module) is not None:
        pytest.skip(f"{module} is installed")
    with pytest.raises(MissingExtra) as caught:
        hl.models(family=family)
    assert caught.value.remedy == f'pip install "hardlook[{extra}]"'
    answer = hardlook("models", "--family", family)
    assert answer.code == 1 and f'pip install "hardlook[{extra}]"' in answer.err
    assert families.load_family(family).prefix == family  # importing the family's file needs no library


def test_a_run_and_a_check_can_forbid_downloads(hardlook, monkeypatch, tmp_path):
    seen = []

    class Seeing:
        labels = ("cat",)

        def __init__(self):
            from hardlook.models.families.downloads import is_offline

            seen.append(is_offline())

        def segment(self, images):
            return [image[..., 0].astype("int32") * 0 for image in images]

    monkeypatch.delenv("HARDLOOK_OFFLINE", raising=False)
    hl.register("seeing-segmenter", role="semantic-segmenter")(Seeing)
    try:
        for given in ({}, {"offline": True}):
            seen.clear()
            hl.run("open-miou", model="seeing-segmenter", scenes=1, resamples=100, progress=False, report=False,
                   out=tmp_path / str(len(given)), **given)  # fmt: skip
            hl.check("seeing-segmenter", "semantic-segmenter", **given)
            assert len(seen) > 1 and set(seen) == {bool(given)}
        for words in (
            ("check", "semantic-segmenter", "seeing-segmenter", "--offline"),
            ("run", "open-miou", "--model", "seeing-segmenter", "--scenes", "1", "--resamples", "100", "--offline",
             "--out", str(tmp_path / "command")),
        ):  # fmt: skip
            seen.clear()
            hardlook(*words)
            assert seen and all(seen), words
    finally:
        from hardlook.models import registry

        del registry._REGISTERED["seeing-segmenter"]
