"""What a score lacks is counted and named: classes without a split or a level, pairs of two classes."""

import pytest
from toss_records import SPLITS, TOLD, UNTOLD, frame_of, row, rows_of_ious, scorecard


def notes(rows, **given):
    return {note.what: note for note in scorecard(frame_of(rows), **given).left_out}


def test_a_class_that_a_split_does_not_have_is_named():
    cells = {(1, 0, split, name): 40 for split in SPLITS for name in ("cat", "dog")}
    del cells[1, 0, "hard_sal", "dog"]
    note = notes(rows_of_ious(cells))["classes missing from a split of tier 1"]
    assert (note.count, note.examples) == (1, ("dog in hard_sal of fold 0",))


def test_a_split_that_nobody_has_is_the_folds_note_alone():
    cells = {(1, 0, split, name): 40 for split in SPLITS[:3] for name in ("cat", "dog")}
    found = notes(rows_of_ious(cells))
    assert set(found) == {"folds without lca", "folds without hca"}


@pytest.mark.parametrize("levels", [TOLD, UNTOLD])
@pytest.mark.parametrize("gone", ["L0", "L1", "L4", "L6"])
def test_a_class_that_lacks_a_level_is_named(levels, gone):
    cells = {(2, 1, level, name): 40 for level in levels for name in ("cat", "dog")}
    del cells[2, 1, gone, "cat"]
    note = notes(rows_of_ious(cells))["classes without scs"]
    assert (note.count, note.examples) == (1, (f"cat of fold 1: no {gone}",))


def test_the_released_groups_need_one_level_each():
    cells = {(2, 0, level, name): 40 for level in TOLD for name in ("cat", "dog")}
    for level in ("L4", "L5", "L3"):
        del cells[2, 0, level, "cat"]
    assert "classes without scs" not in notes(rows_of_ious(cells), scs="released")
    del cells[2, 0, "L6", "cat"]
    note = notes(rows_of_ious(cells), scs="released")["classes without scs"]
    assert note.examples == ("cat of fold 0: no L4 or L5 or L6",)


def test_whole_tiers_have_nothing_to_note():
    cells = {(1, 0, split, "cat"): 40 for split in SPLITS} | {(2, 0, level, "cat"): 40 for level in TOLD}
    assert notes(rows_of_ious(cells)) == {}


@pytest.mark.parametrize(
    ("reading", "what"),
    [("released", "pairs of two classes in tier 3 (kept)"), ("ours", "pairs of two classes in tier 3")],
)
def test_pairs_of_two_classes_are_counted_under_both_readings(reading, what):
    rows = [row(place, 3, -1, "", "owl", "a", [1, 1, 1, 9, 0, 0], mixed=place < 3) for place in range(5)]
    found = notes(rows, reading={"mixed": reading})
    assert (found[what].count, found[what].examples) == (3, ("pair-0000", "pair-0001", "pair-0002"))
