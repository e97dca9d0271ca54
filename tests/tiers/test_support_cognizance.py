"""Tier 2: the published numbers a class, where there are enough images; all there are, where not."""

from collections import Counter

import pytest
from tier_lists import tier_lists

from hardlook.data.toss_pairs import pair_file, read_pairs, write_pairs
from hardlook.tiers.support_cognizance import WANTED, similarity_pool, support_cognizance

MANY = {name: [f"{number}_2007_{n:06d}" for n in range(60)] for number, name in enumerate("abcde", start=1)}


def told_apart(tokens, seed=0):
    pools = similarity_pool(tokens, seed=seed)
    return {pair: place % 2 == 0 for pool in pools.values() for place, pair in enumerate(pool)}


def test_each_class_has_the_published_numbers():
    rows = support_cognizance(MANY, list(MANY), told_apart(MANY))
    counts = Counter((row.query.partition("_")[0], row.split) for row in rows)
    assert counts == {(str(number), level): wanted for number in range(1, 6) for level, wanted in WANTED.items()}


@pytest.mark.real
def test_numbers_a_class_are_those_of_the_published_files(shared_data):
    listed = [one for one in tier_lists(shared_data / "reference" / "toss", 2) if "split2" not in one.name]
    for one in listed:
        counts = Counter((pair.query.partition("_")[0], pair.split) for pair in one.pairs)
        for level in ("L0", "L1", "L4", "L5", "L6"):
            assert {number for (_, own), number in counts.items() if own == level} == {WANTED[level]}
        assert all(89 <= number <= 120 for (_, own), number in counts.items() if own == "L2+L3")


def test_levels_are_what_they_say():
    similar = told_apart(MANY)
    rows = support_cognizance(MANY, list(MANY), similar)
    for row in rows:
        same_class = row.query.partition("_")[0] == row.support.partition("_")[0]
        assert same_class == (row.split != "L4")
        assert (row.query == row.support) == (row.split in ("L0", "L1"))
        assert (row.transform > 0) == (row.split == "L1")
        if row.split in ("L2", "L3"):
            assert similar[row.query, row.support] == (row.split == "L2")
    assert len({(row.query, row.transform) for row in rows if row.split == "L1"}) == 5 * 192


def test_other_classes_are_met_evenly_by_the_same_queries():
    rows = [row for row in support_cognizance(MANY, list(MANY), {}) if row.split == "L4" and row.query[0] == "1"]
    assert Counter(row.support.partition("_")[0] for row in rows) == {"2": 10, "3": 10, "4": 10, "5": 10}
    assert set(Counter(row.query for row in rows).values()) == {4}
    assert len({row.support for row in rows}) == 40


def test_a_small_class_uses_all_its_images():
    few = {"a": ["1_x", "1_y", "1_z"], "b": ["2_v"], "c": []}
    rows = support_cognizance(few, list(few), told_apart(few))
    counts = Counter((row.query[0], row.split) for row in rows)
    assert counts["1", "L0"] == counts["1", "L5"] == counts["1", "L6"] == 3 and counts["1", "L1"] == 12
    assert counts["1", "L2"] + counts["1", "L3"] == 6 and counts["1", "L4"] == 3
    assert counts["2", "L0"] == 1 and ("3", "L0") not in counts
    assert all(row.query != row.support for row in rows if row.split == "L5" and row.query[0] == "1")


def test_rows_read_back_from_their_file(tmp_path):
    rows = support_cognizance(MANY, list(MANY), told_apart(MANY), fold=2)
    file = pair_file(tmp_path, 2, 2)
    write_pairs(file.path, rows)
    read = read_pairs(file).pairs
    assert [(p.query, p.support, p.split, p.transform, p.fold) for p in read] == [
        (p.query, p.support, p.split, p.transform, 2) for p in rows
    ]


def test_the_same_seed_gives_the_same_rows_and_classes_do_not_disturb_each_other():
    once, again = (support_cognizance(MANY, list(MANY), told_apart(MANY)) for _ in range(2))
    assert once == again
    other = support_cognizance(MANY, list(MANY), told_apart(MANY), seed=1)
    assert other != once
    fewer = support_cognizance({**MANY, "e": MANY["e"][:9]}, list(MANY), told_apart(MANY))
    assert [p for p in fewer if p.query[0] == "1" and p.split != "L4"] == [
        p for p in once if p.query[0] == "1" and p.split != "L4"
    ]
