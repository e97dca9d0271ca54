"""How a score is displayed: its card in the report (value, interval, meaning), its interval as a bar and as text."""

from __future__ import annotations

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.rounding import format_percent
from hardlook.harness.scorecard import Score
from hardlook.harness.verdicts import MIN_CLUSTERS
from hardlook.report.charts.drawing import FONT, LinearScale, fit_scale, label, segment
from hardlook.report.charts.palette import ACCENT, MUTED, RULE
from hardlook.report.formatting import (
    choose_decimals,
    format_count,
    format_interval,
    format_level,
    format_number,
    is_number,
    keep_finite,
    pluralize,
)
from hardlook.report.markup import element, render_inline

_WIDTH = 240.0


def build_card(score: Score, meaning: ScoreMeaning | None = None) -> dict[str, str]:
    r"""The values that the template shows on the card of a score; bar, meaning and comparability are markup.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> score = Score("miou", 0.5, n=10, interval=Interval(0.4, 0.6, 0.95, "percentile", 10, "image"))
    >>> build_card(score)["interval"]
    '95% interval 0.400 to 0.600 (percentile, 10 images); n\xa0=\xa010'
    """
    from markupsafe import Markup

    meaning = meaning or ScoreMeaning(score.name, score.name, "", ranked=False)
    title = meaning.title or score.name
    known = is_number(score.value)
    return {
        "name": title,
        "code": " ".join(filter(None, (score.name if title != score.name else "", score.reading))),
        "value": format_number(score.value, choose_score_decimals(score)) if known else "undefined",
        "reason": "" if known else score.reason,
        "direction": meaning.direction,
        "bar": Markup(draw_interval_bar(score)),
        "interval": _describe_interval(score),
        "meaning": Markup(render_inline(meaning.meaning)),
        "comparable": Markup(render_inline(score.comparable or "There is no published number to compare it with.")),
    }


def get_bounds(score: Score) -> tuple[float | None, float | None]:
    """Low and high of the score's interval; None where there is none."""
    return (score.interval.low, score.interval.high) if score.interval else (None, None)


def choose_score_decimals(score: Score) -> int:
    """How many decimals suit a score and its interval."""
    return choose_decimals([score.value, *get_bounds(score)])


def format_score_interval(score: Score) -> str:
    """The interval as `low to high`; empty where there is none."""
    return format_interval(*get_bounds(score), choose_score_decimals(score))


def format_basis(score: Score) -> str:
    """What a score rests on, such as `57 query images, 1 class`; empty where that was not kept.

    >>> format_basis(Score("scs", 0.5, 9, rests_on={"query image": 57, "class": 1}))
    '57 query images, 1 class'
    """
    return ", ".join(format_count(count, what) for what, count in score.rests_on.items())


def format_undefined(score: Score) -> str:
    """The share of undefined resamples; empty where there are none.

    >>> format_undefined(Score("scs", 0.5, 9, undefined=0.7)), format_undefined(Score("scs", 0.5, 9, undefined=1e-4))
    ('70 % of the resamples are undefined', 'less than 1 % of the resamples are undefined')
    """
    if not score.undefined:
        return ""
    share = format_percent(score.undefined) if score.undefined >= 0.01 else "less than 1 %"
    return f"{share} of the resamples are undefined"


def format_wider_interval(score: Score) -> str:
    """The interval that covers one more draw; empty where there is none.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> wider = Interval(0.4, 0.6, 0.95, "shared images", 90, "image")
    >>> format_wider_interval(Score("iid", 0.5, 9, wider=wider))
    '0.400 to 0.600 if the 90 images are drawn, too'
    """
    wider = score.wider
    if wider is None or not wider.defined:
        return ""
    bounds = format_interval(wider.low, wider.high, choose_score_decimals(score))
    return f"{bounds} if the {format_count(wider.n, wider.resampled)} are drawn, too"


def warn_of_few_clusters(score: Score) -> str:
    """A warning for an interval of too few clusters, or of a score that few of them decide; empty for others.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> warn_of_few_clusters(Score("iid", 0.5, 4, Interval(0.1, 0.9, 0.95, "t", 4, "task")))
    'too few tasks for a reliable interval'
    >>> warn_of_few_clusters(Score("iou", 0.9, 40, Interval(0.8, 1.0, 0.95, "jackknife", 40, "image"), rough=True))
    'few of the images decide it, so that its interval is rough'
    """
    interval = score.interval
    if interval is None or not (score.rough or interval.n < MIN_CLUSTERS):
        return ""
    what = pluralize(interval.resampled)
    if interval.n < MIN_CLUSTERS:
        return f"too few {what} for a reliable interval"
    return f"few of the {what} decide it, so that its interval is rough"


def draw_interval_bar(score: Score) -> str:
    """The value and its interval as SVG, on an axis from 0 to 1, or on one that fits them and 0."""
    if not is_number(score.value):
        return ""
    low, high = get_bounds(score)
    numbers = keep_finite([score.value, low, high])
    # The numbers at both ends of the range need some room.
    scale = (
        LinearScale(0, 1, 6, _WIDTH - 6, (0.0, 1.0))
        if all(0 <= number <= 1 for number in numbers)
        else fit_scale([*numbers, 0.0], start=6, stop=_WIDTH - 6, ticks=2)
    )
    texts = scale.tick_texts()
    parts = [
        segment(scale.start, 9, scale.stop, 9, RULE, 2),
        label(scale.start - 6, 27, texts[0], size=10.5, fill=MUTED),
        label(scale.stop + 6, 27, texts[-1], size=10.5, fill=MUTED, anchor="end"),
    ]
    if is_number(low) and is_number(high):
        start, stop = scale.at(low), scale.at(high)
        size = {"width": max(stop - start, 1.0), "height": 10.0}
        parts.append(element("rect", x=start, y=4.0, **size, fill=ACCENT, fill_opacity=0.35))
    x = scale.at(score.value)
    parts.append(segment(x, 1, x, 17, ACCENT, 2.5))
    return element("svg", *parts, viewBox=f"0 0 {_WIDTH:.0f} 30", aria_hidden="true", font_family=FONT)


def _describe_interval(score: Score) -> str:
    count = f"n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{format_number(score.n, 0)}"
    interval, bounds, basis = score.interval, format_score_interval(score), format_basis(score)
    undefined = format_undefined(score)
    if interval is None or not bounds:
        why = f", since {undefined}" if undefined else ""
        return f"no interval{why}{f' ({basis})' if basis else ''}; {count}"
    made = f"{interval.method}, {basis or format_count(interval.n, interval.resampled)}"
    more = [format_wider_interval(score), warn_of_few_clusters(score), undefined]
    return "; ".join((f"{format_level(interval.level)} interval {bounds} ({made})", count, *filter(None, more)))
