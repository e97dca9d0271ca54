"""The difference between two models in one score: its size, its interval, its p-value, and the verdict.

A verdict needs a p-value, after Holm's correction, of at most alpha. Whether a positive difference is good depends on
the score; where neither direction is good, the verdict is higher or lower. Without a significant difference, the
number of units that would be needed follows from the spread of the paired difference; with several comparisons in a
family it is planned for alpha divided by their number.

Comparisons are corrected in families: sets of questions that a reader asks at once, so that the chance of even one
false answer among them must stay small. There are three kinds:

- the headline scores over all units, all pairs of models;
- the other scores over all units, all pairs;
- one score by one kind of slice (a set of slice names, such as context, or class and context), all pairs.

So slices never weaken the headline, and a score with hundreds of classes is corrected for them alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.stats.intervals import Interval
from hardlook.harness.stats.ranking import holm, units_needed_for
from hardlook.report.compare.paired_tallies import PairedTally
from hardlook.report.formatting import (
    choose_decimals,
    describe_slice,
    format_level,
    format_number,
    format_p_value,
    format_rough_count,
    pluralize,
)

HEADLINE_SCORES, OTHER_SCORES = "headline scores", "other scores"
POWER = 0.8
"""The power that a number of units needed promises."""
PLANNED_POWER = 0.85
"""The power that it is computed for: scores that are not means, such as mIoU, vary more in few units than in many."""
Verdict = Literal["better", "worse", "higher", "lower", "cannot tell", "undefined"]


@dataclass(frozen=True)
class Difference:
    """Score of `first` minus score of `second` on the same units; `slice` is empty over all of them.

    `value`, `interval` and `standard_error` are in the score's own scale. `p_value` is that of the permutation test, or
    of a t test where seeds or shared images matter and it is larger; `adjusted` is the same after Holm's correction
    within `family`; NaN where no comparison was made. `n` counts units; the interval says how many clusters there are
    and what they are. `fixed_error` is the part of the standard error that more clusters would not make smaller, that
    of seeds and of shared images; `freedom` are the error's degrees of freedom. `units_needed` is in clusters: infinite
    where the models agree, NaN where it is unknown. `verdict` is for `first` against `second` and takes the score's
    direction into account. `swaps` counts the swaps of the permutation test: random ones, or every possible one where
    `exact`. `reason` says why a score is undefined, where that is known.
    """

    name: str
    slice: Mapping[str, str]
    first: str
    second: str
    value: float
    interval: Interval | None
    p_value: float
    adjusted: float
    family: str
    n: int
    units_needed: float
    verdict: Verdict
    first_value: float = math.nan
    second_value: float = math.nan
    standard_error: float = math.nan
    fixed_error: float = 0.0
    freedom: float = math.inf
    clusters: int = 0
    resampled: str = "unit"
    reading: str = ""
    swaps: int = 0
    exact: bool = False
    reason: str = ""

    @property
    def is_significant(self) -> bool:
        """Whether these units tell the models apart."""
        return self.verdict not in ("cannot tell", "undefined")

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Low and high of the interval; None where there is none."""
        return (self.interval.low, self.interval.high) if self.interval else (None, None)


def list_headline_names(card: BenchmarkCard) -> tuple[str, ...]:
    """The names of the card's headline scores; its first score where none is marked as headline."""
    marked = tuple(score.name for score in card.scores if score.headline)
    return marked or tuple(score.name for score in card.scores[:1])


def find_score_meaning(card: BenchmarkCard, name: str) -> ScoreMeaning:
    """The meaning of a score by its name; a score that the card does not list is taken as better when higher."""
    known = next((score for score in card.scores if score.name == name), None)
    return known or ScoreMeaning(name, name, "")


def get_slice_keys(where: Mapping[str, str]) -> tuple[str, ...]:
    """The kind of a slice: the sorted names of its properties.

    >>> get_slice_keys({"context": "night", "class": "cat"})
    ('class', 'context')
    """
    return tuple(sorted(where))


def name_family(name: str, where: Mapping[str, str], headline: Sequence[str]) -> str:
    """The family of a comparison.

    >>> name_family("miou", {}, ["miou"]), name_family("iou", {"context": "night", "class": "cat"}, ["miou"])
    ('headline scores', 'iou by class and context')
    """
    if where:
        return f"{name} by {' and '.join(get_slice_keys(where))}"
    return HEADLINE_SCORES if name in headline else OTHER_SCORES


