import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr, spearmanr

from hardlook.bias.attribute_file import attribute_frame
from hardlook.bias.distractors import distractor_shares
from hardlook.bias.negatives import associate, class_negatives
from hardlook.bias.one_shot_answers import OneShotAnswers
from hardlook.data.voc import VOC_CLASSES

SHARES = distractor_shares([("cat", "dog"), ("dog",)], {"cat": ["dog"], "dog": ["cat"]}, resamples=0)
FOLDS = {"cat": 0, "dog": 1}
TABLE = pl.DataFrame(
    {
        "class": ["cat", "cat", "cat", "dog"],
        "image": ["a", "b", "c", "a"],
        "iou": [0.9, 0.7, 0.2, float("nan")],
        "oss_perf": [0.5, 0.5, float("nan"), 0.4],
    }
)


def test_the_drop_is_over_images_that_have_both():
    cat, dog = class_negatives(SHARES, FOLDS, None, TABLE, resamples=100)
    assert cat.drop is not None and cat.drop.value == pytest.approx(np.mean([0.4, 0.2]))
    assert cat.supervised is not None and cat.supervised.value == pytest.approx(0.6)
    assert cat.one_shot is not None and cat.one_shot.value == pytest.approx(0.5)
    assert dog.drop is None and dog.supervised is None and dog.one_shot is not None
    assert (cat.fold, dog.fold) == (0, 1)


def test_a_run_takes_the_place_of_the_table_and_is_pooled():
    frame = pl.DataFrame(
        {"class": ["cat", "cat"], "image": ["a", "b"], "intersection": [1, 30], "union": [10, 60], "iou": [0.1, 0.5]}
    )
    cat, dog = class_negatives(SHARES, FOLDS, OneShotAnswers(frame, "tier 1"), TABLE, resamples=100)
    assert cat.one_shot is not None and cat.one_shot.value == pytest.approx(31 / 70)
    assert cat.drop is not None and cat.drop.value == pytest.approx(np.mean([0.8, 0.2]))
    assert dog.one_shot is None and dog.drop is None


def test_nothing_given_leaves_shares_alone():
    cat, _ = class_negatives(SHARES, FOLDS, None, None)
    assert (cat.one_shot, cat.supervised, cat.drop) == (None, None, None) and cat.distractors.paper.value == 0.5


def test_correlations_are_scipys_and_gaps_are_left_out():
    x, y = np.random.default_rng(0).random((2, 21))
    x[3], y[7] = np.nan, np.nan
    known = np.isfinite(x) & np.isfinite(y)
    found = associate(x.tolist(), y.tolist(), resamples=300)
    assert found.n == 19
    assert found.spearman.value == pytest.approx(spearmanr(x[known], y[known]).statistic)
    assert found.pearson.value == pytest.approx(pearsonr(x[known], y[known]).statistic)
    assert found.spearman.interval.low < found.spearman.value < found.spearman.interval.high
    assert found == associate(x.tolist(), y.tolist(), resamples=300)


@pytest.mark.real
def test_published_distractors_go_with_the_published_drop(shared_data):
    """The paper's own table and statistics, with scipy and polars beside: Spearman .71, clear of 0."""
    folder = shared_data / "reference" / "toss"
    published = pl.read_csv(folder / "published" / "supp_table1_leaveout.csv")
    path = folder / "data" / "analysis" / "test_stats.csv"
    table = attribute_frame(path)
    names = table["class"].unique().to_list()
    shares = distractor_shares([], {name: () for name in names}, resamples=0)
    rows = {row.name: row for row in class_negatives(shares, dict.fromkeys(names, 0), None, table, resamples=0)}
    theirs = (
        pl.read_csv(path)
        .with_columns(number=pl.col("filename").str.split("_").list.first().cast(pl.Int64))
        .group_by("number")
        .agg(drop=(pl.col("iou") - pl.col("oss_perf")).mean())
        .sort("number")
    )
    percent = published.sort("class_id")["percent_distractors"].to_list()
    drops = [rows[name].drop.value for name in VOC_CLASSES]
    assert drops == pytest.approx(theirs["drop"].to_list())
    found = associate(percent, drops)
    assert found.spearman.value == pytest.approx(spearmanr(percent, theirs["drop"].to_list()).statistic)
    assert found.spearman.value > 0.7 and found.spearman.interval.low > 0.2
