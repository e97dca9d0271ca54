"""`hardlook export pairs`."""

from __future__ import annotations

import json
import shlex

import pytest
from command_line import CommandLine
from one_shot_folders import write_one_shot_folder


@pytest.fixture
def hardlook(capsys, monkeypatch):
    return CommandLine(capsys, monkeypatch)


def test_the_command_says_how_to_score_the_answers(hardlook, tmp_path):
    words = ("export", "pairs", "--scenes", "24", "--tiers", "3", "--folds", "0-1", "--per-fold", "--quiet")
    answer = hardlook(*words, "--out", tmp_path / "pairs")
    assert answer.code == 0 and str(tmp_path / "pairs" / "pairs.csv") in answer.out
    command = shlex.split(answer.out.splitlines()[-1])
    assert command[:3] == ["hardlook", "run", "toss"]
    assert command[command.index("--pred") + 1] == "ANSWERS" and "--per-fold" in command
    counts = json.loads(hardlook(*words, "--out", tmp_path / "pairs", "--json").out)
    assert counts["units"] > 0 and counts["failed"] == {}


def test_studies_have_their_own_pairs_and_command(hardlook, tmp_path):
    words = ("--scenes", "24", "--pairs-a-class", "1", "--quiet", "--out", tmp_path / "pairs")
    answer = hardlook("export", "pairs", "bias-support", *words)
    assert answer.code == 0
    assert "hardlook bias support --pred ANSWERS" in answer.out
    refused = hardlook("export", "pairs", "rclicks", *words)
    assert refused.code == 1 and "rclicks: this is not a benchmark on pairs" in refused.err


def test_unreadable_files_give_the_exit_code_of_failures(hardlook, tmp_path):
    folder = write_one_shot_folder(tmp_path / "data", folds=(0,))
    folder.image(folder.some_query).write_bytes(b"no picture")
    data = [word for name, path in folder.data.items() for word in ("--data", f"{name}={path}")]
    answer = hardlook("export", "pairs", *data, "--fixed", "--quiet", "--out", tmp_path / "pairs")
    assert answer.code == 3 and "units could not be read" in answer.err and folder.some_query in answer.err


def test_help_lists_the_options_that_change_files(hardlook):
    answer = hardlook("export", "pairs", "--help")
    assert "--per-fold" in answer.out and "--resamples" not in answer.out and "--saliency" not in answer.out
    assert "hardlook export pairs bias-support" in answer.out
