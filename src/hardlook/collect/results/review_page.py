"""The page of a review: what was kept, how far people agree, the cells that are filled, and images to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hardlook.collect.results.review_verdicts import OUTCOMES, Reviewed
from hardlook.collect.study.folder import Study
from hardlook.contract.sections import Example, Gallery, HeatMap, Picture, Section, Table
from hardlook.data.images import read_image
from hardlook.errors import HardlookError
from hardlook.randomness import generator
from hardlook.report.numerals import counted
from hardlook.report.page import render_study

SHOWN = 8
MOST_CELLS, MOST_ROWS = 30, 500
_NAMES = {"percent": "pairs of reviews alike", "fleiss": "Fleiss' kappa", "alpha": "Krippendorff's alpha"}


def review_page(study: Study, claims: Sequence[Reviewed], report: Mapping[str, Any]) -> str:
    """The page as HTML; `report` is `report.json`."""
    galleries = _galleries(claims)
    by_id = {one.task.id: one for one in claims}
    shown = {example.unit for gallery in galleries for example in gallery.examples}
    return render_study(
        [
            Section("What was kept", "\n\n".join(report["in_words"]), (_outcomes(report), _agreement(report))),
            Section("Concepts and contexts", "", _cells(report)),
            Section("Reviewers", _excluded(report), (_reviewers(report),)),
            Section("Images to look at", "Drawn at random from each kind.", galleries),
        ],
        title=f"Review: {study.settings.title}",
        kind="Review of candidate images",
        summary="People said of each image whether it shows its concept in its context.",
        provenance={name: report[name] for name in ("schema", "hardlook", "study", "wanted_reviews", "rules", "data")},
        pictures={unit: _pictures(study, by_id[unit]) for unit in sorted(shown)},
    )


def _outcomes(report: Mapping[str, Any]) -> Table:
    rows: list[tuple[str, int]] = [(name, report[name]) for name in ("candidates", *OUTCOMES)]
    rows.append(("rejected, and disputed", report["disputed"]))
    caption = "Every candidate is kept, rejected or undecided; disputed ones were accepted by some and not by others."
    return Table("Candidates", caption, ("candidates", "count"), rows)


def _agreement(report: Mapping[str, Any]) -> Table:
    found = report["agreement"]
    rows: list[tuple[str, float | None, float | None, float | None]] = []
    if found is not None:
        rows = [(words, *(found[name][part] for part in ("value", "low", "high"))) for name, words in _NAMES.items()]
        if found["cohen"] is not None:
            rows.append(("Cohen's kappa of the two reviewers", found["cohen"], None, None))
    caption = "0 is chance and 1 full agreement, but for the first row; intervals of 95 % resample images."
    return Table("Agreement", caption, ("measure", "value", "low", "high"), rows)


def _cells(report: Mapping[str, Any]) -> tuple[HeatMap | Table, ...]:
    cells = report["cells"]
    concepts, contexts = (sorted({cell[name] for cell in cells}) for name in ("concept", "context"))
    kept = {(cell["concept"], cell["context"]): float(cell["kept"]) for cell in cells}
    columns = ("concept", "context", "candidates", *OUTCOMES)
    caption = "" if len(cells) <= MOST_ROWS else f"The first {MOST_ROWS} of {len(cells)}; report.json has all."
    table = Table("All cells", caption, columns, [tuple(cell[name] for name in columns) for cell in cells[:MOST_ROWS]])
    if max(len(concepts), len(contexts)) > MOST_CELLS:
        return (table,)
    empty = float("nan")
    values = [[kept.get((concept, context), empty) for context in contexts] for concept in concepts]
    caption = "Images that were kept; a cell without a candidate is empty."
    drawn = HeatMap("Kept images", caption, concepts, contexts, values, "concept", "context", decimals=0)
    return (drawn, table)


def _excluded(report: Mapping[str, Any]) -> str:
    left_out = report["left_out"]
    words = [f"Reviewer {one['participant']} is left out: {one['reason']}." for one in report["excluded"]]
    if odd := left_out["answers_neither_yes_nor_no"]:
        words.append(f"{counted(odd, 'answer')} were neither yes nor no, and are left out.")
    return "\n\n".join(words)


def _reviewers(report: Mapping[str, Any]) -> Table:
    columns = ("participant", "reviews", "accepted", "alike", "reaction_ms")
    rows = [tuple(row[name] for name in columns) for row in report["reviewers"][:MOST_ROWS]]
    caption = (
        "Shares of reviews that accept, and of others' reviews of the same claims that say the same; milliseconds."
    )
    return Table("Reviewers", caption, columns, rows)


def _galleries(claims: Sequence[Reviewed]) -> list[Gallery]:
    kinds = {
        "Kept": [one for one in claims if one.outcome == "kept"],
        "Rejected by all": [one for one in claims if one.outcome == "rejected" and not one.accepted],
        "Disputed": [one for one in claims if one.disputed],
    }
    galleries = []
    for title, found in kinds.items():
        chosen = sorted(generator(0, "review", "gallery", title).permutation(len(found))[:SHOWN].tolist())
        examples = [Example(found[place].task.id, _caption(found[place])) for place in chosen]
        galleries.append(Gallery(title, f"{len(examples)} of {len(found)}.", examples))
    return galleries


def _caption(one: Reviewed) -> str:
    return f"{one.accepted} of {counted(one.reviews, 'reviewer')} accepted. `{one.task.name}`"


def _pictures(study: Study, one: Reviewed) -> list[Picture] | str:
    try:
        return [Picture(f"{one.task.concept}, {one.task.context}", read_image(study.file(one.task.image)))]
    except HardlookError as error:
        return str(error)
