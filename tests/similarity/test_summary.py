import numpy as np
import pytest

from hardlook.similarity import density_curve, neighbours, off_diagonal, summarise

MATRIX = np.array([[1.0, 0.5, 0.2, 0.5], [0.5, 1.0, 0.0, 0.3], [0.2, 0.0, 1.0, 0.3], [0.5, 0.3, 0.3, 1.0]])


def test_mean_and_spread_by_hand():
    summary = summarise(MATRIX)
    # Pairs .5 .2 .5 .0 .3 .3: sum 1.8, squares .72.
    assert summary.labels == 4
    assert summary.mean_off_diagonal == pytest.approx(0.3)
    assert summary.std_off_diagonal == pytest.approx(np.sqrt(0.72 / 6 - 0.09))
    assert summary.mean == pytest.approx((4 + 2 * 1.8) / 16)
    assert summary.std == pytest.approx(np.sqrt((4 + 2 * 0.72) / 16 - (7.6 / 16) ** 2))


def test_one_label_has_no_pairs():
    summary = summarise(np.eye(1))
    assert summary.mean == 1 and np.isnan(summary.mean_off_diagonal)
    with pytest.raises(ValueError, match="at least two labels"):
        density_curve(np.eye(1))


def test_density_integrates_to_one_and_sits_where_the_values_are():
    curve = density_curve(MATRIX, bins=10)
    assert curve.density.sum() / 10 == pytest.approx(1)
    assert curve.centres[np.flatnonzero(curve.density)] == pytest.approx([0.05, 0.25, 0.35, 0.55])
    assert len(off_diagonal(MATRIX)) == 6
    with_diagonal = density_curve(MATRIX, bins=10, diagonal=True)
    assert with_diagonal.density[-1] == pytest.approx(10 * 4 / 16)


def test_neighbours_come_most_similar_first_and_equals_in_order():
    found = neighbours(MATRIX, 0)
    assert [(other.place, other.similarity) for other in found] == [(1, 0.5), (3, 0.5), (2, 0.2)]
    assert [other.place for other in neighbours(MATRIX, 3, count=1)] == [0]
