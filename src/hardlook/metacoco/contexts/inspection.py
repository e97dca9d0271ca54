"""`hardlook data inspect`: sizes, concepts in two splits, duplicates and possible tasks of a dataset, and its files."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import hardlook
from hardlook.data.concept_context import (
    ConceptContextDataset,
    ConceptContextImage,
    Duplicates,
    drop_images,
    find_similar_names,
)
from hardlook.data.images import read_image
from hardlook.data.near_duplicates import LEAST_CORRELATION, SimilarImages, decode_images, group_similar_images
from hardlook.errors import OptionError
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.progress import StartProgress
from hardlook.harness.sections import Example, Gallery, HeatMap, Picture, Section, Table
from hardlook.metacoco.published import PublishedComparison, compare_counts
from hardlook.metacoco.tasks.eligibility import find_eligible_classes
from hardlook.report.formatting import format_count, format_number
from hardlook.report.page import write_study

EVERY_MODE = "all of these"
MAX_GROUPS = 200  # groups of equal images on the page
MAX_PICTURED = 40  # groups of near-duplicates with pictures, and pictures of a group
MAX_PICTURES = 6
PICTURE_SIDE = 160
_WHOLE = "all"


@dataclass(frozen=True)
class TaskKinds:
    """The kinds of tasks to check: every number of ways with every number of shots, in every mode."""

    modes: tuple[str, ...]
    ways: tuple[int, ...]
    shots: tuple[int, ...]
    queries: int


@dataclass(frozen=True)
class TaskEligibility:
    """How many of a split's classes can take part in tasks of one kind, and why the others cannot: (concept, why).

    `mode` is `EVERY_MODE` for classes that take part in all modes of the run with the same supports.
    """

    split: str | None
    mode: str
    ways: int
    shots: int
    eligible: int
    classes: int
    left_out: tuple[tuple[str, str], ...]

    @property
    def possible(self) -> bool:
        """Whether there are enough classes for a task."""
        return self.eligible >= self.ways


@dataclass(frozen=True)
class SimilarGroup:
    """Images of different files that show the same picture; `correlation` is 1 where their pixels are `equal`."""

    images: tuple[ConceptContextImage, ...]
    equal: bool
    correlation: float

    @property
    def leaks(self) -> tuple[str, ...]:
        """What is wrong with the group, if anything more than that a task could show one as support and as query."""
        reasons = []
        if len({row.split for row in self.images}) > 1:
            reasons.append("several splits")
        if _has_several_concepts(self.images):
            reasons.append("several concepts")
        return tuple(reasons)


@dataclass(frozen=True)
class DecodedFiles:
    """What decoding found: groups of images that show the same picture, and corrupt images with what is wrong."""

    similar: tuple[SimilarGroup, ...]
    corrupt: tuple[tuple[ConceptContextImage, str], ...]


@dataclass(frozen=True)
class Inspection:
    """All results; `comparison` is None without a comparison with the published counts.

    `decoded` is None where files were not decoded; `dataset` has no corrupt images where they were.
    """

    dataset: ConceptContextDataset
    kinds: TaskKinds
    duplicates: Duplicates
    shared_concepts: dict[str, tuple[str, ...]]
    tasks: tuple[TaskEligibility, ...]
    comparison: PublishedComparison | None
    decoded: DecodedFiles | None = None

    @property
    def parts(self) -> tuple[str | None, ...]:
        """The splits, or None for the whole dataset where there are none."""
        return self.dataset.splits or (None,)


def parse_numbers(text: str, flag: str) -> tuple[int, ...]:
    """Positive whole numbers between commas, each once.

    >>> parse_numbers("5,10", "--ways")
    (5, 10)
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) for word in words):
        raise OptionError(f"{flag} {text}: expected whole numbers from 1", remedy=f"for example {flag} 5,10")
    return tuple(dict.fromkeys(int(word) for word in words))


