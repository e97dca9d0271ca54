"""Weights from salience and supervised IoU: by hand, from the published table, and refused."""

import numpy as np
import pytest
from tier_lists import tier_lists

from hardlook.data.toss_pairs import Pair, list_pair_files, locate_fixed_list, locate_tier_list, write_pairs
from hardlook.errors import DataError
from hardlook.toss.published import read_numbers
from hardlook.toss.tiers.attributes import AttributeRow, read_attributes, write_attributes
from hardlook.toss.tiers.weight_study import (
    ORDER,
    partition_weights,
    read_list_partitions,
    run_weight_study,
    scale_weights,
    weight_intervals,
)


def row(token, salience, iou, **more):
    return AttributeRow(token, None, iou, 0.1, 0.5, salience, 2, 0.0, more.get("class_name", "cat"), token)


def test_published_shares_give_the_published_proportions_within_their_rounding():
    shares = np.array(
        [(read_numbers().weights[name].salience, read_numbers().weights[name].supervised_miou) for name in ORDER]
    )
    weights = scale_weights(shares[:, 0], shares[:, 1])
    assert np.abs(weights - [read_numbers().weights[name].proportion for name in ORDER]).max() < 0.03
    assert weights.sum() == pytest.approx(5)


@pytest.mark.real
def test_no_mean_over_the_published_table_gives_the_published_shares_and_pairs_are_nearest(shared_data):
    root = shared_data / "reference" / "toss"
    rows = read_attributes(root / "data" / "analysis" / "test_stats.csv")
    partitions, times = {}, {}
    for one in tier_lists(root, 1):
        for pair in one.pairs:
            partitions[pair.query] = pair.split
            times[pair.query] = times.get(pair.query, 0) + 1
    found = partition_weights(rows, partitions, times)
    gaps = {
        reading: max(
            max(
                abs(one.salience_share - read_numbers().weights[one.partition].salience),
                abs(one.iou_share - read_numbers().weights[one.partition].supervised_miou),
            )
            for one in weights
        )
        for reading, weights in found.items()
    }
    assert min(gaps, key=gaps.get) == "pair mean" and 0.01 < gaps["pair mean"] < 0.05
    # Easy and salient weighs most, hard and not salient least, under every reading.
    for weights in found.values():
        assert max(weights, key=lambda one: one.weight).partition == "easy_sal"
        assert min(weights, key=lambda one: one.weight).partition == "hard_nsal"


def test_weights_by_hand_under_three_readings():
    rows = [
        row("a", 0.8, 1.0),
        row("b", 0.4, 1.0),
        row("c", 0.2, 1.0),
        row("d", 0.6, 0.5),
        row("e", 0.1, 0.5),
    ]
    partitions = dict(zip("abcde", ("easy_sal", "easy_sal", "easy_nsal", "hard_sal", "hard_nsal"), strict=True))
    found = partition_weights(rows, partitions, {"a": 3, "b": 1, "c": 1, "d": 1, "e": 1})
    products = np.array([0.6, 0.2, 0.3, 0.05])
    assert [one.weight for one in found["mask mean"]] == pytest.approx(5 * products / products.sum())
    products[0] = (3 * 0.8 + 0.4) / 4
    assert [one.weight for one in found["pair mean"]] == pytest.approx(5 * products / products.sum())
    intervals = weight_intervals(rows, partitions)
    assert intervals["easy_sal"].value == pytest.approx(found["mask mean"][0].weight)


def test_a_resample_without_a_partition_counts_it_as_zero():
    # One image in each: a third of the resamples of four images miss any one, and a few have it alone, all five parts.
    rows = [row(name, 0.5, 0.5) for name in "abcd"]
    for estimate in weight_intervals(rows, dict(zip("abcd", ORDER, strict=True))).values():
        assert estimate.value == pytest.approx(1.25)
        assert estimate.interval.low == 0 and 1.25 < estimate.interval.high <= 5


