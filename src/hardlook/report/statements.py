"""What a report says in words: its first sentences, as a person would say them, and what the averages hide.

`hardlook.harness.verdicts` decides which statements the data allow; docs/statistics.md explains its rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.harness.benchmark import ScoreMeaning
from hardlook.harness.scorecard import Score, Scorecard
from hardlook.harness.stats.intervals import Interval
from hardlook.harness.verdicts import (
    CANNOT_TELL,
    MIN_CLUSTERS,
    SliceTest,
    compare_slices,
    count_clusters,
    describe_need,
    has_no_spread,
    is_testable,
    list_slice_kinds,
    name_several,
    rate_need,
)
from hardlook.report.formatting import choose_decimals, format_count, format_interval, format_number, is_number
from hardlook.report.score_display import choose_score_decimals, format_undefined, get_bounds

# Scores that every reader knows; any other is explained in the sentence that names it.
_PLAIN_TITLES = {"mIoU", "IoU", "AP", "PQ", "accuracy", "pixel accuracy", "mean accuracy"}

MAX_CARDS = 4

_Kind = tuple[tuple[str, ...], Sequence[SliceTest]]


def choose_headline_scores(
    scorecard: Scorecard, meanings: Sequence[ScoreMeaning] = (), most: int = MAX_CARDS
) -> list[Score]:
    """The scores that get a card, in the order of `meanings`: those marked as headline, else the first ones there are.

    >>> scores = (Score("a", 0.1, 9), Score("b", 0.2, 9), Score("c", 0.3, 9))
    >>> meanings = [ScoreMeaning("c", "C", "", headline=True), ScoreMeaning("a", "A", "", headline=True)]
    >>> [score.name for score in choose_headline_scores(Scorecard("b", "1", "m", scores), meanings)]
    ['c', 'a']
    """
    order = {meaning.name: place for place, meaning in enumerate(meanings)}
    marked = {meaning.name for meaning in meanings if meaning.headline}
    over_all = list(scorecard.headline)
    chosen = [score for score in over_all if score.name in marked]
    chosen = chosen or [score for score in over_all if score.name in order] or over_all
    return sorted(chosen, key=lambda score: order.get(score.name, len(order)))[:most]


def describe_run(scorecard: Scorecard, meanings: Sequence[ScoreMeaning] = ()) -> list[str]:
    """One or two sentences: the main score with its interval, and the slice that it hides, where the data allow it.

    >>> def score(name, value, n, **where):
    ...     return Score(name, value, n, Interval(value - 0.03, value + 0.03, 0.95, "t", n, "image"), where)
    >>> classes = [score("iou", value, 40, **{"class": name}) for name, value in (("bicycle", 0.32), ("cat", 0.8))]
    >>> card = Scorecard("closed-miou", "1", "m", (score("miou", 0.65, 537), *classes))
    >>> for line in describe_run(card, [ScoreMeaning("miou", "mIoU", ""), ScoreMeaning("iou", "IoU", "")]):
    ...     print(line)
    mIoU is 0.65 (0.62 to 0.68) on 537 images.
    The average hides the class bicycle: its IoU is 0.32 (0.29 to 0.35), against 0.80 for cat.
    """
    chosen = choose_headline_scores(scorecard, meanings, most=1)
    if not chosen:
        return ["No score over all units was computed."]
    main, known = chosen[0], {meaning.name: meaning for meaning in meanings}
    first = _describe_main_score(main, known.get(main.name))
    if not is_number(main.value):
        return [first]
    clusters, resampled = count_clusters(main)
    if clusters < MIN_CLUSTERS:
        needs = f"a statement needs {MIN_CLUSTERS} {name_several(resampled)}"
        return [first, f"{CANNOT_TELL} how it would be on others: {needs}."]
    return [sentence for sentence in (first, _describe_hidden(scorecard, known)) if sentence]


def _describe_main_score(score: Score, meaning: ScoreMeaning | None) -> str:
    title = (meaning.title if meaning else "") or score.name
    subject = _write_subject(title)
    if not is_number(score.value):
        return f"{subject} is undefined{f': {score.reason}' if score.reason else ''}."
    clusters, resampled = count_clusters(score)
    several = name_several(resampled)
    classes = ", of a single class" if score.rests_on.get("class") == 1 and resampled != "class" else ""
    interval = _find_interval(score)
    decimals = _choose_decimals(score)
    value = format_number(score.value, decimals)
    if clusters < MIN_CLUSTERS:
        text = f"{subject} is {value} on {format_count(clusters, resampled, several)}{classes}"
    elif has_no_spread(score) and (interval is None or interval.low == interval.high):
        text = f"{subject} is {value} on each of {clusters:,} {several}{classes}"
    else:
        undefined = format_undefined(score)
        bounds = f"no interval, since {undefined}" if undefined else "no interval"
        bounds = format_interval(interval.low, interval.high, decimals) if interval else bounds
        text = f"{subject} is {value} ({bounds}) on {clusters:,} {several}{classes}"
    explained = meaning.meaning.rstrip(".").replace(": ", "; ") if meaning and title not in _PLAIN_TITLES else ""
    return f"{text}{f': {explained}' if explained else ''}."


def _write_subject(title: str) -> str:
    """The title as the subject of a sentence; names of one word, such as mIoU, have no article.

    >>> _write_subject("mIoU"), _write_subject("accuracy"), _write_subject("NoC@90, sampled clicks")
    ('mIoU', 'The accuracy', 'The NoC@90, sampled clicks,')
    """
    name = f"{title}," if "," in title else title
    return name if len(title.split()) == 1 and not title.islower() else f"The {name}"


def _describe_hidden(scorecard: Scorecard, known: Mapping[str, ScoreMeaning]) -> str:
    """The sentence on the slices; empty where there are none."""
    kinds = list_slice_kinds(scorecard)
    tested = compare_slices([scores for _, scores in kinds])
    # Where low values are good in some slices and bad in others, none hides the other.
    alike: list[_Kind] = [
        (keys, tests)
        for (keys, _), tests in zip(kinds, tested, strict=True)
        if not _is_inverted_somewhere(tests, known.get(tests[0].score.name))
    ]
    differing = [(test, keys, tests) for keys, tests in alike for test in tests if test.differs]
    worse = [found for found in differing if _is_worse(found[0], known)]
    if found := worse or differing:
        of_first_kind = [one for one in found if one[1] == found[0][1]]
        return _describe_slice(*max(of_first_kind, key=lambda one: abs(one[0].score.value - one[0].rest)), known)
    if not alike:
        return ""
    if not all(_are_equal(tests) for _, tests in alike):
        return _describe_unclear(alike)
    keys, tests = alike[0]
    value = format_number(tests[0].score.value, _choose_decimals(tests[0].score))
    which = "both" if len(tests) == 2 else f"each of the {len(tests):,}"
    return f"{_write_subject(_get_title(tests[0].score, known))} is {value} in {which} {_name_slices(keys)}."


def _are_equal(tests: Sequence[SliceTest]) -> bool:
    """Whether all slices have the same value; sums of equal numbers differ in their last bits."""
    values = [test.score.value for test in tests]
    return math.isclose(min(values), max(values), rel_tol=1e-9, abs_tol=1e-12)


def _is_inverted_somewhere(tests: Sequence[SliceTest], meaning: ScoreMeaning | None) -> bool:
    return meaning is not None and any(meaning.within(test.score.slice) != meaning for test in tests)


def _is_worse(test: SliceTest, known: Mapping[str, ScoreMeaning]) -> bool:
    """Whether a slice is on the bad side of the rest; never where neither side is better."""
    meaning = known.get(test.score.name)
    if meaning is None:
        return test.score.value < test.rest
    return meaning.ranked and (test.score.value < test.rest) == meaning.higher_is_better


def _describe_slice(
    test: SliceTest, keys: Sequence[str], tests: Sequence[SliceTest], known: Mapping[str, ScoreMeaning]
) -> str:
    """A slice that differs from the rest beyond chance; slices with the same value are counted with it."""
    same = [one for one in tests if one.differs and one.score.value == test.score.value]
    score = same[0].score
    parts = [f"{key} {score.slice[key]}" for key in keys]
    where = f"the {parts[0]}" if len(parts) == 1 else f"the slice of {' and '.join(parts)}"
    rest = [one for one in tests if not math.isnan(one.adjusted) and one not in same]
    decimals = _choose_decimals(score)
    title = _get_title(score, known)
    own = f"{'their' if len(same) > 1 else 'its'} {title}{',' if ',' in title else ''}"
    bounds = format_interval(*get_bounds(score), decimals)
    value = f"{format_number(score.value, decimals)} ({bounds})"
    numbers = f"{own} is {value}, against {_describe_rest(test, rest, keys, decimals)}"
    more = f" and {len(same) - 1} more" if len(same) > 1 else ""
    if _is_worse(test, known):
        return f"The average hides {where}{more}: {numbers}."
    return f"{where[0].upper()}{where[1:]}{more} stand{'' if more else 's'} out: {numbers}."


def _describe_rest(test: SliceTest, rest: Sequence[SliceTest], keys: Sequence[str], decimals: int) -> str:
    """The mean of the other slices; of a single one its value and name."""
    if len(rest) == 1:
        name = " and ".join(rest[0].score.slice[key] for key in keys)
        return f"{format_number(rest[0].score.value, decimals)} for {name}"
    mean = sum(one.score.value for one in rest) / len(rest)
    others = f"in the mean of the other {len(rest):,} {name_several(keys[0]) if len(keys) == 1 else 'slices'}"
    # The test weighs slices by their images: a large one may pull the mean to the other side.
    if (mean > test.score.value) != (test.rest > test.score.value):
        return (
            f"{format_number(test.rest, decimals)} {others}, weighted by {name_several(count_clusters(test.score)[1])}"
        )
    return f"{format_number(mean, decimals)} {others}"


def _describe_unclear(kinds: Sequence[_Kind]) -> str:
    """That these data cannot tell where the score is low or high, and why."""
    looked_at = [(keys, sum(not math.isnan(test.adjusted) for test in tests)) for keys, tests in kinds]
    counted = [f"{made:,} {_name_slices(keys)}" for keys, made in looked_at if made > 1]
    if counted:
        names = ", ".join(counted[:-1]) + (" and " if len(counted) > 1 else "") + counted[-1]
        return f"{CANNOT_TELL} where it is low or high: of {names} none differs from the rest beyond chance."
    tests = [test for _, tests in kinds for test in tests]
    largest = max(tests, key=lambda test: count_clusters(test.score)[0])
    clusters, resampled = count_clusters(largest.score)
    several = name_several(resampled)
    if clusters < MIN_CLUSTERS:
        size = f"the largest slice has {format_count(clusters, resampled, several)}, and a statement needs"
        return f"{CANNOT_TELL} where it is low or high: {size} {MIN_CLUSTERS}."
    enough = f"fewer than two slices have {MIN_CLUSTERS} {several} and an interval"
    return f"{CANNOT_TELL} where it is low or high: {enough}."


def _name_slices(keys: Sequence[str]) -> str:
    """What several slices of a kind are called.

    >>> _name_slices(("class",)), _name_slices(("mode", "concept"))
    ('classes', 'slices by mode and concept')
    """
    return name_several(keys[0]) if len(keys) == 1 else f"slices by {' and '.join(keys)}"


def _get_title(score: Score, known: Mapping[str, ScoreMeaning]) -> str:
    return (known[score.name].title if score.name in known else "") or score.name


def _find_interval(score: Score) -> Interval | None:
    """The interval that a statement rests on: the one that covers the draw of the images, where there is one."""
    for interval in (score.wider, score.interval):
        if interval is not None and interval.defined:
            return interval
    return None


def _choose_decimals(score: Score) -> int:
    """As many decimals as the interval has something to say about; two at least for shares.

    >>> _choose_decimals(Score("miou", 0.6512, 9, Interval(0.62, 0.68, 0.95, "t", 9, "image")))
    2
    >>> _choose_decimals(Score("dsb", 74.2, 9, Interval(69.9, 78.5, 0.95, "t", 9, "image")))
    0
    """
    interval = _find_interval(score)
    width = interval.high - interval.low if interval else 0.0
    if width < 1e-6:
        return 2 if round(score.value, 2) == score.value and abs(score.value) <= 1 else choose_decimals([score.value])
    fitting = min(max(math.ceil(math.log10(3 / width)), 0), 6)
    return max(fitting, 2) if abs(score.value) <= 1 else fitting


@dataclass(frozen=True)
class SliceStatement:
    """A score over one kind of slice: its title, the kind, and a statement; `found` where some slice differs."""

    name: str
    by: str
    text: str
    found: bool


def describe_slices(
    scorecard: Scorecard, titles: Mapping[str, str] | None = None, most: int = 4
) -> list[SliceStatement]:
    """A statement on each kind of slice, from its first score; kinds with a slice that differs come first.

    >>> from hardlook.harness.scorecard import Score
    >>> from hardlook.harness.stats.intervals import Interval
    >>> def score(value, name):
    ...     interval = Interval(value - 0.1, value + 0.1, 0.95, "percentile", 40, "image")
    ...     return Score("iou", value, 40, interval, {"class": name})
    >>> card = Scorecard("b", "1", "m", (score(0.2, "cat"), score(0.8, "dog"), score(0.5, "cow")))
    >>> describe_slices(card)[0].text
    'from 0.200 (0.100 to 0.300) for cat to 0.800 (0.700 to 0.900) for dog'
    """
    kinds = list_slice_kinds(scorecard)
    tested = compare_slices([scores for _, scores in kinds])
    statements = [
        SliceStatement(
            (titles or {}).get(scores[0].name) or scores[0].name, " and ".join(keys), *_describe_kind(keys, tests)
        )
        for (keys, scores), tests in zip(kinds, tested, strict=True)
    ]
    return sorted(statements, key=lambda statement: not statement.found)[:most]


def _describe_kind(keys: Sequence[str], tests: Sequence[SliceTest]) -> tuple[str, bool]:
    differs = [test for test in tests if test.differs]
    below = min((test for test in differs if test.score.value < test.rest), key=_get_value, default=None)
    above = max((test for test in differs if test.score.value > test.rest), key=_get_value, default=None)
    made = [test for test in tests if not math.isnan(test.adjusted)]
    thin = f"; {len(tests) - len(made)} more have too few" if made and len(made) < len(tests) else ""
    if below and above:
        decimals = min(choose_score_decimals(test.score) for test in (below, above))
        ends = [_describe_end(test, made, keys, decimals) for test in (below, above)]
        return f"from {ends[0]} to {ends[1]}", True
    if one := below or above:
        decimals = choose_score_decimals(one.score)
        rest = f"{format_number(one.rest, decimals)} in the mean of the other {len(made) - 1}"
        return f"{_describe_end(one, made, keys, decimals)}, {rest}", True
    if _are_equal(tests):
        return (
            f"{format_number(_get_value(tests[0]), choose_score_decimals(tests[0].score))} in all {len(tests)}",
            False,
        )
    return _describe_unclear_kind(keys, tests, made) + thin, False


def _describe_unclear_kind(keys: Sequence[str], tests: Sequence[SliceTest], made: Sequence[SliceTest]) -> str:
    """The sentence that these data cannot tell, and how many clusters it would take."""
    if len(made) < 2:
        largest = max(tests, key=lambda test: count_clusters(test.score)[0])
        clusters, resampled = count_clusters(largest.score)
        enough = f"{MIN_CLUSTERS} {name_several(resampled)} and an interval"
        if any(is_testable(test.score) for test in tests):
            return f"{CANNOT_TELL.lower()}: 1 of {len(tests)} slices has {enough}, and it takes two"
        return f"{CANNOT_TELL.lower()}: 0 of {len(tests)} slices have {enough}; the largest has {clusters}"
    furthest = min(made, key=rate_need)
    clusters, resampled = count_clusters(furthest.score)
    gap = furthest.score.value - furthest.rest
    where = ", ".join(furthest.score.slice[key] for key in keys)
    size = format_number(gap, choose_decimals([gap, furthest.rest], counts=False))
    text = f"{CANNOT_TELL.lower()}: none of {len(made)} differs from the rest beyond chance"
    if not math.isfinite(furthest.needed):
        return text
    need = describe_need(max(furthest.needed, clusters + 1), resampled)
    return f"{text}. The clearest difference, {size} for {where}, would take about {need} there, and it has {clusters}"


def _describe_end(test: SliceTest, made: Sequence[SliceTest], keys: Sequence[str], decimals: int) -> str:
    """A value and its slice; of slices with the same value the first is named and the others are counted."""
    same = [other for other in made if other.score.value == test.score.value]
    where = ", ".join(same[0].score.slice[key] for key in keys)
    more = f" and {len(same) - 1} more" if len(same) > 1 else ""
    bounds = format_interval(*get_bounds(same[0].score), decimals)
    return f"{format_number(test.score.value, decimals)} ({bounds}) for {where}{more}"


def _get_value(test: SliceTest) -> float:
    return test.score.value
