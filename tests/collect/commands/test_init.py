"""`hardlook collect init clicks` as it is typed.

`hardlook collect init review`, as typed.
"""

import json

import numpy as np
import pytest
from command_line import CommandLine
from PIL import Image

from hardlook.collect.study.folder import open_study
from hardlook.collect.study.pictures import read_mask
from hardlook.data.previous_masks import PreviousMasks
from hardlook.world.planted import PlantedWorld


def test_a_planted_study_and_what_comes_next(hardlook, tmp_path):
    answer = hardlook("collect", "init", "clicks", tmp_path / "s", "--scenes", 3, "--training", 1)
    assert answer.code == 0, answer.err
    assert "3 tasks on 3 images, shown as cut-out; 150 valid clicks wanted, on pc and mobile." in answer.out
    assert f"Next: hardlook collect serve {tmp_path / 's'}" in answer.out
    assert "Note: these are drawn scenes of the planted world; --data takes your own images." in answer.out
    assert "3/3" in answer.err and "3/3" not in answer.out
    study = open_study(tmp_path / "s")
    assert len(study.items) == 3 and len(study.training) == 1


def test_every_flag_reaches_the_settings(hardlook, tmp_path):
    for name, text in (("en.txt", "I agree.\n"), ("de.txt", "Einverstanden."), ("how.txt", "Click well.")):
        (tmp_path / name).write_text(text)
    answer = hardlook(
        "collect", "init", "clicks", tmp_path / "s", "--scenes", 2, "--training", 0, "--mode", "text",
        "--mode", "silhouette", "--title", "Cups <1>", "--target-clicks", 3, "--devices", "mobile", "--batch-size", 4,
        "--most-batches", 2, "--radius", 7.5, "--image-seconds", 1, "--target-seconds", 2.25, "--text-seconds", 3,
        "--again-seconds", 0.5, "--language", "de", "--language", "en", "--consent", tmp_path / "de.txt",
        "--consent", f"en={tmp_path / 'en.txt'}", "--instructions", f"en={tmp_path / 'how.txt'}", "--contact", "me",
        "--invited-only", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert (document["tasks"], document["clicks_wanted"], document["modes"]) == (2, 12, ["text", "silhouette"])
    settings = open_study(tmp_path / "s").settings
    assert (settings.title, settings.target_answers, settings.devices) == ("Cups <1>", 3, ("mobile",))
    assert (settings.batch_size, settings.most_batches, settings.click_radius) == (4, 2, 7.5)
    assert tuple(settings.timings.model_dump().values()) == (1, 2.25, 3, 0.5)
    assert settings.languages == ("de", "en") and not settings.open_link and settings.contact == "me"
    assert settings.consent == {"de": "Einverstanden.", "en": "I agree."}
    assert settings.instructions == {"en": "Click well."}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--at-most", 3], "--at-most without --data"),
        (["--split", "val", "--min-area", 3], "--min-area, --split without --data"),
        (["--mode", "sketch"], "modes.0: Input should be"),
        (["--mode", "text", "--mode", "text"], "modes names one thing twice"),
        (["--devices", "tablet"], "remedy: change --devices"),
        (["--mode", "cutout"], "not 'cutout'\n  remedy: change --mode"),
        (["--descriptions", "words.csv"], "--descriptions without --mode text"),
        (["--masks", "run"], "--masks in a first round"),
        (["--round", 2], "a second round without --masks"),
        (["--round", 2, "--masks", "run", "--skip-broken"], "--skip-broken in a second round"),
        (["--consent", "fr=x.txt"], "--consent fr: no language of this study"),
        (["--consent", "nowhere.txt"], "the file does not exist"),
        (["--data", "grabcut"], "expected NAME=VALUE"),
        (["--data", "grabcut=nowhere"], "no such folder"),
        (["--title", ""], "title: String should have at least 1 character"),
    ],
)
def test_what_cannot_be_asked_for(hardlook, tmp_path, words, message):
    answer = hardlook("collect", "init", "clicks", tmp_path / "s", *words)
    assert answer.code != 0 and message in answer.err and answer.out == ""
    assert not (tmp_path / "s").exists()


def test_words_for_no_object_are_told(hardlook, tmp_path):
    (tmp_path / "words.csv").write_text("full_stem,description\n000001,the first\n00002,misspelt\n")
    words = ("--scenes", 2, "--training", 0, "--mode", "text", "--descriptions", tmp_path / "words.csv", "-q")
    answer = hardlook("collect", "init", "clicks", tmp_path / "s", *words)
    assert "Note: 1 description of --descriptions fit no object of the study." in answer.out
    first, second = open_study(tmp_path / "s").tasks
    assert first.description == "the first" and second.description == PlantedWorld(seed=0, count=2).concept(1)


def test_a_study_is_never_overwritten(hardlook, tmp_path):
    words = ("collect", "init", "clicks", tmp_path / "s", "--scenes", 1, "--training", 0, "-q")
    assert hardlook(*words).code == 0
    before = (tmp_path / "s" / "secret.key").read_text()
    again = hardlook(*words)
    assert again.code == 1 and "there is a study here already" in again.err
    assert (tmp_path / "s" / "secret.key").read_text() == before


