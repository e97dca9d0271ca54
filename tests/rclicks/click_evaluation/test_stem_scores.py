"""Click models against clicks: a slow loop, the specification's identities, and the right model before the wrong.

Means over stems: groups, intervals, counts.
"""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import kolmogorov
from scipy.stats import pearsonr, wasserstein_distance_nd

from hardlook.errors import ModelError, OptionError
from hardlook.models.planted.click_models import PlantedUsers
from hardlook.models.planted.saliency import PlantedSaliency
from hardlook.rclicks.click_evaluation.stem_scores import (
    HIGHER_IS_BETTER,
    METRICS,
    Readings,
    StemScores,
    draw_as_many,
    evaluate_click_model,
    score_stem,
    summarise_rows,
)
from hardlook.rclicks.click_models.distribution import click_distribution
from hardlook.rclicks.click_models.simple import Distance, Uniform
from hardlook.rclicks.user_clicks.planted_users import planted_samples
from hardlook.rclicks.user_clicks.stems import ClickedStem

STEMS = [sample.clicked_stem() for sample in planted_samples(seed=2, count=36, size=(96, 72))]


class Salient:
    """Saliency as a click model: the map of the whole picture."""

    def click_map(self, image, target, error, positive):
        return PlantedSaliency().saliency([image])[0].astype(np.float64)


class Constant:
    """One map, whatever is asked."""

    def __init__(self, chances):
        self.chances = chances

    def click_map(self, image, target, error, positive):
        return self.chances


def stem_with(clicks, target, error=None, **names):
    image = np.zeros((*target.shape, 3), np.uint8)
    return ClickedStem("a", "mine", image, target, target if error is None else error, np.array(clicks), **names)


def slow_distance_of_shares(centres, others):
    least, most = math.inf, -math.inf
    for x, y in centres:
        for quadrant in range(4):
            shares = []
            for points in (centres, others):
                inside = [((px <= x) == (quadrant < 2)) and ((py <= y) == (quadrant in (0, 2))) for px, py in points]
                shares.append(sum(inside) / len(points))
            difference = shares[0] - shares[1] - (1 / len(centres) if quadrant == 0 else 0)
            least, most = min(least, difference), max(most, difference)
    return max(-least, most + 1 / len(centres))


def slow_verdict(a, b):
    d = (slow_distance_of_shares(a, b) + slow_distance_of_shares(b, a)) / 2
    s = math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    squares = [pearsonr(*points.T).statistic ** 2 for points in (a, b)]
    return kolmogorov(d * s / (1 + math.sqrt(1 - sum(squares) / 2) * (0.25 - 0.75 / s))) > 0.05


def slow_scores(stem, chances, draws):
    """The five metrics, point by point."""
    rows, columns = np.nonzero(stem.target)
    w, h = columns.max() - columns.min() + 1, rows.max() - rows.min() + 1
    clicks = stem.clicks.astype(float)
    kept = np.where(stem.error, chances, 0)
    kept = kept / kept.sum()
    ks, pl1, wd = [], [], []
    for points in draws.astype(float):
        ks.append(slow_verdict(points, clicks))
        pl1.append(np.mean([abs(px - x) / w + abs(py - y) / h for px, py in points for x, y in clicks]))
        wd.append(wasserstein_distance_nd(points, clicks) / math.hypot(w, h))
    values = np.array([kept[y, x] for x, y in stem.clicks])
    normal = (values - kept.mean()) / kept.std()
    return np.mean(ks), np.mean(pl1), np.mean(wd), normal.mean(), values.mean()


@pytest.mark.parametrize("index", [0, 1, 2])
def test_equals_the_slow_loop(index):
    whole = STEMS[index]
    stem = stem_with(whole.clicks[:10], whole.target, whole.error)
    chances = np.random.default_rng(index).random(stem.error.shape)
    draws = draw_as_many(stem, click_distribution(chances, stem.error), 4, seed=5)
    [row] = evaluate_click_model(Constant(chances), [stem], draws=4, seed=5, readings=Readings(maps="paper"))
    assert [getattr(row, name) for name in METRICS] == pytest.approx(slow_scores(stem, chances, draws))
    assert (row.clicks, row.ks_undefined, row.fell_back) == (10, 0, False)


