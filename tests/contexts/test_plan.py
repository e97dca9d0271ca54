"""Where images go: the dial in training, even contexts in the test, no image twice."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.contexts.plan import plan_contexts
from hardlook.errors import OptionError

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=15)
CONTEXTS = ("snow", "dusk", "fog", "grey")


def folders_of(counts):
    return {f"c{i}": tuple(f"c{i}/{j}.jpg" for j in range(count)) for i, count in enumerate(counts)}


@settings(max_examples=60)
@given(sizes, st.integers(1, 4), st.floats(0, 1), st.integers(0, 99), st.sampled_from(["concept", "image"]))
def test_laws(counts, contexts, correlation, seed, split_by):
    folders = folders_of(counts)
    plan = plan_contexts(folders, CONTEXTS[:contexts], correlation=correlation, seed=seed, split_by=split_by)
    assert sorted(one.source for one in plan) == sorted(name for names in folders.values() for name in names)
    assert len({one.place for one in plan}) == len(plan)
    cells = Counter((one.split, one.concept, one.context) for one in plan)
    for split, concept in {(one.split, one.concept) for one in plan}:
        dealt = [cells[split, concept, context] for context in CONTEXTS[:contexts]]
        total = sum(dealt)
        if split == "train":
            favoured = round(correlation * total)
            assert max(dealt) - favoured <= -(-(total - favoured) // contexts)
            rest = sorted(dealt)[:-1]
            assert not rest or max(rest) - min(rest) <= 1
            assert max(dealt) >= favoured
        else:
            assert max(dealt) - min(dealt) <= 1
    if split_by == "concept":
        assert len({(one.split, one.concept) for one in plan}) == len(folders)
    else:
        by = Counter((one.split, one.concept) for one in plan)
        assert all(by["train", name] == round(0.64 * len(names)) for name, names in folders.items())


def test_shares_of_concepts_are_the_papers():
    plan = plan_contexts(folders_of([3] * 100), CONTEXTS, correlation=0.5, seed=0)
    by = {split: {one.concept for one in plan if one.split == split} for split in ("train", "test", "val")}
    assert {split: len(held) for split, held in by.items()} == {"train": 64, "test": 20, "val": 16}


def test_favourites_are_spread_and_the_dial_moves_no_concept():
    whole = plan_contexts(folders_of([4] * 20), CONTEXTS, correlation=1.0, seed=3, split_by="image")
    train = {(one.concept, one.context) for one in whole if one.split == "train"}
    assert Counter(context for _, context in train) == dict.fromkeys(CONTEXTS, 5)
    none = plan_contexts(folders_of([4] * 20), CONTEXTS, correlation=0.0, seed=3, split_by="image")
    assert {(one.source, one.split) for one in whole} == {(one.source, one.split) for one in none}


def test_the_order_of_folders_does_not_count():
    folders = folders_of([5, 9, 2, 7])
    backwards = dict(reversed(folders.items()))
    assert plan_contexts(folders, CONTEXTS, correlation=0.4, seed=1) == plan_contexts(
        backwards, CONTEXTS, correlation=0.4, seed=1
    )


@pytest.mark.parametrize(("contexts", "correlation"), [((), 0.5), (("snow", "snow"), 0.5), (("snow",), 1.5)])
def test_settings_that_make_no_plan(contexts, correlation):
    with pytest.raises(OptionError):
        plan_contexts(folders_of([3]), contexts, correlation=correlation, seed=0)
