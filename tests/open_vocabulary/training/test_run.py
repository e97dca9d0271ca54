"""From a devkit to a model with free words: Python, command line, the page, and words at test time."""

import csv
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

import hardlook as hl  # noqa: E402
from hardlook.data.voc import open_devkit  # noqa: E402
from hardlook.errors import ModelError, OptionError  # noqa: E402
from hardlook.models.registry import build, find  # noqa: E402
from hardlook.world.layouts import write_world  # noqa: E402
from hardlook.world.vocabulary import LABELS  # noqa: E402

SMALL = {
    "backbone": "planted-encoder",
    "text": "planted-text-encoder",
    "recipe": {"lr": 0.02, "batch": 4, "epochs": 8, "cells": 0, "dropout": 0},
    "validations": 2,
    "progress": False,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A devkit of the planted world, one projection trained with all of its classes, one without the first three."""
    folder = tmp_path_factory.mktemp("projection")
    patch = pytest.MonkeyPatch()
    patch.setenv("HARDLOOK_CACHE", str(folder / "cache"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    devkit = write_world(folder / "voc", "voc", count=24)
    hl.train("semantic-projection", data=devkit, out=folder / "all", **SMALL)
    unseen = open_devkit(devkit).classes[:3]
    hl.train("semantic-projection", data={"voc": devkit}, out=folder / "part", unseen=unseen, **SMALL)
    yield folder
    torch.set_num_threads(before)
    patch.undo()


def run(world, model, words, **options):
    data = {"voc": world / "voc"}
    return hl.run(
        "open-miou", model=str(world / model), pred_labels=words, data=data, split="train", resamples=50,
        unknown="zero", progress=False, **options,
    )  # fmt: skip


def test_the_folder_is_a_model_whose_words_are_those_of_the_option(world, tmp_path):
    names = ",".join(["background", *open_devkit(world / "voc").classes])
    done = run(world, "all", names, out=tmp_path / "run")
    assert done.scores["miou"].value > 0.5 and not len(done.failures)
    assert find(str(world / "all")).card.roles == ("semantic-segmenter",)
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["model"]["args"]["labels"] == names.split(",")


def test_words_that_no_training_saw(world):
    """A class that did not train and a phrase of no class are words as good as others."""
    unseen = open_devkit(world / "voc").classes[0]
    model = build(str(world / "part"), "semantic-segmenter", {"labels": [unseen, "red glorp"]})
    image = open_devkit(world / "voc").image(open_devkit(world / "voc").ids("train")[0]).read()
    (answer,) = model.segment([image])
    assert answer.shape == image.shape[:2] and answer.dtype == np.int32 and set(np.unique(answer)) <= {0, 1}
    assert (
        model.labels == (unseen, "red glorp")
        and f"trained with {len(open_devkit(world / 'voc').classes) - 3} words" in model.conduct
    )


def test_the_page_the_card_and_the_images(world):
    folder = world / "part"
    card = json.loads((folder / "checkpoint.json").read_text())
    assert card["finished"] and card["kind"] == "projection" and card["identity"]["data"]["unseen"]
    assert "planted-encoder" in (folder / "training.html").read_text()
    rows = list(csv.DictReader((folder / "images.csv").open()))
    assert {row["image"] for row in rows} == set(open_devkit(world / "voc").ids("train"))
    assert {row["use"] for row in rows} == {"trains", "validates"}


def test_the_command_line(world, hardlook, tmp_path):
    options = "--backbone planted-encoder --text planted-text-encoder --folds 4 --fold 1 --budget 8images --set batch=4"
    done = hardlook(
        "train", "semantic-projection", "--data", f"voc={world / 'voc'}", *options.split(), "--validations", "1",
        "--out", tmp_path / "a", "--json", "-q",
    )  # fmt: skip
    card = json.loads(done.out)
    assert card["method"] == "semantic-projection" and card["steps"] == 2
    again = hardlook(
        "train", "semantic-projection", "--data", f"voc={world / 'voc'}", *options.split(), "--validations", "1",
        "--out", tmp_path / "a", "-q",
    )  # fmt: skip
    assert "--pred-labels WORDS evaluates it" in again.out


def test_refusals(world, tmp_path):
    for options, message in (
        ({"shots": 1}, "a semantic projection, whose training takes no 'shots'"),
        ({"data": {"coco": "x"}}, "--data coco: not the data of a projection"),
        ({"held_back": 1.0}, "--held-back 1"),
        ({"recipe": {"size": 1}}, "a recipe has no 'size'"),
    ):
        with pytest.raises(OptionError, match=message):
            hl.train("semantic-projection", **{"data": world / "voc", "out": tmp_path / "x", **SMALL, **options})
    with pytest.raises(ModelError, match="needs a value for 'labels'"):
        hl.run("open-miou", model=str(world / "all"), data={"voc": world / "voc"}, split="train", out=tmp_path / "r")


def test_planted_labels_have_senses(world, tmp_path):
    """The planted world's labels are known to WordNet: the run needs no rule for unknown words."""
    names = ["background", *(label.name for label in LABELS[:4])]
    assert run(world, "all", ",".join(names), out=tmp_path / "run").scores["open-miou"].value > 0
