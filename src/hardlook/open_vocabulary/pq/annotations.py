"""The fields of COCO's panoptic JSON that an evaluation needs, and its vocabulary of things and stuff.

`hardlook.data.coco_panoptic` reads whole datasets and needs all of their fields and files; results written by models
have neither images nor boxes, and with a missing PNG only its unit fails.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "results.json"
>>> _ = path.write_text('{"annotations": [{"image_id": 9, "segments_info": [{"id": 5, "category_id": 1}]}]}')
>>> found = read_annotations(path).tables[0]
>>> found.image_id, found.png_file, found.size, found.segment_ids, found.category_ids, found.is_crowd
('9', '', None, (5,), (1,), (False,))
>>> truth = PanopticVocabulary(("cat", "sky"), (True, False))
>>> joint, table = join_vocabularies(truth, PanopticVocabulary(("Sky", "kitten"), (False, True)))
>>> joint.names, joint.things, table.tolist()
(('cat', 'sky', 'kitten'), (True, False, True), [1, 2])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data.coco_panoptic import Category, read_flag
from hardlook.data.problems import ProblemList
from hardlook.open_vocabulary.label_similarity import find_label
from hardlook.open_vocabulary.vocabulary import join_labels
from hardlook.reading import is_flag, read_id, read_json, read_name, reading
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import normalise_name
from hardlook.world.vocabulary import LABELS


@dataclass(frozen=True)
class PanopticVocabulary:
    """Label names and for each whether it is a thing; segments hold indices into them."""

    names: tuple[str, ...]
    things: tuple[bool, ...]


WORLD_VOCABULARY = PanopticVocabulary(tuple(label.name for label in LABELS), tuple(label.thing for label in LABELS))


def join_vocabularies(
    truth: PanopticVocabulary, predicted: PanopticVocabulary
) -> tuple[PanopticVocabulary, NDArray[np.int32]]:
    """The union, the truth's labels first and with its kinds (thing, stuff), and the index of each predicted label."""
    names, table = join_labels(truth.names, predicted.names)
    kinds = dict(zip(table.tolist(), predicted.things, strict=True))
    added = tuple(kinds[place] for place in range(len(truth.names), len(names)))
    return PanopticVocabulary(names, (*truth.things, *added)), table


def check_kinds(vocabulary: PanopticVocabulary, labels: str, file: Path) -> None:
    """Raise an error that lists the labels that the label set lacks, or has as the other kind (thing or stuff)."""
    known = load_label_set(labels)
    problems = ProblemList()
    for name, thing in zip(vocabulary.names, vocabulary.things, strict=True):
        label = find_label(known, name)
        if label is None:
            problems.add(f"categories that {labels} does not have", name)
        elif label.isthing is not None and label.isthing != thing:
            problems.add(f"things here and stuff in {labels}, or the other way", name)
    remedy = "choose other --labels, or leave the option out"
    problems.raise_if_any("data and labels do not fit", file=file, remedy=remedy)


_MAX_ID = 10**18
_NEEDS_PHRASES = "it needs annotations with image_id and segments_info of id, phrase (a text) and isthing (1 or 0)"
_NEEDS = "it needs annotations with image_id and segments_info of id and category_id; truth also categories"


@dataclass(frozen=True)
class SegmentTable:
    """One image: its file names ("" if unknown), (width, height), and each segment's id, category and crowd flag."""

    image_id: str
    png_file: str
    image_file: str
    size: tuple[int, int] | None
    segment_ids: tuple[int, ...]
    category_ids: tuple[int, ...]
    is_crowd: tuple[bool, ...]


@dataclass(frozen=True)
class PanopticAnnotations:
    """Categories by id, in the file's order (none where the file has none), and one table per image."""

    categories: Mapping[int, Category]
    tables: tuple[SegmentTable, ...]

    def check_categories(self, known: Mapping[int, int], path: Path, remedy: str) -> None:
        """Raise an error where segments have categories that are not in `known`; it names their images."""
        problems = ProblemList()
        for table in self.tables:
            for category in table.category_ids:
                if category not in known:
                    problems.add(f"category {category}, which is not described, in images", table.image_id)
        problems.raise_if_any("segments of unknown categories", file=path, remedy=remedy)

    def build_vocabulary(self, path: Path, spellings: Mapping[str, str] = MappingProxyType({})) -> PanopticVocabulary:
        """The vocabulary of the categories, in the file's order; names equal after normalisation are an error.

        `spellings` are names of the file with other ones in their place.
        """
        seen: dict[str, str] = {}
        problems = ProblemList()
        for category in self.categories.values():
            name = normalise_name(category.name)
            if name in seen:
                problems.add(f"taken for {seen[name]!r}", f"{category.name!r} (category {category.id})")
            seen.setdefault(name, category.name)
        remedy = "labels pair by name: give each its own"
        problems.raise_if_any("two categories have one name", file=path, remedy=remedy)
        every = self.categories.values()
        names, things = zip(*((spellings.get(one.name, one.name), one.thing) for one in every), strict=True)
        return PanopticVocabulary(names, things)