@pytest.mark.parametrize(
    ("partitions", "message"),
    [
        ({"z": "easy_sal"}, "none of the 4 masks of the table is among the 1 that have a partition"),
        ({"a": "easy_sal", "b": "easy_nsal", "c": "hard_sal"}, "supervised IoU is hard_nsal"),
        (dict.fromkeys("abcd", "easy_sal"), "is easy_nsal or hard_sal or hard_nsal"),
    ],
)
def test_weights_that_cannot_be_computed_are_refused(partitions, message):
    rows = [row(name, 0.5, 0.5) for name in "abcd"]
    for study in (partition_weights, weight_intervals):
        with pytest.raises(DataError, match=message) as caught:
            study(rows, partitions)
        assert caught.value.remedy


def test_weights_of_nothing_salient_are_refused():
    rows = [row(name, 0.0, 0.5) for name in "abcd"]
    with pytest.raises(DataError, match="is 0 in every partition"):
        partition_weights(rows, dict(zip("abcd", ORDER, strict=True)))


def test_the_class_mean_counts_every_class_once():
    rows = [
        row("a", 0.9, 1.0), row("b", 0.3, 1.0), row("c", 0.3, 1.0, class_name="dog"),
        row("d", 0.5, 0.5), row("e", 0.5, 0.5), row("f", 0.5, 0.5),
    ]  # fmt: skip
    partitions = dict(zip("abcdef", ("easy_sal", "easy_sal", "easy_sal", *ORDER[1:]), strict=True))
    found = partition_weights(rows, partitions)
    assert list(found) == ["mask mean", "class mean"] and [one.masks for one in found["class mean"]] == [3, 1, 1, 1]
    # Cats .6 and dogs .3; all masks .5.
    for reading, salience in (("class mean", 0.45), ("mask mean", 0.5)):
        assert found[reading][0].salience_share == pytest.approx(salience / (salience + 1.5))
        assert found[reading][0].iou_share == pytest.approx(1 / 2.5)
        products = np.array([salience, 0.25, 0.25, 0.25])
        assert [one.weight for one in found[reading]] == pytest.approx(5 * products / products.sum())


@pytest.fixture
def table(tmp_path):
    """A table of one mask in each partition, and one without a salience."""
    values = {"1_a": (0.8, 0.9), "1_b": (0.2, 0.9), "1_c": (0.8, 0.5), "1_d": (0.2, 0.5), "1_e": (None, 0.5)}
    write_attributes(tmp_path / "attributes.csv", [row(token, *numbers) for token, numbers in values.items()])
    return tmp_path / "attributes.csv"


def test_the_page_has_the_weights_beside_the_published_ones(table):
    [section], document = run_weight_study(table, None, seed=0)
    chart, readings = section.blocks
    products = {"easy_sal": 0.72, "easy_nsal": 0.18, "hard_sal": 0.4, "hard_nsal": 0.1}
    expected = {name: 5 * product / 1.4 for name, product in products.items()}
    groups = {}
    for dot in chart.rows:
        groups.setdefault(dot.group, {})[dot.label] = dot.value
    published = read_numbers().weights
    assert groups["mask mean, with interval"] == pytest.approx(expected)
    assert groups["published proportion"] == {name: published[name].proportion for name in ORDER}
    assert groups["published weight"] == {name: published[name].adjusted for name in ORDER}
    assert [(line[0], line[1], line[2]) for line in readings.rows] == [
        (reading, name, 1) for reading in ("mask mean", "class mean") for name in ORDER
    ]
    for line in readings.rows:
        theirs = published[line[1]]
        assert line[7] == pytest.approx(expected[line[1]])
        assert (line[4], line[6], *line[8:]) == (
            theirs.salience, theirs.supervised_miou, theirs.proportion, theirs.adjusted,
        )  # fmt: skip
    # Salience .8 of 2 and so on; IoU .9 of 2.8.
    shares = {
        "easy_sal": (0.4, 0.9 / 2.8), "easy_nsal": (0.1, 0.9 / 2.8),
        "hard_sal": (0.4, 0.5 / 2.8), "hard_nsal": (0.1, 0.5 / 2.8),
    }  # fmt: skip
    gap = max(
        max(abs(shares[name][0] - published[name].salience), abs(shares[name][1] - published[name].supervised_miou))
        for name in ORDER
    )
    assert document["largest_difference_of_shares"] == pytest.approx({"mask mean": gap, "class mean": gap})
    listed = ", ".join(f"{name} {expected[name]:.2f}" for name in ORDER)
    assert document["summary"].startswith(f"Salience times supervised IoU gives {listed} as parts of five; published ")
    assert (
        f"The reading `mask mean` is nearest: its shares differ from the published by up to {gap:.2f}."
        in (document["summary"])
    )
    assert document["summary"].endswith(". 1 of 5 masks of the table have no partition.")
    assert (document["rows_without_a_partition"], document["queries_without_a_row"]) == (1, 0)


