"""A review study: every candidate with what people said of it, and how far they agree so far."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl

from hardlook.collect.research.gallery_view import picture_address, thumbnail_address
from hardlook.collect.research.paging import page_of
from hardlook.collect.research.parameters import Asked, Pairs
from hardlook.collect.research.snapshot import Snapshot
from hardlook.collect.research.task_counts import counting
from hardlook.collect.results.review_verdicts import OUTCOMES, Reviewed, ratings_of, reviewed_claims
from hardlook.report.numerals import NOTHING, counted, numeral
from hardlook.stats.agreement import fleiss_kappa, krippendorff_alpha

ADDRESS, SIZE = "/research/images", 48
SHOWN = ("all", *OUTCOMES, "disputed")


def review_view(snapshot: Snapshot, excluded: Collection[str], pairs: Pairs) -> dict[str, Any]:
    """What the template `review.html` shows; verdicts of `excluded` participants are left out."""
    asked = Asked(pairs, ("q", "show", "page"))
    text, show = asked.text("q").casefold(), asked.choice("show", SHOWN)
    answers = snapshot.answers.filter(counting(snapshot.answers, excluded) & pl.col("value").is_in([0, 1]))
    claims = reviewed_claims(snapshot.study, answers)
    found = [one for one in claims if show in ("all", one.outcome) or (show == "disputed" and one.disputed)]
    if text:
        found = [one for one in found if text in _searched(one).casefold()]
    shown, pager = page_of(found, asked, ADDRESS, SIZE)
    said = _said(snapshot, answers, [one.task.id for one in shown])
    return {
        "tiles": [(name, sum(one.outcome == name for one in claims)) for name in OUTCOMES],
        "disputed": sum(one.disputed for one in claims),
        "agreement": agreement_so_far(claims),
        "wanted": snapshot.study.settings.target_answers,
        "counted": counted(len(found), "candidate"),
        "of": len(claims),
        "filtered": len(found) < len(claims),
        "cards": [_card(one, said.get(one.task.id, [])) for one in shown],
        "pager": pager,
        "asked": {"q": asked.text("q"), "show": show},
        "choices": SHOWN,
    }


def agreement_so_far(claims: tuple[Reviewed, ...]) -> dict[str, Any]:
    """Agreement over claims with two reviews or more: how many, the share of pairs alike, two that allow for chance.

    A dash stands where nothing can be said; intervals are in the export.
    """
    counts = np.array([[one.accepted, one.declined] for one in claims if one.reviews > 1], np.int64).reshape(-1, 2)
    if not len(counts):
        return {"claims": 0, "percent": NOTHING, "fleiss": NOTHING, "alpha": NOTHING}
    people = counts.sum(1)
    percent = (counts * (counts - 1)).sum() / (people * (people - 1)).sum()
    return {
        "claims": len(counts),
        "percent": f"{100 * percent:.1f} %",
        "fleiss": numeral(fleiss_kappa(counts), 3),
        "alpha": numeral(krippendorff_alpha(ratings_of(counts), "nominal"), 3),
    }


def _card(one: Reviewed, said: list[tuple[int, bool]]) -> dict[str, Any]:
    task = one.task
    return {
        "name": task.name,
        "concept": task.concept,
        "context": task.context,
        "picture": thumbnail_address(task.id),
        "whole": picture_address(task.id),
        "outcome": one.outcome,
        "disputed": one.disputed,
        "said": said,
    }


def _said(snapshot: Snapshot, answers: pl.DataFrame, tasks: list[str]) -> dict[str, list[tuple[int, bool]]]:
    """By task: the number of each participant who judged it, and whether they accepted."""
    numbers = dict(snapshot.quality.select("participant", "number").iter_rows())
    rows = answers.filter(pl.col("task").is_in(tasks)).select("task", "participant", "value")
    found: dict[str, list[tuple[int, bool]]] = {}
    for task, participant, value in rows.iter_rows():
        found.setdefault(task, []).append((numbers[participant], bool(value)))
    return found


def _searched(one: Reviewed) -> str:
    return f"{one.task.name} {one.task.concept} {one.task.context}"
