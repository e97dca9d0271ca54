"""Report sections and phrases that the three open metrics share: measures, confusions, slices.

Titles of charts and tables are their names for `hardlook figure` and `hardlook table`, and a table's columns are those
of its CSV file: change neither without need.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import Dot, DotChart, Example, Gallery, ScatterChart, Section, Spot, Table, score_dot

MAX_EXAMPLES = 4


def find_scores(scorecard: Scorecard, name: str, *keys: str) -> list[Score]:
    """The scores of this name that are sliced by exactly these keys.

    >>> scores = (Score("miou", 0.5, 3, slice={"class": "cat"}), Score("miou", 0.6, 9))
    >>> find_scores(Scorecard("open-miou", "1", "", scores), "miou", "class")[0].slice["class"]
    'cat'
    """
    return [score for score in scorecard.scores if score.name == name and set(score.slice) == set(keys)]


def find_scores_by_class(scorecard: Scorecard, name: str) -> dict[str, Score]:
    """The scores of this name, by class."""
    return {score.slice["class"]: score for score in find_scores(scorecard, name, "class")}


def format_gain(scorecard: Scorecard) -> str:
    """The open gain with its interval, such as `0.104 (0.091 to 0.117)`."""
    gain = scorecard.get("open-gain")
    bounds = (
        f" ({format_fixed(gain.interval.low, 3)} to {format_fixed(gain.interval.high, 3)})" if gain.interval else ""
    )
    return f"{format_fixed(gain.value, 3)}{bounds}"


def add_warnings(text: str, scorecard: Scorecard) -> str:
    """The text of the first section, after what warns of a likely mistake.

    >>> from hardlook.harness.scorecard import LeftOut
    >>> note = LeftOut("predicted numbers look off by one", 9, "check --numbering", kept=True, warning=True)
    >>> add_warnings("All is well.", Scorecard("open-miou", "1", "", left_out=(note,)))
    'Predicted numbers look off by one: check --numbering. All is well.'
    """
    warnings = [f"{note.what[:1].upper()}{note.what[1:]}: {note.why}." for note in scorecard.noted if note.warning]
    return " ".join([*warnings, text])


def describe_misnamed(confusions: Counter[str]) -> list[str]:
    """Part of a sentence: how many objects have a wrong label, and the most frequent confusion; empty if none has.

    >>> describe_misnamed(Counter({"cat called dog": 2, "owl called cat": 1}))
    ['3 by another (most: cat called dog, 2 times)']
    """
    if not confusions:
        return []
    text, times = confusions.most_common(1)[0]
    most = f"{text}, {times} times" if times > 1 else text
    return [f"{confusions.total()} by another ({most if len(confusions) == 1 else 'most: ' + most})"]


def format_count_verb(count: int) -> str:
    """A count with its verb: `1 is`, `2 are`, `0 are`."""
    return f"{count} {'is' if count == 1 else 'are'}"


def build_class_chart(metric: str, hard_word: str, spots: Sequence[Spot]) -> ScatterChart:
    """Each class as a spot: the hard score against the open one."""
    return ScatterChart(
        f"{metric} of each class, {hard_word} and open",
        "On the diagonal nothing is gained; far above it the class is confused with similar ones.",
        spots,
        f"{hard_word} {metric}",
        f"open {metric}",
        diagonal=True,
    )


def build_measures_section(scorecard: Scorecard, name: str, title: str, reference: tuple[str, str]) -> Section | None:
    """The open score `name` under every compared measure; `reference` is the label and name of the hard score."""
    defined = [score for score in find_scores(scorecard, name, "measure") if not math.isnan(score.value)]
    if not defined:
        return None
    label, hard = reference
    chart = DotChart(
        f"{title} under other measures",
        "The same records, re-scored. Numbers under different measures are not comparable with each other.",
        [Dot(score.slice["measure"], score.value) for score in defined],
        axis=title,
        references=((label, scorecard.get(hard).value),),
    )
    return Section("Similarity measures", "", (chart,))


def build_confusions_section(
    scorecard: Scorecard,
    count_score: str,
    captions: tuple[str, str],
    units: Sequence[str],
    count_by_image: Callable[[str, str], NDArray[Any]],
    is_comparable: Callable[[str, str], bool] = lambda true, called: True,
) -> Section | None:
    """The table of confusions, most costly first, and a gallery of images that have the first of them.

    `count_score` is the name of the score that counts them, such as `confused-pixels`; `captions` are those of table
    and gallery; `count_by_image` takes a true and a predicted label and returns one count per unit. Pairs that are not
    comparable (a thing and stuff) are shown without a similarity.
    """
    counted = count_score.rpartition("-")[2]
    rows: list[tuple[str, str, float | None, int, float]] = []
    texts: dict[str, list[str]] = {}
    for score in find_scores(scorecard, count_score, "true", "called"):
        true, called = score.slice["true"], score.slice["called"]
        cost = scorecard.get(f"unforgiven-{counted}", true=true, called=called).value
        similarity = 1 - cost / score.value if is_comparable(true, called) else None
        rows.append((true, called, similarity, int(score.value), cost))
        if len(rows) <= MAX_EXAMPLES and (by_image := count_by_image(true, called)).any():
            most = int(by_image.max())
            how = "a thing and stuff" if similarity is None else f"similarity {format_fixed(similarity, 2)}"
            text = f"{true} called {called} ({how}): {most:,} {counted if most > 1 else counted[:-1]}."
            texts.setdefault(units[int(by_image.argmax())], []).append(text)
    columns = ("true", "called", "similarity", counted, "not forgiven")
    table = Table("The dearest confusions", captions[0], columns, rows, decimals=2)
    gallery = Gallery("Examples", captions[1], [Example(unit, " ".join(own)) for unit, own in texts.items()])
    return Section("Confusions", "", (table, gallery) if texts else (table,)) if rows else None


def build_slice_charts(
    scorecard: Scorecard, names: Mapping[str, str], slices: Mapping[str, str], metric: str
) -> list[DotChart]:
    """A chart per key of `slices` (slice key to chart title); `names` maps the scores shown to their legend."""
    charts = []
    for key, title in slices.items():
        rows = [
            score_dot(score, score.slice[key], names[score.name])
            for score in scorecard.scores
            if score.name in names and set(score.slice) == {key}
        ]
        if rows:
            charts.append(DotChart(title, f"{metric}, {' and '.join(names.values())}.", rows, axis=metric))
    return charts
