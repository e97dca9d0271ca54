"""`hardlook train`: a folder that is a model, resumed, started from other weights, and reported."""

import json

import polars as pl
import pytest

from hardlook.errors import ModelError, OptionError
from hardlook.metacoco.training.run import train

torch = pytest.importorskip("torch")
FITTING = {"ways": 2, "queries": 2}  # tasks that the images can form


def test_the_folder_says_what_it_holds(protonet, images):
    card = protonet.card
    assert (card["method"], card["backbone"], card["finished"]) == ("protonet", "conv64f", True)
    identity = card["identity"]
    assert identity["recipe"]["source"].startswith("MetaCoCo") and identity["recipe"]["changed"][0] == "ways"
    assert identity["data"]["fingerprint"] and identity["data"]["leak_check"]["classes_shared_with_other_splits"] == 0
    assert len(card["code"]) == 24 and identity["seed"] == 0 and card["steps"] == 33
    assert protonet.accuracy == card["selections"]["blind"]["accuracy"]
    assert str(images) not in json.dumps(card)
    table = pl.read_parquet(protonet.folder / "history.parquet")
    assert table["step"].to_list() == [16, 33] and "validation_ood" in table.columns
    page = (protonet.folder / "training.html").read_text()
    assert page.count("<svg") >= 3 and "settings of its experiments" in page and "leak check" in page


def test_the_command_trains_and_resumes(hardlook, images, tmp_path):
    words = [
        "train", "protonet", "--data", f"root={images}", "--out", tmp_path / "weights", "--budget", "100images",
        "--set", "ways=2", "--set", "queries=2", "--set", "backbone.channels=8", "--image-size", 16, "--validations", 1,
        "--validation-tasks", 2, "-q", "--json",
    ]  # fmt: skip
    first = json.loads(hardlook(*words).out)
    assert first["finished"] and first["steps"] == 17
    assert json.loads(hardlook(*words).out) == first
    refused = hardlook(*words, "--seed", 1)
    assert refused.code == 1 and "another training" in refused.err


def test_two_stages_start_from_weights_of_another_training(protonet, images, tmp_path, tiny):
    done = train("meta-baseline", data=images, out=tmp_path / "weights", start=protonet.folder, **tiny)
    assert [one["stage"] for one in done.card["stages"]] == ["classes", "episodes"]
    assert sum(one["images"] for one in done.card["stages"]) == pytest.approx(200, abs=128)
    other = {**tiny, "recipe": {**tiny["recipe"], "backbone.channels": 16}}
    with pytest.raises(ModelError, match="do not fit the backbone conv64f"):
        train("meta-baseline", data=images, out=tmp_path / "other", start=protonet.folder, **other)


def test_a_file_is_no_folder_of_a_training(images, tmp_path, tiny):
    (tmp_path / "weights").touch()
    with pytest.raises(OptionError, match="this is a file, not a folder"):
        train("protonet", data=images, out=tmp_path / "weights", **tiny)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "protonets"}, "did you mean 'protonet'"),
        ({"backbone": "resnet13"}, "no backbone 'resnet13'"),
        ({"budget": "soon"}, "not a budget"),
        ({"precision": "float8"}, "no precision 'float8'"),
        ({"data": {"voc": "x"}}, "training reads one dataset"),
        ({"seed": -1}, "seed -1"),
        ({"threads": 0}, "threads 0"),
        ({"devices": 0}, "devices 0"),
        ({"validation_tasks": 0}, "validation_tasks 0"),
        ({"image_size": 0}, "image_size 0"),
        ({"recipe": {**FITTING, "option.foo": 1}}, "the method protonet cannot be made with foo=1"),
        ({"recipe": {**FITTING, "backbone.channels": -1}}, "the backbone conv64f cannot be made with channels=-1"),
        ({"recipe": {"momentum": 1}}, "momentum 1.0"),
        ({"recipe": {"weight_decay": -1}}, "weight_decay -1.0"),
    ],
)
def test_wrong_options_are_named(images, tmp_path, tiny, given, message):
    with pytest.raises(OptionError, match=message):
        train(**{"method": "protonet", "data": images, "out": tmp_path / "weights", **tiny, **given})
    with pytest.raises(ModelError, match="finds 0 GPUs"):
        train("protonet", data=images, out=tmp_path, device="cuda", **tiny)


def test_the_public_name(protonet):
    from hardlook.api.training import TRAINERS

    assert TRAINERS["few-shot-learner"] == f"{train.__module__}:{train.__name__}"
    assert "protonet on conv64f" in str(protonet)
