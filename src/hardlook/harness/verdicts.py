"""When a report may say in words what its numbers show: one rule for every verdict of every report.

A verdict needs three things. At least `MIN_CLUSTERS` clusters: the things that vary independently, such as images. An
interval that is defined. And a test: for a difference, that its interval excludes the threshold; for a slice, a t test
against the rest of its kind, corrected by Holm's method for all slices that the report looks at. Without all three the
sentence says that these data cannot tell, and what it would take. docs/statistics.md explains the choices, and
`benchmarks/headline_calibration.py` measures how often they err.

>>> from hardlook.harness.stats.intervals import Interval
>>> gap = Score("gap", 0.1, 40, Interval(0.02, 0.18, 0.95, "t", 40, "task"))
>>> judge(gap).side, judge(gap, threshold=0.15).side
('above', 'unclear')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hardlook.harness.rounding import format_fixed, format_percent
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.stats.intervals import Estimate
from hardlook.harness.stats.ranking import holm, units_needed_for

MIN_CLUSTERS = 10
"""Fewer independent things say too little about their own spread."""
ALPHA = 0.05
"""The chance of even one wrong headline on a page whose slices are all alike."""
CANNOT_TELL = "These data cannot tell"

Side = Literal["above", "below", "equal", "unclear"]


@dataclass(frozen=True)
class Judgement:
    """On which side of a threshold a score lies, beyond chance; where it is on neither, `why` is a whole sentence."""

    side: Side
    why: str = ""


def judge(score: Score | Estimate, threshold: float = 0.0) -> Judgement:
    """Whether the interval of a score lies above or below the threshold, if it rests on enough clusters.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> judge(Score("gap", 0.4, 4, Interval(0.1, 0.7, 0.95, "t", 4, "task"))).why
    'These data cannot tell: there are 4 tasks, and a verdict needs 10.'
    """
    clusters, resampled = count_clusters(score)
    if not math.isfinite(score.value):
        return Judgement("unclear", f"{CANNOT_TELL}: the score is undefined.")
    if clusters < MIN_CLUSTERS:
        return Judgement(
            "unclear", f"{CANNOT_TELL}: {_count(clusters, resampled)}, and a verdict needs {MIN_CLUSTERS}."
        )
    if has_no_spread(score):
        # By a sign test, ten of ten on one side are beyond chance.
        if math.isclose(score.value, threshold, rel_tol=1e-9, abs_tol=1e-12):
            return Judgement("equal", f"It is {threshold:g} in all {clusters:,} {name_several(resampled)}.")
        return Judgement("above" if score.value > threshold else "below")
    # A verdict speaks of more than the images at hand: the interval that covers their draw decides, if there is one.
    wider = score.wider if isinstance(score, Score) else None
    interval = wider if wider is not None and wider.defined else score.interval
    if interval is None or not interval.defined:
        return Judgement("unclear", f"{CANNOT_TELL}: the score has no interval{_explain_missing(score)}.")
    if interval.low > threshold:
        return Judgement("above")
    if interval.high < threshold:
        return Judgement("below")
    own, alpha = get_standard_error(score), 1 - interval.level
    # More clusters do not make the part of the other draw smaller.
    fixed = math.sqrt(max(get_wider_error(score) ** 2 - own**2, 0.0)) if interval is wider else 0.0
    needed = units_needed_for(score.value - threshold, own, clusters, alpha=alpha, fixed_error=fixed)
    reach = f"the interval includes {threshold:g}"
    return Judgement("unclear", f"{CANNOT_TELL}: {reach}{_describe_need(needed, clusters, resampled)}.")


def judge_several(scores: Sequence[Score | Estimate]) -> list[Judgement]:
    """`judge` of several scores against 0; one differs only if a t test, corrected by Holm's method, says so too.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> leads = [Score("ks", value, 20, Interval(0.01, 0.35, 0.95, "t", 20, "image")) for value in (0.18, 0.18)]
    >>> [one.side for one in judge_several(leads)], judge(leads[0]).side
    (['unclear', 'unclear'], 'above')
    """
    from scipy.special import stdtr

    single = [judge(score) for score in scores]
    p_values = np.full(len(scores), math.nan)
    for place, (score, one) in enumerate(zip(scores, single, strict=True)):
        error, clusters = get_standard_error(score), count_clusters(score)[0]
        if has_no_spread(score) and clusters >= MIN_CLUSTERS:
            p_values[place] = 2.0 ** (1 - clusters) if one.side != "equal" else 1.0
        elif math.isfinite(error) and clusters >= MIN_CLUSTERS:
            p_values[place] = 2 * stdtr(clusters - 1, -abs(score.value) / error)
    chance = f"{CANNOT_TELL}: of {len(scores)} comparisons one as large as this is to be expected by chance."
    return [
        Judgement("unclear", chance) if one.side in ("above", "below") and not p <= ALPHA else one
        for one, p in zip(single, holm(p_values), strict=True)
    ]


def count_clusters(score: Score | Estimate) -> tuple[int, str]:
    """How many independent things a score rests on, and what they are; without an interval, `n` units."""
    if score.interval is not None:
        return score.interval.n, score.interval.resampled
    assert isinstance(score, Score)
    return next(((count, what) for what, count in score.rests_on.items()), (score.n, "unit"))


def has_no_spread(score: Score | Estimate) -> bool:
    """Whether all clusters agree on the score: no resample differs from it, and none is undefined."""
    error = score.standard_error
    return error is not None and not score.undefined and error <= 1e-10 * max(abs(score.value), 1e-3)


def get_standard_error(score: Score | Estimate) -> float:
    """The standard error, for n - 1 in place of the bootstrap's n; from the interval where none is kept; else NaN."""
    interval = score.interval
    if interval is None or not interval.defined or interval.n < 2:
        return math.nan
    error = score.standard_error
    if error is None or not math.isfinite(error):
        from scipy.special import ndtri

        return (interval.high - interval.low) / (2 * float(ndtri((1 + interval.level) / 2)))
    return error * math.sqrt(interval.n / (interval.n - 1))


