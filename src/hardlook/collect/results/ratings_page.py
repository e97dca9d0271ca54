"""The page of a ratings study: which measure people side with, by how much, and whether people agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.collect.results.rating_scores import MeasureDifference, RatingScores
from hardlook.contract.sections import Block, DistributionChart, Dot, DotChart, Section, Table
from hardlook.stats.intervals import Estimate

if TYPE_CHECKING:
    from hardlook.collect.results.ratings import CollectedRatings

ALPHA = 0.05
MOST_ROWS = 400
_NAMES = {"pair": "pairs of labels", "picture": "pictures"}
_LEVELS = {"ordinal": "by order", "interval": "by distance"}


def in_words(collected: CollectedRatings) -> list[str]:
    """The results in a few sentences."""
    ratings, items = collected.ratings, collected.items
    people = ratings["participant"].n_unique()
    if not len(ratings):
        return ["No rating has come in yet.", f"{len(items)} tasks wait for one."]
    words = [f"{len(ratings)} ratings of {len(items)} tasks by {people} {'person' if people == 1 else 'people'}."]
    few = int((items["missing"] > 0).sum())
    if few:
        wanted, none = collected.study.settings.target_answers, int((items["ratings"] == 0).sum())
        words.append(f"{few} tasks have fewer than the {wanted} ratings wanted, {none} of them none.")
    for form, scores in collected.scores.items():
        words += _best(form, scores)
    return words


def rating_sections(collected: CollectedRatings) -> list[Section]:
    """All sections; a study without ratings has those that say so."""
    sections = []
    for form, scores in collected.scores.items():
        sections += _form_sections(form, scores, collected)
    return [*sections, _items_section(collected), _left_out_section(collected)]


def _best(form: str, scores: RatingScores) -> list[str]:
    known = [one for one in scores.measures if one.score.value == one.score.value]
    if not known:
        return [f"No score of a measure is defined yet for {_NAMES[form]}."]
    best = max(known, key=lambda one: one.score.value)
    words = f"On {_NAMES[form]} people side most with {best.measure} ({_number(best.score)})"
    if len(known) == 1:
        return [f"{words}, the only measure with a score."]
    if all(one.score.value == best.score.value for one in known):
        return [f"On {_NAMES[form]} all measures have the same score ({_number(best.score)})."]
    beaten = [
        one.second if one.first == best.measure else one.first
        for one in scores.differences
        if best.measure in (one.first, one.second) and one.adjusted <= ALPHA
    ]
    tail = f"; it differs from {', '.join(beaten)} beyond chance." if beaten else "; no difference is beyond chance."
    return [words + tail]


def _form_sections(form: str, scores: RatingScores, collected: CollectedRatings) -> list[Section]:
    fit = collected.study.settings.question == "fit"
    name = _NAMES[form]
    if not sum(map(sum, scores.distributions.values())):
        return [Section(f"Measures on {name}", f"No rating of {name} has come in yet.")]
    return [
        Section(f"Measures on {name}", _how(fit), (_score_chart(name, scores, fit), _score_table(name, scores, fit))),
        Section(
            f"Differences on {name}",
            "Each two measures on the same things. The test swaps the two on random things and counts how often the "
            "difference gets as large; p is corrected for all comparisons by Holm's method. "
            f"Below {ALPHA} a difference is beyond chance."
            if scores.differences
            else "There is one measure, so nothing to compare.",
            (_difference_table(name, scores.differences),) if scores.differences else (),
        ),
        Section(f"Ratings of {name}", "", (_distribution_chart(name, scores), _distribution_table(name, scores))),
        _agreement_section(name, scores),
    ]


def _how(fit: bool) -> str:
    if fit:
        return (
            "People saw a value and rated from 1 to 10 how well it fits. The score is the mean rating. Every "
            "participant saw a thing under one measure only, so no rating is a comparison of two values."
        )
    return (
        "People saw no value and rated from 1 to 10 how alike the two are. The score is Spearman's correlation of a "
        "measure's values with the mean ratings: 1 where both give the same order, 0 where they have nothing in common."
    )


def _score_chart(name: str, scores: RatingScores, fit: bool) -> Block:
    ordered = sorted(scores.measures, key=lambda one: -one.score.value if one.ratings else 0.0)
    dots = [_dot(one.measure, one.score) for one in ordered if one.score.value == one.score.value]
    caption = "Higher is better. The bar is the 95 % interval over the things rated."
    return DotChart(f"Measures on {name}", caption, dots, axis="mean rating" if fit else "rank correlation")


def _score_table(name: str, scores: RatingScores, fit: bool) -> Block:
    columns = ["measure", "mean rating" if fit else "rank correlation", "from", "to", "ratings", "things"]
    rows = []
    for one in scores.measures:
        row = [one.measure, *_estimate(one.score), one.ratings, one.things]
        rows.append([*row, *_estimate(one.people)[1:]] if one.people else row)
    if fit:
        columns += ["people from", "people to"]
    caption = "Intervals at 95 %: over things rated, how far the score would move with others of them"
    caption += "; `people` over participants, with other people." if fit else "."
    return Table(f"Scores of measures on {name}", caption, columns, rows)


def _difference_table(name: str, differences: Sequence[MeasureDifference]) -> Block:
    rows = [
        (one.first, one.second, *_estimate(one.difference), _defined(one.p), _defined(one.adjusted), one.things)
        for one in differences
    ]
    columns = ("measure", "against", "difference", "from", "to", "p", "p corrected", "things")
    return Table(f"Differences between measures on {name}", "First less second, on shared things.", columns, rows)


def _distribution_chart(name: str, scores: RatingScores) -> Block:
    groups = [
        (measure or "all", [float(rating) for rating, n in enumerate(counts, 1) for _ in range(n)])
        for measure, counts in scores.distributions.items()
        if sum(counts)
    ]
    return DistributionChart(f"How {name} were rated", "Single ratings from 1 to 10.", groups, axis="rating")


def _distribution_table(name: str, scores: RatingScores) -> Block:
    rows: list[list[str | float | int | None]] = [
        [measure or "all", *counts] for measure, counts in scores.distributions.items()
    ]
    return Table(f"Counts of ratings of {name}", "", ("measure", *map(str, range(1, 11))), rows, decimals=0)


def _agreement_section(name: str, scores: RatingScores) -> Section:
    if not scores.shared:
        text = "No task has two ratings yet, so nothing can be said about agreement."
        return Section(f"Agreement on {name}", text)
    rows = [(_LEVELS[level], *_estimate(estimate)) for level, estimate in scores.agreement.items()]
    text = (
        f"Krippendorff's alpha over {scores.shared} tasks with two ratings at least, of {scores.raters} people: 1 is "
        "full agreement, 0 is chance. It is empty where all ratings are equal. Low agreement is no fault of a measure; "
        "it means that more raters are needed."
    )
    return Section(
        f"Agreement on {name}", text, (Table(f"Alpha on {name}", "", ("alpha", "value", "from", "to"), rows),)
    )


def _items_section(collected: CollectedRatings) -> Section:
    items = collected.items.sort("mean", descending=True, nulls_last=True, maintain_order=True)
    rows = items.select("labels", "form", "measure", "value", "ratings", "mean", "std").rows()
    text = "Every task with its ratings, the best rated first."
    if len(rows) > MOST_ROWS:
        text += f" The first {MOST_ROWS} of {len(rows)}; `items.csv` has all."
    columns = ("labels", "form", "measure", "value", "ratings", "mean rating", "standard deviation")
    return Section("Tasks", text, (Table("Ratings of tasks", "", columns, rows[:MOST_ROWS]),))


def _left_out_section(collected: CollectedRatings) -> Section:
    made = collected.study.made
    given = [*made.get("left_out", ()), *collected.left_out]
    rows = [(row["what"], row["count"], row["why"], ", ".join(map(str, row["examples"]))) for row in given]
    blocks = [Table("Left out", "", ("what", "count", "why", "examples"), rows)] if rows else []
    treated = [
        (label, name, how)
        for name, measure in made.get("measures", {}).items()
        for label, how in measure.get("treated", {}).items()
    ]
    if treated:
        caption = "Labels that a measure did not simply look up; they were rated all the same."
        blocks.append(Table("Labels treated specially", caption, ("label", "measure", "how"), treated[:MOST_ROWS]))
    return Section("What was left out", "" if rows else "Nothing was left out.", blocks)


def _dot(label: str, estimate: Estimate) -> Dot:
    value, low, high = _estimate(estimate)
    assert value is not None
    return Dot(label, value, low, high)


def _estimate(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return _defined(estimate.value), _defined(estimate.interval.low), _defined(estimate.interval.high)


def _defined(value: float) -> float | None:
    return value if value == value else None


def _number(estimate: Estimate) -> str:
    if not estimate.interval.defined:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f}, 95 % interval {estimate.interval.low:.2f} to {estimate.interval.high:.2f}"