@pytest.mark.parametrize("index", range(0, 36, 7))
def test_identities_of_the_uniform_map(index):
    stem = STEMS[index]
    [row] = evaluate_click_model(Uniform(), [stem], draws=1)
    area = int(stem.error.sum())
    share = area / stem.error.size
    assert row.nss == pytest.approx(math.sqrt((1 - share) / share), rel=1e-5)
    assert row.pde == pytest.approx(1 / area, rel=1e-6)


def test_what_the_map_says_elsewhere_does_not_count():
    stem = STEMS[0]
    chances = np.random.default_rng(0).random(stem.error.shape)
    louder = np.where(stem.error, 3 * chances, 99.0)
    first, second = (next(evaluate_click_model(Constant(one), [stem], draws=3)) for one in (chances, louder))
    assert [getattr(first, name) for name in METRICS] == pytest.approx([getattr(second, name) for name in METRICS])


def test_the_true_distribution_passes_in_about_19_of_20():
    rows = list(evaluate_click_model(PlantedUsers(), STEMS, draws=25))
    assert 0.9 < np.mean([row.ks for row in rows]) < 1.0
    assert sum(row.ks_undefined for row in rows) == 0


def test_the_right_model_beats_the_wrong_ones_on_all_five():
    def means(model):
        rows = list(evaluate_click_model(model, STEMS, draws=10))
        return {name: np.mean([getattr(row, name) for row in rows]) for name in METRICS}

    right = means(PlantedUsers())
    for wrong in (means(Uniform()), means(Distance()), means(Salient())):
        for name in METRICS:
            assert (right[name] > wrong[name]) == HIGHER_IS_BETTER[name], name
        assert right["ks"] > 2 * wrong["ks"]


def test_rows_depend_on_no_order_and_models_share_no_state():
    forwards = list(evaluate_click_model(PlantedUsers(), STEMS[:4], draws=3))
    backwards = list(evaluate_click_model(PlantedUsers(), STEMS[:4][::-1], draws=3))
    assert forwards == backwards[::-1]
    assert forwards != list(evaluate_click_model(PlantedUsers(), STEMS[:4], draws=3, seed=1))


def test_a_constant_coordinate_is_counted_and_scores_nothing():
    column = np.zeros((9, 9), bool)
    column[2:7, 4] = True
    [row] = evaluate_click_model(Uniform(), [stem_with([(4, 2), (4, 3), (4, 6)], column)], draws=12)
    assert (row.ks, row.ks_undefined) == (0.0, 12)
    assert row.wd > 0


def test_a_silent_map_is_counted_as_uniform():
    stem = STEMS[0]
    [silent] = evaluate_click_model(Constant(np.zeros(stem.error.shape)), [stem], draws=3)
    [uniform] = evaluate_click_model(Uniform(), [stem], draws=3)
    assert silent.fell_back
    assert not uniform.fell_back
    assert [getattr(silent, name) for name in METRICS] == [getattr(uniform, name) for name in METRICS]


def test_the_paper_measures_each_axis_by_its_side():
    target = np.zeros((50, 50), bool)
    target[5:45, 10:30] = True  # 20 wide, 40 high
    peak = np.zeros((50, 50))
    peak[10, 12] = 1.0
    stem = stem_with([(17, 30)], target)
    rows = [
        next(evaluate_click_model(Constant(peak), [stem], 2, readings=Readings(wd=r))) for r in ("released", "paper")
    ]
    assert rows[0].wd == pytest.approx(math.hypot(5, 20) / math.hypot(20, 40))
    assert rows[1].wd == pytest.approx(math.hypot(5 / 20, 20 / 40))
    assert rows[0].pl1 == rows[1].pl1 == pytest.approx(5 / 20 + 20 / 40)


