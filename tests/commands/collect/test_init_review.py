"""`hardlook collect init review`, as typed."""

import json

import pytest
from command_line import CommandLine

from hardlook.collect.study.folder import open_study


@pytest.fixture
def hardlook(capsys, monkeypatch):
    return CommandLine(capsys, monkeypatch)


def test_a_planted_review(hardlook, tmp_path):
    answer = hardlook("collect", "init", "review", tmp_path / "study", "--scenes", 5, "--title", "Birds & cups")
    assert answer.code == 0
    assert "5 claims about 5 images; 10 reviews wanted" in answer.out
    assert f"hardlook collect serve {tmp_path / 'study'}" in answer.out.replace("\n", "")
    study = open_study(tmp_path / "study")
    assert (study.settings.kind, study.settings.target_answers, study.settings.devices) == ("review", 2, ("any",))
    assert study.settings.title == "Birds & cups" and len(study.training) == 3


def test_a_folder_of_candidates_as_json(hardlook, tmp_path):
    hardlook("collect", "init", "review", tmp_path / "planted", "--scenes", 6, "-q")
    words = ["--data", f"candidates={tmp_path / 'planted' / 'candidates'}", "--reviewers", 3, "--at-most", 4]
    answer = hardlook("collect", "init", "review", tmp_path / "study", *words, "--batch-size", 2, "--json", "-q")
    told = json.loads(answer.out)
    assert (told["tasks"], told["reviews_wanted"], told["reviewers"], told["participants_needed"]) == (4, 12, 3, 3)
    assert told["left_out"][0]["count"] == 2
    assert open_study(tmp_path / "study").settings.batch_size == 2


def test_other_data_is_refused_in_words(hardlook, tmp_path):
    answer = hardlook("collect", "init", "review", tmp_path / "study", "--data", "voc=VOC2012")
    assert answer.code != 0 and "candidates=DIR" in answer.err
    answer = hardlook("collect", "init", "review", tmp_path / "study", "--data", tmp_path / "nowhere")
    assert answer.code != 0 and "no such folder" in answer.err
    assert not (tmp_path / "study").exists()


def test_the_help_has_examples(hardlook):
    answer = hardlook("collect", "init", "review", "--help")
    assert answer.code == 0 and "candidates=FOLDER" in answer.out and "[split/]" in answer.out
