"""The task pages of rating and review studies: what was answered about each task so far, and how far people agree."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl

from hardlook.collect.research.gallery import ADDRESS, picture_address, thumbnail_address
from hardlook.collect.research.requests import Pairs, Parameters, paginate
from hardlook.collect.research.snapshot import Snapshot, select_counted
from hardlook.collect.results.review_outcomes import OUTCOMES, ReviewedClaim, count_reviews, expand_counts
from hardlook.collect.study.tasks import RatingTask
from hardlook.harness.stats.agreement import fleiss_kappa, krippendorff_alpha
from hardlook.report.formatting import MISSING, format_count, format_number

RATINGS_PER_PAGE, REVIEWS_PER_PAGE = 100, 48

SORTS = {
    "fewest": "fewest ratings first",
    "low": "lowest mean first",
    "high": "highest mean first",
    "order": "in order",
}

SCALE = tuple(range(1, 11))


def ratings_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """The values of the template `ratings.html`; ratings by `excluded` participants are excluded."""
    parameters = Parameters(pairs, ("q", "measure", "sort", "page"))
    tasks = [task for task in snapshot.study.tasks if isinstance(task, RatingTask) and not task.training]
    measures = tuple(dict.fromkeys(task.measure for task in tasks))
    measure, text = parameters.choice("measure", measures, ""), parameters.text("q").casefold()
    sort = parameters.choice("sort", tuple(SORTS))
    found = [task for task in tasks if not measure or task.measure == measure]
    found = [task for task in found if text in " ".join(task.labels).casefold()]
    by_task = group_ratings(snapshot.answers.filter(select_counted(snapshot.answers, excluded)))
    shown, pager = paginate(_sort_tasks(found, by_task, sort), parameters, ADDRESS, RATINGS_PER_PAGE)
    return {
        "measures": build_measure_rows(tasks, by_task),
        "scale": SCALE,
        "question": snapshot.study.settings.question,
        "wanted": snapshot.study.settings.target_answers,
        "counted": format_count(len(found), "thing"),
        "of": len(tasks),
        "filtered": len(found) < len(tasks),
        "rows": [_rating_row(task, by_task.get(task.id, [])) for task in shown],
        "pager": pager,
        "asked": {"q": parameters.text("q"), "measure": measure, "sort": sort},
        "choices": [name for name in measures if name],
        "sorts": list(SORTS.items()),
    }


def group_ratings(answers: pl.DataFrame) -> dict[str, list[int]]:
    """The ratings of each task that has any, 1 to 10.

    >>> group_ratings(pl.DataFrame({"task": ["a", "a", "b"], "value": [3, 5, None]}))
    {'a': [3, 5]}
    """
    rated = answers.filter(pl.col("value").is_in(SCALE)).group_by("task", maintain_order=True).agg("value")
    return dict(rated.iter_rows())


def build_measure_rows(tasks: list[RatingTask], by_task: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Per measure: ratings, things rated, their mean, and how often each rating was given, with heights of bars.

    All ratings have the same weight.
    """
    given: dict[str, list[int]] = {task.measure: [] for task in tasks}
    things = dict.fromkeys(given, 0)
    for task in tasks:
        ratings = by_task.get(task.id, [])
        given[task.measure] += ratings
        things[task.measure] += bool(ratings)
    rows = []
    for measure, ratings in given.items():
        counts = [ratings.count(rating) for rating in SCALE]
        most = max(counts)
        rows.append(
            {
                "measure": measure or "all",
                "ratings": format_number(len(ratings), 0),
                "things": format_number(things[measure], 0),
                "mean": format_number(sum(ratings) / len(ratings) if ratings else None, 2),
                "counts": counts,
                "heights": [round(24 * count / most, 1) if most else 0.0 for count in counts],
            }
        )
    return rows


def _sort_tasks(tasks: list[RatingTask], by_task: dict[str, list[int]], sort: str) -> list[RatingTask]:
    if sort == "order":
        return tasks
    if sort == "fewest":
        return sorted(tasks, key=lambda task: len(by_task.get(task.id, [])))
    # Things without a rating have no mean and come last in both orders.
    rated = [task for task in tasks if task.id in by_task]
    ordered = sorted(rated, key=lambda task: sum(by_task[task.id]) / len(by_task[task.id]), reverse=sort == "high")
    return ordered + [task for task in tasks if task.id not in by_task]


