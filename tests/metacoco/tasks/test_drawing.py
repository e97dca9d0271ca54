import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from image_tables import counted_table, full_table, tables
from scipy.stats import chisquare

from hardlook.errors import OptionError
from hardlook.metacoco.tasks.checking import check_tasks
from hardlook.metacoco.tasks.drawing import (
    Supports,
    choose_partners,
    draw_common_supports,
    draw_tasks,
    find_allowed_swaps,
    has_distinct_content,
    has_enough_queries,
)
from hardlook.metacoco.tasks.eligibility import find_eligible_classes
from hardlook.metacoco.tasks.images import MODES, build_image_pools

ARRAYS = ("classes", "support", "query", "support_context")


def drawn(eligibility, mode, indices, seed=0, **changes):
    return draw_tasks(replace(eligibility, **changes), mode, indices, seed=seed)


def equal(left, right):
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in ARRAYS)


def assert_lawful(table, tasks, ways, shots, queries):
    """The rules of the specification's section 2, task by task and image by image."""
    for classes, contexts, support, query in zip(
        tasks.classes, tasks.support_context, tasks.support, tasks.query, strict=True
    ):
        assert len(set(classes.tolist())) == ways
        supports = {int(table.content[row]) for row in support.ravel()}
        assert len(supports) == ways * shots
        for way, k in enumerate(classes):
            own, others = contexts[way], np.delete(contexts, way)
            assert (table.concept[support[way]] == k).all()
            assert (table.concept[query[way]] == k).all()
            asked = {int(table.content[row]) for row in query[way]}
            assert len(asked) == queries
            assert not asked & supports
            if own >= 0:
                assert (table.context[support[way]] == own).all()
            seen = set(table.context[query[way]].tolist())
            if tasks.mode in ("iid", "shared"):
                assert seen == {own}
            elif tasks.mode == "ood":
                inside = set(table.content[(table.concept == k) & (table.context == own)].tolist())
                assert own not in seen
                assert not asked & inside
            elif tasks.mode == "swapped":
                assert len(seen) == 1
                assert own not in seen
                assert seen <= set(others.tolist())
        if tasks.mode == "shared":
            assert len(set(contexts.tolist())) == 1


@settings(max_examples=60)
@given(tables(), st.integers(2, 3), st.integers(1, 2), st.integers(1, 4), st.sampled_from(["ours", "paper"]), st.data())
def test_the_laws_of_every_mode(table, ways, shots, queries, blind, data):
    modes = data.draw(st.permutations(MODES))[: data.draw(st.integers(1, 5))]
    eligibility = find_eligible_classes(table, modes, ways, shots, queries, blind_supports=blind)
    assume(len(eligibility.classes) >= ways)
    seed = data.draw(st.integers(0, 2**32 - 1))
    indices = data.draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
    try:
        all_tasks = {mode: drawn(eligibility, mode, indices, seed) for mode in modes}
    except OptionError as error:
        # Possible where classes have few contexts in common or files are double; it must say so.
        assert "none of 256 draws" in str(error)
        return
    for mode, tasks in all_tasks.items():
        assert_lawful(table, tasks, ways, shots, queries)
        check_tasks(tasks, table)
        turned = drawn(eligibility, mode, indices[::-1], seed)
        assert all(np.array_equal(getattr(turned, name)[::-1], getattr(tasks, name)) for name in ARRAYS)
        alone = drawn(eligibility, mode, indices[:1], seed)
        assert all(np.array_equal(getattr(alone, name), getattr(tasks, name)[:1]) for name in ARRAYS)
    first = next((mode for mode in modes if mode != "shared"), None)
    for mode in set(modes) - {"shared"}:
        assert np.array_equal(all_tasks[mode].classes, all_tasks[first].classes)
    for mode in eligibility.common_modes:
        assert np.array_equal(all_tasks[mode].support, all_tasks[eligibility.common_modes[0]].support)


@pytest.mark.parametrize("mode", MODES)
def test_chunks_and_repeats_do_not_show(mode, monkeypatch):
    table = full_table(6, 3, 9)
    eligibility = find_eligible_classes(table, MODES, 4, 2, 5)
    indices = np.array([9, 3, 3, 0, 7, 12, 9, 1])
    whole = drawn(eligibility, mode, indices)
    monkeypatch.setattr("hardlook.metacoco.tasks.drawing.CHUNK", 3)
    assert equal(drawn(eligibility, mode, indices), whole)
    assert np.array_equal(whole.query[1], whole.query[2])
    assert np.array_equal(whole.index, indices)


@pytest.mark.parametrize("mode", MODES)
def test_another_seed_gives_other_tasks_and_the_same_seed_the_same(mode):
    table = full_table(8, 3, 12)
    eligibility = find_eligible_classes(table, MODES, 3, 1, 5)
    first, again, other = (drawn(eligibility, mode, range(40), seed) for seed in (0, 0, 1))
    assert equal(first, again)
    same = (first.support == other.support).all((1, 2)) & (first.query == other.query).all((1, 2))
    assert not same.any()


