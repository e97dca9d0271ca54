"""Training a network from Python and from the command line: folds, starts, errors, and the folder as a model."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from tiny_one_shot import use_tiny  # noqa: E402

import hardlook as hl  # noqa: E402
from hardlook.errors import DataError, ModelError, OptionError  # noqa: E402
from hardlook.toss.training.run import read_start, train  # noqa: E402
from hardlook.training.one_shot_recipes import find_one_shot_recipe  # noqa: E402
from hardlook.world.layouts import write_world  # noqa: E402

TINY = {
    "recipe": {"size": 33, "batch": 2, "augment": "none"},
    "budget": "24images",
    "start": "none",
    "validations": 2,
    "validation_pairs": 4,
    "folds": 2,
    "progress": False,
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch, one_thread):
    use_tiny(monkeypatch)


@pytest.fixture(scope="module")
def devkit(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world") / "voc", "voc", count=24)


def test_one_fold_and_all_folds(devkit, tmp_path):
    one = hl.train("simpropnet", data={"voc": devkit}, out=tmp_path / "one", fold=1, **TINY)
    each = hl.train("simpropnet", data=devkit, out=tmp_path / "each", **TINY)
    assert [done.folder.name for done in each] == ["fold0", "fold1"]
    assert one.card["identity"] == each[1].card["identity"] != each[0].card["identity"]
    assert (tmp_path / "each" / "fold0" / "training.html").is_file()
    assert "simpropnet on resnet50-keras" in str(one) and one.score is not None


def test_the_page_says_what_trained_and_by_what_weights_are_chosen(devkit, tmp_path):
    done = hl.train("simpropnet", data={"voc": devkit}, out=tmp_path / "one", fold=0, **TINY)
    page = (done.folder / "training.html").read_text()
    assert "mean IoU over training classes on images that do not train" in page
    assert "TOSS, section 5" in page and "fold 0 of 2" in page


def test_the_command_trains_and_its_folder_is_a_model(devkit, tmp_path):
    """In this process, where the network is tiny."""
    from hardlook.models.registry import build, find

    hl.train("simpropnet", data={"voc": devkit}, out=tmp_path / "one", fold=0, **TINY)
    assert find(str(tmp_path / "one")).card.roles == ("one-shot-segmenter",)
    model = build(str(tmp_path / "one"), "one-shot-segmenter")
    assert model.rule.size == 33 and model.card["method"] == "simpropnet"
    run = hl.run("toss", model=str(tmp_path / "one"), scenes=24, resamples=50, out=tmp_path / "run", progress=False)
    assert 0 <= run.scores["lca"].value <= 1 and not len(run.failures)


def test_options_of_the_other_kind_are_refused():
    with pytest.raises(OptionError, match="pfenet is a one-shot network, whose training takes no 'image_size'"):
        hl.train("pfenet", data={"voc": "x"}, out="y", image_size=84)
    with pytest.raises(OptionError, match="protonet is a few-shot method, whose training takes no 'fold'"):
        hl.train("protonet", data="x", out="y", fold=0)
    with pytest.raises(OptionError, match="nothing to train named 'pfenett'") as caught:
        hl.train("pfenett", data="x", out="y")
    assert "did you mean pfenet?" in caught.value.remedy


def test_starts(tmp_path):
    recipe = find_one_shot_recipe("simpropnet", "resnet50")
    assert read_start("none", recipe) is None
    with pytest.raises(ModelError, match="no weights of resnet50 can be installed"):
        read_start("imagenet", recipe)
    with pytest.raises(DataError, match="no weights here"):
        read_start(tmp_path / "nowhere.pth", recipe)
    path = tmp_path / "weights.pth"
    torch.save({"other.weight": torch.ones(1)}, path)
    with pytest.raises(ModelError, match="none of the 1 tensors is one of resnet50"):
        read_start(path, recipe)


def test_a_share_that_is_none(devkit, tmp_path):
    with pytest.raises(OptionError, match=r"--held-back 1\.5"):
        train("simpropnet", data={"voc": devkit}, out=tmp_path, held_back=1.5)


def test_json_of_the_command(hardlook, devkit, tmp_path):
    options = "--fold 0 --folds 2 --start none --set size=33 --set batch=2 --budget 8images --validations 1"
    done = hardlook(
        "train", "simpropnet", "--data", f"voc={devkit}", *options.split(), "--out", tmp_path, "--json", "-q"
    )
    card = json.loads(done.out)
    assert card["method"] == "simpropnet" and card["finished"] and card["steps"] == 2
