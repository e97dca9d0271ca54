"""Folds: all that a folder has unless some are asked for, and none left out in silence."""

import shutil

import pytest
from one_shot_folders import one_shot_run, write_one_shot_folder

from hardlook.benchmarks.toss.options import TossOptions
from hardlook.errors import DataError
from hardlook.runs.in_memory import Rehearsal


@pytest.fixture(scope="module")
def six_folds(tmp_path_factory):
    """Fold 1's lists once more as folds 4 and 23."""
    folder = write_one_shot_folder(tmp_path_factory.mktemp("folds"), folds=(1,))
    for path in list(folder.pairs.rglob("split1_*.txt")):
        for fold in (4, 23):
            shutil.copy(path, path.with_name(path.name.replace("split1_", f"split{fold}_")))
    return folder


def folds_run(data, **given):
    rehearsal = Rehearsal("toss", {"data": data, "resamples": 0, **given})
    return set(rehearsal.records("empty")["fold"]), rehearsal.left_out


@pytest.mark.parametrize("given", [{"tiers": "1"}, {"tiers": "1,2"}, {"fixed": True}])
def test_every_fold_of_the_folder_runs_by_default(six_folds, given):
    folds, left_out = folds_run(six_folds.data, **given)
    assert folds == {1, 4, 23}
    assert left_out == ()


@pytest.mark.parametrize(("text", "folds"), [("4", {4}), ("1,23", {1, 23}), ("1-4", {1, 4})])
def test_folds_are_chosen_by_number_and_range(six_folds, text, folds):
    assert folds_run(six_folds.data, fixed=True, folds=text)[0] == folds


def test_folds_asked_for_and_not_there_are_counted(six_folds):
    _, [note] = folds_run(six_folds.data, fixed=True, folds="1-4")
    assert (note.what, note.count, note.examples) == (
        "lists of pairs",
        2,
        ("pascal5i/split2_test", "pascal5i/split3_test"),
    )


def test_studies_take_every_fold_too(six_folds, tmp_path):
    done = one_shot_run(tmp_path / "run", six_folds.data, benchmark="bias-support", model="empty", pairs_a_class=2)
    assert set(done.scored.records["fold"]) == {1, 4, 23}


def test_the_planted_world_says_which_folds_it_does_not_have():
    rehearsal = Rehearsal("toss", {"scenes": 24, "resamples": 0, "folds": "1,3"})
    assert set(rehearsal.records("empty")["fold"]) == {1, -1}
    [note] = rehearsal.left_out
    assert (note.count, note.examples, note.why) == (1, ("fold 3",), "the planted world has folds 0 to 1")
    with pytest.raises(DataError, match="no list of these tiers and of fold 3") as caught:
        Rehearsal("toss", {"scenes": 24, "tiers": "1,2", "folds": "3"})
    assert "folds 0 to 1" in str(caught.value)


def test_all_folds_is_the_default():
    assert TossOptions().folds is None
    assert TossOptions(folds="0-3").folds == (0, 1, 2, 3)
