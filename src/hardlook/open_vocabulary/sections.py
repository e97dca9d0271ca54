"""Report sections that the three open metrics share: measures, confusions, slices.

Titles of charts and tables are their names for `hardlook figure` and `hardlook table`, and a table's columns are those
of its CSV file: neither changes without need.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.sections import Dot, DotChart, Example, Gallery, ScatterChart, Section, Spot, Table, score_dot

MOST_EXAMPLES = 4
LabelPair = tuple[str, str]


def find_scores(scorecard: Scorecard, name: str, *keys: str) -> list[Score]:
    """The scores of this name that are sliced by exactly these keys.

    >>> scores = (Score("miou", 0.5, 3, slice={"class": "cat"}), Score("miou", 0.6, 9))
    >>> find_scores(Scorecard("open-miou", "1", "", scores), "miou", "class")[0].slice["class"]
    'cat'
    """
    return [score for score in scorecard.scores if score.name == name and set(score.slice) == set(keys)]


def scores_by_class(scorecard: Scorecard, name: str) -> dict[str, Score]:
    """The scores of this name of each class."""
    return {score.slice["class"]: score for score in find_scores(scorecard, name, "class")}


def format_gain(scorecard: Scorecard) -> str:
    """The open gain with its interval, such as `0.104 (0.091 to 0.117)`."""
    gain = scorecard.get("open-gain")
    bounds = f" ({gain.interval.low:.3f} to {gain.interval.high:.3f})" if gain.interval else ""
    return f"{gain.value:.3f}{bounds}"


def describe_misnamed(confusions: Counter[str]) -> list[str]:
    """How many things were found under a wrong name, and the most frequent confusion; nothing where there are none.

    >>> describe_misnamed(Counter({"cat called dog": 2, "owl called cat": 1}))
    ['3 by another (most: cat called dog, 2 times)']
    """
    if not confusions:
        return []
    text, times = confusions.most_common(1)[0]
    most = f"{text}, {times} times" if times > 1 else text
    return [f"{confusions.total()} by another ({most if len(confusions) == 1 else 'most: ' + most})"]


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


@dataclass(frozen=True)
class Confusion:
    """How often one label was predicted for another, and the part of it that similarity does not excuse."""

    count: float
    cost: float

    @property
    def similarity(self) -> float:
        """Of the two labels."""
        return 1 - self.cost / self.count


def find_confusions(scorecard: Scorecard, count: str, cost: str) -> dict[LabelPair, Confusion]:
    """The confusions among the scores by (true, predicted) label, most costly first; `count` and `cost` name them."""
    counts, costs = (
        {(score.slice["true"], score.slice["called"]): score.value for score in find_scores(scorecard, name, *_PAIR)}
        for name in (count, cost)
    )
    return {pair: Confusion(counts[pair], costs[pair]) for pair in counts}


_PAIR = ("true", "called")


def build_confusions_section(
    confusions: Mapping[LabelPair, Confusion],
    counted: str,
    captions: tuple[str, str],
    examples: Sequence[Example],
    incomparable: frozenset[LabelPair] = frozenset(),
) -> Section:
    """The table of confusions, most costly first, and a gallery of images that have them.

    `counted` is what is confused (pixels, objects, segments); `captions` are those of table and gallery;
    `incomparable` pairs are shown without a similarity.
    """
    table = Table(
        "The dearest confusions",
        captions[0],
        ("true", "called", "similarity", counted, "not forgiven"),
        [
            (*pair, None if pair in incomparable else one.similarity, int(one.count), one.cost)
            for pair, one in confusions.items()
        ],
        decimals=2,
    )
    gallery = Gallery("Examples", captions[1], examples)
    return Section("Confusions", "", (table, gallery) if examples else (table,))


def build_slice_charts(
    scorecard: Scorecard, names: Mapping[str, str], slices: Mapping[str, str], metric: str
) -> list[DotChart]:
    """A chart per key of `slices` (key to title); `names` are the scores shown and what they are called."""
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