def compute_differences(paired: PairedTally, models: Sequence[str], headline: Sequence[str]) -> Iterator[Difference]:
    """Every entry and pair of a tally, not yet corrected and without a verdict.

    Entries of no units are left out, unless they say why they have none.
    """
    for i, j in paired.p_values:
        p_values = paired.find_p_values(i, j)
        error, low, high = paired.summarize_difference(i, j)
        fixed, freedom = paired.find_fixed_error(i, j), paired.find_freedom(i, j)
        for column, (entry, other) in enumerate(zip(paired.entries[i], paired.entries[j], strict=True)):
            reason = entry.reason or other.reason
            if not (entry.n or other.n or reason):
                continue
            # What only one of the models has still moves the difference.
            clusters = max(paired.count_clusters(one) for one in (entry, other))
            first, second = float(paired.values[i, column]), float(paired.values[j, column])
            yield Difference(
                name=entry.name,
                slice=entry.slice,
                first=models[i],
                second=models[j],
                value=first - second,
                interval=paired.make_interval(low[column], high[column], clusters),
                p_value=float(p_values[column]),
                adjusted=math.nan,
                family=name_family(entry.name, entry.slice, headline),
                n=max(entry.n, other.n),
                units_needed=math.nan,
                verdict="undefined",
                first_value=first,
                second_value=second,
                standard_error=float(error[column]),
                fixed_error=float(fixed[column]),
                freedom=float(freedom[column]),
                clusters=clusters,
                resampled=paired.resampled,
                reading=entry.reading,
                swaps=paired.swaps,
                exact=paired.exact,
                reason=reason,
            )