def test_partitions_come_from_the_lists_of_a_folder_where_one_is_given(table, tmp_path):
    listed = dict(zip(("1_d", "1_c", "1_b", "1_a", "1_z"), (*ORDER, ORDER[3]), strict=True))
    (tmp_path / "data" / "tiers" / "attribute").mkdir(parents=True)
    for split in ORDER:
        own = [token for token, name in listed.items() if name == split]
        pairs = [Pair(token, "1_a", 1, 0, split) for token in own for _ in range(3 if token == "1_a" else 1)]
        write_pairs(locate_tier_list(tmp_path / "data", 1, 0, split).path, pairs)
    assert read_list_partitions(tmp_path / "data") == (listed, {**dict.fromkeys(listed, 1), "1_a": 3})
    _, document = run_weight_study(table, tmp_path / "data", seed=0)
    products = np.array([0.1, 0.4, 0.18, 0.72])
    for reading in ("mask mean", "class mean", "pair mean"):
        weights = [one["weight"] for one in document["readings"][reading]]
        assert weights == pytest.approx(5 * products / products.sum())
    assert document["summary"].endswith(
        "1 of 5 masks of the table have no partition; 1 queries of the lists have no row."
    )
    (tmp_path / "none" / "tiers").mkdir(parents=True)
    with pytest.raises(DataError, match="no pairs of tier 1 here"):
        read_list_partitions(tmp_path / "none")


def test_a_table_without_all_partitions_is_named(table):
    write_attributes(table, [row("1_a", 0.8, 0.9)])
    with pytest.raises(DataError, match="is easy_nsal or hard_sal or hard_nsal") as caught:
        run_weight_study(table, None, seed=0)
    assert caught.value.file == str(table)


def test_weights_of_stacked_shares_add_up_to_five_in_each():
    rng = np.random.default_rng(0)
    salience, iou = rng.random((3, 2, 4)), rng.random((3, 2, 4))
    found = scale_weights(salience, iou)
    assert found.sum(-1) == pytest.approx(np.full((3, 2), 5.0))
    for place in np.ndindex(3, 2):
        assert found[place] == pytest.approx(5 * salience[place] * iou[place] / (salience[place] @ iou[place]))


def test_pairs_of_other_tiers_and_of_the_fixed_lists_give_no_partition(tmp_path):
    write_pairs(locate_tier_list(tmp_path, 1, 0, "easy_sal").path, [Pair("1_a", "1_b", 1, 0, "easy_sal")])
    write_pairs(locate_tier_list(tmp_path, 3).path, [Pair("1_cup_1", "1_cup_2", 3, -1)])
    fixed = locate_fixed_list(tmp_path, "own", 0)
    write_pairs(fixed.path, [Pair("1_e", "1_f", 0, 0)])
    assert {file.tier for file in list_pair_files(tmp_path)} == {0, 1, 3}
    assert read_list_partitions(tmp_path) == ({"1_a": "easy_sal"}, {"1_a": 1})


def test_masks_that_lack_one_of_the_two_numbers_have_no_weight():
    rows = [row(f"{n}_a", 0.5, 0.5) for n in range(4)]
    partitions = {f"{n}_a": name for n, name in enumerate(ORDER)}
    more = [row("4_a", None, 1.0), row("5_a", 1.0, None), row("6_a", None, None), row("7_a", 1.0, 1.0)]
    placed = {**partitions, "4_a": ORDER[0], "5_a": ORDER[1], "6_a": ORDER[2]}
    assert partition_weights([*rows, *more], placed) == partition_weights(rows, partitions)
    ours, plain = weight_intervals([*rows, *more], placed), weight_intervals(rows, partitions)
    assert [ours[name].value for name in ORDER] == [plain[name].value for name in ORDER] == [1.25] * 4
    with pytest.raises(DataError, match=r"is easy_sal \(4 masks have a partition, 3 of them both numbers\)"):
        partition_weights([more[0], *rows[1:]], {**partitions, "4_a": ORDER[0]})
