import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.bias.class_folds import ClassSplit
from hardlook.bias.selection import Coverage, coverage_counts, leave_out, select
from hardlook.bias.selection_summary import summarise_selection

counts = st.lists(st.integers(0, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=25)


def rows_of(pairs):
    return [Coverage(f"i{place:03d}", salient, covered) for place, (salient, covered) in enumerate(pairs)]


@given(counts)
def test_the_rule_word_for_word(pairs):
    rows = rows_of(pairs)
    chosen = select(rows)
    shares = {row.image: row.covered / row.salient for row in rows if row.salient}
    if shares:
        assert chosen.median == pytest.approx(statistics.median(shares.values()), abs=1e-15)
    else:
        assert math.isnan(chosen.median)
    below = {image for image, share in shares.items() if share < chosen.median}
    assert set(chosen.dropped) == below and set(chosen.kept) == {row.image for row in rows} - below
    assert set(chosen.without_salience) == {row.image for row in rows if row.salient == 0}
    assert len(chosen.dropped) <= len(shares) / 2


@given(counts, st.randoms())
def test_the_order_of_images_changes_nothing(pairs, random):
    rows = rows_of(pairs)
    shuffled = random.sample(rows, len(rows))
    assert set(select(rows).kept) == set(select(shuffled).kept)


def test_equal_to_the_median_is_kept_and_no_salience_too():
    chosen = select([Coverage("a", 2, 1), Coverage("b", 4, 2), Coverage("c", 6, 3), Coverage("d", 0, 0)])
    assert chosen.kept == ("a", "b", "c", "d") and chosen.dropped == () and chosen.without_salience == ("d",)


def test_coverage_counts_are_pixel_counts():
    rng = np.random.default_rng(0)
    training, salient = rng.random((2, 7, 9)) < 0.4
    by_hand = [(bool(t), bool(s)) for t, s in zip(training.ravel(), salient.ravel(), strict=True)]
    assert coverage_counts(training, salient) == (sum(s for _, s in by_hand), sum(t and s for t, s in by_hand))
    with pytest.raises(ValueError, match="one shape"):
        coverage_counts(training, salient[:3])


def test_leave_out_drops_every_image_with_a_test_class():
    rows = [Coverage("a", 1, 1, ("cat", "dog")), Coverage("b", 1, 1, ("cat", "car")), Coverage("c", 1, 1, ("dog",))]
    assert leave_out(rows, ("car", "bus")) == ("a", "c")
    assert leave_out(rows, ()) == ("a", "b", "c")


def test_the_summary_counts_classes_and_test_classes_by_part():
    rows = [
        Coverage("a", 10, 10, ("cat",)),
        Coverage("b", 10, 9, ("cat", "dog")),
        Coverage("c", 10, 1, ("dog", "car")),
        Coverage("d", 10, 0, ("dog", "car")),
    ]
    split = ClassSplit(("cat", "dog"), ("car", "bus"), "by hand")
    summary = summarise_selection(rows, select(rows), split, resamples=200)
    assert summary.median is not None and summary.median.value == pytest.approx(0.5)
    assert {one.name: (one.tested, one.images, one.kept.value) for one in summary.classes} == {
        "cat": (False, 2, 1.0),
        "dog": (False, 3, pytest.approx(1 / 3)),
        "car": (True, 2, 0.0),
    }
    shares = {name: estimate.value for name, estimate in summary.holding_test.items()}
    assert shares == {"all training images": 0.5, "kept": 0.0, "dropped": 1.0}
    assert summary.dropped_more.value == 1.0


def test_a_summary_without_any_salience_has_no_median():
    rows = [Coverage("a", 0, 0, ("cat",)), Coverage("b", 0, 0, ("cat",))]
    summary = summarise_selection(rows, select(rows), ClassSplit(("cat",), ("car",), ""), resamples=50)
    assert summary.median is None and "dropped" not in summary.holding_test