def correct_p_values(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """The differences with p-values adjusted by Holm's method within their families."""
    corrected = list(differences)
    places: dict[str, list[int]] = {}
    for place, difference in enumerate(corrected):
        places.setdefault(difference.family, []).append(place)
    for rows in places.values():
        for place, adjusted in zip(rows, holm([corrected[row].p_value for row in rows]), strict=True):
            corrected[place] = replace(corrected[place], adjusted=float(adjusted))
    return tuple(corrected)


def count_comparisons(differences: Iterable[Difference]) -> dict[str, int]:
    """How many comparisons were made in each family."""
    counts: Counter[str] = Counter()
    for difference in differences:
        counts[difference.family] += not math.isnan(difference.p_value)
    return dict(counts)


def add_verdicts(differences: Sequence[Difference], card: BenchmarkCard, alpha: float) -> tuple[Difference, ...]:
    """The corrected differences with their verdicts and the numbers of units needed."""
    comparisons = count_comparisons(differences)
    judged = []
    for one in differences:
        meaning = find_score_meaning(card, one.name).within(one.slice)
        share = alpha / max(comparisons[one.family], 1)
        varying = math.sqrt(max(one.standard_error**2 - one.fixed_error**2, 0.0))
        needed = units_needed_for(
            one.value,
            varying,
            one.clusters,
            alpha=share,
            power=PLANNED_POWER,
            fixed_error=one.fixed_error,
            freedom=one.freedom,
        )
        # Of 2^n exchanges two reach any difference, so that fewer clusters have no p-value as small as this.
        needed = max(needed, 1 + math.ceil(math.log2(1 / share)))
        verdict = decide_verdict(one.value, one.adjusted, alpha, meaning)
        judged.append(replace(one, verdict=verdict, units_needed=needed))
    return tuple(judged)


def decide_verdict(value: float, adjusted: float, alpha: float, meaning: ScoreMeaning) -> Verdict:
    """The verdict on a difference.

    >>> miou, clicks = ScoreMeaning("miou", "mIoU", ""), ScoreMeaning("noc", "NoC", "", higher_is_better=False)
    >>> decide_verdict(0.1, 0.01, 0.05, miou), decide_verdict(0.1, 0.01, 0.05, clicks)
    ('better', 'worse')
    >>> decide_verdict(0.1, 0.06, 0.05, miou), decide_verdict(math.nan, math.nan, 0.05, miou)
    ('cannot tell', 'undefined')
    """
    if not math.isfinite(value) or math.isnan(adjusted):
        return "undefined"
    if value == 0 or adjusted > alpha:
        return "cannot tell"
    if not meaning.ranked:
        return "higher" if value > 0 else "lower"
    return "better" if (value > 0) == meaning.higher_is_better else "worse"


def describe_insufficient_swaps(differences: Sequence[Difference], alpha: float) -> list[str]:
    """A note for each family in which no p-value of random swaps can be small enough after correction."""
    notes = []
    for family, count in count_comparisons(differences).items():
        # Where every possible swap was made, there are no more.
        random = (one for one in differences if one.family == family and not one.exact and not math.isnan(one.p_value))
        swaps = max((one.swaps for one in random), default=0)
        if swaps and count > alpha * (swaps + 1):
            notes.append(
                f"Too few swaps for {family}: with {swaps:,} of them no p-value is below "
                f"{1 / (swaps + 1):.2g}, and {count:,} comparisons are corrected together. "
                f"At least `--swaps {math.ceil(count / alpha)}` is needed."
            )
    return notes


def describe_difference(one: Difference, meaning: ScoreMeaning) -> str:
    """The verdict as a sentence, with the numbers behind it.

    >>> interval = Interval(0.0, 0.018, 0.95, "percentile", 240, "image")
    >>> one = Difference("miou", {}, "ant", "bee", 0.004, interval, 0.61, 0.61, "headline scores", 240, 3367.0,
    ...     "cannot tell", 0.812, 0.808, 0.007, clusters=240, resampled="image")
    >>> print(describe_difference(one, ScoreMeaning("miou", "mIoU", "")))
    ant and bee do not differ significantly in mIoU with these 240 images: 0.812 against 0.808, a difference of
    0.004 (95% interval 0.000 to 0.018, p = 0.610). About 3,400 images would be needed if the observed difference is the
    true one.
    """
    meaning = meaning.within(one.slice)
    score = meaning.title + (f" where {describe_slice(one.slice)}" if one.slice else "")
    score += " (lower is better)" if meaning.ranked and not meaning.higher_is_better else ""
    these = f"{'this' if one.clusters == 1 else 'these'} {one.clusters:,} {pluralize(one.resampled, one.clusters)}"
    decimals = choose_decimals([one.first_value, one.second_value], counts=False)

    def text(value: float) -> str:
        return format_number(value, decimals, group_from=1_000)

    if one.verdict == "undefined":
        both = math.isnan(one.first_value) and math.isnan(one.second_value)
        whose = "both" if both else one.first if math.isnan(one.first_value) else one.second
        why = f" ({one.reason})" if one.reason else ""
        return f"{score} of {one.first} and {one.second} cannot be compared: it is undefined for {whose}{why}."
    if one.value == 0 and one.p_value == 1:
        equal = f"{one.first} and {one.second} are equal in {score} on {these}"
        return f"{equal}: both have {text(one.first_value)}."
    evidence = [f"p = {format_p_value(one.p_value)}"]
    if one.interval is not None:
        bounds = f"{text(one.interval.low)} to {text(one.interval.high)}"
        evidence.insert(0, f"{format_level(one.interval.level)} interval {bounds}")
    if one.adjusted != one.p_value:
        evidence.append(f"{format_p_value(one.adjusted)} after Holm's correction")
    facts = (
        f"{text(one.first_value)} against {text(one.second_value)}, a difference of {text(one.value)} "
        f"({', '.join(evidence)})"
    )
    if one.verdict != "cannot tell":
        return f"{one.first} is {one.verdict} than {one.second} in {score}: {facts}."
    return (
        f"{one.first} and {one.second} do not differ significantly in {score} with {these}: {facts}. "
        f"{_describe_units_needed(one)}"
    )


def _describe_units_needed(one: Difference) -> str:
    clusters = pluralize(one.resampled)
    if math.isnan(one.units_needed):
        return f"How many {clusters} would be needed is not known."
    if math.isinf(one.units_needed):
        return f"No number of {clusters} would tell if the observed difference is the true one."
    if one.units_needed <= one.clusters:
        return f"It lies at the edge of what this number of {clusters} can show."
    needed = format_rough_count(one.units_needed)
    return f"About {needed} {clusters} would be needed if the observed difference is the true one."