def test_a_second_round_on_masks_of_a_method(hardlook, tmp_path):
    world = PlantedWorld(seed=0, count=2)
    (tmp_path / "masks" / "half").mkdir(parents=True)
    truths = [rendered.target_mask for rendered in world]
    for i, truth in enumerate(truths):
        # Nothing of the object below its middle row.
        lost = np.arange(len(truth))[:, None] > np.nonzero(truth)[0].mean()
        stored = Image.fromarray(np.where(truth & ~lost, 255, 0).astype(np.uint8))
        stored.save(tmp_path / "masks" / "half" / f"{i + 1:06d}.png")
    words = ("--scenes", 2, "--round", 2, "--masks", tmp_path / "masks", "--mode", "silhouette", "--training", 0)
    answer = hardlook("collect", "init", "clicks", tmp_path / "s", *words, "-q")
    assert answer.code == 0, answer.err
    study = open_study(tmp_path / "s")
    assert study.made["round"] == 2 and len(study.tasks) == 2
    previous = PreviousMasks(study.path / "previous-masks")
    for task, truth in zip(study.tasks, truths, strict=True):
        assert (task.model_type, task.click_type) == ("half", "fn")
        rows = np.nonzero(truth)[0]
        missing = truth & (np.arange(len(truth))[:, None] > rows.mean())
        assert np.array_equal(read_mask(study.file(task.mask)), missing)
        assert np.array_equal(previous.error(task.full_stem, truth, "fn", task.dataset), missing)


def test_a_second_round_without_an_error_says_why(hardlook, tmp_path):
    (tmp_path / "masks" / "right").mkdir(parents=True)
    for i, rendered in enumerate(PlantedWorld(seed=0, count=1)):
        stored = Image.fromarray(np.where(rendered.target_mask, 255, 0).astype(np.uint8))
        stored.save(tmp_path / "masks" / "right" / f"{i + 1:06d}.png")
    words = ("--scenes", 1, "--round", 2, "--masks", tmp_path / "masks")
    answer = hardlook("collect", "init", "clicks", tmp_path / "s", *words, "-q")
    assert answer.code == 1 and "every prediction is better than 0.95" in answer.err


@pytest.mark.parametrize("language", ["german", "en,de"])
def test_a_language_that_nothing_is_in_is_refused(hardlook, tmp_path, language):
    words = ("collect", "init", "ratings", "--labels", "voc20", "--measures", "path", "--pairs", 2)
    refused = hardlook(*words, tmp_path / "s", "--language", "en", "--language", language)
    assert refused.code == 1 and f"--language {language}: the pages do not have it" in refused.err
    assert "with --language before each" in refused.err and not (tmp_path / "s").exists()
    (tmp_path / "oui.txt").write_text("Je suis d'accord.")
    own = ("--language", "fr", "--consent", tmp_path / "oui.txt")
    assert hardlook(*words, tmp_path / "s", *own).code == 0
    assert open_study(tmp_path / "s").settings.consent == {"fr": "Je suis d'accord."}


@pytest.mark.real
def test_grabcut_by_name(hardlook, tmp_path, shared_data):
    data = f"grabcut={shared_data / 'data' / 'GrabCut'}"
    answer = hardlook("collect", "init", "clicks", tmp_path / "s", "--data", data, "--at-most", 2, "--json", "-q")
    document = json.loads(answer.out)
    assert (document["tasks"], document["left_out"][0]["what"]) == (2, "instances of grabcut not drawn")
    bad = hardlook("collect", "init", "clicks", tmp_path / "t", "--data", data, "--mode", "text")
    assert bad.code == 1 and "no description for the text mode" in bad.err


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
    ("words", "message"),
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
def test_mistakes_are_reported_and_leave_no_study(hardlook, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    answer = hardlook("collect", "init", "ratings", "study", *words)
    assert answer.code == 1
    assert message in answer.err
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
    document = json.loads(answer.out)
    counts = [document[name] for name in ("tasks", "reviews_wanted", "reviewers", "participants_needed")]
    assert counts == [4, 12, 3, 3]
    assert document["left_out"][0]["count"] == 2
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


def test_origins_that_may_frame_the_pages_are_a_setting(hardlook, tmp_path):
    words = ("collect", "init", "ratings", tmp_path / "study", "--labels", "voc20", "--measures", "path", "--pairs", 2)
    mturk = ("--platform", "mturk", "--completion-url", "https://www.mturk.com/mturk/externalSubmit")
    refused = hardlook(*words, *mturk)
    assert "externalSubmit" in refused.err and "frame_origins" in refused.err
    refused = hardlook(*words, "--frame-origin", "worker.mturk.com")
    assert "'worker.mturk.com'" in refused.err and "change --frame-origin" in refused.err
    origins = ["https://worker.mturk.com", "https://workersandbox.mturk.com"]
    hardlook(*words, *mturk, "--frame-origin", origins[0], "--frame-origin", origins[1])
    assert json.loads((tmp_path / "study" / "study.json").read_text())["frame_origins"] == origins