def read_annotations(path: Path | str) -> PanopticAnnotations:
    """The content of a JSON file; contradictions in it are an error that lists them."""
    path = Path(path)
    content = read_json(path, remedy="write or download it again")
    with reading(path, "not COCO's panoptic format", remedy=_NEEDS):
        content = {"annotations": content} if isinstance(content, list) else content
        images = {str(row["id"]): row for row in content.get("images", ())}
        tables = tuple(_read_table(row, images) for row in content["annotations"])
        categories = [
            Category(read_id(c["id"]), read_name(c["name"]), read_flag(c, "isthing"))
            for c in content.get("categories", ())
        ]
    _check_contradictions(tables, [category.id for category in categories], path)
    return PanopticAnnotations({category.id: category for category in categories}, tables)


def read_phrased_annotations(path: Path | str) -> tuple[PanopticAnnotations, PanopticVocabulary]:
    """The content of a JSON file whose segments have a `phrase` and `isthing` each, and the phrases as a vocabulary.

    Category ids are the places of (phrase, isthing) in alphabetical order; those of the file are not read.
    """
    path = Path(path)
    content = read_json(path, remedy="write or download it again")
    with reading(path, "not COCO's panoptic format with free words", remedy=_NEEDS_PHRASES):
        content = {"annotations": content} if isinstance(content, list) else content
        problems, said = ProblemList(), set()
        for row in content["annotations"]:
            for segment in row["segments_info"]:
                if isinstance(segment.get("phrase"), str) and is_flag(segment.get("isthing")):
                    said.add((segment["phrase"], bool(segment["isthing"])))
                else:
                    problems.add("segments without phrase or isthing, in images", str(row["image_id"]))
        problems.raise_if_any("segments without words", file=path, remedy=_NEEDS_PHRASES)
        words = sorted(said)
        numbers = {word: number for number, word in enumerate(words)}
        for row in content["annotations"]:
            for segment in row["segments_info"]:
                segment["category_id"] = numbers[segment["phrase"], bool(segment["isthing"])]
        images = {str(row["id"]): row for row in content.get("images", ())}
        tables = tuple(_read_table(row, images) for row in content["annotations"])
    _check_contradictions(tables, [], path)
    names, things = tuple(phrase for phrase, _ in words), tuple(thing for _, thing in words)
    return PanopticAnnotations({}, tables), PanopticVocabulary(names, things)


def _read_table(row: Any, images: Mapping[str, Any]) -> SegmentTable:
    image = images.get(str(row["image_id"]), {})
    segments = row["segments_info"]
    size = (int(image["width"]), int(image["height"])) if {"width", "height"} <= image.keys() else None
    return SegmentTable(
        str(row["image_id"]),
        str(row.get("file_name", "")),
        str(image.get("file_name", "")),
        size,
        tuple(read_id(segment["id"]) for segment in segments),
        tuple(read_id(segment["category_id"]) for segment in segments),
        tuple(segment.get("iscrowd") is not None and read_flag(segment, "iscrowd") for segment in segments),
    )


def _check_contradictions(tables: Sequence[SegmentTable], categories: list[int], path: Path) -> None:
    problems = ProblemList()
    images, files = set(), set()
    for table in tables:
        if table.image_id in images:
            problems.add("image ids that come twice", table.image_id)
        if table.png_file and table.png_file in files:
            problems.add("PNG files that come twice", table.png_file)
        images.add(table.image_id)
        files.add(table.png_file)
        if len(set(table.segment_ids)) < len(table.segment_ids):
            problems.add("images with two segments of one id", table.image_id)
        if any(abs(one) >= _MAX_ID for one in table.segment_ids + table.category_ids):
            problems.add("images with a segment whose id or category has more than 18 digits", table.image_id)
        if any(one <= 0 for one in table.segment_ids):
            problems.add("images with a segment whose id is not above 0 (0 is void)", table.image_id)
    for category in {one for one in categories if categories.count(one) > 1}:
        problems.add("category ids that come twice", category)
    remedy = "one row per image, one id per segment and category"
    problems.raise_if_any("the file contradicts itself", file=path, remedy=remedy)
