"""Published classes and pairs, cell by cell, and the comparison of data in hand with them."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.metacoco.published import compare_counts, list_concepts, list_rows

SPLITS = {"training": "train", "validation": "val", "testing": "test"}

CONCEPTS = {one.name: one for one in list_concepts()}

CELLS = {(one.name, context): count for one in list_concepts() for context, count in one.contexts.items()}

OWN_SPLITS = {one.name: [one.split] for one in list_concepts()}


def printed(shared_data, name):
    with (shared_data / "reference" / "metacoco" / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def as_printed():
    """All images of every class: what Table 5 does not attribute stands under a context of its own."""
    cells = dict(CELLS)
    for one in list_concepts():
        rest = one.images - sum(one.contexts.values())
        if rest > 0:
            cells[one.name, "unattributed"] = rest
    return cells


@pytest.mark.real
def test_every_class(shared_data):
    rows = printed(shared_data, "metacoco_classes.csv")
    assert [row["concept"] for row in rows] == list(CONCEPTS)
    for row in rows:
        one = CONCEPTS[row["concept"]]
        assert (one.split, one.images) == (SPLITS[row["split"]], int(row["count_table4"]))
        assert sum(one.contexts.values()) == int(row["sum_table5"] or 0)
        assert len(one.contexts) == int(row["contexts_table5"] or 0)
        inferred = row["concept"] in {cell["concept"] for cell in list_rows("table-5") if cell["note"]}
        assert inferred == row["status"].startswith("one cell inferred")
        assert one.settled == (row["status"] == "sum-exact" or inferred)


@pytest.mark.real
def test_every_pair(shared_data):
    rows = [row for row in printed(shared_data, "metacoco_concept_context.csv") if row["context"]]
    assert len(rows) == 1237
    assert {(row["concept"], row["context"]): int(row["count"]) for row in rows} == CELLS


def test_the_splits_are_the_largest_then_the_next_then_the_last():
    parts = {name: [one.images for one in list_concepts() if one.split == name] for name in ("train", "test", "val")}
    assert [len(images) for images in parts.values()] == [64, 20, 16]
    assert min(parts["train"]) > max(parts["test"]) and min(parts["test"]) > max(parts["val"])


def test_the_published_data_differ_from_themselves_only_where_the_paper_does():
    found = compare_counts(as_printed(), OWN_SPLITS)
    assert (found.absent, found.extra, found.splits) == ((), (), ())
    # Motorcycle's contexts sum to 47 more than its images.
    assert [(one.concept, one.published, one.here) for one in found.classes] == [("motorcycle", 3755, 3802)]
    assert {one.concept for one in found.pairs} == {"fox", "tower", "suit", "surfboard", "tie"}
    assert not any(one.settled for one in found.pairs)
    assert found.equal_pairs == 1237
    whole = {key: count for key, count in as_printed().items() if key[0] != "motorcycle"}
    assert compare_counts({**whole, ("motorcycle", "grass"): 3755}, OWN_SPLITS).same


def test_names_are_compared_without_case_hyphens_and_underscores():
    one = CONCEPTS["hot air balloon"]
    cells = {("Hot_Air-balloon", context.replace(" ", "_").upper()): count for context, count in one.contexts.items()}
    found = compare_counts(cells, {"Hot_Air-balloon": ["train"]})
    assert (found.equal_classes, found.equal_pairs) == (1, len(one.contexts))
    assert (found.classes, found.pairs, found.splits, found.extra) == ((), (), (), ())
    assert len(found.absent) == 99


def test_what_differs_is_named():
    cells = {("dog", "grass"): 600, ("dog", "on mars"): 3, ("unicorn", "grass"): 2}
    found = compare_counts(cells, {"dog": ["test", "train"], "unicorn": []})
    assert found.extra == ("unicorn",) and not found.same
    assert found.splits == (("dog", "train", ("test", "train")),)
    assert [(one.concept, one.published, one.here) for one in found.classes] == [("dog", 5820, 603)]
    pairs = {one.context: (one.published, one.here) for one in found.pairs}
    assert pairs["grass"] == (649, 600) and pairs["on mars"] == (0, 3) and pairs["water"] == (886, 0)
    assert compare_counts({("dog", "grass"): 1}, {}).splits == ()


@given(key=st.sampled_from(sorted(CELLS)), change=st.integers(-5, 5).filter(bool))
def test_one_changed_pair_is_found_alone(key, change):
    before = compare_counts(as_printed(), OWN_SPLITS)
    after = compare_counts({**as_printed(), key: CELLS[key] + change}, OWN_SPLITS)
    new = set(after.pairs) - set(before.pairs)
    assert [(one.concept, one.context, one.here - one.published) for one in new] == [(*key, change)]
    assert after.equal_pairs == before.equal_pairs - 1
