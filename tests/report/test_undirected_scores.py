"""Scores that are neither good nor bad: no arrow, no direction, no rank; slices that are bad when they are high."""

import io

import pytest
from rich.console import Console

from hardlook.benchmarks import BUILT_IN, find_benchmark
from hardlook.contract.benchmark import ScoreMeaning
from hardlook.contract.scorecard import Score
from hardlook.leaderboards.sections import leader_words
from hardlook.leaderboards.standing import Row, Standing, ranked
from hardlook.report.cards import Wording, card_of
from hardlook.report.terminal_bars import Range
from hardlook.report.terminal_tables import arrow, slice_kinds, slices_table

GAIN = ScoreMeaning("gain", "gain", "one minus other", directed=False)
LOSS = ScoreMeaning("loss", "loss", "what is lost", higher_is_better=False)
IOU = ScoreMeaning("iou", "IoU", "overlap", turned=(("class", "none"),))


def test_a_card_without_a_direction_says_none():
    assert card_of(Score("gain", 0.5, 3), Wording(higher_is_better={})).direction == ""
    assert card_of(Score("loss", 0.5, 3), Wording(higher_is_better={"loss": False})).direction == "lower is better"


def test_nobody_is_ranked_and_the_highest_comes_first():
    rows = [Row("run", name, value) for name, value in (("ant", 0.1), ("bee", 0.4), ("cat", 0.4))]
    assert [(row.method, row.rank) for row in ranked(rows, GAIN)] == [("bee", None), ("cat", None), ("ant", None)]
    assert [(row.method, row.rank) for row in ranked(rows, LOSS)] == [("ant", 1), ("bee", 2), ("cat", 2)]
    assert "nobody is ranked" in leader_words(Standing(GAIN, {}, ranked(rows, GAIN)))


@pytest.mark.parametrize(
    ("meaning", "head", "sign"), [(GAIN, "lowest", ""), (LOSS, "worst", " \u2193"), (IOU, "lowest", " \u2191")]
)
def test_the_terminal_calls_no_slice_worst_where_none_is(meaning, head, sign):
    meanings = {meaning.name: meaning}
    assert arrow(meaning.name, meanings) == sign
    scores = [Score(meaning.name, value, 3, slice={"class": name}) for name, value in (("cat", 0.4), ("none", 0.1))]
    kinds = slice_kinds(scores, [meaning.name], meanings)
    console = Console(width=120, file=io.StringIO())
    console.print(slices_table(kinds, meanings, {meaning.name: Range(0, 1, "0", "1")}, 120))
    heading = console.file.getvalue().splitlines()[0]
    assert head in heading and ("worst or lowest" in heading) == (head == "lowest")


def test_slices_that_turn_a_score_are_slices_that_benchmarks_have():
    turned = {
        (name, key) for name in (*BUILT_IN, "bias-support") for score in find_benchmark(name).card.scores
        for key, _ in score.turned
    }  # fmt: skip
    assert turned == {("toss", "level"), ("bias-support", "support")}
    undirected = {score.name for name in BUILT_IN for score in find_benchmark(name).card.scores if not score.directed}
    assert undirected == {"open-gain", "attraction-chance", "salience-gap"}