def get_wider_error(score: Score | Estimate) -> float:
    """The standard error that covers one more draw, where the score has an interval that does; else its own.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> over_tasks, over_images = (Interval(0.5 - half, 0.5 + half, 0.95, "t", 40, "task") for half in (0.1, 0.3))
    >>> gap = Score("gap", 0.5, 40, over_tasks, standard_error=0.05, wider=over_images)
    >>> round(get_wider_error(gap) / get_standard_error(gap), 6)
    3.0
    """
    own, interval = get_standard_error(score), score.interval
    wider = score.wider if isinstance(score, Score) else None
    if wider is None or not wider.defined or interval is None or not interval.high > interval.low:
        return own
    return own * max((wider.high - wider.low) / (interval.high - interval.low), 1.0)


def _count(count: int, what: str) -> str:
    return f"there is 1 {what}" if count == 1 else f"there are {count:,} {name_several(what)}"


def name_several(what: str) -> str:
    """The plural of what is resampled.

    >>> name_several("query image"), name_several("class"), name_several("image within label")
    ('query images', 'classes', 'images within label')
    """
    noun, within, rest = what.partition(" within ")
    return f"{noun}{'es' if noun.endswith('s') else 's'}{within}{rest}"


def _explain_missing(score: Score | Estimate) -> str:
    share = score.undefined if isinstance(score, Score) else score.undefined / max(score.resamples, 1)
    return f", since {format_percent(share, gap='')} of its resamples are undefined" if share else ""


def _describe_need(needed: float, clusters: int, resampled: str) -> str:
    if not math.isfinite(needed) or needed <= clusters:
        return ""
    return f"; it would take about {describe_need(needed, resampled)}, and there are {clusters:,}"


def describe_need(needed: float, resampled: str) -> str:
    """A number of clusters for planning, rounded up to two digits.

    >>> describe_need(1234.0, "image")
    '1,300 images'
    """
    step = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return f"{math.ceil(needed / step) * step:,} {name_several(resampled)}"


