"""Weights from salience and supervised IoU: by hand, from the published table, and refused."""

import numpy as np
import pytest
from tier_lists import tier_lists

from hardlook.errors import DataError
from hardlook.toss.published import read_numbers
from hardlook.toss.tiers.attributes import AttributeRow, read_attributes
from hardlook.toss.tiers.weight_study import ORDER, partition_weights, scale_weights, weight_intervals


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
