"""Scores that are neither good nor bad: no arrow, no direction, no rank; slices that are bad when they are high."""

import io

import pytest
from rich.console import Console

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.registry import BUILT_IN, find_benchmark
from hardlook.harness.scorecard import Score
from hardlook.report.leaderboard.board import Row, ScoreRanking, rank_rows
from hardlook.report.leaderboard.report import describe_leader
from hardlook.report.score_display import build_card
from hardlook.report.terminal import Range, build_slices_table, format_direction, group_slices

GAIN = ScoreMeaning("gain", "gain", "one minus other", ranked=False)

LOSS = ScoreMeaning("loss", "loss", "what is lost", higher_is_better=False)

IOU = ScoreMeaning("iou", "IoU", "overlap", inverted_slices=(("class", "none"),))


def test_a_card_without_a_direction_says_none():
    assert build_card(Score("gain", 0.5, 3), GAIN)["direction"] == ""
    assert build_card(Score("loss", 0.5, 3), LOSS)["direction"] == "lower is better"


def test_nobody_is_ranked_and_the_highest_comes_first():
    rows = [Row("run", name, value) for name, value in (("ant", 0.1), ("bee", 0.4), ("cat", 0.4))]
    assert [(row.method, row.rank) for row in rank_rows(rows, GAIN)] == [("bee", None), ("cat", None), ("ant", None)]
    assert [(row.method, row.rank) for row in rank_rows(rows, LOSS)] == [("ant", 1), ("bee", 2), ("cat", 2)]
    assert "not ranked by it" in describe_leader(ScoreRanking(GAIN, {}, rank_rows(rows, GAIN)))


@pytest.mark.parametrize(
    ("meaning", "head", "sign"), [(GAIN, "lowest", ""), (LOSS, "worst", " \u2193"), (IOU, "lowest", " \u2191")]
)
def test_the_terminal_calls_no_slice_worst_where_none_is(meaning, head, sign):
    meanings = {meaning.name: meaning}
    assert format_direction(meaning.name, meanings) == sign
    scores = [Score(meaning.name, value, 3, slice={"class": name}) for name, value in (("cat", 0.4), ("none", 0.1))]
    kinds = group_slices(scores, [meaning.name], meanings)
    console = Console(width=120, file=io.StringIO())
    console.print(build_slices_table(kinds, meanings, {meaning.name: Range(0, 1, "0", "1")}, 120))
    heading = console.file.getvalue().splitlines()[0]
    assert head in heading and ("worst or lowest" in heading) == (head == "lowest")


def test_slices_that_turn_a_score_are_slices_that_benchmarks_have():
    turned = {
        (name, key) for name in (*BUILT_IN, "bias-support") for score in find_benchmark(name).card.scores
        for key, _ in score.inverted_slices
    }  # fmt: skip
    assert turned == {("toss", "level"), ("bias-support", "support")}
    undirected = {score.name for name in BUILT_IN for score in find_benchmark(name).card.scores if not score.ranked}
    assert undirected == {"open-gain", "said-in", "attraction-chance", "salience-gap"}