@dataclass(frozen=True)
class SliceTest:
    """One slice against the rest of its kind.

    `rest` is the mean of the other slices, weighted by their clusters. `adjusted` is the p-value after Holm's method
    over all slices looked at; it and `rest` are NaN for a slice of too few clusters, without an interval, or alone in
    its kind. `needed` is the number of clusters that would tell this difference with a chance of 80 %.
    """

    score: Score
    rest: float
    adjusted: float
    needed: float

    @property
    def differs(self) -> bool:
        """Whether the slice differs from the rest beyond chance."""
        return self.adjusted <= ALPHA


def rate_need(test: SliceTest) -> float:
    """How many times its clusters a slice would need: the lowest of these is the clearest difference."""
    return test.needed / count_clusters(test.score)[0] if math.isfinite(test.needed) else math.inf


def compare_slices(kinds: Sequence[Sequence[Score]]) -> list[list[SliceTest]]:
    """Test every slice against the rest of its kind; all kinds together are one family.

    The standard error of a slice is the larger of its own and of what the spread within all slices of the kind gives
    for its number of clusters: ten equal values by chance have no spread of their own, and an outlier has a large one.
    Slices count as independent, which is cautious where the same images are in several.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> def score(value, name):
    ...     interval = Interval(value - 0.1, value + 0.1, 0.95, "percentile", 40, "image")
    ...     return Score("iou", value, 40, interval, {"k": name})
    >>> [[(test.score.slice["k"], test.differs) for test in compare_slices([[score(0.2, "a"), score(0.8, "b")]])[0]]]
    [[('a', True), ('b', True)]]
    """
    tested = [_test_kind(scores) for scores in kinds]
    p_values = np.array([p for kind in tested for _, p, *_ in kind])
    # Of two slices each is the rest of the other: one test, counted once.
    counted = np.array([not (len(kind) == 2 and place) for kind in tested for place in range(len(kind))], bool)
    adjusted = holm(np.where(counted, p_values, np.nan))
    made = int((counted & ~np.isnan(p_values)).sum())
    found: list[list[SliceTest]] = []
    at = 0
    for kind, scores in zip(tested, kinds, strict=True):
        own = adjusted[at : at + len(kind)]
        own = np.repeat(own[:1], 2) if len(kind) == 2 else own
        at += len(kind)
        tests = {}
        for (place, _, rest, error), p in zip(kind, own, strict=True):
            score = scores[place]
            clusters = count_clusters(score)[0]
            needed = units_needed_for(score.value - rest, error, clusters, alpha=ALPHA / max(made, 1))
            tests[place] = SliceTest(score, rest, float(p), needed)
        untested = math.nan, math.nan, math.nan
        found.append([tests.get(place) or SliceTest(score, *untested) for place, score in enumerate(scores)])
    return found


