"""The page of `hardlook data inspect`: sizes, concepts x contexts as a picture, duplicates, tasks, differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.commands.data.inspection_document import published_in_words
from hardlook.contract.sections import HeatMap, Section, Table

if TYPE_CHECKING:
    from hardlook.benchmarks.metacoco.published_concepts import PublishedComparison
    from hardlook.commands.data.inspection_findings import Inspection
    from hardlook.data.concept_context import ConceptContextDataset

MOST_GROUPS = 200
_WHOLE = "all"


def inspection_sections(found: Inspection, words: Sequence[str]) -> list[Section]:
    """What the page shows."""
    sections = [
        Section("What this means", "\n\n".join(words), (_sizes(found),)),
        Section(
            "Concepts and contexts",
            "Both are sorted by their images, most first. An empty cell is a pair without images.",
            (*(_heat_map(found.dataset, part) for part in found.parts), _concepts(found)),
        ),
        _purity(found),
        _tasks(found),
    ]
    if found.comparison is not None:
        sections.append(_published(found.comparison))
    return sections


def _sizes(found: Inspection) -> Table:
    rows = []
    for part in found.parts:
        cells = found.dataset.cells(part)
        images: Counter[str] = Counter()
        for (concept, _), count in cells.items():
            images[concept] += count
        contexts = Counter(concept for concept, _ in cells)
        sizes, spread = sorted(images.values()), sorted(contexts.values())
        rows.append(
            (
                part or _WHOLE,
                len(images),
                len({context for _, context in cells}),
                images.total(),
                f"{sizes[0]} to {sizes[-1]}",
                f"{spread[0]} to {spread[-1]}",
            )
        )
    columns = ("split", "concepts", "contexts", "images", "images a concept", "contexts a concept")
    return Table("Sizes", "Counted from the files in hand.", columns, rows, decimals=0)


def _heat_map(dataset: ConceptContextDataset, part: str | None) -> HeatMap:
    cells = dataset.cells(part)
    concepts, contexts = Counter[str](), Counter[str]()
    for (concept, context), count in cells.items():
        concepts[concept] += count
        contexts[context] += count
    rows = sorted(concepts, key=lambda name: (-concepts[name], name))
    columns = sorted(contexts, key=lambda name: (-contexts[name], name))
    return HeatMap(
        f"Images by concept and context: {part}" if part else "Images by concept and context",
        f"{len(cells)} of {len(rows) * len(columns)} pairs hold images. A concept with one dark cell is seen mostly in "
        "one context; a model may learn the context instead.",
        rows,
        columns,
        [[float(cells.get((row, column), math.nan)) for column in columns] for row in rows],
        row_axis="concept",
        column_axis="context",
        decimals=0,
    )


def _concepts(found: Inspection) -> Table:
    rows = []
    for part in found.parts:
        by_concept: dict[str, Counter[str]] = {}
        for (concept, context), count in found.dataset.cells(part).items():
            by_concept.setdefault(concept, Counter())[context] = count
        for concept, contexts in by_concept.items():
            fullest, most = min(contexts.items(), key=lambda pair: (-pair[1], pair[0]))
            share = most / contexts.total()
            rows.append((concept, part or _WHOLE, contexts.total(), len(contexts), fullest, share))
    columns = ("concept", "split", "images", "contexts", "fullest context", "its share")
    return Table("Concepts", "The share is that of the fullest context in the concept's images.", columns, rows)


def _purity(found: Inspection) -> Section:
    shared = [(name, ", ".join(splits)) for name, splits in found.shared_concepts.items()]
    groups = [("across splits", group) for group in found.duplicates.across]
    groups += [("within a split", group) for group in found.duplicates.within]
    rows = [
        (
            where,
            len(group),
            ", ".join(sorted({row.split or _WHOLE for row in group})),
            ", ".join(sorted({row.concept for row in group})),
            ", ".join(sorted({row.context for row in group})),
            ", ".join(row.name for row in group[:4]) + (", ..." if len(group) > 4 else ""),
        )
        for where, group in groups[:MOST_GROUPS]
    ]
    note = (
        f" The first {MOST_GROUPS} of {len(groups)} are shown; the JSON file has all."
        if len(groups) > MOST_GROUPS
        else ""
    )
    tables = []
    if shared:
        caption = "Few-shot tests ask for concepts that were never trained on."
        tables.append(Table("Concepts in more than one split", caption, ("concept", "splits"), shared))
    if rows:
        columns = ("where", "files", "splits", "concepts", "contexts", "images")
        caption = f"Files with the same bytes (SHA-256); re-encoded or resized copies are not found.{note}"
        tables.append(Table("Images with equal content", caption, columns, rows, decimals=0))
    text = "" if tables else "No concept is in two splits, and no two files have the same bytes."
    return Section("Splits and duplicates", text, tuple(tables))


def _tasks(found: Inspection) -> Section:
    able = [
        (one.split or _WHOLE, one.ways, one.shots, one.mode, one.eligible, one.classes, "yes" if one.possible else "no")
        for one in found.tasks
    ]
    left_out = [
        (one.split or _WHOLE, one.ways, one.shots, one.mode, concept, why)
        for one in found.tasks
        for concept, why in one.left_out
    ]
    tables = [
        Table(
            "Classes that can take part",
            "Each mode by itself, then all modes of a run together: those share classes and supports.",
            ("split", "ways", "shots", "mode", "can take part", "classes", "enough for a task"),
            able,
            decimals=0,
        )
    ]
    if left_out:
        columns = ("split", "ways", "shots", "mode", "class", "why")
        tables.append(Table("Classes that cannot, and why", "", columns, left_out, decimals=0))
    text = f"A task draws {found.settings.queries} queries a class. Images are counted by content."
    return Section("What can form tasks", text, tuple(tables))


def _published(comparison: PublishedComparison) -> Section:
    unsettled = "no: the paper's two tables disagree"
    counts = [
        (one.concept, one.context or "all", one.published, one.here, "yes" if one.settled else unsettled)
        for one in (*comparison.classes, *comparison.pairs)
    ]
    tables = []
    if comparison.absent or comparison.extra:
        rows = [(name, "published, not here") for name in comparison.absent]
        rows += [(name, "here, not published") for name in comparison.extra]
        tables.append(Table("Concepts", "Case, `_` and `-` in names do not count.", ("concept", "which"), rows))
    if comparison.splits:
        moved = [(name, published, ", ".join(here)) for name, published, here in comparison.splits]
        tables.append(Table("Splits that differ", "", ("concept", "published", "here"), moved))
    if counts:
        columns = ("concept", "context", "published", "here", "settled")
        caption = "Images of concepts that both have, where the numbers differ."
        tables.append(Table("Counts that differ", caption, columns, counts, decimals=0))
    text = (
        f"{published_in_words(comparison)} Published are the paper's Tables 4 (classes) and 5 (pairs, recovered from "
        "its text; umbrella has no column there). The paper's own totals contradict each other, so only counts of "
        "classes and pairs are compared."
    )
    return Section("Against the published data", text, tuple(tables))
