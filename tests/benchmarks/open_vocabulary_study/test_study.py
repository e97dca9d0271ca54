"""The study of free words from training to tables, on drawn images; its words, its oracle, its check for leaks."""

import argparse
import csv
import doctest
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

import hardlook as hl
from hardlook.errors import DataError
from hardlook.similarity.wordnet.nouns import load_nouns
from hardlook.world.layouts import write_world
from open_vocabulary_study import commands, conse, plan, report


def make_options(out, test, **changes):
    common = {"split": "train", "seeds": 1, "only": "", "budget": "96images", "resamples": 50, "device": "cpu",
              "threads": 1, "quiet": True, "part": "1/1", "pages": False, "coco": None, "docs": None}  # fmt: skip
    return argparse.Namespace(**{**common, "out": out, "test": test, **changes})


def test_doctests():
    assert doctest.testmod(report).failed == 0


def test_names_are_unique_and_the_first_trainings_are_those_that_most_runs_need():
    trainings = plan.list_trainings()
    runs = plan.list_runs(trainings)
    assert len({one.name for one in trainings}) == len(trainings) == 20
    assert len({one.name for one in runs}) == len(runs)
    assert {one.seed for one in trainings[:8]} == {0} and {one.split for one in trainings} == set(plan.SPLITS)


@pytest.mark.parametrize("kind", ["own", "synonym", "narrower", "broader"])
def test_every_word_has_a_sense_and_none_is_there_twice(kind, tmp_path):
    words = plan.list_words(kind)
    assert len(words) == 21 == len({name for name, _ in words}) and words[0] == ("background", "")
    for _, sense in words[1:]:
        load_nouns().index(sense)
    rows = list(csv.DictReader(Path(plan.write_words(kind, tmp_path)).read_text().splitlines()))
    assert [row["name"] for row in rows] == [name for name, _ in words]


def test_a_word_counts_as_what_it_was_written_for():
    names = ["background", "cat", "dog", "kitten", "puppy"]
    # 4 pixels of cat: 3 called kitten, 1 puppy; 2 of dog, called puppy; 4 of background, 1 of them called kitten.
    cells = {(1, 3): 3, (1, 4): 1, (2, 4): 2, (0, 0): 3, (0, 3): 1}
    frame = pl.DataFrame(
        {
            "labels": [5],
            "names": ["\n".join(names)],
            "cells": [[true * 6 + called for true, called in cells]],
            "pixels": [list(cells.values())],
        }
    )
    run = SimpleNamespace(records=frame)
    assert report.score_meaning(run, "narrower") == pytest.approx((3 / 4 + 3 / 5 + 2 / 3) / 3)
    assert report.find_meanings("coco133")["grass-merged"] == "background"


def test_imagenet_has_a_thousand_names():
    names = conse.read_imagenet_names()
    assert len(names) == 1000 and names[0] == "tench" and names[404] == "airliner" and names[281] == "tabby"


def test_an_image_of_the_test_that_trained_is_found(tmp_path):
    devkit = write_world(tmp_path / "voc", "voc", count=3)
    stem = sorted((devkit / "JPEGImages").iterdir())[0].stem
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "images.csv").write_text(f"image,use\nother,trains\n{stem},validates\n")
    with pytest.raises(DataError, match="1 images of the test trained this model"):
        commands.check_images([tmp_path / "model"], devkit)


def test_simulated_raters_follow_their_measure(monkeypatch):
    monkeypatch.setattr(report, "MEASURES", ("path", "lin"))
    rows = [row.split("|")[1:-1] for row in report.write_ratings().splitlines()[2:]]
    values = [[float(cell.split()[0]) for cell in row[1:]] for row in rows]
    assert values[0][0] > values[0][1] and values[1][1] > values[1][0]


def test_train_run_and_report(tmp_path, monkeypatch, one_thread, capsys):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    original = hl.train
    monkeypatch.setattr(
        commands.hl, "train",
        lambda method, **given: original(
            method, **{**given, "backbone": "planted-encoder", "text": "planted-text-encoder", "validations": 1}
        ),
    )  # fmt: skip
    for module in (commands, report):
        monkeypatch.setattr(module, "MEASURES", ("path", "lin"))
    monkeypatch.setattr(plan, "OTHER_WORDS", ("narrower",))
    monkeypatch.setattr(report, "PICTURED", ("scene-0000",))
    trained = write_world(tmp_path / "train", "voc", seed=1, count=16)
    test = write_world(tmp_path / "test", "voc", count=4)
    for path in (*(trained / "JPEGImages").iterdir(), *(trained / "SegmentationClass").iterdir()):
        path.rename(path.with_name(f"t{path.name}"))
    lists = trained / "ImageSets" / "Segmentation"
    for path in lists.iterdir():
        path.write_text("".join(f"t{line}\n" for line in path.read_text().split()))
    options = make_options(
        tmp_path / "study", test, train=trained, only="efficientnet-glove-all,efficientnet-glove-fold1"
    )
    commands.train(options)
    commands.run(options)
    names = {path.name for path in (tmp_path / "study" / "runs").iterdir()}
    assert "efficientnet-glove-fold1-seed0-voc-own" in names and "efficientnet-glove-all-seed0-voc-narrower" in names
    (tmp_path / "docs").mkdir()
    text = report.write_report(options.out, tmp_path / "docs", test=test, coco=None)
    assert "| fold1 | efficientnet | glove | 1 |" in text and "| glove | narrower |" in text
    rows = list(csv.DictReader((tmp_path / "docs" / report.SCORES).read_text().splitlines()))
    assert {"miou", "open-miou", "open-miou by lin"} <= {row["score"] for row in rows}
    capsys.readouterr()
    commands.run(options)
    assert capsys.readouterr().out == ""
