"""`hardlook collect init clicks` as it is typed."""

import json

import numpy as np
import pytest
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
    ("words", "said"),
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
        (["--data", "grabcut=nowhere"], "there is no such folder"),
        (["--title", ""], "title: String should have at least 1 character"),
    ],
)
def test_what_cannot_be_asked_for(hardlook, tmp_path, words, said):
    answer = hardlook("collect", "init", "clicks", tmp_path / "s", *words)
    assert answer.code != 0 and said in answer.err and answer.out == ""
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


@pytest.mark.real
def test_grabcut_by_name(hardlook, tmp_path, shared_data):
    data = f"grabcut={shared_data / 'data' / 'GrabCut'}"
    answer = hardlook("collect", "init", "clicks", tmp_path / "s", "--data", data, "--at-most", 2, "--json", "-q")
    document = json.loads(answer.out)
    assert (document["tasks"], document["left_out"][0]["what"]) == (2, "instances of grabcut not drawn")
    bad = hardlook("collect", "init", "clicks", tmp_path / "t", "--data", data, "--mode", "text")
    assert bad.code == 1 and "no description for the text mode" in bad.err
