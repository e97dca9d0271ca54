"""Tier 3: which classes stay, which images, and how many pairs."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.tiers.generalisation import both_ends, generalisation, spelled, unlike
from hardlook.tiers.resembling_classes import resembling_voc


@pytest.mark.real
def test_the_names_are_the_published_ones(shared_data):
    path = shared_data / "reference" / "toss" / "published" / "removed_classes.txt"
    assert {spelled(line) for line in path.read_text().split()} == resembling_voc("paper")


@pytest.mark.real
def test_the_published_tier_holds_what_the_released_reading_keeps(shared_data):
    path = shared_data / "reference" / "toss" / "data" / "tiers" / "generalization_tier_class.txt"
    classes = path.read_text().split()
    assert len(classes) == 109
    assert unlike(classes, resembling_voc("released")) == tuple(classes)
    assert set(classes) - set(unlike(classes, resembling_voc("paper"))) == {"banana_boat"}
    assert set(classes) - set(unlike(classes, resembling_voc("ours"))) == {"banana_boat", "german_pointer"}


@pytest.mark.real
def test_most_published_classes_have_45_pairs_as_ours(shared_data):
    path = shared_data / "reference" / "toss" / "data" / "tiers" / "general" / "general_tier.txt"
    queries = Counter(line.split()[0].partition("_")[2].rpartition("_")[0] for line in path.read_text().splitlines())
    assert sum(queries.values()) == 5006 and queries.most_common()[len(queries) // 2][1] == 45
    drawn = generalisation({"abacus": {f"1_abacus_{n}": n / 10 for n in range(1, 11)}}, ())
    assert len(drawn["abacus"]) == 45


def test_an_unknown_reading_names_those_there_are():
    with pytest.raises(OptionError, match="paper, released, ours"):
        resembling_voc("theirs")


@given(st.dictionaries(st.integers(0, 99).map(str), st.floats(0, 1), max_size=30), st.integers(1, 8))
def test_both_ends_are_equally_many_and_in_order(salience, each):
    most, least = both_ends(salience, each)
    assert len(most) == len(least) == min(each, len(salience) // 2)
    assert not set(most) & set(least)
    rest = set(salience) - set(most) - set(least)
    if most:
        assert min(salience[token] for token in most) >= max([salience[token] for token in rest] or [0])
        assert max(salience[token] for token in least) <= min([salience[token] for token in rest] or [1])


def test_queries_come_half_from_either_end():
    salience = {f"1_cat_{n}": n / 20 for n in range(20)}
    pairs = generalisation({"cat": salience}, ())["cat"]
    ends = both_ends(salience)
    assert Counter(query in ends[0] for query, _ in pairs) == {True: 23, False: 22}
    assert {token for pair in pairs for token in pair} <= set(ends[0]) | set(ends[1])
    assert all(query != support for query, support in pairs) and len(set(pairs)) == 45
