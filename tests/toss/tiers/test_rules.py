"""The rules of the tiers: recovered from the published files, and their laws."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from itertools import groupby, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tier_lists import tier_lists

from hardlook.data.toss_pairs import locate_tier_list, read_pairs, write_pairs
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import OptionError
from hardlook.toss.published import list_resembling_classes
from hardlook.toss.tiers.rules import (
    EASY_ABOVE,
    PARTITIONS,
    SALIENT_ABOVE,
    WANTED,
    assign_partition,
    build_generalisation,
    build_query_complexity,
    build_support_cognizance,
    build_tiers,
    draw_cell_pairs,
    draw_pairs,
    draw_random_pairs,
    draw_similarity_pools,
    drop_resembling_classes,
    group_members,
    normalise_class_name,
    select_salience_extremes,
    split_into_folds,
)


@pytest.mark.real
def test_the_names_are_the_published_ones(shared_data):
    path = shared_data / "reference" / "toss" / "published" / "removed_classes.txt"
    assert {normalise_class_name(line) for line in path.read_text().split()} == list_resembling_classes("paper")


@pytest.mark.real
def test_the_published_tier_holds_what_the_released_reading_keeps(shared_data):
    path = shared_data / "reference" / "toss" / "data" / "tiers" / "generalization_tier_class.txt"
    classes = path.read_text().split()
    assert len(classes) == 109
    assert drop_resembling_classes(classes, list_resembling_classes("released")) == tuple(classes)
    assert set(classes) - set(drop_resembling_classes(classes, list_resembling_classes("paper"))) == {"banana_boat"}
    assert set(classes) - set(drop_resembling_classes(classes, list_resembling_classes("ours"))) == {
        "banana_boat",
        "german_pointer",
    }


@pytest.mark.real
def test_most_published_classes_have_45_pairs_as_ours(shared_data):
    path = shared_data / "reference" / "toss" / "data" / "tiers" / "general" / "general_tier.txt"
    queries = Counter(line.split()[0].partition("_")[2].rpartition("_")[0] for line in path.read_text().splitlines())
    assert sum(queries.values()) == 5006 and queries.most_common()[len(queries) // 2][1] == 45
    drawn = build_generalisation({"abacus": {f"1_abacus_{n}": n / 10 for n in range(1, 11)}}, ())
    assert len(drawn["abacus"]) == 45


def test_an_unknown_reading_names_those_there_are():
    with pytest.raises(OptionError, match="paper, released, ours"):
        list_resembling_classes("theirs")


@given(st.dictionaries(st.integers(0, 99).map(str), st.floats(0, 1), max_size=30), st.integers(1, 8))
def test_both_ends_are_equally_many_and_in_order(salience, each):
    most, least = select_salience_extremes(salience, each)
    assert len(most) == len(least) == min(each, len(salience) // 2)
    assert not set(most) & set(least)
    rest = set(salience) - set(most) - set(least)
    if most:
        assert min(salience[token] for token in most) >= max([salience[token] for token in rest] or [0])
        assert max(salience[token] for token in least) <= min([salience[token] for token in rest] or [1])


def test_queries_come_half_from_either_end():
    salience = {f"1_cat_{n}": n / 20 for n in range(20)}
    pairs = build_generalisation({"cat": salience}, ())["cat"]
    ends = select_salience_extremes(salience)
    assert Counter(query in ends[0] for query, _ in pairs) == {True: 23, False: 22}
    assert {token for pair in pairs for token in pair} <= set(ends[0]) | set(ends[1])
    assert all(query != support for query, support in pairs) and len(set(pairs)) == 45


CLASSES = tuple(str(number) for number in range(1, 21))


def token_class(token):
    return token.partition("_")[0]


@pytest.fixture(scope="module")
def published(shared_data):
    """{(fold, query partition, support partition, class): pairs}, known by file names and by the order in the files."""
    folder = shared_data / "reference" / "toss" / "data" / "tiers" / "attribute"
    cells = {}
    for fold in range(4):
        for query_partition in PARTITIONS:
            lines = (folder / f"split{fold}_q_{query_partition}.txt").read_text().splitlines()
            rows = [tuple(line.split()) for line in lines]
            blocks = [(name, list(own)) for name, own in groupby(rows, key=lambda row: token_class(row[1]))]
            # Five classes, four times over: supports by partition.
            for place, (name, own) in enumerate(blocks):
                cells[fold, query_partition, PARTITIONS[place // 5], name] = own
    return cells


@pytest.fixture(scope="module")
def membership(published):
    found = {}
    for (_, query_partition, support_partition, _), pairs in published.items():
        for query, support in pairs:
            assert found.setdefault(query, query_partition) == query_partition
            assert found.setdefault(support, support_partition) == support_partition
    return found


@pytest.mark.real
def test_all_320_published_cells_have_the_size_of_the_rule(published, membership):
    members = group_members(membership, {token: token_class(token) for token in membership})
    found = {}
    for fold, classes in enumerate(split_into_folds(CLASSES, 4)):
        for partition in PARTITIONS:
            for cell in build_query_complexity(members, classes, partition):
                found[fold, partition, cell.support_partition, cell.class_name] = len(cell.pairs)
    assert len(published) == 320
    assert found == {key: len(pairs) for key, pairs in published.items()}


@pytest.mark.real
def test_order_of_cells_whole_cells_and_self_pairs_are_as_published(published, membership):
    members = group_members(membership, {token: token_class(token) for token in membership})
    whole = drawn = 0
    for (_, query_partition, support_partition, name), pairs in published.items():
        queries, supports = members[name][query_partition], members[name][support_partition]
        ours = draw_cell_pairs(queries, supports, seed=0, key=(name, query_partition, support_partition))
        assert any(query == support for query, support in ours) == any(query == support for query, support in pairs)
        if len(queries) * len(supports) < 2000:
            whole += 1
            # Published cells run through the supports of one query, then of the next, in orders of their own.
            assert pairs == list(product(dict.fromkeys(p[0] for p in pairs), dict.fromkeys(p[1] for p in pairs)))
            assert set(pairs) == set(ours)
            assert ours == list(product(queries, supports))
        else:
            drawn += 1
            assert len(set(pairs)) == len(set(ours)) == 1000
    assert whole and drawn
    for fold, classes in enumerate(split_into_folds(CLASSES, 4)):
        for partition in PARTITIONS:
            order = [
                (cell.support_partition, cell.class_name)
                for cell in build_query_complexity(members, classes, partition)
            ]
            assert order == [key[2:] for key in published if key[:2] == (fold, partition)]


@pytest.mark.real
def test_thresholds_give_the_published_partitions(published, membership, shared_data):
    path = shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv"
    rows = {row["filename"]: row for row in csv.DictReader(path.open())}
    queries = {query for pairs in published.values() for query, _ in pairs} & set(rows)
    assert len(queries) == 14830
    easy = salient = 0
    for token in queries:
        ours = assign_partition(float(rows[token]["iou"]), float(rows[token]["saliou"]))
        easy += ours.startswith("easy") == membership[token].startswith("easy")
        salient += ours.endswith("_sal") == membership[token].endswith("_sal")
    assert easy == 14830
    assert round(100 * salient / len(queries), 1) == 93.9


def test_thresholds_are_exclusive():
    assert assign_partition(EASY_ABOVE, SALIENT_ABOVE) == "hard_nsal"
    assert assign_partition(EASY_ABOVE + 1e-9, SALIENT_ABOVE + 1e-9) == "easy_sal"


@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 3))
def test_a_cell_lists_all_pairs_or_draws_a_thousand(queries, supports, seed):
    first, second = [f"1_q{n}" for n in range(queries)], [f"1_s{n}" for n in range(supports)]
    pairs = draw_cell_pairs(first, second, seed=seed, key=("cat", "a", "b"))
    whole = queries * supports
    assert len(pairs) == len(set(pairs)) == (whole if whole < 2000 else 1000)
    assert set(pairs) <= set(product(first, second))
    assert (len(pairs) == queries * supports) or (queries * supports >= 2000 and len(pairs) == 1000)


@given(st.integers(1, 80))
def test_self_pairs_stand_in_whole_cells_only(count):
    tokens = [f"1_{n}" for n in range(count)]
    pairs = draw_cell_pairs(tokens, tokens, seed=0, key=("cat", "easy_sal", "easy_sal"))
    selves = sum(query == support for query, support in pairs)
    assert selves == (count if count * count < 2000 else 0)


def test_a_cell_hangs_on_its_key_and_seed_alone():
    tokens = [f"1_{n}" for n in range(60)]
    members = {"cat": {"easy_sal": tokens}, "dog": {"easy_sal": [f"2_{n}" for n in range(60)]}}
    alone = build_query_complexity({"cat": members["cat"]}, ["cat"], "easy_sal")
    beside = build_query_complexity(members, ["dog", "cat"], "easy_sal")
    assert alone[1].pairs == beside[3].pairs
    assert alone[1].pairs != build_query_complexity(members, ["cat"], "easy_sal", seed=1)[1].pairs


def test_draws_reach_all_pairs_alike():
    tokens = [f"1_{n}" for n in range(46)]
    times = defaultdict(int)
    for seed in range(40):
        for pair in draw_cell_pairs(tokens, tokens, seed=seed, key=("cat", "x", "x")):
            times[pair] += 1
    # 40,000 draws over 2,070 pairs: about 19 each, with a standard deviation near 3.2.
    assert len(times) == 46 * 45
    assert 2 <= min(times.values()) and max(times.values()) <= 37


MANY = {name: [f"{number}_2007_{n:06d}" for n in range(60)] for number, name in enumerate("abcde", start=1)}


def told_apart(tokens, seed=0):
    pools = draw_similarity_pools(tokens, seed=seed)
    return {pair: place % 2 == 0 for pool in pools.values() for place, pair in enumerate(pool)}


def test_each_class_has_the_published_numbers():
    rows = build_support_cognizance(MANY, list(MANY), told_apart(MANY))
    counts = Counter((row.query.partition("_")[0], row.split) for row in rows)
    # L2 and L3 are not told apart in the published files, which have 89 to 120 of both.
    published = {"L0": 48, "L1": 4 * 48, "L2": 50, "L3": 50, "L4": 40, "L5": 48, "L6": 48}
    assert counts == {(str(number), level): wanted for number in range(1, 6) for level, wanted in published.items()}
    assert published == WANTED


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
    rows = build_support_cognizance(MANY, list(MANY), similar)
    for row in rows:
        same_class = row.query.partition("_")[0] == row.support.partition("_")[0]
        assert same_class == (row.split != "L4")
        assert (row.query == row.support) == (row.split in ("L0", "L1"))
        assert (row.transform > 0) == (row.split == "L1")
        if row.split in ("L2", "L3"):
            assert similar[row.query, row.support] == (row.split == "L2")
    assert len({(row.query, row.transform) for row in rows if row.split == "L1"}) == 5 * 192


@pytest.mark.parametrize("seed", [46439, 21549])  # these draw the lowest and the highest number
def test_transforms_have_four_numbers_from_1_to_99999(seed):
    rows = build_support_cognizance({"cat": ["1_a"]}, ["cat"], {}, seed=seed)
    numbers = {row.transform for row in rows if row.split == "L1"}
    assert len(numbers) == 4 and min(numbers) >= 1 and max(numbers) <= 99_999


def test_other_classes_are_met_evenly_by_the_same_queries():
    rows = [row for row in build_support_cognizance(MANY, list(MANY), {}) if row.split == "L4" and row.query[0] == "1"]
    assert Counter(row.support.partition("_")[0] for row in rows) == {"2": 10, "3": 10, "4": 10, "5": 10}
    assert set(Counter(row.query for row in rows).values()) == {4}
    assert len({row.support for row in rows}) == 40


@pytest.mark.parametrize(("others", "shares"), [(3, (14, 13, 13)), (2, (20, 20)), (1, (40,)), (6, (7, 7, 7, 7, 6, 6))])
def test_other_classes_share_forty_pairs_and_the_first_take_what_remains(others, shares):
    tokens = {
        name: [f"{number}_{n}" for n in range(60)] for number, name in enumerate("abcdefg"[: others + 1], start=1)
    }
    rows = [row for row in build_support_cognizance(tokens, list(tokens), {}) if row.split == "L4"]
    first = [row for row in rows if row.query[0] == "1"]
    assert Counter(row.support[0] for row in first) == {str(place): share for place, share in enumerate(shares, 2)}
    assert Counter(row.query[0] for row in rows) == {str(number): 40 for number in range(1, others + 2)}


def test_a_small_class_uses_all_its_images():
    few = {"a": ["1_x", "1_y", "1_z"], "b": ["2_v"], "c": []}
    rows = build_support_cognizance(few, list(few), told_apart(few))
    counts = Counter((row.query[0], row.split) for row in rows)
    assert counts["1", "L0"] == counts["1", "L5"] == counts["1", "L6"] == 3 and counts["1", "L1"] == 12
    assert counts["1", "L2"] + counts["1", "L3"] == 6 and counts["1", "L4"] == 3
    assert counts["2", "L0"] == 1 and ("3", "L0") not in counts
    assert all(row.query != row.support for row in rows if row.split == "L5" and row.query[0] == "1")


def test_rows_read_back_from_their_file(tmp_path):
    rows = build_support_cognizance(MANY, list(MANY), told_apart(MANY), fold=2)
    file = locate_tier_list(tmp_path, 2, 2)
    write_pairs(file.path, rows)
    read = read_pairs(file).pairs
    assert [(p.query, p.support, p.split, p.transform, p.fold) for p in read] == [
        (p.query, p.support, p.split, p.transform, 2) for p in rows
    ]


def test_the_same_seed_gives_the_same_rows_and_classes_do_not_disturb_each_other():
    once, again = (build_support_cognizance(MANY, list(MANY), told_apart(MANY)) for _ in range(2))
    assert once == again
    other = build_support_cognizance(MANY, list(MANY), told_apart(MANY), seed=1)
    assert other != once
    fewer = build_support_cognizance({**MANY, "e": MANY["e"][:9]}, list(MANY), told_apart(MANY))
    assert [p for p in fewer if p.query[0] == "1" and p.split != "L4"] == [
        p for p in once if p.query[0] == "1" and p.split != "L4"
    ]


def test_twenty_classes_in_four_folds_are_pascal_5i():
    folds = split_into_folds(VOC_CLASSES, 4)
    assert [fold[0] for fold in folds] == ["aeroplane", "bus", "diningtable", "pottedplant"]
    assert {len(fold) for fold in folds} == {5}


@given(st.integers(1, 40), st.integers(1, 40))
def test_folds_keep_order_and_differ_by_one_at_most(classes, folds):
    names = [str(n) for n in range(classes)]
    if folds > classes:
        with pytest.raises(OptionError, match="classes"):
            split_into_folds(names, folds)
        return
    cut = split_into_folds(names, folds)
    assert [name for fold in cut for name in fold] == names
    assert len(cut) == folds and max(map(len, cut)) - min(map(len, cut)) <= 1


@given(st.integers(0, 20), st.integers(0, 500))
def test_drawn_pairs_are_distinct_and_never_with_themselves(count, wanted):
    tokens = [f"1_{n}" for n in range(count)]
    pairs = draw_pairs(tokens, tokens, wanted, np.random.default_rng(0))
    assert len(set(pairs)) == len(pairs) == min(wanted, count * max(count - 1, 0))
    assert all(query != support for query, support in pairs)


def test_lists_that_overlap_in_part_are_refused():
    with pytest.raises(ValueError, match="overlap"):
        draw_pairs(["a", "b"], ["b", "c"], 1, np.random.default_rng(0))


def test_fixed_lists_have_three_thousand_pairs_a_class():
    tokens = {"cat": [f"1_{n}" for n in range(80)], "dog": [f"2_{n}" for n in range(5)]}
    pairs = draw_random_pairs(tokens, ["cat", "dog"])
    assert [query.partition("_")[0] for query, _ in pairs] == ["1"] * 3000 + ["2"] * 20
    assert len(set(pairs)) == len(pairs)


def test_every_pair_is_of_the_tier_fold_and_split_of_its_list():
    class_of = {f"{name}_{number}": name for name in ("cat", "dog") for number in range(6)}
    partitions = {token: PARTITIONS[place % 4] for place, token in enumerate(class_of)}
    built = build_tiers(("cat", "dog"), class_of, partitions, {}, folds=2)
    assert {tier for tier, _, _ in built.lists} == {0, 1, 2} and {fold for _, fold, _ in built.lists} == {0, 1}
    for (tier, fold, split), pairs in built.lists.items():
        assert pairs and {(pair.tier, pair.fold) for pair in pairs} == {(tier, fold)}
        assert tier == 2 or {pair.split for pair in pairs} == {split}
        assert {class_of[pair.query] for pair in pairs} == {("cat", "dog")[fold]}


def test_draws_are_those_of_seed_0_unless_another_is_given():
    members = {name: {"easy_sal": own} for name, own in MANY.items()}
    similar = told_apart(MANY)
    for draw in (
        lambda **seed: draw_random_pairs(MANY, ["a", "b"], **seed),
        lambda **seed: build_query_complexity(members, ["a"], "easy_sal", **seed),
        lambda **seed: draw_similarity_pools(MANY, **seed),
        lambda **seed: build_support_cognizance(MANY, ["a", "b"], similar, **seed),
        lambda **seed: build_generalisation({"a": {token: n / 60 for n, token in enumerate(MANY["a"])}}, (), **seed),
    ):
        assert draw() == draw(seed=0) != draw(seed=1)
    assert {row.fold for row in build_support_cognizance(MANY, ["a"], similar)} == {0}
    class_of = {token: name for name, own in MANY.items() for token in own}
    assert len(build_tiers(tuple(MANY), class_of, {}, similar).folds) == 4


def test_parts_that_are_not_filled_say_what_is_missing():
    class_of = {"1_a": "cat", "1_b": "cat", "2_c": "dog"}
    built = build_tiers(("cat", "dog", "owl"), class_of, {"1_a": "easy_sal", "1_b": "hard_sal"}, {}, folds=1)
    why = {one.part: (one.wanted, one.got, one.why) for one in built.unfilled}
    tier_1 = "tier 1, fold 0, cat:"
    assert why[f"{tier_1} easy_sal x easy_nsal"] == (1, 0, "cat has no mask that is easy_nsal")
    assert why[f"{tier_1} easy_nsal x easy_sal"] == (1, 0, "cat has no mask that is easy_nsal")
    assert f"{tier_1} easy_sal x hard_sal" not in why
    assert why["tier 2, cat: L0"] == (WANTED["L0"], 2, "cat has 2 images")
    assert why["tier 2, dog: L0"] == (WANTED["L0"], 1, "dog has 1 images")
    assert why["tier 2, owl: L4"] == (WANTED["L4"], 0, "no image holds owl")
    assert built.levels["owl"] == dict.fromkeys(WANTED, 0)
