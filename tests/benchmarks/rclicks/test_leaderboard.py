"""A run beside the published checkpoints."""

import pytest

from hardlook.benchmarks.rclicks.leaderboard import leaderboard
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import HeatMap, ScatterChart, Table

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
    assert leaderboard(Scorecard("rclicks", "1", "m", (Score("auc", 90.0, 3),))) is None


def test_both_stand_for_the_datasets_that_both_have():
    values = {"": (9.0, 9.0, 9.0), "davis": (6.0, 1.0, 2.0), "tetris": (4.0, 3.0, 4.0), "voc": (17.0, 23.0, 21.0)}
    section = leaderboard(card(values, "mobile-sam"))
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
    tables = shown(leaderboard(card(values, "mobile-sam", "not comparable:")), Table)
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
    section = leaderboard(card({"": DAVIS, "davis": DAVIS}))
    for table in shown(section, Table):
        assert len(table.rows) == 34
        assert all(len(row) == len(table.columns) for row in table.rows)
    [scatter] = shown(section, ScatterChart)
    assert [spot.label for spot in scatter.spots if spot.group == "this run"] == ["mine"]
    assert len(scatter.spots) == 34


def test_a_run_of_other_images_sees_the_means_of_all_five():
    section = leaderboard(card({"": DAVIS, "planted": DAVIS}, words="not comparable: planted"))
    assert "five datasets" in shown(section, Table)[0].title
    assert "other images" in section.text
    assert "not comparable: planted noc90" in section.text.replace("Not", "not")
    assert not shown(section, HeatMap)


def test_scores_that_are_undefined_stay_empty():
    values = card({"": DAVIS, "davis": DAVIS}).scores
    scores = tuple(Score(s.name, float("nan"), 0, slice=s.slice) if s.name == "dgr" else s for s in values)
    section = leaderboard(Scorecard("rclicks", "1", "mine", scores))
    assert cells(shown(section, Table)[0], 0)["dGR %"] is None
    assert len(shown(section, ScatterChart)[0].spots) == 33


def test_the_map_of_correlations_is_figure_14():
    [heat] = shown(leaderboard(card({"": DAVIS, "davis": DAVIS})), HeatMap)
    row, column = heat.rows.index("NoC@90"), heat.columns.index("dGR %")
    # Figure 14 prints .56 (Pearson, above) for Sample NoC and GR NoC, and .46 below.
    assert row < column
    assert heat.values[row][column] == pytest.approx(0.56, abs=0.0075)
    assert heat.values[column][row] == pytest.approx(0.46, abs=0.0125)