def decode_dataset(dataset: ConceptContextDataset, progress: StartProgress | None = None) -> DecodedFiles:
    """Decode all images of a dataset; see `DecodedFiles`. `progress` starts a bar over (total, done) images."""
    advance = progress(len(dataset.rows), 0) if progress else None
    decoded = decode_images(
        [row.file or row.path for row in dataset.rows], advance=(lambda count: advance(count, 0)) if advance else None
    )
    groups = [_name_group(dataset, group) for group in group_similar_images(decoded)]
    # One file under two concepts is shown, too; other files with equal bytes are only listed.
    shown = {row.name for group in groups for row in group.images}
    contents: dict[str, list[ConceptContextImage]] = {}
    for row, content in zip(dataset.rows, decoded.contents, strict=True):
        contents.setdefault(content, []).append(row)
    contents.pop("", None)
    groups += [
        SimilarGroup(tuple(group), True, 1.0)
        for group in contents.values()
        if _has_several_concepts(group) and group[0].name not in shown
    ]
    # Groups that are wrong first; the sort is stable.
    ordered = sorted(groups, key=lambda group: -len(group.leaks))
    corrupt = tuple((dataset.rows[place], why) for place, why in decoded.corrupt.items())
    return DecodedFiles(tuple(ordered), corrupt)


def _name_group(dataset: ConceptContextDataset, group: SimilarImages) -> SimilarGroup:
    return SimilarGroup(tuple(dataset.rows[place] for place in group.positions), group.equal, group.correlation)


def inspect_dataset(
    dataset: ConceptContextDataset,
    kinds: TaskKinds,
    *,
    against_published: bool,
    decode: bool = False,
    progress: StartProgress | None = None,
) -> Inspection:
    """Inspect a dataset; file contents are hashed, images are decoded with `decode` only."""
    decoded = decode_dataset(dataset, progress) if decode else None
    if decoded is not None and decoded.corrupt:
        dataset = drop_images(dataset, {row.name for row, _ in decoded.corrupt})
    splits: dict[str, set[str]] = {}
    for row in dataset.rows:
        splits.setdefault(row.concept, set()).update([row.split] if row.split else [])
    parts = dataset.splits or (None,)
    return Inspection(
        dataset,
        kinds,
        dataset.duplicates(),
        dataset.shared_concepts(),
        tuple(finding for part in parts for finding in _check_tasks(dataset, part, kinds)),
        compare_counts(dataset.cells(), splits) if against_published else None,
        decoded,
    )


def _check_tasks(dataset: ConceptContextDataset, split: str | None, kinds: TaskKinds) -> list[TaskEligibility]:
    table = dataset.image_table(split)
    named: dict[str, tuple[str, ...]] = {mode: (mode,) for mode in kinds.modes}
    if len(kinds.modes) > 1:
        named[EVERY_MODE] = kinds.modes
    results = []
    for ways, shots, (name, modes) in product(kinds.ways, kinds.shots, named.items()):
        eligible = find_eligible_classes(table, modes, ways, shots, kinds.queries)
        why: dict[str, str] = {}
        for mode, concept, reason in eligible.left_out:
            text = reason if len(modes) == 1 or mode == "all" else f"{mode}: {reason}"
            why[concept] = f"{why[concept]}; {text}" if concept in why else text
        counts = len(eligible.classes), len(table.concepts)
        results.append(TaskEligibility(split, name, ways, shots, *counts, tuple(sorted(why.items()))))
    return results


def write_inspection(found: Inspection, out: Path) -> dict[str, Any]:
    """Write the page, the JSON file and, where every concept has one split, the splits; return the JSON document."""
    document = build_document(found)
    write_study(
        out,
        "inspection",
        document,
        build_sections(found, document),
        title=f"What is in {found.dataset.source.name}",
        summary="Concepts, contexts and splits, counted from the files, and which few-shot tasks the dataset allows.",
        provenance={name: document[name] for name in ("schema", "hardlook", "data", "split_rule", "asked", "images")},
        pictures=_draw_similar(found),
    )
    if found.dataset.splits and not found.shared_concepts:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("concept", "split"))
        writer.writerows(sorted({(row.concept, str(row.split)) for row in found.dataset.rows}))
        write_atomically(out / "splits.csv", text.getvalue())
    return document


def build_document(found: Inspection) -> dict[str, Any]:
    """All results as JSON values."""
    dataset, comparison = found.dataset, found.comparison
    return {
        "schema": "hardlook.data-inspect/1",
        "hardlook": hardlook.__version__,
        "data": str(dataset.source),
        "split_rule": dataset.rule,
        "asked": asdict(found.kinds),
        "in_words": describe_inspection(found),
        "images": len(dataset.rows),
        "splits": [_count_split(found.dataset, part) for part in found.parts],
        "cells": [
            {"split": part, "concept": concept, "context": context, "images": count}
            for part in found.parts
            for (concept, context), count in dataset.cells(part).items()
        ],
        "similar_names": {kind: list(map(list, groups)) for kind, groups in find_similar_names(dataset.rows).items()},
        "concepts_in_several_splits": {name: list(splits) for name, splits in found.shared_concepts.items()},
        "duplicates_across_splits": [_group_to_json(group) for group in found.duplicates.across],
        "duplicates_within_splits": [_group_to_json(group) for group in found.duplicates.within],
        "tasks": [{**asdict(one), "possible": one.possible, "left_out": dict(one.left_out)} for one in found.tasks],
        "published": {**asdict(comparison), "same": comparison.same} if comparison else None,
        "decoded": _decoded_to_json(found.decoded) if found.decoded else None,
    }


