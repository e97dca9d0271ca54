"""Scores say whether they may stand beside the published table."""

import pytest
from one_shot_folders import write_one_shot_folder

from hardlook.benchmarks.one_shot_pairs import lists
from hardlook.benchmarks.toss.benchmark import TOSS
from hardlook.benchmarks.toss.comparison import FOLDS, RanPairs, comparable_words
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
            "salient": -1, "predicted_salient": -1, "truth_salient": -1, "found_salient": -1, "similarity": -2.0,
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


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        ({"reading": {"void": "background"}}, "counted with void=background"),
        ({"size": "512"}, "counted with images and masks squashed to 512 x 512 first"),
        ({"shots": (5,)}, "the paper has one support a pair"),
    ],
)
def test_what_is_counted_otherwise_is_not_comparable_and_says_so(given, differs):
    ran = RanPairs("", {0: FOLDS, 1: FOLDS, 2: FOLDS})
    for name, where in (("lca", {}), ("scs", {}), ("miou", {}), ("miou", {"split": "easy_sal", "fold": "1"})):
        assert comparable_words(name, where, ran, TossOptions()).startswith("comparable")
        assert comparable_words(name, where, ran, TossOptions(**given)) == f"not comparable: {differs}"


def test_readings_of_one_score_leave_the_others():
    ran = RanPairs("", {1: FOLDS, 2: FOLDS, 3: (-1,)})
    released = TossOptions(reading={"scs": "released"})
    assert comparable_words("scs", {}, ran, released) == "not comparable: the published SCS follows scs=paper"
    assert comparable_words("lca", {}, ran, released).startswith("comparable")
    told = TossOptions(encoder="planted-encoder")
    assert "pools them" in comparable_words("scs", {}, ran, told)
    assert comparable_words("miou", {"level": "L0"}, ran, told).startswith("comparable")


def test_one_models_gs_is_not_the_papers_mean_over_models():
    ran = RanPairs("", {3: (-1,)})
    assert comparable_words("gs", {}, ran, TossOptions()) == (
        "not comparable: the paper means over four folds' models, and one model ran"
    )
    dropped = comparable_words("gs", {}, ran, TossOptions(reading={"mixed": "ours"}))
    assert "pairs of two classes are left out (mixed=ours)" in dropped


def test_the_papers_salient_half_is_of_other_pairs():
    found = words(["published"])
    assert found["salient", ()].startswith("not comparable")
    assert found["salience-gap", ()] == ""


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
