import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_tables import counted_table, full_table, tables

from hardlook.errors import OptionError
from hardlook.metacoco.tasks.eligibility import find_eligible_classes, find_support_cells
from hardlook.metacoco.tasks.images import MODES, build_image_pools


def names(table, eligibility):
    return [table.concepts[k] for k in eligibility.classes]


def test_a_full_table_is_eligible_in_every_mode():
    table = full_table(6, 4, 20)
    found = find_eligible_classes(table, MODES, ways=5, shots=5, queries=15)
    assert found.classes.tolist() == list(range(6))
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("mode", "concept", "why"),
    [
        ("iid", {"grass": 19, "snow": 19}, "no context holds 20 images (the fullest holds 19)"),
        ("ood", {"grass": 200}, "one context only"),
        ("ood", {"grass": 200, "snow": 4}, "4 images outside its support context at most, 15 are needed"),
        ("ood", {"grass": 5, "snow": 5}, "5 images outside its support context at most, 15 are needed"),
        ("ood", {"grass": 4, "snow": 4}, "no context holds 5 images (the fullest holds 4)"),
        ("blind", {"grass": 10, "snow": 9}, "19 images, 20 are needed"),
        ("blind", {str(number): 4 for number in range(9)}, "no context holds 5 images (the fullest holds 4)"),
        ("swapped", {"grass": 200}, "one context only"),
        ("swapped", {"grass": 4, "snow": 4}, "no context holds 5 images (the fullest holds 4)"),
        ("swapped", {"lava": 50, "snow": 14}, "no context where another class has 5 images holds 15 of its own"),
        ("shared", {"lava": 50, "snow": 14}, "no context in which 3 classes have 20 images each"),
    ],
)
def test_what_is_left_out_says_why(mode, concept, why):
    others = {name: {"grass": 40, "snow": 40} for name in ("a", "b", "c")}
    table = counted_table({**others, "odd": concept})
    found = find_eligible_classes(table, [mode], ways=3, shots=5, queries=15)
    assert names(table, found) == ["a", "b", "c"]
    assert found.left_out == ((mode, "odd", why),)


def test_doubles_count_once():
    table = full_table(3, 2, 4)
    table.content[:4] = 0
    found = find_eligible_classes(table, ["iid"], ways=2, shots=1, queries=3)
    assert found.support_contexts.tolist() == [[False, True], [True, True], [True, True]]


def test_blind_supports_of_the_paper_need_no_full_context():
    table = counted_table({k: {str(number): 4 for number in range(9)} for k in "ab"})
    assert len(find_eligible_classes(table, ["blind"], 2, 5, 15).classes) == 0
    assert len(find_eligible_classes(table, ["blind"], 2, 5, 15, blind_supports="paper").classes) == 2


def test_one_context_must_serve_all_modes_together():
    # a: grass alone is enough for iid, snow alone leaves enough outside for ood, and neither does both.
    table = counted_table(
        {"a": {"grass": 20, "snow": 5}, "b": {"grass": 40, "snow": 40}, "c": {"grass": 40, "snow": 40}}
    )
    for mode in ("iid", "ood"):
        assert names(table, find_eligible_classes(table, [mode], 2, 5, 15)) == ["a", "b", "c"]
    together = find_eligible_classes(table, ["iid", "ood"], 2, 5, 15)
    assert names(table, together) == ["b", "c"]
    assert [(mode, concept) for mode, concept, _ in together.left_out] == [("all", "a")]


def test_partners_that_drop_out_take_others_along():
    # b has contexts in common with a alone, and a cannot do iid.
    table = counted_table(
        {
            "a": {"lava": 15, "moon": 15},
            "b": {"lava": 20, "moon": 20},
            "c": {"grass": 30, "snow": 30},
            "d": {"grass": 30, "snow": 30},
        }
    )
    assert names(table, find_eligible_classes(table, ["swapped"], 2, 5, 15)) == ["a", "b", "c", "d"]
    found = find_eligible_classes(table, ["swapped", "iid"], 2, 5, 15)
    assert names(table, found) == ["c", "d"]
    assert {(mode, concept) for mode, concept, _ in found.left_out} == {("iid", "a"), ("all", "b")}


@given(tables(), st.integers(1, 3), st.integers(1, 6), st.sampled_from(["iid", "ood", "blind"]))
def test_one_mode_is_what_its_words_say(table, shots, queries, mode):
    expected = []
    for k in range(len(table.concepts)):
        sets = [
            set(table.content[(table.concept == k) & (table.context == x)].tolist()) for x in range(len(table.contexts))
        ]
        whole = set().union(*sets)
        fits = {
            "iid": lambda own, whole: len(own) >= shots + queries,
            "ood": lambda own, whole: len(own) >= shots and len(whole - own) >= queries,
            "blind": lambda own, whole: len(own) >= shots and len(whole) >= shots + queries,
        }[mode]
        if any(fits(own, whole) for own in sets):
            expected.append(k)
    found = find_eligible_classes(table, [mode], 2, shots, queries)
    assert found.classes.tolist() == expected
    assert {concept for _, concept, _ in found.left_out} == {
        name for k, name in enumerate(table.concepts) if k not in expected
    }