def _decoded_to_json(decoded: DecodedFiles) -> dict[str, Any]:
    return {
        "corrupt": [{**_group_to_json([row])[0], "why": why} for row, why in decoded.corrupt],
        "similar": [
            {
                "pixels_equal": group.equal,
                "correlation": group.correlation,
                "wrong": list(group.leaks),
                "images": _group_to_json(group.images),
            }
            for group in decoded.similar
        ],
    }


def _count_split(dataset: ConceptContextDataset, part: str | None) -> dict[str, Any]:
    rows = dataset.of_split(part)
    images = Counter(row.concept for row in rows)
    contexts = Counter(concept for concept, _ in dataset.cells(part))
    return {
        "split": part,
        "concepts": len(images),
        "contexts": len({row.context for row in rows}),
        "images": len(rows),
        "images_a_concept": [min(images.values()), max(images.values())],
        "contexts_a_concept": [min(contexts.values()), max(contexts.values())],
    }


def _group_to_json(group: Sequence[ConceptContextImage]) -> list[dict[str, str | None]]:
    return [{"image": row.name, "split": row.split, "concept": row.concept, "context": row.context} for row in group]


def describe_inspection(found: Inspection) -> list[str]:
    """The results as text, one or two sentences per subject."""
    dataset = found.dataset
    concepts, contexts = {row.concept for row in dataset.rows}, {row.context for row in dataset.rows}
    pairs, possible = len(dataset.cells()), len(concepts) * len(contexts)
    sentences = [
        f"{format_count(len(dataset.rows), 'image')} of {format_count(len(concepts), 'concept')} in "
        f"{format_count(len(contexts), 'context')}; {format_number(pairs, 0)} of the {format_number(possible, 0)} "
        "pairs hold images.",
        *_describe_similar_names(dataset),
        _describe_splits(found),
        _describe_duplicates(found),
    ]
    if found.decoded is not None:
        sentences.append(_describe_decoded(found.decoded))
    for (part, ways, shots), rows in groupby(found.tasks, key=lambda one: (one.split, one.ways, one.shots)):
        kind = f"{ways}-way {shots}-shot, {format_count(found.kinds.queries, 'query', 'queries')} per class"
        sentences.append(f"{f'{part}: ' if part else ''}{kind}: {_describe_eligible(list(rows), ways)}")
    if found.comparison is not None:
        sentences.append(describe_published(found.comparison))
    return sentences


def _describe_similar_names(dataset: ConceptContextDataset) -> list[str]:
    sentences = []
    for kind, groups in find_similar_names(dataset.rows).items():
        if groups:
            named = "; ".join(" and ".join(map(repr, group)) for group in groups[:3]) + ("; ..." * (len(groups) > 3))
            sentences.append(
                f"Check: {kind} whose names differ in case, `_`, `-` or spaces alone count as different ({named})."
            )
    return sentences


def _describe_splits(found: Inspection) -> str:
    dataset = found.dataset
    if not dataset.splits:
        return "There are no splits: all concepts are in one pool."
    sizes = ", ".join(
        f"{part} {format_count(len({row.concept for row in dataset.of_split(part)}), 'concept')}"
        for part in dataset.splits
    )
    text = f"Splits ({f'by {dataset.rule}' if dataset.rule else 'as the data say'}): {sizes}."
    if not found.shared_concepts:
        return f"{text} No concept is in two splits." if len(dataset.splits) > 1 else text
    named = ", ".join(list(found.shared_concepts)[:5]) + (", ..." if len(found.shared_concepts) > 5 else "")
    count = format_count(len(found.shared_concepts), "concept is", "concepts are")
    return f"{text} Wrong: {count} in more than one split ({named}); a trained model would know what it is tested on."