def test_queries_follow_from_mode_and_count_and_supports_do_not():
    table = full_table(8, 3, 30)
    eligibility = find_eligible_classes(table, MODES, 3, 1, 10)
    iid, blind = (drawn(eligibility, mode, range(30)) for mode in ("iid", "blind"))
    fewer = drawn(eligibility, "iid", range(30), queries=5)
    assert np.array_equal(iid.support, blind.support)
    assert np.array_equal(iid.support, fewer.support)
    assert not np.array_equal(iid.query[..., :5], fewer.query)
    two_ways = drawn(eligibility, "iid", range(30), ways=2)
    assert not np.array_equal(two_ways.classes, iid.classes[:, :2])


@pytest.mark.parametrize("mode", MODES)
def test_every_eligible_class_occurs_equally_often(mode):
    table = full_table(9, 4, 8)
    eligibility = find_eligible_classes(table, MODES, 3, 2, 4)
    tasks = drawn(eligibility, mode, range(3000), seed=11)
    counts = np.bincount(tasks.classes.ravel(), minlength=9)
    # Counts of draws without replacement vary less than the test assumes; those of the first place are exact.
    assert chisquare(counts).pvalue > 0.001
    first = np.bincount(tasks.classes[:, 0], minlength=9)
    assert chisquare(first).pvalue > 0.001
    contexts = np.bincount(tasks.support_context[:, 0], minlength=4)
    assert chisquare(contexts).pvalue > 0.001


def test_every_image_is_equally_often_a_support_and_a_query():
    table = full_table(5, 2, 6)
    eligibility = find_eligible_classes(table, ["iid", "ood"], 5, 2, 3)
    tasks = drawn(eligibility, "ood", range(2000), seed=3)
    for place in ("support", "query"):
        assert chisquare(np.bincount(getattr(tasks, place)[:, 0].ravel(), minlength=60)[:12]).pvalue > 0.001


def test_blind_supports_of_the_paper_mix_contexts_and_keep_the_classes():
    table = full_table(6, 4, 8)
    eligibility = find_eligible_classes(table, ["blind", "iid"], 3, 3, 5, blind_supports="paper")
    blind, iid = (drawn(eligibility, mode, range(200)) for mode in ("blind", "iid"))
    assert np.array_equal(blind.classes, iid.classes)
    assert (blind.support_context == -1).all()
    spread = table.context[blind.support]
    mixed = (spread != spread[..., :1]).any(2).mean()
    assert mixed > 0.8  # three of 32 images are of one context with chance 4 * (8 choose 3) / (32 choose 3) = 4.5 %


def test_shared_has_its_own_classes_from_one_context():
    # Three classes have snow, three others sand: never all of a task's classes but in one of the two.
    counts = {f"s{n}": {"snow": 9, f"own {n}": 9} for n in range(3)} | {
        f"d{n}": {"sand": 9, f"own {n}": 9} for n in range(3)
    }
    table = counted_table(counts)
    eligibility = find_eligible_classes(table, ["shared", "iid"], 3, 2, 5)
    tasks = drawn(eligibility, "shared", range(100))
    initials = {frozenset(table.concepts[k][0] for k in row) for row in tasks.classes}
    assert initials == {frozenset("s"), frozenset("d")}
    assert {table.contexts[c] for c in tasks.support_context.ravel()} == {"snow", "sand"}


def test_no_tasks_have_no_rows():
    table = full_table(4, 2, 8)
    eligibility = find_eligible_classes(table, MODES, 2, 1, 3)
    for mode in MODES:
        tasks = drawn(eligibility, mode, [])
        assert tasks.query.shape == (0, 2, 3)
        check_tasks(tasks, table)


def test_a_task_that_cannot_be_completed_is_named():
    # Each class can be swapped with its own partner alone, and three classes are never two whole pairs.
    pairs = {f"{pair}{side}": {f"{pair} one": 9, f"{pair} two": 9} for pair in "abc" for side in "lr"}
    table = counted_table(pairs)
    eligibility = find_eligible_classes(table, ["swapped"], 3, 1, 5)
    assert len(eligibility.classes) == 6
    with pytest.raises(OptionError) as caught:
        drawn(eligibility, "swapped", [4])
    assert "none of 256 draws of the task could be completed; the last lacked queries for 'swapped'" in str(
        caught.value
    )
    assert caught.value.unit == "task 4"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mode": "shared"}, "not chosen for the mode 'shared'"),
        ({"indices": [-1]}, "a task's number is negative"),
    ],
)
def test_what_does_not_fit_the_chosen_classes_is_refused(changes, words):
    table = full_table(4, 2, 4)
    eligibility = find_eligible_classes(table, ["iid", "swapped"], 2, 1, 3)
    with pytest.raises(OptionError, match=words):
        draw_tasks(eligibility, **({"mode": "iid", "indices": [0], "seed": 0} | changes))


def test_too_few_classes_stop_the_draw_with_counts():
    table = full_table(2, 2, 4)
    eligibility = find_eligible_classes(table, ["iid"], 2, 5, 15)
    with pytest.raises(OptionError, match="0 of 2 classes can form 2-way 5-shot tasks"):
        drawn(eligibility, "iid", [0])