@given(tables(), st.sampled_from(["ours", "paper"]), st.permutations(MODES), st.integers(1, 5))
def test_more_modes_never_admit_more_and_their_order_does_not_count(table, blind, order, many):
    modes = order[:many]
    found = find_eligible_classes(table, modes, 2, 1, 3, blind_supports=blind)
    fewer = find_eligible_classes(table, modes[:1], 2, 1, 3, blind_supports=blind)
    assert set(found.classes.tolist()) <= set(fewer.classes.tolist())
    turned = find_eligible_classes(table, modes[::-1], 2, 1, 3, blind_supports=blind)
    assert (turned.classes == found.classes).all()
    assert (turned.support_contexts == found.support_contexts).all()
    told = {concept for _, concept, _ in found.left_out}
    assert told == set(table.concepts) - {table.concepts[k] for k in found.classes}


def test_too_few_classes_is_an_error_with_counts_and_remedy():
    table = full_table(3, 2, 9)
    found = find_eligible_classes(table, ["iid", "ood"], ways=2, shots=5, queries=15)
    with pytest.raises(OptionError) as caught:
        found.require()
    assert "0 of 3 classes can form 2-way 5-shot tasks with 15 queries in the modes iid, ood; 2 are needed" in str(
        caught.value
    )
    assert "c00: no context holds 20 images (the fullest holds 9) (iid)" in str(caught.value)
    assert "and 3 more" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("modes", "numbers", "blind", "words"),
    [
        (["odd"], (2, 1, 1), "ours", "there is no mode 'odd'"),
        ([], (2, 1, 1), "ours", "expected modes, each once"),
        (["iid", "iid"], (2, 1, 1), "ours", "expected modes, each once"),
        (["iid"], (2, 1, 1), "theirs", "blind supports cannot be 'theirs'"),
        (["iid"], (2, 0, 1), "ours", "2 ways, 0 shots and 1 queries"),
        (["iid"], (2, 1, 0), "ours", "2 ways, 1 shots and 0 queries"),
        (["iid"], (0, 1, 1), "ours", "0 ways, 1 shots and 1 queries"),
        (["swapped"], (1, 1, 1), "ours", "1 ways, 1 shots and 1 queries"),
    ],
)
def test_what_cannot_be_asked_for(modes, numbers, blind, words):
    with pytest.raises(OptionError, match=words):
        find_eligible_classes(full_table(2, 2, 4), modes, *numbers, blind_supports=blind)


@pytest.mark.parametrize(("modes", "ways"), [(["iid"], 1), (["swapped"], 2)])
def test_the_smallest_tasks_have_one_class_or_two_to_swap_with(modes, ways):
    assert find_eligible_classes(full_table(2, 2, 4), modes, ways, 1, 1).classes.tolist() == [0, 1]
    with pytest.raises(OptionError) as caught:
        find_eligible_classes(full_table(2, 2, 4), modes, ways - 1, 1, 1)
    note = " (swapped swaps contexts)" if ways == 2 else ""
    assert caught.value.remedy == f"at least {ways} ways, 1 shot and 1 query{note}"


def test_an_empty_cell_is_never_a_support_context():
    table = counted_table({"a": {"grass": 9}, "b": {"snow": 9}})
    found = find_eligible_classes(table, ["blind"], 2, 1, 2)
    assert found.support_contexts.tolist() == [[True, False], [False, True]]
    assert np.array_equal(found.pools.cell_sizes(), [[9, 0], [0, 9]])


@pytest.mark.parametrize(("blind", "fog"), [("ours", False), ("paper", True)])
def test_blind_supports_come_from_contexts_that_the_class_has(blind, fog):
    # Ours needs both supports in one context, the paper one of them; nobody takes supports from an empty context.
    table = counted_table({"a": {"fog": 1, "grass": 2, "snow": 3}, "b": {"lava": 9}})
    found = find_support_cells(build_image_pools(table), "blind", ways=2, shots=2, queries=4, blind_supports=blind)
    assert table.contexts == ("fog", "grass", "lava", "snow")
    assert found.tolist() == [[fog, True, False, True], [False, False, True, False]]


def test_an_unknown_support_context_is_refused_with_the_first_ten_there_are():
    table = full_table(2, 12, 3)
    with pytest.raises(OptionError, match="there is no context 'lava' to take supports from") as caught:
        find_eligible_classes(table, ["iid"], 2, 1, 1, support_contexts=["x03", "lava", "moon"])
    assert caught.value.remedy == "there are " + ", ".join(f"x{number:02}" for number in range(10))
    kept = find_eligible_classes(table, ["iid"], 2, 1, 1, support_contexts=["x03", "x07"]).support_contexts
    assert np.flatnonzero(kept[0]).tolist() == [3, 7]


def test_a_mode_without_a_second_context_is_proposed_where_that_is_what_is_missing():
    one_context = find_eligible_classes(full_table(3, 1, 30), ["iid", "ood"], ways=2, shots=5, queries=15)
    with pytest.raises(OptionError) as caught:
        one_context.require()
    assert caught.value.remedy.endswith("; --modes blind needs no second context")
    few_images = find_eligible_classes(full_table(3, 2, 9), ["iid"], ways=2, shots=5, queries=15)
    with pytest.raises(OptionError) as caught:
        few_images.require()
    assert caught.value.remedy == "ask for fewer ways, shots, queries or modes, or give more images"
    assert "more" not in str(caught.value).split("remedy")[0].split("needed")[1]
    enough = find_eligible_classes(full_table(2, 2, 30), ["iid"], ways=2, shots=5, queries=15)
    enough.require()