def _describe_duplicates(found: Inspection) -> str:
    across, within = found.duplicates.across, found.duplicates.within
    if not across and not within:
        return "No two images have the same content."
    parts = []
    if across:
        held = sum(map(len, across))
        parts.append(f"Wrong: {format_count(len(across), 'image')} by content in more than one split ({held} files).")
    elif len(found.dataset.splits) > 1:
        parts.append("No image is in two splits.")
    if within:
        count = format_count(len(within), "image")
        parts.append(f"{count} by content more than once in a split; no task has one both as support and as query.")
    if wrong := sum(_has_several_concepts(group) for group in (*across, *within)):
        parts.append(f"Wrong: {wrong} of them under several concepts.")
    return " ".join(parts)


def _has_several_concepts(group: Sequence[ConceptContextImage]) -> bool:
    return len({row.concept for row in group}) > 1


def _describe_decoded(decoded: DecodedFiles) -> str:
    parts = ["All images can be read." if not decoded.corrupt else ""]
    if decoded.corrupt:
        count = format_count(len(decoded.corrupt), "image")
        parts = [f"Wrong: {count} cannot be read and {'is' if len(decoded.corrupt) == 1 else 'are'} not counted here."]
    if not decoded.similar:
        return f"{parts[0]} No two files show the same picture."
    count, equal = format_count(len(decoded.similar), "picture"), sum(group.equal for group in decoded.similar)
    held = sum(len(group.images) for group in decoded.similar)
    parts.append(f"{count} in several files ({held} files; {equal} with equal pixels, the others near-duplicates).")
    for reason in ("several splits", "several concepts"):
        if number := sum(reason in group.leaks for group in decoded.similar):
            parts.append(f"Wrong: {number} of them in {reason}.")
    return " ".join(parts)


def _describe_eligible(rows: Sequence[TaskEligibility], ways: int) -> str:
    """Of one kind of task: `rows` are the modes, followed by all of them together where there are several."""
    joint = rows[-1]
    modes = "every mode" if len(rows) > 1 else f"mode {joint.mode}"
    few = "" if joint.possible else f" Too few for {ways} ways."
    if joint.eligible == joint.classes:
        return f"all {format_count(joint.classes, 'class', 'classes')} can take part in {modes}.{few}"
    alone = ", ".join(f"{one.mode} {one.eligible}" for one in rows if one.mode != EVERY_MODE)
    each = f" (by itself: {alone})" if len(rows) > 1 else ""
    return f"{joint.eligible} of {format_count(joint.classes, 'class', 'classes')} can take part in {modes}{each}.{few}"


def describe_published(comparison: PublishedComparison) -> str:
    """Where the data differ from the paper's, as one or two sentences."""
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
    differences = "; ".join(format_count(count, one, many) for count, one, many in parts if count)
    return (
        f"Not the published data: {differences}. {format_count(comparison.equal_classes, 'concept')} and "
        f"{format_count(comparison.equal_pairs, 'pair')} agree."
    )


def build_sections(found: Inspection, document: dict[str, Any]) -> list[Section]:
    """The sections of the page; `document` is that of `build_document`."""
    sections = [
        Section("What this means", "\n\n".join(document["in_words"]), (_build_sizes(document["splits"]),)),
        Section(
            "Concepts and contexts",
            "Both are sorted by their images, most first. An empty cell is a pair without images.",
            (*(_build_heat_map(found.dataset, part) for part in found.parts), _build_concepts(found)),
        ),
        _build_duplicates(found),
        *([_build_decoded(found.decoded)] if found.decoded else []),
        _build_tasks(found),
    ]
    if found.comparison is not None:
        sections.append(_build_published(found.comparison))
    return sections


def _build_sizes(splits: Sequence[dict[str, Any]]) -> Table:
    rows = []
    for counts in splits:
        ranges = ["{} to {}".format(*counts[name]) for name in ("images_a_concept", "contexts_a_concept")]
        rows.append((counts["split"] or _WHOLE, counts["concepts"], counts["contexts"], counts["images"], *ranges))
    columns = ("split", "concepts", "contexts", "images", "images a concept", "contexts a concept")
    return Table("Sizes", "Counted from the files.", columns, rows, decimals=0)


def _build_heat_map(dataset: ConceptContextDataset, part: str | None) -> HeatMap:
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


def _build_concepts(found: Inspection) -> Table:
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


