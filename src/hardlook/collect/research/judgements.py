"""The task pages of rating and review studies: what was answered about each task so far, and how far people agree."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl

from hardlook.collect.research.images import ADDRESS, make_picture_url
from hardlook.collect.research.requests import Pairs, Parameters, paginate
from hardlook.collect.research.snapshot import Snapshot, select_counted
from hardlook.collect.results.rating_scores import SCALE
from hardlook.collect.results.review_outcomes import (
    OUTCOMES,
    ReviewedClaim,
    count_alike_pairs,
    count_reviews,
    count_verdicts,
    expand_counts,
)
from hardlook.collect.study.tasks import RatingTask
from hardlook.harness.rounding import format_percent
from hardlook.harness.stats.agreement import fleiss_kappa, krippendorff_alpha
from hardlook.report.formatting import MISSING, format_number

RATINGS_PER_PAGE, REVIEWS_PER_PAGE = 100, 48

SORTS = {
    "fewest": "fewest ratings first",
    "low": "lowest mean first",
    "high": "highest mean first",
    "order": "in order",
}

SHOWN = ("all", *OUTCOMES, "disputed")


def build_ratings_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """The values of the template `ratings.html`; ratings by `excluded` participants are left out."""
    parameters = Parameters(pairs, ("q", "measure", "sort", "page"))
    tasks = [task for task in snapshot.study.tasks if isinstance(task, RatingTask) and not task.training]
    measures = tuple(dict.fromkeys(task.measure for task in tasks))
    measure, text = parameters.get_choice("measure", measures, ""), parameters.get_text("q").casefold()
    sort = parameters.get_choice("sort", tuple(SORTS))
    found = [task for task in tasks if measure in ("", task.measure) and text in " ".join(task.labels).casefold()]
    by_task = group_ratings(snapshot.answers.filter(select_counted(snapshot.answers, excluded)))
    ordered = _sort_tasks(found, by_task, sort)
    shown, listing = paginate(ordered, parameters, ADDRESS, RATINGS_PER_PAGE, noun="thing", total=len(tasks))
    return {
        "measures": build_measure_rows(tasks, by_task),
        "question": snapshot.study.settings.question,
        "wanted": snapshot.study.settings.target_answers,
        "rows": [_rating_row(task, by_task.get(task.id, [])) for task in shown],
        "chosen": {"q": parameters.get_text("q"), "measure": measure, "sort": sort},
        "choices": [name for name in measures if name],
        "sorts": list(SORTS.items()),
        **listing,
    }


def group_ratings(answers: pl.DataFrame) -> dict[str, list[int]]:
    """The ratings of each task that has any, 1 to 10.

    >>> group_ratings(pl.DataFrame({"task": ["a", "a", "b"], "value": [3, 5, None]}))
    {'a': [3, 5]}
    """
    rated = answers.filter(pl.col("value").is_in(SCALE)).group_by("task", maintain_order=True).agg("value")
    return dict(rated.iter_rows())


def build_measure_rows(tasks: list[RatingTask], by_task: dict[str, list[int]]) -> list[dict[str, Any]]:
    """Per measure, all of equal weight: ratings, things rated, their mean, and bars of how often each was given."""
    given: dict[str, list[list[int]]] = {task.measure: [] for task in tasks}
    for task in tasks:
        if task.id in by_task:
            given[task.measure].append(by_task[task.id])
    rows = []
    for measure, by_thing in given.items():
        ratings = [rating for of_thing in by_thing for rating in of_thing]
        counts = [ratings.count(rating) for rating in SCALE]
        rows.append(
            {
                "measure": measure or "all",
                "ratings": format_number(len(ratings), 0),
                "things": format_number(len(by_thing), 0),
                "mean": _format_mean(ratings),
                "counts": counts,
                "heights": [round(24 * count / max(*counts, 1), 1) for count in counts],
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
        "picture": make_picture_url(task.id, "small") if task.image else "",
        "measure": task.measure,
        "value": format_number(task.value, 3) if task.measure else "",
        "ratings": len(ratings),
        "mean": _format_mean(ratings),
        "given": ", ".join(map(str, sorted(ratings)[:20])) + (" …" if len(ratings) > 20 else ""),
    }


def _format_mean(ratings: list[int]) -> str:
    return format_number(sum(ratings) / len(ratings) if ratings else None, 2)


def build_review_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """The values of the template `review.html`; verdicts of `excluded` participants are left out."""
    parameters = Parameters(pairs, ("q", "show", "page"))
    text, show = parameters.get_text("q").casefold(), parameters.get_choice("show", SHOWN)
    answers = snapshot.answers.filter(select_counted(snapshot.answers, excluded) & pl.col("value").is_in([0, 1]))
    claims = count_reviews(snapshot.study, answers)
    found = [
        claim
        for claim in claims
        if (show in ("all", claim.outcome) or (show == "disputed" and claim.disputed))
        and text in f"{claim.task.name} {claim.task.concept} {claim.task.context}".casefold()
    ]
    shown, listing = paginate(found, parameters, ADDRESS, REVIEWS_PER_PAGE, noun="candidate", total=len(claims))
    verdicts = _list_verdicts(snapshot, answers, [claim.task.id for claim in shown])
    return {
        "tiles": [(name, sum(claim.outcome == name for claim in claims)) for name in OUTCOMES],
        "disputed": sum(claim.disputed for claim in claims),
        "agreement": format_agreement(claims),
        "wanted": snapshot.study.settings.target_answers,
        "cards": [
            {
                "claim": claim,
                "picture": make_picture_url(claim.task.id, "small"),
                "whole": make_picture_url(claim.task.id, "whole"),
                "verdicts": verdicts.get(claim.task.id, []),
            }
            for claim in shown
        ],
        "chosen": {"q": parameters.get_text("q"), "show": show},
        "choices": SHOWN,
        **listing,
    }


def format_agreement(claims: tuple[ReviewedClaim, ...]) -> dict[str, Any]:
    """Agreement on claims with two reviews or more: number, share of equal pairs, coefficients; dashes if undefined."""
    counts = count_verdicts(claims)
    if not len(counts):
        return {"claims": 0, "percent": MISSING, "fleiss": MISSING, "alpha": MISSING}
    alike, pairs = count_alike_pairs(counts).sum(0)
    return {
        "claims": len(counts),
        "percent": format_percent(alike / pairs, 1),
        "fleiss": format_number(fleiss_kappa(counts), 3),
        "alpha": format_number(krippendorff_alpha(expand_counts(counts), "nominal"), 3),
    }


def _list_verdicts(snapshot: Snapshot, answers: pl.DataFrame, tasks: list[str]) -> dict[str, list[tuple[int, bool]]]:
    """By task: the number of each participant who reviewed it, and whether they accepted."""
    numbers = dict(snapshot.quality.select("participant", "number").iter_rows())
    rows = answers.filter(pl.col("task").is_in(tasks)).select("task", "participant", "value")
    verdicts: dict[str, list[tuple[int, bool]]] = {}
    for task, participant, value in rows.iter_rows():
        verdicts.setdefault(task, []).append((numbers[participant], bool(value)))
    return verdicts
