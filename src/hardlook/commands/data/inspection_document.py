"""The numbers of `hardlook data inspect`, and what they mean in plain sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hardlook.commands.data.inspection_findings import EVERY_MODE, Inspection, TaskFinding
from hardlook.report.numerals import counted, numeral

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardlook.benchmarks.metacoco.published_concepts import PublishedComparison
    from hardlook.data.concept_context import ConceptContextImage


def inspection_document(found: Inspection) -> dict[str, Any]:
    """Everything that was found, as JSON values."""
    import hardlook

    dataset, settings = found.dataset, found.settings
    return {
        "schema": "hardlook.data-inspect/1",
        "hardlook": hardlook.__version__,
        "data": str(dataset.source),
        "split_rule": dataset.rule,
        "asked": asdict(settings),
        "in_words": in_words(found),
        "images": len(dataset.rows),
        "splits": [_split(found, part) for part in found.parts],
        "cells": [
            {"split": part, "concept": concept, "context": context, "images": count}
            for part in found.parts
            for (concept, context), count in dataset.cells(part).items()
        ],
        "concepts_in_several_splits": {name: list(splits) for name, splits in found.shared_concepts.items()},
        "duplicates_across_splits": [_group(group) for group in found.duplicates.across],
        "duplicates_within_splits": [_group(group) for group in found.duplicates.within],
        "tasks": [{**asdict(one), "possible": one.possible, "left_out": dict(one.left_out)} for one in found.tasks],
        "published": _compared(found.comparison),
    }


def _split(found: Inspection, part: str | None) -> dict[str, Any]:
    rows = found.dataset.of_split(part)
    images = Counter(row.concept for row in rows)
    contexts = Counter(concept for concept, _ in found.dataset.cells(part))
    return {
        "split": part,
        "concepts": len(images),
        "contexts": len({row.context for row in rows}),
        "images": len(rows),
        "images_a_concept": [min(images.values()), max(images.values())],
        "contexts_a_concept": [min(contexts.values()), max(contexts.values())],
    }


def _group(group: Sequence[ConceptContextImage]) -> list[dict[str, str | None]]:
    return [{"image": row.name, "split": row.split, "concept": row.concept, "context": row.context} for row in group]


def _compared(comparison: PublishedComparison | None) -> dict[str, Any] | None:
    return None if comparison is None else {**asdict(comparison), "same": comparison.same}


def in_words(found: Inspection) -> list[str]:
    """What was found, one sentence or two a subject."""
    dataset = found.dataset
    concepts, contexts = {row.concept for row in dataset.rows}, {row.context for row in dataset.rows}
    pairs, possible = len(dataset.cells()), len(concepts) * len(contexts)
    sentences = [
        f"{counted(len(dataset.rows), 'image')} of {counted(len(concepts), 'concept')} in "
        f"{counted(len(contexts), 'context')}; {numeral(pairs, 0)} of the {numeral(possible, 0)} pairs hold images.",
        _splits_in_words(found),
        _duplicates_in_words(found),
    ]
    sentences += _tasks_in_words(found)
    if found.comparison is not None:
        sentences.append(published_in_words(found.comparison))
    return sentences


def _splits_in_words(found: Inspection) -> str:
    dataset = found.dataset
    if not dataset.splits:
        return "There are no splits: all concepts are in one pool."
    sizes = ", ".join(
        f"{part} {counted(len({row.concept for row in dataset.of_split(part)}), 'concept')}" for part in dataset.splits
    )
    said = f"Splits ({f'by {dataset.rule}' if dataset.rule else 'as the data say'}): {sizes}."
    if not found.shared_concepts:
        return f"{said} No concept is in two splits." if len(dataset.splits) > 1 else said
    named = ", ".join(list(found.shared_concepts)[:5]) + (", ..." if len(found.shared_concepts) > 5 else "")
    count = counted(len(found.shared_concepts), "concept is", "concepts are")
    return f"{said} Wrong: {count} in more than one split ({named}); a trained model would know what it is tested on."


def _duplicates_in_words(found: Inspection) -> str:
    across, within = found.duplicates.across, found.duplicates.within
    if not across and not within:
        return "No two images have the same content."
    parts = []
    if across:
        held = sum(map(len, across))
        parts.append(f"Wrong: {counted(len(across), 'image')} by content in more than one split ({held} files).")
    elif len(found.dataset.splits) > 1:
        parts.append("No image is in two splits.")
    if within:
        count = counted(len(within), "image")
        parts.append(f"{count} by content more than once in a split; no task has one both as support and as query.")
    return " ".join(parts)


def _tasks_in_words(found: Inspection) -> list[str]:
    sentences = []
    for part in found.parts:
        for ways in found.settings.ways:
            for shots in found.settings.shots:
                rows = [one for one in found.tasks if (one.split, one.ways, one.shots) == (part, ways, shots)]
                asked = f"{ways}-way {shots}-shot, {counted(found.settings.queries, 'query', 'queries')} a class"
                sentences.append(f"{f'{part}: ' if part else ''}{asked}: {_able(rows, ways)}")
    return sentences


def _able(rows: Sequence[TaskFinding], ways: int) -> str:
    """Of one kind of task: `rows` are the modes, and last all of them together where there are several."""
    joint = rows[-1]
    modes = "every mode" if len(rows) > 1 else f"mode {joint.mode}"
    few = "" if joint.possible else f" Too few for {ways} ways."
    if joint.eligible == joint.classes:
        return f"all {counted(joint.classes, 'class', 'classes')} can take part in {modes}.{few}"
    alone = ", ".join(f"{one.mode} {one.eligible}" for one in rows if one.mode != EVERY_MODE)
    each = f" (by itself: {alone})" if len(rows) > 1 else ""
    return f"{joint.eligible} of {counted(joint.classes, 'class', 'classes')} can take part in {modes}{each}.{few}"


def published_in_words(comparison: PublishedComparison) -> str:
    """Where the data differ from the paper's, in a sentence."""
    if comparison.same:
        return "The counts are the published ones (pairs that the paper leaves unsettled aside)."
    settled = [one for one in comparison.pairs if one.settled]
    parts = [
        (len(comparison.absent), "published concept is absent", "published concepts are absent"),
        (len(comparison.extra), "concept is not a published one", "concepts are not published ones"),
        (len(comparison.splits), "concept is in another split", "concepts are in other splits"),
        (len(comparison.classes), "concept has another number of images", "concepts have other numbers of images"),
        (len(settled), "settled pair differs", "settled pairs differ"),
    ]
    said = "; ".join(counted(count, one, many) for count, one, many in parts if count)
    return (
        f"Not the published data: {said}. {counted(comparison.equal_classes, 'concept')} and "
        f"{counted(comparison.equal_pairs, 'pair')} agree."
    )
