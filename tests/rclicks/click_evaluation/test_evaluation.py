"""Answers on disk: found by what gave them, whatever a kill left behind.

What an answer depends on: after a change of any of it nothing old is taken for new.

Which model is rank_models: by intervals of paired differences.
"""

import math
import os
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from hardlook.errors import RunError
from hardlook.rclicks.click_evaluation import evaluation
from hardlook.rclicks.click_evaluation.evaluation import EvaluationSettings, RowCache
from hardlook.rclicks.click_evaluation.stem_scores import Readings


def test_an_unfinished_line_is_dropped_and_the_next_answer_starts_a_line(tmp_path):
    path = tmp_path / "deep" / "answers.jsonl"
    RowCache(path).add("a", "one", [{"p": math.nan, "ks": True}])
    path.write_text(path.read_text() + '{"answers": "a", "key": "two", "ro')
    answers = RowCache(path)
    assert answers.get("a", "two") is None
    answers.add("a", "two", [])
    again = RowCache(path)
    assert again.get("a", "two") == [] and again.get("a", "one")[0]["ks"] is True
    assert math.isnan(again.get("a", "one")[0]["p"])
    assert again.get("b", "one") is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"answers": "a", "ke',
        b'{"answers": "a", "rows": []}',
        b"[1]",
        b"\xff\xfe",
        b'{"answers": 1, "key": "b", "rows": []}',
        b'{"answers": "a", "key": "b", "rows": 3}',
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_changed(tmp_path, line):
    path = tmp_path / "answers.jsonl"
    RowCache(path).add("a", "one", [])
    path.write_bytes(path.read_bytes() + line + b"\n" + path.read_bytes() + b"unfinished")
    before = path.read_bytes()
    with pytest.raises(RunError, match="line 2 is damaged") as caught:
        RowCache(path)
    assert caught.value.file == str(path) and "delete this line" in caught.value.remedy
    assert path.read_bytes() == before
    # The remedy works.
    first, _, last, _ = before.split(b"\n")
    path.write_bytes(first + b"\n" + last + b"\n")
    assert RowCache(path).get("a", "one") == []
    assert [one.name for one in tmp_path.iterdir()] == ["answers.jsonl"]


def test_a_failure_while_an_unfinished_line_is_dropped_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "answers.jsonl"
    RowCache(path).add("a", "one", [])
    path.write_bytes(path.read_bytes() + b"unfinished")
    before = path.read_bytes()

    def full(_):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            RowCache(path)
    assert path.read_bytes() == before
    assert RowCache(path).get("a", "one") == []


@pytest.fixture
def asked(monkeypatch):
    """The stems that a model was judged on, in their order."""
    found = []
    score_model = evaluation._score_model
    monkeypatch.setattr(
        evaluation,
        "_score_model",
        lambda clicked, *rest: found.append(clicked.stem.full_stem) or score_model(clicked, *rest),
    )
    return found


def test_everything_that_changes_answers_is_in_their_fingerprint():
    plain = EvaluationSettings(draws=4, seed=0, readings=Readings(), data="a")
    others = [
        replace(plain, draws=5),
        replace(plain, seed=1),
        replace(plain, readings=Readings(wd="paper")),
        replace(plain, data="b"),
    ]
    prints = {one.fingerprint("uniform") for one in (plain, *others)} | {plain.fingerprint("distance")}
    assert len(prints) == 6 and replace(plain).fingerprint("uniform") in prints


def test_other_draws_do_not_reuse_answers(hardlook, tmp_path, asked):
    words = ("clicks", "evaluate", "--models", "distance", "--scenes", 3, "-q", "--out", tmp_path, "--json")
    few = hardlook(*words, "--draws", 2)
    assert len(asked) == 3
    many = hardlook(*words, "--draws", 9)
    assert len(asked) == 6 and many.out != few.out
    # The answers of before are still there.
    assert hardlook(*words, "--draws", 2).out == few.out and len(asked) == 6


def test_other_data_does_not_reuse_answers(hardlook, tmp_path, clicked, broken, asked):
    # The fixture's world with its broken mask mended, so that a pixel of it can be changed here.
    [path] = (broken / "boundary_GT").glob("000003*")
    mask = clicked.masks["000003"].astype(np.uint8) * 255
    words = ("clicks", "evaluate", "--user-clicks", clicked.clicks, "--data", f"grabcut={broken}", "--draws", 2, "-q")
    words = (*words, "--models", "uniform", "--out", tmp_path / "out")
    Image.fromarray(mask).save(path)
    assert hardlook(*words).code == 0
    first = len(asked)
    assert hardlook(*words).code == 0 and len(asked) == first > 0
    mask[tuple(np.argwhere(mask)[0])] = 0
    Image.fromarray(mask).save(path)
    assert hardlook(*words).code == 0 and len(asked) == 2 * first