def test_queries_alone_follow_the_seed_where_supports_cannot_differ():
    table = counted_table({k: {"one image": 1, "many": 30} for k in "abc"})
    eligibility = find_eligible_classes(table, ["ood"], 3, 1, 5)
    sets = []
    for seed in (0, 1):
        tasks = drawn(eligibility, "ood", range(20), seed)
        assert set(tasks.support.ravel().tolist()) == set(np.flatnonzero(table.context == 1).tolist())
        sets.append([set(query.ravel().tolist()) for query in tasks.query])
    assert all(first != second for first, second in zip(*sets, strict=True))


def most_exchanges(allowed):
    """The largest number of classes that can exchange contexts one to one, by trying all permutations."""
    ways = len(allowed)
    return max(sum(allowed[i][order[i]] for i in range(ways)) for order in itertools.permutations(range(ways)))


@given(st.integers(2, 5), st.integers(0, 2**32 - 1), st.floats(0.2, 0.9))
def test_as_many_classes_exchange_contexts_as_can(ways, seed, density):
    rng = np.random.default_rng(seed)
    allowed = (rng.random((8, ways, ways)) < density) & ~np.eye(ways, dtype=bool)
    allowed[np.arange(8), 0, 1] = True
    allowed[:, np.arange(ways), (np.arange(ways) + 1) % ways] |= ~allowed.any(2)
    partners = choose_partners(allowed, rng.random((8, ways, ways)))
    for one, chosen in zip(allowed, partners, strict=True):
        assert all(one[i][chosen[i]] for i in range(ways))
        # Classes beyond the exchange may double up; the different partners cannot be fewer than the exchange.
        assert len(set(chosen.tolist())) == most_exchanges(one.tolist())


def test_all_derangements_of_a_full_task_occur():
    rng = np.random.default_rng(0)
    allowed = np.tile(~np.eye(4, dtype=bool), (600, 1, 1))
    seen = {tuple(row) for row in choose_partners(allowed, rng.random((600, 4, 4))).tolist()}
    derangements = {p for p in itertools.permutations(range(4)) if all(i != j for i, j in enumerate(p))}
    assert seen == derangements


def test_a_swap_needs_another_context_and_enough_images_in_it():
    table = counted_table({"a": {"x": 5, "y": 5}, "b": {"x": 2, "y": 5}, "c": {"x": 5, "z": 5}})
    pools = build_image_pools(table)
    classes, contexts = np.array([[0, 1, 2]]), np.array([[0, 1, 2]])
    rows = np.array([[[np.flatnonzero((table.concept == k) & (table.context == k))[0]] for k in range(3)]])
    drawn = Supports(classes, contexts, rows)
    allowed = find_allowed_swaps(pools, drawn, 3)
    assert allowed.tolist() == [[[False, True, False], [False, False, False], [True, False, False]]]
    assert has_enough_queries(pools, "swapped", drawn, 3).tolist() == [False]
    assert has_enough_queries(pools, "swapped", drawn, 2).tolist() == [True]


@pytest.mark.parametrize(("mode", "most"), [("iid", 2), ("ood", 3), ("blind", 5), ("shared", 2)])
def test_a_support_of_another_class_takes_its_double_away(mode, most):
    # Two concepts of two contexts and three images; class 1's support doubles an image of class 0.
    table = full_table(2, 2, 3)
    first = {
        cell: np.flatnonzero((table.concept == cell[0]) & (table.context == cell[1]))
        for cell in ((0, 0), (0, 1), (1, 0))
    }
    drawn = Supports(np.array([[0, 1]]), np.array([[0, 0]]), np.array([[[first[0, 0][0]], [first[1, 0][0]]]]))
    assert has_enough_queries(build_image_pools(table), mode, drawn, most).tolist() == [True]
    cell = (0, 1) if mode == "ood" else (0, 0)
    table.content[first[1, 0][0]] = table.content[first[cell][-1]]
    assert has_enough_queries(build_image_pools(table), mode, drawn, most).tolist() == [False]
    assert has_enough_queries(build_image_pools(table), mode, drawn, most - 1).tolist() == [True]


def test_supports_of_one_content_are_seen():
    table = full_table(2, 1, 2)
    drawn = Supports(np.array([[0, 1]]), np.array([[0, 0]]), np.array([[[0], [2]]]))
    assert has_distinct_content(build_image_pools(table), drawn).tolist() == [True]
    table.content[2] = table.content[0]
    assert has_distinct_content(build_image_pools(table), drawn).tolist() == [False]


def test_where_no_mode_has_common_supports_classes_alone_are_drawn():
    eligibility = find_eligible_classes(full_table(6, 4, 8), ["blind"], 3, 2, 5, blind_supports="paper")
    assert eligibility.common_modes == ()
    supports = draw_common_supports(eligibility, np.arange(5), 0)
    assert supports.classes.shape == (5, 3) and (supports.contexts == -1).all()
    assert supports.rows.shape == (5, 3, 0)