def _build_duplicates(found: Inspection) -> Section:
    shared = [(name, ", ".join(splits)) for name, splits in found.shared_concepts.items()]
    groups = [("across splits", group) for group in found.duplicates.across]
    # Those that are wrong first; the sort is stable.
    within = sorted(found.duplicates.within, key=lambda group: not _has_several_concepts(group))
    groups += [("within a split", group) for group in within]
    rows = [
        (
            where,
            len(group),
            ", ".join(sorted({row.split or _WHOLE for row in group})),
            ", ".join(sorted({row.concept for row in group})),
            ", ".join(sorted({row.context for row in group})),
            ", ".join(row.name for row in group[:4]) + (", ..." if len(group) > 4 else ""),
        )
        for where, group in groups[:MAX_GROUPS]
    ]
    tables = []
    if shared:
        caption = "Few-shot tests require concepts that were never trained on."
        tables.append(Table("Concepts in more than one split", caption, ("concept", "splits"), shared))
    if rows:
        columns = ("where", "files", "splits", "concepts", "contexts", "images")
        caption = "Files with the same bytes (SHA-256)."
        if found.decoded is None:
            caption += " Re-encoded or resized copies are found with --decode."
        if len(groups) > MAX_GROUPS:
            caption += f" The first {MAX_GROUPS} of {len(groups)} are shown; the JSON file has all."
        tables.append(Table("Images with equal content", caption, columns, rows, decimals=0))
    text = "" if tables else "No concept is in two splits, and no two files have the same bytes."
    return Section("Splits and duplicates", text, tuple(tables))


def _build_decoded(decoded: DecodedFiles) -> Section:
    blocks: list[Table | Gallery] = []
    if decoded.corrupt:
        rows = [(row.name, row.split or _WHOLE, row.concept, row.context, why) for row, why in decoded.corrupt]
        columns = ("image", "split", "concept", "context", "what is wrong")
        blocks.append(Table("Images that cannot be read", "They are in no other count.", columns, rows[:MAX_GROUPS]))
    if decoded.similar:
        caption = (
            "Equal pixels, or a perceptual hash that is near and thumbnails whose correlation is at least "
            f"{LEAST_CORRELATION}: re-saved, resized, mirrored or slightly cropped copies. Drawings "
            "of the same sign are found, too: look at the pictures."
        )
        if len(decoded.similar) > MAX_PICTURED:
            caption += f" The first {MAX_PICTURED} of {len(decoded.similar)} are shown; the JSON file has all."
        examples = [
            Example(_name_example(number), _describe_group(group))
            for number, group in enumerate(decoded.similar[:MAX_PICTURED], start=1)
        ]
        blocks.append(Gallery("Files that show the same picture", caption, tuple(examples)))
    text = "" if blocks else "All images can be read, and no two files show the same picture."
    return Section("Decoded images", text, tuple(blocks))


def _name_example(number: int) -> str:
    return f"picture {number}"


def _describe_group(group: SimilarGroup) -> str:
    kind = "Equal pixels" if group.equal else f"Near-duplicates, correlation {format_number(group.correlation, 3)}"
    wrong = f"; wrong: in {' and '.join(group.leaks)}" if group.leaks else ""
    names = ", ".join(row.name for row in group.images[:MAX_PICTURES])
    return f"{kind}{wrong}: {names}{', ...' if len(group.images) > MAX_PICTURES else ''}"


def _draw_similar(found: Inspection) -> dict[str, list[Picture]]:
    """The pictures of each example of the gallery, small."""
    groups = found.decoded.similar[:MAX_PICTURED] if found.decoded else ()
    return {
        _name_example(number): [
            Picture(f"{row.split or _WHOLE}: {row.concept}, {row.context}", _shrink(read_image(row.path)))
            for row in group.images[:MAX_PICTURES]
        ]
        for number, group in enumerate(groups, start=1)
    }


def _shrink(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    scale = PICTURE_SIDE / max(image.shape[:2])
    if scale >= 1:
        return image
    size = (max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale)))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _build_tasks(found: Inspection) -> Section:
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
    text = f"A task draws {found.kinds.queries} queries per class. Images are counted by content."
    return Section("What can form tasks", text, tuple(tables))


def _build_published(comparison: PublishedComparison) -> Section:
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
        f"{describe_published(comparison)} Published are the paper's Tables 4 (classes) and 5 (pairs, recovered from "
        "its text; umbrella has no column there). The paper's own totals contradict each other, so only counts of "
        "classes and pairs are compared."
    )
    return Section("Against the published data", text, tuple(tables))