def list_slice_kinds(scorecard: Scorecard) -> list[tuple[tuple[str, ...], list[Score]]]:
    """The slices that a page looks at: of each kind of slice the first score, as the properties that vary and scores.

    A kind of two properties is left out where both have kinds of their own. Counts without intervals, such as confused
    pixels, are not averages.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[Score]] = {}
    for score in scorecard.scores:
        if score.slice and math.isfinite(score.value):
            groups.setdefault((score.name, tuple(sorted(score.slice))), []).append(score)
    kinds: dict[tuple[str, ...], list[Score]] = {}
    for scores in groups.values():
        keys = tuple(key for key in scores[0].slice if len({score.slice[key] for score in scores}) > 1)
        known = keys in kinds and any(is_testable(score) for score in kinds[keys])
        if keys and not known and any(score.interval for score in scores):
            kinds[keys] = scores
    alone = {keys[0] for keys in kinds if len(keys) == 1}
    return [(keys, scores) for keys, scores in kinds.items() if len(keys) == 1 or not set(keys) <= alone]


def describe_kind(
    scorecard: Scorecard, scores: Sequence[Score], what: str, keys: Sequence[str], joined: str = ", "
) -> str:
    """Which slice of one kind is lowest and which highest, beyond chance; else that these data cannot tell.

    `what` names the score, such as "IoU of a class". `keys` are the properties of a slice to name. The tests are
    corrected together with those of the other kinds of slices of the scorecard.

    >>> from hardlook.harness.stats.intervals import Interval
    >>> names = (("cat", 0.2, 40), ("dog", 0.8, 40), ("cow", 0.1, 3))
    >>> scores = [Score("iou", v, n, Interval(v - 0.1, v + 0.1, 0.95, "t", n, "image"), {"k": k}) for k, v, n in names]
    >>> describe_kind(Scorecard("b", "1", "m", tuple(scores)), scores, "IoU of a class", ("k",))
    'The IoU of a class is 0.200 (cat) at the lowest and 0.800 (dog) at the highest; 1 of 3 has too few images to tell.'
    """
    known = [score for score in scores if math.isfinite(score.value)]
    if len(known) < 2:
        return ""
    others = [kind for of, kind in list_slice_kinds(scorecard) if set(of) != set(keys)]
    tests, *_ = compare_slices([known, *others])
    made = [test for test in tests if not math.isnan(test.adjusted)]
    resampled = name_several(count_clusters(known[0])[1])
    thin = sum(not is_testable(score) for score in known)
    few = f"; {thin} of {len(known)} {'has' if thin == 1 else 'have'} too few {resampled} to tell" if thin else ""
    below = [test for test in made if test.differs and test.score.value < test.rest]
    above = [test for test in made if test.differs and test.score.value > test.rest]

    def name(test: SliceTest) -> str:
        return f"{format_fixed(test.score.value, 3)} ({joined.join(test.score.slice[key] for key in keys)})"

    ends = [f"{name(min(below, key=lambda test: test.score.value))} at the lowest"] if below else []
    ends += [f"{name(max(above, key=lambda test: test.score.value))} at the highest"] if above else []
    if ends:
        rest = "" if len(ends) == 2 else f", {format_fixed((below or above)[0].rest, 3)} for the rest"
        return f"The {what} is {' and '.join(ends)}{rest}{few}."
    if len(made) < 2:
        return f"{CANNOT_TELL} where the {what} is low or high: a slice needs {MIN_CLUSTERS} {resampled}{few}."
    furthest = min(made, key=rate_need)
    clusters, drawn = count_clusters(furthest.score)
    need = ""
    if math.isfinite(furthest.needed):
        wanted = describe_need(max(furthest.needed, clusters + 1), drawn)
        need = f"; to tell {name(furthest)} apart would take about {wanted}, and there are {clusters:,}"
    return f"{CANNOT_TELL} where the {what} is low or high: no slice differs from the rest beyond chance{need}{few}."


def _test_kind(scores: Sequence[Score]) -> list[tuple[int, float, float, float]]:
    """Of each slice that can be tested: its place, p-value, the mean of the rest, and its own standard error."""
    places = [place for place, score in enumerate(scores) if is_testable(score)]
    if len(places) < 2:
        return []
    from scipy.special import stdtr

    values = np.array([scores[place].value for place in places])
    errors = np.array([get_wider_error(scores[place]) for place in places])
    n = np.array([count_clusters(scores[place])[0] for place in places], np.float64)
    spread = n * errors**2
    pooled = (n * spread).sum() / n.sum()
    variance = np.maximum(spread, pooled) / n
    weight = n[None, :] * (1 - np.eye(len(n)))
    weight /= weight.sum(axis=1, keepdims=True)
    rest = weight @ values
    total = variance + weight**2 @ variance
    # Welch's degrees of freedom, of a mean of means against another.
    fourth = variance**2 / (n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = total**2 / (fourth + weight**4 @ fourth)
        ratio = np.abs(values - rest) / np.sqrt(total)
        p = 2 * stdtr(freedom, -ratio)
    # Without any spread in any slice a difference is not a matter of chance, and equal values do not differ.
    p = np.where(total > 0, p, np.where(np.isclose(values, rest, rtol=1e-9, atol=0), 1.0, 0.0))
    return [
        (place, float(one), float(mean), math.sqrt(error))
        for place, one, mean, error in zip(places, p, rest, total, strict=True)
    ]


def is_testable(score: Score) -> bool:
    """Whether a slice has a value, an interval and enough clusters."""
    known = math.isfinite(score.value) and score.interval is not None and score.interval.defined
    return known and count_clusters(score)[0] >= MIN_CLUSTERS and math.isfinite(get_standard_error(score))
