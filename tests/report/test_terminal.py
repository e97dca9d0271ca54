from __future__ import annotations

import io

from rich.console import Console

from hardlook.contract.scorecard import Score, Scorecard
from hardlook.report.terminal import interval_bar, print_scorecard

from . import samples


def printed(scorecard: Scorecard, width: int = 100, **more: object) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_scorecard(scorecard, console, **more)
    return console.file.getvalue()


def test_headline_slices_left_out_and_readings_are_printed_in_this_order():
    text = printed(samples.scorecard(), explanations={"miou": "Mean IoU over classes."})
    order = [
        "open-miou 1",
        "43 units planned",
        "0.538",
        "Mean IoU over classes.",
        "class: class 0",
        "Left out",
        "Readings",
    ]
    places = [text.index(said) for said in order]
    assert places == sorted(places)
    assert "similarity = released" in text


def test_many_slices_are_bounded_to_the_worst_and_the_best():
    text = printed(samples.scorecard(), most_slices=2)
    assert "the 2 worst and 2 best of 20" in text
    shown = [line.split()[2] for line in text.splitlines() if line.strip().startswith("class: class")]
    assert shown == ["0", "1", "18", "19"]


def test_lower_is_better_turns_the_order():
    text = printed(samples.scorecard(), higher_is_better={"miou": False}, most_slices=1)
    shown = [line.split()[2] for line in text.splitlines() if line.strip().startswith("class: class")]
    assert shown == ["19", "0"]


def test_the_bar_marks_value_and_interval_on_its_range():
    bar = interval_bar(samples.score("a", 0.5, 0.25), 0, 1, width=21)
    assert bar.index("●") == 10 and bar.count("─") == 10 and len(bar) == 21
    assert interval_bar(Score("a", float("nan"), 0), 0, 1, width=5) == "·····"
    assert interval_bar(Score("a", 3.0, 1), 3, 3, width=5) == "··●··"


def test_markup_of_the_terminal_in_names_is_printed_as_it_is():
    card = Scorecard("[red]b", "1", "m", (Score("[bold]x[/]", 0.5, 1), Score("y", 0.5, 1, None, {"k": "[/]"})))
    text = printed(card)
    assert "[bold]x[/]" in text and "[/]" in text and "[red]b" in text


def test_a_narrow_terminal_and_an_empty_card_print():
    assert all(len(line) <= 60 for line in printed(samples.scorecard(), width=60).splitlines())
    assert "0 units planned" in printed(Scorecard("b", "1", "m"))
