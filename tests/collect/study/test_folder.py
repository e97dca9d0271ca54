"""A study that lacks something is refused before anybody comes.

A study folder is read whole or refused: with the file, the line and the field.
"""

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hardlook import __version__
from hardlook.collect.study.folder import check_complete, make_study, open_study
from hardlook.collect.study.settings import DISPLAY_MODES, StudySettings
from hardlook.collect.study.tasks import ClickTask, RatingTask, ReviewTask, format_task, list_items, parse_task
from hardlook.errors import DataError
from hardlook.fingerprints import hash_value

FILES = ("images/a.png", "masks/a.png", "targets/a.png")


def study_of(path, *modes, description=""):
    task = ClickTask("t1", "set/a", "set", "a", "", "a", *FILES[:2], 8, 6, {"cut-out": FILES[2]}, description)
    for name in FILES:
        (path / name).parent.mkdir(parents=True)
        (path / name).write_bytes(b"")
    return make_study(path, StudySettings(kind="clicks", title="Cups", modes=modes), [task], made={})


@pytest.mark.parametrize(("modes", "description"), [(("cut-out",), ""), (("text", "cut-out"), "a cup")])
def test_a_whole_study_is_served(tmp_path, modes, description):
    assert check_complete(study_of(tmp_path, *modes, description=description)) is None


@pytest.mark.parametrize("mode", ["text", "silhouette"])
def test_a_mode_without_targets_names_the_mode_the_task_and_the_file(tmp_path, mode):
    with pytest.raises(DataError, match=f"the display mode '{mode}'") as caught:
        check_complete(study_of(tmp_path, "cut-out", mode))
    assert (caught.value.unit, caught.value.file) == ("t1", str(tmp_path / "study.json"))


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_with_its_task(tmp_path, name):
    study = study_of(tmp_path, "cut-out")
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="is missing") as caught:
        check_complete(study)
    assert (caught.value.unit, caught.value.file) == ("t1", str(tmp_path / name))


def test_how_many_more_are_missing_is_counted(tmp_path):
    study = study_of(tmp_path, "cut-out")
    for name in FILES:
        (tmp_path / name).unlink()
    with pytest.raises(DataError, match="is missing, and 2 more"):
        check_complete(study)


SETTINGS = StudySettings(kind="review", title="Cats", devices=("any",))

REVIEW = ReviewTask("t1", "a.jpg", "a.jpg", "cat", "snow", "images/a.jpg")

CLICK = ClickTask("t1", "set/a", "set", "a", "", "a", "images/a.png", "masks/a.png", 8, 6, {"cut-out": "targets/a.png"})


@pytest.fixture
def folder(tmp_path):
    return make_study(tmp_path / "study", SETTINGS, [REVIEW], made={"data": "none"}).path


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_what_was_made_is_what_is_opened(folder):
    study = open_study(folder)
    made = {"schema": "hardlook.study-made/1", "hardlook": __version__, "data": "none"}
    assert (study.settings, study.tasks, study.made) == (SETTINGS, (REVIEW,), made)
    assert study.fingerprint == open_study(folder).fingerprint
    assert stat.S_IMODE((folder / "secret.key").stat().st_mode) == 0o600


def test_two_studies_have_two_secrets(tmp_path):
    secrets = {make_study(tmp_path / name, SETTINGS, [REVIEW], made={}).secret for name in "abc"}
    assert len(secrets) == 3 and all(len(secret) == 32 for secret in secrets)


def test_a_study_is_never_made_over_another(folder):
    with pytest.raises(DataError, match="a study here already"):
        make_study(folder, SETTINGS, [REVIEW], made={})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"click_radius": -1}, "click_radius"),
        ({"timings": {"image": "soon"}}, "timings.image"),
        ({"colour": "blue"}, "colour"),
        ({"schema": "hardlook.study/9"}, "schema"),
        ({"kind": "clicks"}, "devices"),
        ({"languages": ["en", "en"]}, "languages"),
        ({"title": ""}, "title"),
    ],
)
def test_a_wrong_setting_is_named(folder, changes, field):
    edit(folder / "study.json", **changes)
    with pytest.raises(DataError) as refused:
        open_study(folder)
    assert field in refused.value.what and Path(refused.value.file) == folder / "study.json" and refused.value.remedy


@pytest.mark.parametrize("name", ["study.json", "tasks.jsonl", "made.json", "secret.key"])
@pytest.mark.parametrize("harm", ["gone", "cut", "bytes"])
def test_a_part_that_is_missing_or_broken_is_named(folder, name, harm):
    path = folder / name
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:10] if harm == "cut" else b"\xff\xfe\x00")
    with pytest.raises(DataError) as refused:
        open_study(folder)
    assert refused.value.remedy
    assert Path(refused.value.file) in (path, folder)


