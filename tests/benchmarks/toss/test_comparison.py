"""Scores say whether they may stand beside the published table."""

import pytest
from one_shot_folders import write_one_shot_folder

from hardlook.benchmarks.one_shot_pairs import lists
from hardlook.benchmarks.toss.benchmark import TOSS
from hardlook.benchmarks.toss.options import TossOptions
from hardlook.data import toss_pairs
from hardlook.runs.in_memory import Rehearsal

SPLITS = ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal")


def records(kinds, folds=(0, 1, 2, 3)):
    rows = [
        {
            "unit": f"{fold}-{split}", "tier": 1, "fold": fold, "split": split, "class": f"class {fold}", "shots": 1,
            "mixed": False, "query": "a", "support": "b", "intersection": 1, "predicted": 2, "truth": 2,
            "predicted_void": 0, "void": 0, "pixels": 9, "listing": kinds[place % len(kinds)], "prediction": "",
        }
        for fold in folds
        for place, split in enumerate(SPLITS)
    ]  # fmt: skip
    return TOSS.schema.frame(rows)


def words(kinds, folds=(0, 1, 2, 3), **given):
    card = TOSS.score(records(kinds, folds), TossOptions(resamples=0, folds=folds, **given))
    return {(score.name, tuple(sorted(score.slice))): score.comparable for score in card.scores}


def test_whole_published_lists_are_comparable():
    found = words(["published"])
    assert found["lca", ()].startswith("comparable")
    assert found["lca", ("fold",)].startswith("comparable")
    assert found["iou", ("class", "split")] == ""


@pytest.mark.parametrize("kinds", [["built"], ["published", "published, 3 of 4 pairs"], ["published", "built"]])
def test_other_lists_and_parts_are_not(kinds):
    assert all(text.startswith("not comparable") for text in words(kinds).values())


def test_some_folds_are_comparable_fold_by_fold():
    found = words(["published"], folds=(0, 1))
    assert found["lca", ()] == "not comparable: the paper means over folds 0 to 3"
    assert found["lca", ("fold",)].startswith("comparable")


@pytest.fixture
def published(monkeypatch):
    """Every list counts as the published one."""
    monkeypatch.setattr(toss_pairs, "is_published", lambda name, content: True)


def kinds_of(folder, **given):
    rehearsal = Rehearsal("toss", {"data": folder.data, "resamples": 0, "tiers": "1", "folds": "1", **given})
    card = rehearsal.score("empty")
    return set(rehearsal.records("empty")["listing"]), {score.comparable for score in card.scores}


def test_a_list_of_which_no_pair_is_left_marks_the_others(published, tmp_path):
    folder = write_one_shot_folder(tmp_path, folds=(1,))
    assert kinds_of(folder)[0] == {"published"}
    gone = folder.pairs / "tiers" / "attribute" / "split1_q_hard_sal.txt"
    gone.write_text("1_2026_999999 1_2026_999998\n")
    listings, comparable = kinds_of(folder, subset="available")
    assert listings == {"published" + lists.IN_PART}
    assert all(text.startswith("not comparable: only a part") for text in comparable)


def test_a_list_that_is_not_there_marks_the_others_of_its_tier(published, tmp_path):
    folder = write_one_shot_folder(tmp_path, folds=(1,))
    (folder.pairs / "tiers" / "attribute" / "split1_q_hard_sal.txt").unlink()
    listings, comparable = kinds_of(folder)
    assert listings == {"published" + lists.IN_PART}
    assert all(text.startswith("not comparable: only a part") for text in comparable)
