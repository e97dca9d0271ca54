"""Correlations over checkpoints: against scipy, and against every printed cell of figure 14.

A run beside the published checkpoints.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import HeatMap, ScatterChart, Table
from hardlook.rclicks.leaderboard import FIGURE_14, build_leaderboard, correlation_matrix, published_correlations
from hardlook.rclicks.published import DATASETS, SCORE_NAMES, list_checkpoints

# Figure 14 as printed, rows and columns in its order; the last of both is in no table.
PRINTED = """
1.0 .94 .74 .71 .61 .52 .86 .85 .72 .45 .56 .73 .14 .36 .65 .40 .54 .60 .61 .28 .21 .20 .40 .42 .45 .46
.88 1.0 .76 .68 .62 .51 .78 .82 .71 .51 .59 .78 .16 .37 .65 .45 .57 .66 .66 .14 .07 .06 .26 .28 .31 .31
.59 .66 1.0 .53 .54 .57 .54 .52 .76 .51 .65 .83 .16 .42 .72 .42 .57 .68 .67 .01 .10 .11 .15 .16 .17 .17
.69 .63 .42 1.0 .79 .58 .78 .77 .68 .48 .54 .62 .18 .44 .78 .44 .56 .55 .56 .16 .11 .09 .37 .37 .39 .38
.55 .54 .39 .75 1.0 .58 .63 .64 .64 .38 .46 .60 .12 .39 .80 .32 .44 .56 .57 .13 .08 .07 .31 .32 .33 .33
.42 .38 .42 .44 .39 1.0 .47 .48 .59 .57 .65 .60 .22 .72 .73 .52 .59 .51 .54 .12 .09 .08 .19 .21 .21 .21
.85 .68 .44 .69 .53 .37 1.0 .98 .72 .38 .46 .58 .13 .31 .61 .38 .52 .55 .56 .43 .36 .35 .56 .58 .61 .62
.81 .76 .41 .68 .58 .34 .91 1.0 .72 .40 .47 .59 .13 .31 .62 .40 .54 .57 .58 .39 .33 .32 .52 .53 .57 .57
.60 .60 .69 .63 .57 .52 .59 .62 1.0 .55 .66 .76 .22 .48 .77 .49 .69 .79 .80 .09 .01 .00 .32 .33 .32 .32
.40 .46 .42 .40 .28 .47 .30 .35 .55 1.0 .98 .79 .59 .77 .60 .89 .89 .64 .66 .30 .30 .32 .04 .02 .02 .04
.46 .51 .54 .43 .32 .53 .36 .40 .64 .97 1.0 .86 .53 .77 .68 .86 .90 .69 .72 .25 .27 .29 .08 .07 .04 .02
.66 .72 .70 .54 .46 .50 .51 .54 .68 .79 .83 1.0 .28 .54 .79 .65 .76 .79 .80 .16 .21 .22 .21 .20 .17 .16
.17 .18 .12 .19 .12 .21 .15 .16 .26 .61 .58 .36 .80 .70 .25 .58 .54 .25 .29 .09 .08 .09 .03 .03 .03 .04
.26 .29 .33 .27 .22 .63 .22 .20 .43 .74 .74 .53 .71 1.0 .62 .73 .73 .47 .51 .03 .03 .05 .03 .04 .04 .04
.62 .59 .60 .70 .69 .68 .57 .57 .73 .54 .59 .73 .26 .55 1.0 .51 .64 .70 .72 .05 .00 .01 .31 .32 .30 .30
.34 .39 .39 .35 .23 .44 .26 .29 .46 .87 .87 .69 .57 .68 .43 1.0 .97 .69 .72 .27 .28 .30 .02 .04 .06 .08
.43 .49 .51 .43 .32 .48 .37 .40 .63 .89 .91 .77 .55 .67 .54 .96 1.0 .80 .82 .20 .24 .25 .07 .06 .04 .02
.41 .55 .61 .42 .37 .39 .30 .36 .62 .65 .68 .76 .27 .41 .54 .70 .77 1.0 .99 .27 .33 .34 .04 .04 .06 .06
.45 .58 .62 .45 .39 .42 .34 .40 .65 .69 .72 .79 .30 .45 .58 .74 .81 .99 1.0 .23 .29 .30 .01 .01 .01 .01
.38 .17 .00 .26 .21 .15 .52 .43 .15 .31 .25 .14 .12 .09 .18 .30 .24 .39 .35 1.0 .98 .98 .72 .75 .84 .86
.30 .08 .14 .18 .16 .12 .46 .36 .02 .32 .29 .21 .09 .08 .11 .34 .31 .49 .45 .95 1.0 1.0 .72 .75 .84 .85
.30 .08 .15 .17 .16 .12 .46 .37 .02 .33 .30 .22 .10 .09 .10 .35 .32 .50 .45 .95 .99 1.0 .71 .74 .83 .84
.45 .21 .03 .45 .40 .18 .64 .53 .31 .02 .01 .11 .02 .03 .38 .09 .00 .23 .16 .71 .72 .71 1.0 .99 .96 .95
.45 .21 .04 .44 .39 .18 .63 .53 .31 .05 .02 .09 .04 .04 .37 .13 .03 .25 .18 .75 .76 .75 .99 1.0 .97 .96
.47 .25 .03 .40 .35 .16 .67 .56 .27 .10 .06 .06 .03 .03 .34 .16 .07 .29 .23 .82 .82 .81 .94 .95 1.0 1.0
.48 .25 .04 .39 .35 .16 .67 .56 .26 .12 .09 .04 .04 .04 .33 .19 .09 .30 .24 .83 .84 .83 .93 .95 .99 1.0
"""

FIGURE = np.array([[float(cell) for cell in line.split()] for line in PRINTED.split("\n") if line])

ABOVE = np.triu_indices(len(FIGURE_14), 1)


def literal(tables, averaging):
    """Each pair, each dataset, by scipy."""
    size = tables[0].shape[1]
    matrix = np.zeros((size, size))
    for row in range(size):
        for column in range(size):
            correlate = stats.pearsonr if column >= row else stats.spearmanr
            found = []
            for table in tables:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", stats.ConstantInputWarning)
                    value = float(correlate(table[:, row], table[:, column]).statistic)
                found.append(0.0 if np.isnan(value) else value)
            matrix[row, column] = abs(np.mean(found)) if averaging == "released" else np.mean(np.abs(found))
    return matrix


def rows_of(tables, names):
    return {str(place): [dict(zip(names, row, strict=True)) for row in table] for place, table in enumerate(tables)}


def small_tables(datasets):
    # Few values, so that ties and constant columns are common.
    row = st.lists(st.integers(0, 3).map(float), min_size=3, max_size=3)
    return st.lists(st.lists(row, min_size=3, max_size=6).map(np.array), min_size=1, max_size=datasets)


def test_every_printed_cell_of_figure_14():
    names, matrix = published_correlations()
    printed = FIGURE[:25, :25]
    # Tables have two digits, and the figure has: values that only rounding makes equal share their rank.
    assert np.abs(matrix - printed)[ABOVE].max() < 0.0075
    assert np.abs(matrix - printed).T[ABOVE].max() < 0.0125
    assert np.diag(matrix) == pytest.approx(np.diag(printed))
    assert len(names) == len(FIGURE) - 1 == 25


def test_a_constant_score_has_a_smaller_diagonal():
    names, matrix = published_correlations()
    # No checkpoint fails on GrabCut under the centre rule: four datasets of five are left.
    assert matrix[names.index("nof-base"), names.index("nof-base")] == pytest.approx(0.8)


def test_the_figure_has_pearson_above_and_the_size_of_the_mean():
    printed = FIGURE[:25, :25]
    _, released = published_correlations()
    _, ours = published_correlations(averaging="ours")
    assert np.abs(released.T - printed).max() > 0.2
    assert np.abs(ours - printed).max() > 0.2


def test_the_figure_names_every_published_score():
    assert sorted(FIGURE_14) == sorted(SCORE_NAMES)


@pytest.mark.parametrize("averaging", ["released", "ours"])
@settings(max_examples=40)
@given(tables=small_tables(3))
def test_against_scipy(averaging, tables):
    names = ("a", "b", "c")
    found = correlation_matrix(rows_of(tables, names), names, averaging)
    np.testing.assert_allclose(found, literal(tables, averaging), atol=1e-12)


@settings(max_examples=40)
@given(tables=small_tables(4))
def test_sizes_averaged_are_never_below_the_size_of_the_average(tables):
    rows, names = rows_of(tables, ("a", "b", "c")), ("a", "b", "c")
    released, ours = (correlation_matrix(rows, names, averaging) for averaging in ("released", "ours"))
    assert (ours >= released - 1e-12).all()
    assert (ours <= 1 + 1e-12).all()


def test_opposite_datasets_cancel_unless_sizes_are_averaged():
    up = [{"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 2.0}]
    down = [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 1.0}]
    rows = {"up": up, "down": down}
    assert correlation_matrix(rows, ("a", "b"))[0, 1] == 0
    assert correlation_matrix(rows, ("a", "b"), "ours")[0, 1] == 1


def test_own_runs_stand_beside_the_published():
    names, own = ("noc90", "dgr"), (4.0, 90.0)
    found = published_correlations({"davis": [dict(zip(names, own, strict=True))]}, names=names)[1]
    tables = [
        np.array([[one.scores[dataset][name] for name in names] for one in list_checkpoints()]) for dataset in DATASETS
    ]
    tables[DATASETS.index("davis")] = np.vstack([tables[DATASETS.index("davis")], own])
    np.testing.assert_allclose(found, literal(tables, "released"), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: published_correlations({"voc": []}), "out of grabcut.*got voc"),
        (lambda: published_correlations({"davis": [{"noc90": 1.0}]}, names=("noc90", "dgr")), "davis.*dgr"),
        (lambda: correlation_matrix({}, ("a",)), "at least one dataset"),
        (lambda: correlation_matrix({"d": [{"a": float("nan")}]}, ("a",)), "NaN"),
        (lambda: correlation_matrix({"d": []}, ("a",), "paper"), "expected one of released, ours"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# MobileSAM as the paper's Table 4 prints it.
DAVIS, TETRIS = (5.96, 8.63, 15.39), (3.42, 7.47, 12.69)


def card(values, model="mine", words=""):
    scores = [
        Score(name, value, 10, slice={"dataset": dataset} if dataset else {}, comparable=words and f"{words} {name}")
        for dataset, (noc, dsb, dgr) in values.items()
        for name, value in (("noc90", noc), ("dsb", dsb), ("dgr", dgr))
    ]
    return Scorecard("rclicks", "1", model, tuple(scores))


def shown(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


def cells(table, row):
    return dict(zip(table.columns, table.rows[row], strict=True))


def test_nothing_without_clicks_to_90():
    assert build_leaderboard(Scorecard("rclicks", "1", "m", (Score("auc", 90.0, 3),))) is None


def test_both_stand_for_the_datasets_that_both_have():
    values = {"": (9.0, 9.0, 9.0), "davis": (6.0, 1.0, 2.0), "tetris": (4.0, 3.0, 4.0), "voc": (17.0, 23.0, 21.0)}
    section = build_leaderboard(card(values, "mobile-sam"))
    table = shown(section, Table)[0]
    assert table.title == "Published checkpoints: DAVIS, TETRIS"
    ours, theirs = cells(table, 0), cells(table, 1)
    # Ours are the means of 6 and 4, 1 and 3, 2 and 4; theirs the means of Table 4.
    assert (ours["model"], ours["NoC@90"], ours["dSB %"], ours["dGR %"]) == ("mobile-sam", 5.0, 2.0, 3.0)
    assert theirs["model"] == "MobileSAM"
    printed = [(one + other) / 2 for one, other in zip(DAVIS, TETRIS, strict=True)]
    assert [theirs["NoC@90"], theirs["dSB %"], theirs["dGR %"]] == pytest.approx(printed)
    assert "left out here: voc" in section.text
    assert "the paper's own run of MobileSAM" in section.text


def test_each_dataset_has_a_table_with_its_own_words():
    values = {"": (5.0, 2.0, 3.0), "davis": (6.0, 1.0, 2.0), "tetris": (4.0, 3.0, 4.0)}
    tables = shown(build_leaderboard(card(values, "mobile-sam", "not comparable:")), Table)
    assert [table.title.partition(": ")[2] for table in tables] == [
        "DAVIS, TETRIS",
        "DAVIS",
        "TETRIS",
        "DAVIS, TETRIS, one click",
    ]
    for table, printed in ((tables[1], DAVIS), (tables[2], TETRIS)):
        assert tuple(cells(table, 1)[column] for column in ("NoC@90", "dSB %", "dGR %")) == printed
        assert "not comparable: noc90" in table.caption


def test_every_table_has_every_checkpoint_and_the_run():
    section = build_leaderboard(card({"": DAVIS, "davis": DAVIS}))
    for table in shown(section, Table):
        assert len(table.rows) == 34
        assert all(len(row) == len(table.columns) for row in table.rows)
    [scatter] = shown(section, ScatterChart)
    assert [spot.label for spot in scatter.spots if spot.group == "this run"] == ["mine"]
    assert len(scatter.spots) == 34


def test_a_run_of_other_images_sees_the_means_of_all_five():
    section = build_leaderboard(card({"": DAVIS, "planted": DAVIS}, words="not comparable: planted"))
    assert "five datasets" in shown(section, Table)[0].title
    assert "other images" in section.text
    assert "not comparable: planted noc90" in section.text.replace("Not", "not")
    assert not shown(section, HeatMap)


def test_scores_that_are_undefined_stay_empty():
    values = card({"": DAVIS, "davis": DAVIS}).scores
    scores = tuple(Score(s.name, float("nan"), 0, slice=s.slice) if s.name == "dgr" else s for s in values)
    section = build_leaderboard(Scorecard("rclicks", "1", "mine", scores))
    assert cells(shown(section, Table)[0], 0)["dGR %"] is None
    assert len(shown(section, ScatterChart)[0].spots) == 33


def test_the_map_of_correlations_is_figure_14():
    [heat] = shown(build_leaderboard(card({"": DAVIS, "davis": DAVIS})), HeatMap)
    row, column = heat.rows.index("NoC@90"), heat.columns.index("dGR %")
    # Figure 14 prints .56 (Pearson, above) for Sample NoC and GR NoC, and .46 below.
    assert row < column
    assert heat.values[row][column] == pytest.approx(0.56, abs=0.0075)
    assert heat.values[column][row] == pytest.approx(0.46, abs=0.0125)
