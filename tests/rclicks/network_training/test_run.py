"""Training from Python and from the command line, and the folder as a model of RClicks."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

import hardlook as hl  # noqa: E402
from hardlook.errors import DataError, ModelError, OptionError  # noqa: E402
from hardlook.models.registry import build, find  # noqa: E402
from hardlook.models.roles import Clicks  # noqa: E402
from hardlook.rclicks.network_training.run import read_start  # noqa: E402
from hardlook.report.training import build_sections  # noqa: E402
from hardlook.training.interactive.recipes import find_interactive_recipe  # noqa: E402
from hardlook.world.layouts import write_world  # noqa: E402

SMALL = {"size": 32, "batch": 2, "least_area": 0, "most_clicks": 2, "option.stages": 1, "option.width": 8}
TINY = {"recipe": SMALL, "budget": "4images", "start": "none", "validations": 2, "validation_objects": 2}


@pytest.fixture(autouse=True)
def quick(one_thread, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def devkit(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world") / "voc", "voc", count=8)


@pytest.fixture(scope="module")
def trained(devkit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights") / "ritm"
    return hl.train("ritm", data=devkit, out=folder, held_back=0.3, clicks="uniform", progress=False, **TINY)


def test_the_folder_has_weights_a_card_and_a_page(trained):
    card = trained.card
    assert (card["kind"], card["method"], card["backbone"]) == ("interactive", "ritm", "resnet50-keras")
    assert card["finished"] and card["steps"] == 2 and card["code"]
    assert card["identity"]["data"]["leak_check"]["copies_of_excluded"] == 0
    assert card["identity"]["clicks"]["clicks"] == "uniform"
    page = (trained.folder / "training.html").read_text()
    assert "RITM" in page and "resnet50-keras" in page and "leak check copies of excluded" in page
    captions = [chart.caption for chart in build_sections(trained)[0].blocks]
    assert any("on objects of images that do not train" in caption for caption in captions)
    assert "best by held-back validation mean IoU" in str(trained)


def test_what_starts_at_random_trains_at_the_full_rate(trained):
    recipe = trained.card["identity"]["recipe"]
    assert recipe["backbone_rate"] == 1.0 and recipe["options"]["frozen_norm"] is False


def test_the_folder_is_a_model_that_sees_pictures_at_the_size_of_its_training(trained, tmp_path):
    name = str(trained.folder)
    assert find(name).card.roles == ("promptable-segmenter",)
    model = build(name, "promptable-segmenter")
    assert model.settings.longest_side == 32 and model.settings.zoom.target == 32
    assert "the training in ritm" in model.conduct
    network, shapes = model._network, []
    handle = network.register_forward_hook(lambda module, given, answer: shapes.append(tuple(given[0].shape[2:])))
    clicks = Clicks(np.array([[30.0, 20.0], [60.0, 50.0]], np.float32), np.array([True, False]))
    (answer,) = model.open(np.zeros((70, 90, 3), np.uint8)).predict([clicks])
    handle.remove()
    assert answer.mask.shape == (70, 90) and shapes and {max(shape) for shape in shapes} == {32}
    run = hl.run(
        "rclicks", model=name, scenes=2, rounds=2, groups=2, resamples=20, user_clicks="none", out=tmp_path / "run",
        progress=False,
    )  # fmt: skip
    assert not len(run.failures) and 1 <= run.scores["noc90"].value <= 2
    by_name = build("ritm", "promptable-segmenter", args={"weights": name})
    assert torch.equal(by_name._network.maps_transform[0].weight, network.maps_transform[0].weight)


def test_masks_depend_on_the_weights(trained):
    """The stored weights, not those of a network that was built anew."""
    from hardlook.training.checkpoint import read_weights

    model = build(str(trained.folder), "promptable-segmenter")
    stored = read_weights(trained.folder)
    assert all(torch.equal(value, stored[key]) for key, value in model._network.state_dict().items())


def test_an_unfinished_training_and_another_kind_are_refused(trained, tmp_path):
    import shutil

    other = tmp_path / "other"
    shutil.copytree(trained.folder, other)
    card = json.loads((other / "checkpoint.json").read_text())
    (other / "checkpoint.json").write_text(json.dumps({**card, "finished": False}))
    with pytest.raises(ModelError, match="the training is not finished"):
        build(str(other), "promptable-segmenter")
    assert build(str(other), "promptable-segmenter", args={"unfinished": True}).trained_size == 32
    (other / "checkpoint.json").write_text(json.dumps({**card, "kind": "one-shot", "method": "pfenet"}))
    with pytest.raises(ModelError, match="the folder holds pfenet, not ritm"):
        build("ritm", "promptable-segmenter", args={"weights": str(other)})
    damaged = {**card, "identity": {**card["identity"], "recipe": {"network": "ritm"}}}
    (other / "checkpoint.json").write_text(json.dumps(damaged))
    with pytest.raises(ModelError, match=r"checkpoint\.json describes no network"):
        build(str(other), "promptable-segmenter")


def test_the_command_says_what_to_do_next(hardlook, devkit, tmp_path):
    changes = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    done = hardlook(
        "train", "ritm", "--data", f"voc={devkit}", *changes, "--budget", "2images", "--start", "none", "--clicks",
        "distance", "--click-group", "1", "--held-back", "0", "--out", tmp_path / "a", "-q",
    )  # fmt: skip
    assert "hardlook run rclicks --model" in done.out
    card = json.loads((tmp_path / "a" / "checkpoint.json").read_text())
    assert card["identity"]["clicks"]["group"] == 1 and card["steps"] == 1


def test_options_of_others_are_refused():
    with pytest.raises(OptionError, match="ritm is an interactive network, whose training takes no 'fold'"):
        hl.train("ritm", data="x", out="y", fold=0)
    with pytest.raises(OptionError, match=r"--held-back 1\.5"):
        hl.train("ritm", data="x", out="y", held_back=1.5)


def test_starts(trained, tmp_path):
    recipe = find_interactive_recipe("ritm", "hrnet18s")
    assert read_start("none", recipe) is None
    with pytest.raises(ModelError, match="no weights of hrnet18s can be installed"):
        read_start("imagenet", recipe)
    with pytest.raises(DataError, match="no weights here"):
        read_start(tmp_path / "nowhere.pth", recipe)
    assert set(read_start(trained.folder, recipe)) == set(
        build(str(trained.folder), "promptable-segmenter")._network.state_dict()
    )
    path = tmp_path / "weights.pth"
    torch.save({"conv1.weight": torch.ones(2)}, path)
    assert np.array_equal(read_start(path, recipe)["conv1.weight"], np.ones(2))
