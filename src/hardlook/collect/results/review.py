"""A review as files: the kept images as a dataset of concepts in contexts, the others, and how far people agree.

    OUT/manifest.csv     path, concept, context, split of what was kept; OUT is a dataset that `hardlook run metacoco`
                         reads by --data root=OUT
    OUT/images/          the images that it names
    OUT/rejected.csv     what somebody declined
    OUT/undecided.csv    what has fewer reviews than were wanted
    OUT/report.json      all numbers
    OUT/page.html        the same with pictures

Every candidate is in exactly one of the three csv files.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import hardlook
from hardlook.collect.results.answer_frames import typed_participants
from hardlook.collect.results.exclusions import ExclusionRules, excluded, rules_of
from hardlook.collect.results.kept_images import KeptImages, candidates_folder, write_kept, write_others
from hardlook.collect.results.quality import participant_quality
from hardlook.collect.results.review_page import review_page
from hardlook.collect.results.review_verdicts import (
    OUTCOMES,
    Agreement,
    Reviewed,
    agreement_of,
    reviewed_claims,
    reviewers,
)
from hardlook.collect.study.folder import Study
from hardlook.errors import OptionError
from hardlook.report.numerals import counted
from hardlook.runs.folder import write_whole
from hardlook.stats import Estimate

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

SCHEMA = "hardlook.review-report/1"
EXAMPLES = 5


def export_review(study: Study, store: Store, out: Path, rules: ExclusionRules | None = None) -> dict[str, Any]:
    """Write all files into the folder `out` and return `report.json`; `rules` None takes those of the dashboard."""
    if study.settings.kind != "review":
        raise OptionError(f"a study of {study.settings.kind}, not a review", remedy="export it as what it is")
    rules = rules_of(store.rules()) if rules is None else rules
    # Answers first: whoever gave one had joined before.
    answers, batches, people = store.answers(), store.batches(), store.participants()
    gone: dict[str, str] = {}
    if rules.set_rules():
        gone = excluded(participant_quality(study, answers, batches, people), rules)
    yes_or_no = answers.filter(pl.col("value").is_in([0, 1]))
    counting = yes_or_no.filter(~pl.col("participant").is_in(list(gone)))
    claims = reviewed_claims(study, counting)
    by_outcome = {name: [one for one in claims if one.outcome == name] for name in OUTCOMES}
    kept = write_kept(study, by_outcome["kept"], out)
    for name in ("rejected", "undecided"):
        write_others(out / f"{name}.csv", by_outcome[name])
    numbers = dict(typed_participants(people).select("id", "number").iter_rows())
    rows = reviewers(counting).with_columns(pl.col("participant").replace_strict(numbers, return_dtype=pl.Int64))
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "hardlook": hardlook.__version__,
        "study": {"title": study.settings.title, "fingerprint": study.fingerprint},
        # The folder's name alone: where a researcher keeps files is nobody's business.
        "data": {**study.made["data"], "candidates": candidates_folder(study).name},
        "wanted_reviews": study.settings.target_answers,
        "candidates": len(claims),
        **{name: len(found) for name, found in by_outcome.items()},
        "disputed": sum(one.disputed for one in by_outcome["rejected"]),
        "reviews": len(counting),
        "participants": counting["participant"].n_unique(),
        "rules": rules.set_rules(),
        "excluded": [{"participant": numbers[name], "reason": reason} for name, reason in gone.items()],
        "left_out": {
            "answers_of_excluded_participants": len(yes_or_no) - len(counting),
            "answers_neither_yes_nor_no": len(answers) - len(yes_or_no),
        },
        "agreement": _agreement(agreement_of(claims, counting)),
        "images": _images(kept),
        "cells": _cells(claims),
        "reviewers": rows.sort("participant").to_dicts(),
    }
    report["in_words"] = _words(report)
    write_whole(out / "report.json", json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_whole(out / "page.html", review_page(study, claims, report))
    return report


def _agreement(found: Agreement | None) -> dict[str, Any] | None:
    if found is None:
        return None
    parts = {name: _estimate(getattr(found, name)) for name in ("percent", "fleiss", "alpha")}
    return {"claims": found.claims, **parts, "cohen": None if found.cohen is None else _finite(found.cohen)}


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    interval = estimate.interval
    return {"value": _finite(estimate.value), "low": _finite(interval.low), "high": _finite(interval.high)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _images(kept: KeptImages) -> dict[str, Any]:
    taken = kept.from_study
    return {"copied": kept.copied, "of_the_study": {"count": len(taken), "examples": list(taken[:EXAMPLES])}}


def _cells(claims: tuple[Reviewed, ...]) -> list[dict[str, Any]]:
    counts = Counter((one.task.concept, one.task.context, one.outcome) for one in claims)
    cells = []
    for concept, context in sorted({(one.task.concept, one.task.context) for one in claims}):
        found: dict[str, int] = {name: counts[concept, context, name] for name in OUTCOMES}
        cells.append({"concept": concept, "context": context, "candidates": sum(found.values()), **found})
    return cells


def _words(report: dict[str, Any]) -> list[str]:
    claims = counted(report["candidates"], "candidate")
    words = [
        f"Of {claims} {report['kept']} were kept and {report['rejected']} rejected, {report['disputed']} of them "
        f"disputed; {report['undecided']} are undecided, with fewer than {counted(report['wanted_reviews'], 'review')}."
    ]
    found = report["agreement"]
    if found is None:
        words.append("Nothing was judged by two people yet, so nothing can be said of their agreement.")
    else:
        alpha = found["alpha"]["value"]
        chance = "undefined, since all said the same" if alpha is None else f"{alpha:.2f}"
        words.append(
            f"{found['percent']['value']:.0%} of pairs of reviews are alike; allowing for chance, Krippendorff's alpha "
            f"is {chance} over {counted(found['claims'], 'claim')}."
        )
    if taken := report["images"]["of_the_study"]["count"]:
        words.append(f"{counted(taken, 'kept image')} came from the study, since the candidate is gone or has changed.")
    return words
