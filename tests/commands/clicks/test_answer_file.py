"""Answers on disk: found by what gave them, whatever a kill left behind."""

import math
import os

import pytest

from hardlook.commands.clicks.answer_file import AnswerFile
from hardlook.errors import RunError


def test_an_unfinished_line_is_dropped_and_the_next_answer_starts_a_line(tmp_path):
    path = tmp_path / "deep" / "answers.jsonl"
    AnswerFile(path).add("a", "one", [{"p": math.nan, "ks": True}])
    path.write_text(path.read_text() + '{"answers": "a", "key": "two", "ro')
    answers = AnswerFile(path)
    assert answers.get("a", "two") is None
    answers.add("a", "two", [])
    again = AnswerFile(path)
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
    AnswerFile(path).add("a", "one", [])
    path.write_bytes(path.read_bytes() + line + b"\n" + path.read_bytes() + b"unfinished")
    before = path.read_bytes()
    with pytest.raises(RunError, match="line 2 is damaged") as caught:
        AnswerFile(path)
    assert caught.value.file == str(path) and "delete this line" in caught.value.remedy
    assert path.read_bytes() == before
    # The remedy works.
    first, _, last, _ = before.split(b"\n")
    path.write_bytes(first + b"\n" + last + b"\n")
    assert AnswerFile(path).get("a", "one") == []
    assert [one.name for one in tmp_path.iterdir()] == ["answers.jsonl"]


def test_a_failure_while_an_unfinished_line_is_dropped_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "answers.jsonl"
    AnswerFile(path).add("a", "one", [])
    path.write_bytes(path.read_bytes() + b"unfinished")
    before = path.read_bytes()

    def full(_):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            AnswerFile(path)
    assert path.read_bytes() == before
    assert AnswerFile(path).get("a", "one") == []