def test_faults_name_the_stem():
    with pytest.raises(ModelError) as caught:
        list(evaluate_click_model(Constant(np.full(STEMS[0].error.shape, np.nan)), STEMS[:1]))
    assert caught.value.unit == STEMS[0].full_stem
    with pytest.raises(OptionError, match="0 draws"):
        list(evaluate_click_model(Uniform(), STEMS[:1], draws=0))


def test_a_stem_keeps_its_slices():
    stem = stem_with([(1, 1), (2, 3)], np.ones((5, 5), bool), device="mobile", display_mode="silhouette")
    row = score_stem(stem, click_distribution(np.ones((5, 5)), stem.error), draws=1)
    assert (row.device, row.display_mode, row.click_type, row.image_key) == ("mobile", "silhouette", "first", "a")


def test_runs_where_polars_pydantic_and_numba_are_absent():
    program = (
        "import sys\n"
        "for name in ('polars', 'pydantic', 'numba', 'torch'): sys.modules[name] = None\n"
        "import hardlook.rclicks.user_clicks.comparison\n"
        "from hardlook.rclicks.click_evaluation.stem_scores import evaluate_click_model\n"
        "from hardlook.rclicks.click_evaluation.stem_scores import METRICS, summarise_rows\n"
        "from hardlook.rclicks.user_clicks.planted_users import planted_samples\n"
        "from hardlook.models.planted.click_models import PlantedUsers\n"
        "stems = [sample.clicked_stem() for sample in planted_samples(0, 2, (96, 72))]\n"
        "rows = list(evaluate_click_model(PlantedUsers(), stems, draws=2))\n"
        "print(summarise_rows(rows, METRICS, resamples=10)[0].stems)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout == "2\n", answer.stderr


def rows_of(count, seed=0):
    rng = np.random.default_rng(seed)
    return [
        StemScores(
            f"stem{i}", "GrabCut" if i % 3 else "DAVIS", ("first", "fn", "fp")[i % 3], ("pc", "mobile")[i % 2], "",
            f"image{i // 2}", 48, *rng.random(5).tolist(), ks_undefined=i % 4, fell_back=i == 5,
        )
        for i in range(count)
    ]  # fmt: skip


def test_scores_are_plain_means_and_counts_are_sums():
    rows = rows_of(20)
    [whole] = summarise_rows(rows, METRICS, resamples=200)
    for name in METRICS:
        estimate = whole.scores[name]
        assert estimate.value == pytest.approx(np.mean([getattr(row, name) for row in rows]))
        assert estimate.value in estimate.interval
        assert (estimate.interval.n, estimate.interval.resampled) == (17, "image")  # ten images, seven in both datasets
    assert (whole.stems, whole.ks_undefined, whole.fell_back) == (20, 30, 1)


def test_stems_of_other_datasets_are_other_images():
    rows = rows_of(6)
    same = [replace(row, image_key="a") for row in rows]
    assert summarise_rows(same, METRICS, resamples=0)[0].scores["ks"].interval.n == 2


@pytest.mark.parametrize("by", [("dataset",), ("click_type",), ("device",), ("dataset", "device"), ("display_mode",)])
def test_groups_partition_the_stems(by):
    rows = rows_of(21)
    parts = summarise_rows(rows, METRICS, by=by, resamples=50)
    assert sum(part.stems for part in parts) == 21
    names = [tuple(part.group.values()) for part in parts]
    assert names == sorted({tuple(getattr(row, name) for name in by) for row in rows})
    for part in parts:
        chosen = [row for row in rows if all(getattr(row, name) == value for name, value in part.group.items())]
        assert part.scores["wd"].value == pytest.approx(np.mean([row.wd for row in chosen]))


def test_order_of_rows_changes_no_value():
    rows = rows_of(12)
    first, second = (summarise_rows(some, METRICS, resamples=100) for some in (rows, rows[::-1]))
    for name in METRICS:
        assert first[0].scores[name].value == pytest.approx(second[0].scores[name].value)


def test_unknown_columns_are_refused():
    with pytest.raises(OptionError, match="rows have no colour") as caught:
        summarise_rows(rows_of(2), METRICS, by=("colour",))
    assert "click_type" in caught.value.remedy
