"""The results of a review: the kept images as a dataset of concepts in contexts, the others, and a report.

    OUT/manifest.csv     path, concept, context, split of what was kept; OUT is a dataset that `hardlook run metacoco`
                         reads by --data root=OUT
    OUT/images/          the images that it names
    OUT/rejected.csv     claims that at least one person declined
    OUT/undecided.csv    claims with fewer reviews than wanted
    OUT/report.json      all numbers
    OUT/page.html        the same with pictures

Every candidate is in exactly one of the three csv files.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import hardlook
from hardlook.collect.results.answers import list_dropped_batches
from hardlook.collect.results.exclusion_rules import ExclusionRules, find_excluded, parse_rules
from hardlook.collect.results.quality import measure_participants
from hardlook.collect.results.review_outcomes import (
    OUTCOMES,
    ReviewedClaim,
    candidates_folder,
    count_reviews,
    measure_agreement,
    measure_reviewers,
    write_claims,
    write_kept_images,
)
from hardlook.collect.study.folder import Study
from hardlook.data.images import read_image
from hardlook.errors import HardlookError, OptionError
from hardlook.harness.rounding import format_fixed, format_percent
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.sections import Example, Gallery, HeatMap, Picture, Section, Table
from hardlook.randomness import generator
from hardlook.report.formatting import format_count
from hardlook.report.page import render_study

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

SCHEMA = "hardlook.review-report/1"

# How many names, gallery images, rows of a table and cells per side of a heat map are shown at most.
_EXAMPLES, _GALLERY_IMAGES, _TABLE_ROWS, _HEAT_MAP_CELLS = 5, 8, 500, 30

_AGREEMENT = {"percent": "pairs of reviews alike", "fleiss": "Fleiss' kappa", "alpha": "Krippendorff's alpha"}


def export_review(study: Study, store: Store, out: Path, rules: ExclusionRules | None = None) -> dict[str, Any]:
    """Write all files into the folder `out` and return the content of report.json.

    Without `rules` those of the dashboard apply.
    """
    if study.settings.kind != "review":
        raise OptionError(f"a study of {study.settings.kind}, not a review", remedy="pass a review")
    rules = parse_rules(store.rules()) if rules is None else rules
    with store.one_snapshot():
        answers, batches, people = store.answers(), store.batches(), store.participants()
        quality = measure_participants(study, answers, batches, people, store.check_answers())
    excluded = find_excluded(quality, rules)
    slow_enough = answers.filter(~pl.col("batch").is_in(list_dropped_batches(study.settings, answers)))
    yes_or_no = slow_enough.filter(pl.col("value").is_in([0, 1]))
    counting = yes_or_no.filter(~pl.col("participant").is_in(list(excluded)))
    claims = count_reviews(study, counting)
    by_outcome = {name: [one for one in claims if one.outcome == name] for name in OUTCOMES}
    copied, from_study = write_kept_images(study, by_outcome["kept"], out)
    for name in ("rejected", "undecided"):
        write_claims(out / f"{name}.csv", by_outcome[name])
    numbers = dict(quality.select("participant", "number").iter_rows())
    rows = measure_reviewers(counting).with_columns(
        pl.col("participant").replace_strict(numbers, return_dtype=pl.Int64)
    )
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "hardlook": hardlook.__version__,
        "study": {"title": study.settings.title, "fingerprint": study.fingerprint},
        # The folder's name only: its path may be private.
        "data": {**study.made["data"], "candidates": candidates_folder(study).name},
        "wanted_reviews": study.settings.target_answers,
        "candidates": len(claims),
        **{name: len(found) for name, found in by_outcome.items()},
        "disputed": sum(one.disputed for one in by_outcome["rejected"]),
        "reviews": len(counting),
        "participants": counting["participant"].n_unique(),
        "rules": rules.active_rules(),
        "excluded": [{"participant": numbers[name], "reason": reason} for name, reason in excluded.items()],
        "left_out": {
            "answers_of_excluded_participants": len(yes_or_no) - len(counting),
            "answers_neither_yes_nor_no": len(slow_enough) - len(yes_or_no),
            "answers_of_quick_batches": len(answers) - len(slow_enough),
        },
        "agreement": measure_agreement(claims, counting),
        "images": {
            "copied": copied,
            "of_the_study": {"count": len(from_study), "examples": from_study[:_EXAMPLES]},
        },
        "cells": _count_cells(claims),
        "reviewers": rows.sort("participant").to_dicts(),
    }
    report["in_words"] = _describe_results(report)
    write_atomically(out / "report.json", json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_atomically(out / "page.html", render_page(study, claims, report))
    return report


def _count_cells(claims: tuple[ReviewedClaim, ...]) -> list[dict[str, Any]]:
    counts = Counter((one.task.concept, one.task.context, one.outcome) for one in claims)
    cells = []
    for concept, context in sorted({(one.task.concept, one.task.context) for one in claims}):
        found: dict[str, int] = {name: counts[concept, context, name] for name in OUTCOMES}
        cells.append({"concept": concept, "context": context, "candidates": sum(found.values()), **found})
    return cells


def _describe_results(report: dict[str, Any]) -> list[str]:
    claims = format_count(report["candidates"], "candidate")
    words = [
        f"Of {claims} {report['kept']} were kept and {report['rejected']} rejected, {report['disputed']} of them "
        f"disputed; {report['undecided']} are undecided, with fewer than "
        f"{format_count(report['wanted_reviews'], 'review')}."
    ]
    found = report["agreement"]
    if found is None:
        words.append("Nothing was judged by two people yet, so their agreement is unknown.")
    else:
        alpha = found["alpha"]["value"]
        chance = "undefined, since all answers are the same" if alpha is None else format_fixed(alpha, 2)
        words.append(
            f"{format_percent(found['percent']['value'], gap='')} of pairs of reviews are alike; allowing for chance, "
            "Krippendorff's alpha "
            f"is {chance} over {format_count(found['claims'], 'claim')}."
        )
    if taken := report["images"]["of_the_study"]["count"]:
        images = format_count(taken, "kept image")
        words.append(f"{images} came from the study, since the candidate is gone or has changed.")
    return words


def render_page(study: Study, claims: Sequence[ReviewedClaim], report: Mapping[str, Any]) -> str:
    """The page as HTML; `report` is the content of report.json."""
    counts = [(name, report[name]) for name in ("candidates", *OUTCOMES)]
    caption = "Every candidate is kept, rejected or undecided; disputed ones were accepted by some and not by others."
    rows = [*counts, ("rejected, and disputed", report["disputed"])]
    outcomes = Table("Candidates", caption, ("candidates", "count"), rows)
    caption = "Shares of reviews that accept, and of others' reviews of the same claims that agree; milliseconds."
    columns = ("participant", "reviews", "accepted", "alike", "reaction_ms")
    reviewers = _build_table("Reviewers", caption, columns, report["reviewers"])
    galleries = _build_galleries(claims)
    shown = {example.unit for gallery in galleries for example in gallery.examples}
    return render_study(
        [
            Section("What was kept", "\n\n".join(report["in_words"]), (outcomes, _build_agreement_table(report))),
            Section("Concepts and contexts", "", _build_cells(report)),
            Section("Reviewers", _describe_excluded(report), (reviewers,)),
            Section("Images to look at", "Drawn at random from each kind.", galleries),
        ],
        title=f"Review: {study.settings.title}",
        kind="Review of candidate images",
        summary="People decided for each image whether it shows its concept in its context.",
        provenance={name: report[name] for name in ("schema", "hardlook", "study", "wanted_reviews", "rules", "data")},
        pictures={one.task.id: _load_pictures(study, one) for one in claims if one.task.id in shown},
    )


def _build_agreement_table(report: Mapping[str, Any]) -> Table:
    found = report["agreement"]
    rows: list[tuple[str, float | None, float | None, float | None]] = []
    if found is not None:
        rows = [
            (words, *(found[name][part] for part in ("value", "low", "high"))) for name, words in _AGREEMENT.items()
        ]
        if found["cohen"] is not None:
            rows.append(("Cohen's kappa of the two reviewers", found["cohen"], None, None))
    caption = "0 is chance and 1 full agreement, but for the first row; intervals of 95 % resample images."
    return Table("Agreement", caption, ("measure", "value", "low", "high"), rows)


def _build_cells(report: Mapping[str, Any]) -> tuple[HeatMap | Table, ...]:
    cells = report["cells"]
    concepts, contexts = (sorted({cell[name] for cell in cells}) for name in ("concept", "context"))
    kept = {(cell["concept"], cell["context"]): float(cell["kept"]) for cell in cells}
    table = _build_table("All cells", "", ("concept", "context", "candidates", *OUTCOMES), cells)
    if max(len(concepts), len(contexts)) > _HEAT_MAP_CELLS:
        return (table,)
    values = [[kept.get((concept, context), math.nan) for context in contexts] for concept in concepts]
    caption = "Images that were kept; a cell without a candidate is empty."
    drawn = HeatMap("Kept images", caption, concepts, contexts, values, "concept", "context", decimals=0)
    return (drawn, table)


def _describe_excluded(report: Mapping[str, Any]) -> str:
    words = [f"Reviewer {one['participant']} is left out: {one['reason']}." for one in report["excluded"]]
    if odd := report["left_out"]["answers_neither_yes_nor_no"]:
        words.append(f"{format_count(odd, 'answer')} were neither yes nor no, and are left out.")
    if quick := report["left_out"]["answers_of_quick_batches"]:
        words.append(f"{format_count(quick, 'answer')} came in less time than they take, and are left out.")
    return "\n\n".join(words)


def _build_table(title: str, caption: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Table:
    if len(rows) > _TABLE_ROWS:
        caption = f"{caption} The first {_TABLE_ROWS} of {len(rows)}; report.json has all.".strip()
    return Table(title, caption, columns, [tuple(row[name] for name in columns) for row in rows[:_TABLE_ROWS]])


def _build_galleries(claims: Sequence[ReviewedClaim]) -> list[Gallery]:
    kinds = {
        "Kept": [one for one in claims if one.outcome == "kept"],
        "Rejected by all": [one for one in claims if one.outcome == "rejected" and not one.accepted],
        "Disputed": [one for one in claims if one.disputed],
    }
    galleries = []
    for title, found in kinds.items():
        chosen = sorted(generator(0, "review", "gallery", title).permutation(len(found))[:_GALLERY_IMAGES].tolist())
        examples = []
        for one in (found[place] for place in chosen):
            reviewers = format_count(one.reviews, "reviewer")
            examples.append(Example(one.task.id, f"{one.accepted} of {reviewers} accepted. `{one.task.name}`"))
        galleries.append(Gallery(title, f"{len(examples)} of {len(found)}.", examples))
    return galleries


def _load_pictures(study: Study, one: ReviewedClaim) -> list[Picture] | str:
    try:
        return [Picture(f"{one.task.concept}, {one.task.context}", read_image(study.file(one.task.image)))]
    except HardlookError as error:
        return str(error)
