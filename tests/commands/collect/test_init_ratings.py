import json

import pytest
from command_line import CommandLine

from hardlook.collect.study.folder import open_study


@pytest.fixture
def hardlook(capsys, monkeypatch):
    return CommandLine(capsys, monkeypatch)


def test_without_options_it_asks_about_voc_under_four_measures(hardlook, tmp_path):
    answer = hardlook("collect", "init", "ratings", tmp_path / "study")
    assert answer.code == 0
    study = open_study(tmp_path / "study")
    assert len(study.items) == 40 * 4
    assert len({item.subject for item in study.items}) == 40
    settings = study.settings
    assert (settings.kind, settings.question, settings.devices, settings.target_answers) == (
        *("ratings", "fit", ("any",)),
        10,
    )
    # 160 tasks of 10 ratings, and nobody rates one of the 40 pairs twice.
    assert "wanted: 1600 ratings, 10 of each task, by 40 people at least" in answer.out
    assert f"Next: hardlook collect serve {tmp_path / 'study'}" in answer.out


def test_options_reach_the_study(hardlook, tmp_path):
    (tmp_path / "consent.txt").write_text("Ich stimme zu.")
    words = [
        "--labels",
        "coco80",
        "--measures",
        "wup, path",
        "--pairs",
        "12",
        "--raters",
        "3",
        "--question",
        "likeness",
    ]
    words += ["--batch-size", "4", "--most-batches", "2", "--title", "Alike?", "--language", "de", "--seed", "5"]
    words += ["--consent", tmp_path / "consent.txt", "--invited-only", "--contact", "lab@example.org", "--json"]
    answer = hardlook("collect", "init", "ratings", tmp_path / "study", *words)
    assert answer.code == 0
    document = json.loads(answer.out)
    assert document["measures"] == ["wup", "path"]
    assert (document["tasks"], document["ratings_wanted"]) == (12, 36)
    # Two batches of four: eight ratings a person.
    assert document["participants_needed"] == 5
    settings = open_study(tmp_path / "study").settings
    assert (settings.title, settings.languages, settings.open_link) == ("Alike?", ("de",), False)
    assert (settings.consent, settings.contact) == ({"de": "Ich stimme zu."}, "lab@example.org")
    assert (settings.batch_size, settings.most_batches, settings.target_answers) == (4, 2, 3)


def test_labels_of_a_file_that_wordnet_lacks_are_an_error_in_words(hardlook, tmp_path):
    (tmp_path / "labels.txt").write_text("cat\nglorp\n")
    answer = hardlook("collect", "init", "ratings", tmp_path / "study", "--labels", tmp_path / "labels.txt")
    assert answer.code == 1
    assert "glorp" in answer.err
    assert "Traceback" not in answer.err
    words = ["--labels", tmp_path / "labels.txt", "--unknown", "zero", "--measures", "path"]
    treated = hardlook("collect", "init", "ratings", tmp_path / "study", *words)
    assert treated.code == 0
    assert "path: 2 labels were not simply looked up" in treated.out
    assert set(open_study(tmp_path / "study").made["measures"]["path"]["treated"]) == {"cat", "glorp"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--measures", "path,nearly"], "there is no measure 'nearly'"),
        (["--measures", "path,path"], "different measures"),
        (["--labels", "voc2000"], "no label set and no file 'voc2000'"),
        (["--pairs", "0"], "nothing to rate"),
        (["--run", "nowhere"], "no run here"),
        (["--title", ""], "title"),
        (["--consent", "nowhere.txt"], "nowhere.txt"),
        (["--consent", "fr=consent.txt"], "fr: no language of this study"),
        (["--source", "path"], "expected NAME=VALUE"),
    ],
)
def test_mistakes_are_said_and_leave_no_study(hardlook, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    answer = hardlook("collect", "init", "ratings", "study", *words)
    assert answer.code == 1
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert not (tmp_path / "study" / "study.json").exists()


def test_a_second_study_in_the_folder_is_refused(hardlook, tmp_path):
    words = ("collect", "init", "ratings", tmp_path / "study", "--pairs", "2", "--measures", "path")
    assert hardlook(*words).code == 0
    again = hardlook(*words)
    assert again.code == 1
    assert "a study here already" in again.err


def test_help_has_examples(hardlook):
    answer = hardlook("collect", "init", "ratings", "--help")
    assert answer.code == 0
    assert "hardlook collect init ratings study --labels coco80" in answer.out
