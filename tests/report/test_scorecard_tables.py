from __future__ import annotations

from hardlook.contract.scorecard import Scorecard
from hardlook.report.scorecard_tables import all_scores_table, left_out_table, readings_table, said_once, scores_table

from . import samples

CARD = samples.scorecard()


def test_headline_scores_are_chosen_and_titled():
    table = scores_table(CARD, ("miou", "gap"), {"miou": "mIoU"})
    assert [row[0] for row in table.rows] == ["mIoU", "gap"]
    assert table.rows[0][1:] == (0.538, 0.538 - 0.02, 0.538 + 0.02, 40)
    assert table.rows[1][2:4] == (None, None)
    assert table.caption == "95% intervals (percentile, from resampling the image)."
    assert len(scores_table(CARD).rows) == 3


def test_all_scores_have_a_row_and_empty_columns_are_left_out():
    table = all_scores_table(CARD)
    assert len(table.rows) == len(CARD.scores)
    assert "comparable" in table.columns and "reading" not in table.columns
    assert table.rows[3][:2] == ["miou", "class: class 0"]
    assert list(all_scores_table(Scorecard("b", "1", "m")).rows) == []


def test_left_out_and_readings_say_what_the_scorecard_says():
    assert left_out_table(CARD).rows == [("images without a label", 3, "their IoU is undefined", "img_1")]
    assert readings_table(CARD).rows == [
        ("similarity", "released", "Path length over `WordNet`.", "released", "paper, released")
    ]


def test_what_is_said_of_every_row_is_said_once():
    columns, rows = (
        ("score", "n", "comparable"),
        [["miou", 3, "not comparable: so."], ["iou", 3, "not comparable: so."]],
    )
    said, kept, shown = said_once(columns, rows, ("reading", "comparable"))
    assert (said, kept, shown) == ("All of these: not comparable: so.", ["score", "n"], [["miou", 3], ["iou", 3]])
    # Columns that are not named, single rows and empty cells stay as they are.
    for other in ([rows[0]], [rows[0], ["iou", 3, ""]], [["miou", 3, ""], ["iou", 3, ""]]):
        assert said_once(columns, other, ("reading", "comparable")) == ("", list(columns), other)
