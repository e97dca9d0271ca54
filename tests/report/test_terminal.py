from __future__ import annotations

import io
import math
import re

import pytest
import report_samples
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.scorecard import LeftOut, Reading, Score, Scorecard
from hardlook.harness.stats.intervals import Interval
from hardlook.report.score_display import build_card
from hardlook.report.terminal import (
    add_range_ends,
    compute_bar_width,
    describe_bases,
    draw_text_bar,
    draw_value_strip,
    fit_range,
    fit_ranges,
    print_scorecard,
)

MIOU = ScoreMeaning("miou", "mIoU", "Mean IoU over classes.", headline=True)

CLICKS = ScoreMeaning("clicks", "NoC", "Clicks to 90 %.", higher_is_better=False, headline=True)


def printed(scorecard: Scorecard, *meanings: ScoreMeaning, width: int = 100, full: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_scorecard(scorecard, console, meanings, full=full)
    return console.file.getvalue()


def line_of(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_headline_slices_left_out_and_readings_are_printed_in_this_order():
    text = printed(report_samples.scorecard(), MIOU)
    order = ("open-miou 1", "43 units planned", "miou ↑", "0.538", "Mean IoU over classes.", "by class", "Left out")
    places = [text.index(said) for said in (*order, "Readings", "similarity=released", "scores in all")]
    assert places == sorted(places)


def test_slices_are_summed_up_by_the_worst_the_best_and_where_all_lie():
    line = line_of(printed(report_samples.scorecard(), MIOU), "miou by class")
    assert re.search(r" 20  class 0 [\d.]+ +class 19 [\d.]+ ", line)
    assert line.split(" 0 ")[-1].count("•") > 5


def test_lower_is_better_turns_the_order_and_the_arrow():
    lower = ScoreMeaning("miou", "mIoU", "", higher_is_better=False, headline=True)
    line = line_of(printed(report_samples.scorecard(), lower), "miou by class ↓")
    assert line.index("class 19 ") < line.index("class 0 ")


def test_each_bar_says_its_range_and_a_score_keeps_it_in_its_slices():
    clicks = Score("clicks", 3.0, 9, Interval(2.5, 3.5, 0.95, "percentile", 9, "object"))
    sizes = [Score("clicks", value, 4, None, {"size": size}) for size, value in (("small", 18.0), ("large", 1.0))]
    card = Scorecard("b", "1", "m", (Score("miou", 0.25, 9), clicks, *sizes))
    text = printed(card, MIOU, CLICKS)
    assert re.search(r" 0 [·─●]+ 1 *$", line_of(text, "miou ↑"))
    assert re.search(r" 0 [·─●]+ 20 *$", line_of(text, "clicks ↓"))
    assert re.search(r" 0 [·•]+ 20 *$", line_of(text, "clicks by size ↓"))
    assert "small 18 " in line_of(text, "clicks by size ↓").split("large")[0]


def test_other_scores_are_named_once_without_bars():
    card = Scorecard("b", "1", "m", (Score("miou", 0.5, 9), Score("fw-iou", 0.75, 9), Score("gone", float("nan"), 9)))
    text = printed(card, MIOU)
    assert "Other scores\n  fw-iou 0.750, gone \N{EN DASH}" in text
    assert text.count("fw-iou") == 1


def test_a_score_that_exists_in_crossed_slices_alone_is_shown_by_them_and_others_by_the_simplest():
    crossed = [Score("iou", v, 1, None, {"context": c, "class": "cat"}) for c, v in (("fog", 0.1), ("sun", 0.9))]
    text = printed(Scorecard("b", "1", "m", tuple(crossed)))
    assert "fog, cat 0.100" in line_of(text, "iou by context, class")
    simple = [Score("iou", v, 1, None, {"class": c}) for c, v in (("dog", 0.2), ("cat", 0.8))]
    text = printed(Scorecard("b", "1", "m", (*crossed, *simple)))
    assert "by context" not in text
    assert "dog 0.200" in line_of(text, "iou by class")


def many_scores(count: int) -> Scorecard:
    scores = [Score(f"s{i}", 0.5, 9, None, {}, "", "not comparable: planted") for i in range(count)]
    scores += [Score("miou", 0.5, 9)]
    scores += [Score("miou", i / 60, 9, None, {f"kind {i % 20}": f"v{i}"}) for i in range(60)]
    return Scorecard("b", "1", "m", tuple(scores))


def test_a_run_fits_on_a_screen_however_many_scores_it_has():
    text = printed(many_scores(200), MIOU, width=80)
    assert len(text.splitlines()) <= 40
    assert "and 170 more" in text
    assert "and 10 more kinds of slices" in text
    assert "261 scores in all: --full" in text


def test_full_prints_every_score_and_every_slice():
    text = printed(many_scores(200), MIOU, width=80, full=True)
    for score in many_scores(200).scores:
        assert "".join(score.slice.values()) in text
        assert re.search(rf"^{score.name}\b", text, re.MULTILINE)
    assert sum(line.startswith("kind ") for line in text.splitlines()) == 60
    assert "--full" not in text


def test_readings_tell_where_they_are_not_the_default_and_full_tells_what_they_mean():
    readings = (
        Reading("nof", "paper", "as printed", ("paper", "released"), "released"),
        Reading("a", "b", "c", (), "b"),
    )
    card = Scorecard("b", "1", "m", (), readings, (LeftOut("pairs", 3, "no image"),))
    assert "Readings: nof=paper (default released), a=b" in printed(card)
    assert "Left out: 3 pairs\n" in printed(card)
    assert "Reading nof=paper (default released): as printed" in printed(card, full=True)
    assert "Left out: 3 pairs: no image" in printed(card, full=True)


def test_markup_of_the_terminal_in_names_is_printed_as_it_is():
    slices = [Score("y", value, 1, None, {"k": name}) for name, value in (("[/]", 0.5), ("[u]", 0.6))]
    card = Scorecard("[red]b", "1", "m", (Score("[bold]x[/]", 0.5, 1), *slices))
    for full in (False, True):
        text = printed(card, full=full)
        assert all(name in text for name in ("[bold]x[/]", "[/]", "[u]", "[red]b"))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("width", [60, 72, 100, 200])
def test_no_line_is_wider_than_the_terminal(width, full):
    for card in (report_samples.scorecard(), many_scores(60)):
        lines = printed(card, MIOU, width=width, full=full).splitlines()
        assert max(map(len, lines)) <= width


def test_an_empty_card_prints():
    assert "0 units planned" in printed(Scorecard("b", "1", "m"))


def test_there_is_no_colour_in_a_pipe():
    console = Console(file=io.StringIO(), width=80)
    print_scorecard(report_samples.scorecard(), console, (MIOU,))
    assert "\x1b" not in console.file.getvalue()


def test_there_is_no_colour_where_the_environment_wants_none(monkeypatch):
    def in_a_terminal():
        console = Console(file=io.StringIO(), width=80, force_terminal=True)
        print_scorecard(report_samples.scorecard(), console, (MIOU,))
        return console.file.getvalue()

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[36m" in in_a_terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in in_a_terminal()


numbers = st.floats(-1e6, 1e6)


def test_the_bar_marks_value_and_interval_on_its_range():
    bar = draw_text_bar(report_samples.score("a", 0.5, 0.25), 0, 1, width=21)
    assert bar.index("●") == 10 and bar.count("─") == 10 and len(bar) == 21
    assert draw_text_bar(Score("a", float("nan"), 0), 0, 1, width=5) == "·····"
    assert draw_text_bar(Score("a", 3.0, 1), 3, 3, width=5) == "··●··"


@given(st.lists(numbers | st.just(math.nan)))
def test_a_range_holds_all_its_numbers_and_zero(values):
    span = fit_range(values)
    assert span.low <= 0 <= span.high
    assert span.low < span.high
    slack = 1e-6 * (span.high - span.low)
    assert all(span.low - slack <= value <= span.high + slack for value in values if not math.isnan(value))


@given(st.lists(st.floats(0, 1)))
def test_shares_have_the_range_zero_to_one(values):
    assert (fit_range(values).left, fit_range(values).right) == ("0", "1")


@given(st.lists(st.floats(0, 1), min_size=1), st.integers(1, 40))
def test_a_strip_has_a_mark_at_the_place_of_each_value(values, width):
    drawn = draw_value_strip(values, 0, 1, width)
    assert len(drawn) == width
    assert {index for index, mark in enumerate(drawn) if mark == "•"} == {round(v * (width - 1)) for v in values}


def test_ranges_go_by_name_with_the_intervals_of_what_has_a_bar():
    card = [report_samples.score("clicks", 3.0, 4.0), Score("miou", 0.5, 3)]
    ranges = fit_ranges(card, [Score("miou", 0.9, 1), Score("gap", -0.2, 1)])
    assert (ranges["clicks"].low, ranges["clicks"].high) == (-5, 10)
    assert (ranges["miou"].low, ranges["miou"].high) == (0, 1)
    assert ranges["gap"].left == "−0.2"  # noqa: RUF001


def test_bars_get_what_is_left_and_none_where_that_is_too_little():
    ranges = [fit_range([0.5]), fit_range([150.0])]
    assert compute_bar_width(60, 40, ranges) == 14
    assert compute_bar_width(200, 40, ranges) == 24
    assert compute_bar_width(60, 50, ranges) == 0
    assert len(set(map(len, add_range_ends(["●··", "··●"], [ranges[0], ranges[0]])))) == 1


def test_the_basis_and_undefined_resamples_are_printed():
    scs = Score("scs", 0.664, 57, undefined=0.7, rests_on={"query image": 57, "class": 1})
    cost = Score("dsb", math.nan, 0, reason="no course reaches 90 % IoU")
    kept = LeftOut("clicks", 2, "moved", kept=True)
    text = printed(Scorecard("toss", "1", "m", (scs, cost), left_out=(kept,)))
    for line in (
        "scs rests on 57 query images, 1 class",
        "scs has no interval: 70 % of the resamples are undefined",
        "dsb is undefined: no course reaches 90 % IoU",
        "Noted: 2 clicks",
    ):
        assert line in text
    assert "Left out" not in text


@pytest.mark.parametrize(("clusters", "rough", "words"), [
    (40, False, ""),
    (40, True, "few of the images decide it, so that its interval is rough"),
    (4, True, "too few images for a reliable interval"),
])  # fmt: skip
def test_an_interval_that_few_images_decide_is_called_rough_in_one_note(clusters, rough, words):
    score = Score("iou", 0.9, 40, Interval(0.8, 0.95, 0.95, "jackknife", clusters, "image"), rough=rough)
    notes = [line for line in describe_bases([score]) if "few" in line]
    assert notes == ([f"iou: {words}"] if words else [])
    assert build_card(score)["interval"].endswith(words or "n\xa0=\xa040")
    assert Scorecard.from_json(Scorecard("x", "1", "m", (score,)).to_json()).scores == (score,)
    assert ('"rough"' in Scorecard("x", "1", "m", (score,)).to_json()) is rough
