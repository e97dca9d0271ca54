"""`hardlook join`."""

from __future__ import annotations

import json

import pytest
from command_line import CommandLine
from small_runs import small_run
from split_runs import scores_without_checksum, split_run


@pytest.fixture
def hardlook(capsys, monkeypatch):
    return CommandLine(capsys, monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("join") / "whole"
    small_run(out, scenes=4)
    return out


def test_joined_runs_are_scored_reported_and_printed(hardlook, whole, tmp_path):
    parts = split_run(whole, tmp_path)
    answer = hardlook("join", *parts, "--out", tmp_path / "joined")
    assert answer.code == 0 and "4 scored" in answer.out and str(tmp_path / "joined" / "report.html") in answer.out
    assert f"Joined from 2 runs: {parts[0]}, {parts[1]}." in (tmp_path / "joined" / "report.html").read_text()
    assert scores_without_checksum(tmp_path / "joined") == scores_without_checksum(whole)
    again = hardlook("join", *parts, "--out", tmp_path / "joined", "--json")
    assert json.loads(again.out)["units"]["scored"] == 4


def test_an_error_names_both_runs(hardlook, whole, tmp_path):
    part, _ = split_run(whole, tmp_path)
    answer = hardlook("join", part, whole, "--out", tmp_path / "joined")
    assert answer.code == 1
    assert f"{part} and {whole} have 2 units in common" in answer.err
    assert "compare runs on the same units" in answer.err


def test_failed_units_give_the_exit_code_of_a_run(hardlook, tmp_path):
    model = {"model": "troubled_segmenters:Raises", "args": {"scenes": "3"}, "max_failures": 0.5}
    small_run(tmp_path / "whole", scenes=4, **model)
    answer = hardlook("join", *split_run(tmp_path / "whole", tmp_path), "--out", tmp_path / "joined")
    assert answer.code == 3 and "1 units failed" in answer.err