@pytest.mark.parametrize("name", ["../a.jpg", "/etc/passwd", "images/../../a", "images\\a.jpg", "a\0.jpg"])
def test_a_picture_outside_of_the_study_is_refused(folder, name):
    line = {**json.loads((folder / "tasks.jsonl").read_text()), "image": name}
    (folder / "tasks.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match=r"line 1: .* outside the study"):
        open_study(folder)


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "a b", "", "x" * 65, "é"])
def test_an_id_that_could_be_a_path_is_refused(folder, name):
    line = {**json.loads((folder / "tasks.jsonl").read_text()), "id": name}
    (folder / "tasks.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match="line 1: an id is made of"):
        open_study(folder)


def test_a_task_twice_and_no_task_are_refused(folder):
    line = (folder / "tasks.jsonl").read_text()
    (folder / "tasks.jsonl").write_text(line * 2)
    with pytest.raises(DataError, match="line 2: a second task") as refused:
        open_study(folder)
    assert refused.value.unit == "t1"
    (folder / "tasks.jsonl").write_text(line.replace('"training": false', '"training": true'))
    with pytest.raises(DataError, match="the study has no tasks"):
        open_study(folder)


def test_a_missing_field_is_named_with_its_line(folder):
    line = json.loads((folder / "tasks.jsonl").read_text())
    del line["concept"]
    (folder / "tasks.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match="line 1: concept"):
        open_study(folder)


def test_a_click_is_handed_out_once_a_display_mode():
    items = list_items(CLICK, DISPLAY_MODES)
    assert [item.mode for item in items] == list(DISPLAY_MODES)
    assert {item.subject for item in items} == {"set/a"} and len({item.id for item in items}) == 5
    assert list_items(ReviewTask("t", "s", "n", "c", "x", "i", training=True), ()) == ()


@given(st.text(max_size=20), st.lists(st.text(max_size=8), min_size=2, max_size=4), st.floats(0, 1), st.booleans())
def test_tasks_come_back_from_their_lines(subject, labels, value, training):
    task = RatingTask("t1", subject, "pair", tuple(labels), "path", value, training=training)
    line = format_task(task)
    assert "\n" not in line and parse_task("ratings", json.loads(line)) == task


@given(st.integers(1, 100))
def test_seven_of_ten_and_the_same_share_of_others(clicks):
    needed = StudySettings(kind="clicks", title="x").inside_needed(clicks)
    # In whole numbers: the fewest clicks whose tenfold is not below seven times all.
    assert 10 * needed >= 7 * clicks > 10 * (needed - 1)


def test_the_spec_s_timings_are_the_defaults():
    timings = StudySettings(kind="clicks", title="x").timings
    assert (timings.image, timings.again) == (1.5, 1.5)
    assert {mode: timings.target_of(mode) for mode in DISPLAY_MODES} == {
        "text": 2.5, "cut-out": 2.0, "shifted": 2.0, "silhouette": 2.0, "highlighted": 2.0,
    }  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 61])
def test_a_phase_that_cannot_be_is_refused(value):
    with pytest.raises(ValidationError):
        StudySettings(kind="clicks", title="x", timings={"image": value})


SETTINGS_OF_0_1_0 = {
    "schema": "hardlook.study/1", "kind": "clicks", "title": "Cups", "modes": ["cut-out"],
    "timings": {"image": 1.5, "target": 2.0, "target_text": 2.5, "again": 1.5}, "batch_size": 10, "least_inside": 0.7,
    "click_radius": 5.0, "target_answers": 25, "devices": ["pc", "mobile"], "most_batches": 20,
    "return_after_minutes": 30.0, "training_tasks": 3, "question": "fit", "open_link": True, "languages": ["en", "de"],
    "consent": {}, "instructions": {}, "contact": "",
    "limits": {"per_participant": 240, "per_address": 6000, "body_bytes": 16384},
}  # fmt: skip

TASK_OF_0_1_0 = (
    '{"click_type": "first", "dataset": "mine", "description": "", "full_stem": "cat", "height": 8, "id": "t000001", '
    '"image": "images/a.png", "image_stem": "cat", "mask": "masks/a.png", "model_type": "", "object_stem": "", '
    '"shift": [0, 0], "subject": "mine/cat", "targets": {"cut-out": "targets/a.png"}, "training": false, "width": 9}'
)


def test_a_study_of_0_1_0_opens_as_it_was(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps(SETTINGS_OF_0_1_0))
    (tmp_path / "tasks.jsonl").write_text(TASK_OF_0_1_0 + "\n")
    (tmp_path / "made.json").write_text("{}")
    (tmp_path / "secret.key").write_text("00" * 32)
    study = open_study(tmp_path)
    assert study.settings.open_link and study.checks == () and study.stored_items == study.items
    # What the database of 0.1.0 holds as the fingerprint of its tasks: the lines of the file.
    assert study.fingerprint == hash_value([TASK_OF_0_1_0])
