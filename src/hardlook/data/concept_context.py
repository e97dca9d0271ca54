"""Datasets of concepts in contexts: their images, splits and numbers, whatever the layout.

The layouts are `split/concept/context/image`, `concept/context/image` with a rule that splits the concepts, and a
manifest (CSV or Parquet: path, concept, context, split). docs/concept-context-data.md describes them.

>>> import tempfile
>>> root = Path(tempfile.mkdtemp())
>>> for place in ("cat/snow/a.jpg", "cat/snow/b.jpg", "dog/grass/c.jpg"):
...     (root / place).parent.mkdir(parents=True, exist_ok=True)
...     _ = (root / place).write_text(place)
>>> dataset = open_dataset(root, rule="size")
>>> dataset.splits, [row.name for row in dataset.of_split("train")]
(('train', 'test'), ['cat/snow/a.jpg', 'cat/snow/b.jpg'])
>>> dataset.cells("train")
{('cat', 'snow'): 2}
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.concept_context_rows import MANIFEST, ConceptContextImage, read_rows
from hardlook.data.content_hashes import content_hashes, equal_content
from hardlook.data.context_splits import split_by_file, split_by_seed, split_by_size, split_name, split_order
from hardlook.errors import DataError

__all__ = [
    "MANIFEST",
    "ConceptContextArrays",
    "ConceptContextDataset",
    "ConceptContextImage",
    "Duplicates",
    "open_dataset",
    "read_rows",
]


@dataclass(frozen=True)
class ConceptContextArrays:
    """Images as numbers, row by row; the fields of `tasks.ImageTable`.

    `concepts` and `contexts` are sorted names; `concept` and `context` (n,) int64 number into them; equal numbers in
    `content` (n,) int64 mean equal bytes.
    """

    concepts: tuple[str, ...]
    contexts: tuple[str, ...]
    concept: NDArray[np.int64]
    context: NDArray[np.int64]
    content: NDArray[np.int64]


@dataclass(frozen=True)
class Duplicates:
    """Groups of images with equal bytes, within one split and across splits."""

    within: tuple[tuple[ConceptContextImage, ...], ...]
    across: tuple[tuple[ConceptContextImage, ...], ...]


@dataclass(frozen=True)
class ConceptContextDataset:
    """The images of a dataset, sorted by name; `rule` says who split them: size, seed, a file, or None for the data."""

    source: Path
    rows: tuple[ConceptContextImage, ...]
    rule: str | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """Train, val, test, then others; () where the dataset has no splits."""
        return split_order(row.split for row in self.rows if row.split is not None)

    def of_split(self, split: str | None = None) -> tuple[ConceptContextImage, ...]:
        """The images of a split; all of them for None. A `DataError` where there are none."""
        rows = self.rows if split is None else tuple(row for row in self.rows if row.split == split)
        if not rows:
            remedy = f"its splits are {', '.join(self.splits)}" if self.splits else "it has no splits: choose a rule"
            raise DataError(f"no image of split {split!r}", file=self.source, remedy=remedy)
        return rows

    def cells(self, split: str | None = None) -> dict[tuple[str, str], int]:
        """Images by (concept, context), in the order of names."""
        return dict(sorted(Counter((row.concept, row.context) for row in self.of_split(split)).items()))

    def hashes(self, split: str | None = None) -> tuple[str, ...]:
        """The content hash of every image of a split, in the order of `of_split`; kept on disk."""
        return content_hashes([row.path for row in self.of_split(split)])

    def image_table(self, split: str | None = None) -> ConceptContextArrays:
        """A split as arrays, row by row as `of_split`; its concepts and contexts are those of the split."""
        rows = self.of_split(split)
        concepts, concept = np.unique([row.concept for row in rows], return_inverse=True)
        contexts, context = np.unique([row.context for row in rows], return_inverse=True)
        # Numbered as they first appear, so that the hash in use leaves no trace in what is drawn.
        first: dict[str, int] = {}
        content = [first.setdefault(value, len(first)) for value in self.hashes(split)]
        return ConceptContextArrays(
            tuple(map(str, concepts)),
            tuple(map(str, contexts)),
            concept.astype(np.int64),
            context.astype(np.int64),
            np.array(content, dtype=np.int64),
        )

    def shared_concepts(self) -> dict[str, tuple[str, ...]]:
        """Concepts that are in more than one split, with those splits: few-shot evaluation allows none."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            if row.split is not None:
                found.setdefault(row.concept, set()).add(row.split)
        return {concept: split_order(splits) for concept, splits in sorted(found.items()) if len(splits) > 1}

    def duplicates(self) -> Duplicates:
        """Images with equal bytes; a run must not train on what it is asked about."""
        groups = [tuple(self.rows[place] for place in group) for group in equal_content(self.hashes())]
        across = [len({row.split for row in group}) > 1 for group in groups]
        return Duplicates(
            tuple(group for group, split in zip(groups, across, strict=True) if not split),
            tuple(group for group, split in zip(groups, across, strict=True) if split),
        )


def open_dataset(source: Path | str, *, rule: str | Path | None = None, seed: int = 0) -> ConceptContextDataset:
    """A dataset of any layout, its concepts split by `rule`.

    `rule` is "size" (64 largest concepts of 100 train, the next 20 test, the last 16 validate), "seed" (the same shares
    at random, by `seed`) or a CSV file concept,split; it replaces the splits of the data. None keeps those; training,
    validation and testing become train, val and test.
    """
    source = Path(source).expanduser()
    rows = read_rows(source)
    if rule is None:
        without = [row for row in rows if row.split is None]
        if without and len(without) < len(rows):
            what = f"{len(without)} of {len(rows)} images have no split, the others have"
            raise DataError(what, file=source, unit=without[0].name, remedy="fill the column split, or choose a rule")
        return ConceptContextDataset(source, tuple(replace(row, split=_named(row.split)) for row in rows))
    images = Counter(row.concept for row in rows)
    if rule == "size":
        splits = split_by_size(images)
    elif rule == "seed":
        splits = split_by_seed(images, seed)
    else:
        splits = split_by_file(Path(rule).expanduser(), images)
    name = f"seed {seed}" if rule == "seed" else str(rule)
    return ConceptContextDataset(source, tuple(replace(row, split=splits[row.concept]) for row in rows), name)


def _named(split: str | None) -> str | None:
    return None if split is None else split_name(split)
