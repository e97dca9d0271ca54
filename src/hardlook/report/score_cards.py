"""Scores as cards: the value, its interval as a bar and as a text, and what the number means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hardlook.harness.scorecard import Score
from hardlook.report.charts.drawing import FONT, LinearScale, fit_scale, label, segment
from hardlook.report.charts.palette import ACCENT, MUTED, RULE
from hardlook.report.formatting import (
    choose_decimals,
    format_count,
    format_interval,
    format_number,
    is_number,
    keep_finite,
    pluralize,
)
from hardlook.report.markup import element

_WIDTH = 240.0

_NOT_PUBLISHED = "There is no published number to compare it with."


@dataclass(frozen=True)
class ScoreTexts:
    """Texts about scores by their names: a title, a sentence of meaning, and which way is better."""

    titles: Mapping[str, str] = field(default_factory=dict)
    explanations: Mapping[str, str] = field(default_factory=dict)
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)

    def title(self, name: str) -> str:
        """The title of the score, or its name."""
        return self.titles.get(name) or name


@dataclass(frozen=True)
class Card:
    """The texts of one card; `bar` is markup."""

    name: str
    code: str
    value: str
    direction: str
    bar: str
    interval: str
    meaning: str
    comparable: str


def build_card(score: Score, wording: ScoreTexts) -> Card:
    r"""The card of a score.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> score = Score("miou", 0.5, n=10, interval=Interval(0.4, 0.6, 0.95, "percentile", 10, "image"))
    >>> build_card(score, ScoreTexts(higher_is_better={"miou": True})).interval
    '95% interval 0.400 to 0.600 (percentile, 10 images); n\xa0=\xa010'
    """
    better = wording.higher_is_better.get(score.name)
    decimals = choose_score_decimals(score)
    return Card(
        name=wording.title(score.name),
        code=" ".join(filter(None, (score.name if wording.title(score.name) != score.name else "", score.reading))),
        value=format_number(score.value, decimals) if is_number(score.value) else "undefined",
        direction="" if better is None else "higher is better" if better else "lower is better",
        bar=draw_interval_bar(score),
        interval=_describe_interval(score, decimals),
        meaning=wording.explanations.get(score.name, ""),
        comparable=score.comparable or _NOT_PUBLISHED,
    )


def choose_score_decimals(score: Score) -> int:
    """How many decimals suit a score and its interval."""
    return choose_decimals([score.value, *_bounds(score)])


def format_score_interval(score: Score) -> str:
    """The interval as `low to high`; empty where there is none."""
    if score.interval is None:
        return ""
    return format_interval(score.interval.low, score.interval.high, choose_score_decimals(score))


def draw_interval_bar(score: Score) -> str:
    """The value and its interval as SVG, on 0 to 1 or on a round range around them."""
    numbers = keep_finite([score.value, *_bounds(score)])
    if not is_number(score.value):
        return ""
    unit = all(0 <= number <= 1 for number in numbers)
    # The numbers at both ends of the range need some room.
    scale = (
        LinearScale(0, 1, 6, _WIDTH - 6, (0.0, 1.0))
        if unit
        else fit_scale([*numbers, 0.0], start=6, stop=_WIDTH - 6, ticks=2)
    )
    parts = [segment(scale.start, 9, scale.stop, 9, RULE, 2)]
    texts = scale.tick_texts()
    parts.append(label(scale.start - 6, 27, texts[0], size=10.5, fill=MUTED))
    parts.append(label(scale.stop + 6, 27, texts[-1], size=10.5, fill=MUTED, anchor="end"))
    if format_score_interval(score) and score.interval is not None:
        parts.append(_interval_box(scale.at(score.interval.low), scale.at(score.interval.high)))
    x = scale.at(score.value)
    parts.append(segment(x, 1, x, 17, ACCENT, 2.5))
    return element("svg", *parts, viewBox=f"0 0 {_WIDTH:.0f} 30", aria_hidden="true", font_family=FONT)


def _interval_box(start: float, stop: float) -> str:
    return element("rect", x=start, y=4.0, width=max(stop - start, 1.0), height=10.0, fill=ACCENT, fill_opacity=0.35)


def _bounds(score: Score) -> tuple[float, ...]:
    return () if score.interval is None else (score.interval.low, score.interval.high)


def _describe_interval(score: Score, decimals: int) -> str:
    count = f"n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{format_number(score.n, 0)}"
    if score.interval is None or not format_score_interval(score):
        return f"no interval; {count}"
    interval = score.interval
    made = f"{interval.method}, {format_count(interval.n, interval.resampled, pluralize(interval.resampled))}"
    return f"{interval.level:.0%} interval {format_interval(interval.low, interval.high, decimals)} ({made}); {count}"
