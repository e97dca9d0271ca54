"""The studies behind the design: agreement of encoders, weights, borders, and the published table."""

import cv2
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from tier_lists import tier_lists

from hardlook.benchmarks.toss.published_biases import WEIGHT_STUDY
from hardlook.errors import DataError
from hardlook.tiers.attribute_rows import AttributeRow, read_attributes
from hardlook.tiers.encoder_agreement import encoder_agreements
from hardlook.tiers.image_similarity import pair_cosines, split_at_mean
from hardlook.tiers.partition_weights import ORDER, partition_weights, weight_intervals, weights_from
from hardlook.tiers.published_comparison import compare_with_published
from hardlook.tiers.saliency_borders import border_of, summarise_borders


def test_agreement_and_kappa_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    first = rng.random(400)
    second = np.clip(first + rng.normal(0, 0.3, 400), 0, 1)
    found = encoder_agreements({"a": first, "b": second}, [str(n // 4) for n in range(400)])[0]
    one, other = first > first.mean(), second > second.mean()
    assert found.kappa == pytest.approx(cohen_kappa_score(one, other))
    assert found.agreement.value == pytest.approx((one == other).mean())
    assert found.agreement.interval.n == 100 and found.agreement.value in found.agreement.interval


def test_an_encoder_agrees_with_itself_turned_or_scaled():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(20, 8))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    turn, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    pairs = [(f"1_{a}", f"1_{b}") for a in range(20) for b in range(20) if a != b]
    cosines = {
        name: pair_cosines({str(n): row for n, row in enumerate(own)}, lambda token: token[2:], pairs)
        for name, own in (("plain", unit), ("turned", unit @ turn))
    }
    assert np.allclose(cosines["plain"], [unit[int(a[2:])] @ unit[int(b[2:])] for a, b in pairs])
    assert encoder_agreements(cosines, [a for a, _ in pairs])[0].agreement.value > 0.99


def test_pairs_split_at_the_mean_over_all_classes():
    pools = {"cat": [("1_a", "1_b")], "dog": [("2_a", "2_b"), ("2_b", "2_a")]}
    similar, mean = split_at_mean(pools, {"cat": np.array([0.9]), "dog": np.array([0.3, 0.6])})
    assert mean == pytest.approx(0.6)
    assert similar == {("1_a", "1_b"): True, ("2_a", "2_b"): False, ("2_b", "2_a"): False}


def test_published_shares_give_the_published_proportions_within_their_rounding():
    shares = np.array([(WEIGHT_STUDY[name].salience, WEIGHT_STUDY[name].supervised_miou) for name in ORDER])
    weights = weights_from(shares[:, 0], shares[:, 1])
    assert np.abs(weights - [WEIGHT_STUDY[name].proportion for name in ORDER]).max() < 0.03
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
                abs(one.salience_share - WEIGHT_STUDY[one.partition].salience),
                abs(one.iou_share - WEIGHT_STUDY[one.partition].supervised_miou),
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


def row(token, salience, iou, **more):
    return AttributeRow(token, None, iou, 0.1, 0.5, salience, 2, 0.0, more.get("class_name", "cat"), token)


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


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ({"z": "easy_sal"}, "none of the 4 masks of the table is among the 1 that have a partition"),
        ({"a": "easy_sal", "b": "easy_nsal", "c": "hard_sal"}, "supervised IoU is hard_nsal"),
        (dict.fromkeys("abcd", "easy_sal"), "is easy_nsal or hard_sal or hard_nsal"),
    ],
)
def test_weights_that_cannot_be_told_are_refused(partitions, said):
    rows = [row(name, 0.5, 0.5) for name in "abcd"]
    for study in (partition_weights, weight_intervals):
        with pytest.raises(DataError, match=said) as caught:
            study(rows, partitions)
        assert caught.value.remedy


def test_weights_of_nothing_salient_are_refused():
    rows = [row(name, 0.0, 0.5) for name in "abcd"]
    with pytest.raises(DataError, match="is 0 in every partition"):
        partition_weights(rows, dict(zip("abcd", ORDER, strict=True)))


def test_a_blurred_border_is_wider_and_a_blank_map_has_none():
    crisp = np.zeros((512, 512), np.float32)
    crisp[128:384, 128:384] = 1
    widths = [border_of(cv2.GaussianBlur(crisp, (0, 0), sigma)).width for sigma in (1, 2, 4, 8)]
    assert border_of(crisp).width == 0 and widths == sorted(widths)
    # Of a straight edge blurred by sigma, .1 to .9 is 2 * 1.2816 sigma wide.
    assert widths[3] == pytest.approx(2 * 1.2816 * 8, rel=0.05)
    blank = border_of(np.zeros((64, 64), np.float32))
    assert blank.undecided == 0 and np.isnan(blank.width)
    summary = summarise_borders("model", [border_of(crisp), blank])
    assert summary.blank == 1 and summary.width.value == 0


def test_comparison_with_another_table_counts_equal_values():
    ours = [row(str(n), n / 10, 1 - n / 10) for n in range(10)]
    theirs = [
        AttributeRow(str(n), 0.5, n / 10, 0.1 + (n == 3), 0.5, (n / 10) ** 2, 2, 0.0, "1", str(n)) for n in range(8)
    ]
    found = compare_with_published(ours, theirs)
    assert found.rows == 8
    assert {one.column: one.estimate.value for one in found.ranked} == {"saliou": 1.0, "iou": -1.0}
    assert {one.column: (one.equal, one.rows) for one in found.exact} == {
        "blob_count": (8, 8),
        "distractor_weight": (8, 8),
        "area_ratio": (7, 8),
        "offset_ratio": (8, 8),
    }
