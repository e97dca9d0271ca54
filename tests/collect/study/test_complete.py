"""A study that lacks something is refused before anybody comes."""

import pytest

from hardlook.collect.study.complete import refuse_incomplete
from hardlook.collect.study.folder import make_study
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ClickTask
from hardlook.errors import DataError

FILES = ("images/a.png", "masks/a.png", "targets/a.png")


def study_of(path, *modes, description=""):
    task = ClickTask("t1", "set/a", "set", "a", "", "a", *FILES[:2], 8, 6, {"cut-out": FILES[2]}, description)
    for name in FILES:
        (path / name).parent.mkdir(parents=True)
        (path / name).write_bytes(b"")
    return make_study(path, StudySettings(kind="clicks", title="Cups", modes=modes), [task], made={})


@pytest.mark.parametrize(("modes", "description"), [(("cut-out",), ""), (("text", "cut-out"), "a cup")])
def test_a_whole_study_is_served(tmp_path, modes, description):
    assert refuse_incomplete(study_of(tmp_path, *modes, description=description)) is None


@pytest.mark.parametrize("mode", ["text", "silhouette"])
def test_a_mode_without_targets_names_the_mode_the_task_and_the_file(tmp_path, mode):
    with pytest.raises(DataError, match=f"the display mode '{mode}'") as caught:
        refuse_incomplete(study_of(tmp_path, "cut-out", mode))
    assert (caught.value.unit, caught.value.file) == ("t1", str(tmp_path / "study.json"))


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_with_its_task(tmp_path, name):
    study = study_of(tmp_path, "cut-out")
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="is missing") as caught:
        refuse_incomplete(study)
    assert (caught.value.unit, caught.value.file) == ("t1", str(tmp_path / name))


def test_how_many_more_are_missing_is_counted(tmp_path):
    study = study_of(tmp_path, "cut-out")
    for name in FILES:
        (tmp_path / name).unlink()
    with pytest.raises(DataError, match="is missing, and 2 more"):
        refuse_incomplete(study)