def _rating_row(task: RatingTask, ratings: list[int]) -> dict[str, Any]:
    return {
        "labels": ", ".join(task.labels),
        "picture": thumbnail_address(task.id) if task.image else "",
        "measure": task.measure,
        "value": format_number(task.value, 3) if task.measure else "",
        "ratings": len(ratings),
        "mean": format_number(sum(ratings) / len(ratings) if ratings else None, 2),
        "given": ", ".join(map(str, sorted(ratings)[:20])) + (" …" if len(ratings) > 20 else ""),
    }


SHOWN = ("all", *OUTCOMES, "disputed")


def review_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """The values of the template `review.html`; verdicts of `excluded` participants are excluded."""
    parameters = Parameters(pairs, ("q", "show", "page"))
    text, show = parameters.text("q").casefold(), parameters.choice("show", SHOWN)
    answers = snapshot.answers.filter(select_counted(snapshot.answers, excluded) & pl.col("value").is_in([0, 1]))
    claims = count_reviews(snapshot.study, answers)
    found = [claim for claim in claims if show in ("all", claim.outcome) or (show == "disputed" and claim.disputed)]
    if text:
        found = [claim for claim in found if text in _searchable_text(claim)]
    shown, pager = paginate(found, parameters, ADDRESS, REVIEWS_PER_PAGE)
    verdicts = _list_verdicts(snapshot, answers, [claim.task.id for claim in shown])
    return {
        "tiles": [(name, sum(claim.outcome == name for claim in claims)) for name in OUTCOMES],
        "disputed": sum(claim.disputed for claim in claims),
        "agreement": measure_agreement(claims),
        "wanted": snapshot.study.settings.target_answers,
        "counted": format_count(len(found), "candidate"),
        "of": len(claims),
        "filtered": len(found) < len(claims),
        "cards": [_review_card(claim, verdicts.get(claim.task.id, [])) for claim in shown],
        "pager": pager,
        "asked": {"q": parameters.text("q"), "show": show},
        "choices": SHOWN,
    }


def measure_agreement(claims: tuple[ReviewedClaim, ...]) -> dict[str, Any]:
    """Agreement on claims with at least two reviews: their number, the share of equal pairs, two coefficients.

    A dash stands for an undefined value; intervals are in the export.
    """
    counts = np.array([[claim.accepted, claim.declined] for claim in claims if claim.reviews > 1], np.int64).reshape(
        -1, 2
    )
    if not len(counts):
        return {"claims": 0, "percent": MISSING, "fleiss": MISSING, "alpha": MISSING}
    people = counts.sum(1)
    percent = (counts * (counts - 1)).sum() / (people * (people - 1)).sum()
    return {
        "claims": len(counts),
        "percent": f"{100 * percent:.1f} %",
        "fleiss": format_number(fleiss_kappa(counts), 3),
        "alpha": format_number(krippendorff_alpha(expand_counts(counts), "nominal"), 3),
    }


def _review_card(claim: ReviewedClaim, verdicts: list[tuple[int, bool]]) -> dict[str, Any]:
    task = claim.task
    return {
        "name": task.name,
        "concept": task.concept,
        "context": task.context,
        "picture": thumbnail_address(task.id),
        "whole": picture_address(task.id),
        "outcome": claim.outcome,
        "disputed": claim.disputed,
        "said": verdicts,
    }


def _list_verdicts(snapshot: Snapshot, answers: pl.DataFrame, tasks: list[str]) -> dict[str, list[tuple[int, bool]]]:
    """By task: the number of each participant who reviewed it, and whether they accepted."""
    numbers = dict(snapshot.quality.select("participant", "number").iter_rows())
    rows = answers.filter(pl.col("task").is_in(tasks)).select("task", "participant", "value")
    verdicts: dict[str, list[tuple[int, bool]]] = {}
    for task, participant, value in rows.iter_rows():
        verdicts.setdefault(task, []).append((numbers[participant], bool(value)))
    return verdicts


def _searchable_text(claim: ReviewedClaim) -> str:
    return f"{claim.task.name} {claim.task.concept} {claim.task.context}".casefold()
