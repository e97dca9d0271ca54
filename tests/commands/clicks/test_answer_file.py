"""Answers on disk: found by what gave them, whatever a kill left behind."""

import math

from hardlook.commands.clicks.answer_file import AnswerFile


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
