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

Which concepts train, test and validate: by size as MetaCoCo's authors did, by a seed, or by a file.

Splits share no concept. Of 100 concepts 64 train, 20 test and 16 validate; of any other number the shares are the same,
by largest remainders.

>>> split_concepts_by_size({"cat": 30, "dog": 50, "owl": 20, "fox": 10})
{'dog': 'train', 'cat': 'train', 'owl': 'test', 'fox': 'val'}
>>> count_concepts_per_split(7)
{'train': 5, 'test': 1, 'val': 1}

The images of a concept x context dataset: from folders `[split/]concept/context/image` or from a manifest.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp()) / "cat" / "snow"
>>> folder.mkdir(parents=True)
>>> _ = (folder / "a.jpg").write_bytes(b"")
>>> row = list_images(folder.parent.parent)[0]
>>> row.concept, row.context, row.split
('cat', 'snow', None)
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.content_hashes import group_equal_hashes, hash_files
from hardlook.data.images import is_image_name, read_image
from hardlook.errors import DataError
from hardlook.randomness import generator

# In the order in which concepts are dealt out, in hundredths.
SHARES = {"train": 64, "test": 20, "val": 16}

SPLITS = ("train", "val", "test")

_SAME = {"training": "train", "validation": "val", "valid": "val", "testing": "test"}


def normalize_split_name(name: str) -> str:
    """The split by the name that hardlook uses: training is train, validation and valid are val, testing is test.

    >>> normalize_split_name("Validation"), normalize_split_name("held out")
    ('val', 'held out')
    """
    return _SAME.get(name.lower(), name.lower() if name.lower() in SPLITS else name)


def sort_split_names(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct names of splits: train, val, test, then others by name.

    >>> sort_split_names(["test", "dev", "train", "test"])
    ('train', 'test', 'dev')
    """
    found = set(names)
    return (*(name for name in SPLITS if name in found), *sorted(found - set(SPLITS)))


def count_concepts_per_split(concepts: int) -> dict[str, int]:
    """How many of so many concepts go into each split."""
    sizes = {name: concepts * share // 100 for name, share in SHARES.items()}
    rest = {name: concepts * share % 100 for name, share in SHARES.items()}
    left = concepts - sum(sizes.values())
    for name in sorted(SHARES, key=lambda name: -rest[name])[:left]:
        sizes[name] += 1
    return sizes


def split_concepts_by_size(images: Mapping[str, int]) -> dict[str, str]:
    """Concept to split: the largest concepts train, the next test, the last validate; ties go by name."""
    return _deal(sorted(images, key=lambda concept: (-images[concept], concept)))


def split_concepts_by_seed(concepts: Iterable[str], seed: int) -> dict[str, str]:
    """Concept to split, in a random order that depends on the seed and the names alone.

    >>> split_concepts_by_seed(["cat", "dog"], 1) == split_concepts_by_seed(["dog", "cat"], 1)
    True
    """
    drawn = {concept: float(generator(seed, "concept split", concept).random()) for concept in concepts}
    return _deal(sorted(drawn, key=lambda concept: (drawn[concept], concept)))


def read_concept_splits(path: Path, concepts: Iterable[str]) -> dict[str, str]:
    r"""Concept to split by a CSV file with the columns concept and split; it may name more concepts than there are.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "splits.csv"
    >>> _ = path.write_text("concept,split\ncat,training\ndog,test\n")
    >>> read_concept_splits(path, ["cat"])
    {'cat': 'train'}
    """
    named: dict[str, str] = {}
    for number, row in _lines(path):
        concept, split = row["concept"], normalize_split_name(row["split"])
        if named.setdefault(concept, split) != split:
            what = f"the concept {concept!r} is in the splits {named[concept]} and {split}"
            raise DataError(what, file=path, unit=f"line {number}", remedy="keep one line a concept")
    wanted = sorted(set(concepts))
    missing = [concept for concept in wanted if concept not in named]
    if missing:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        what = f"{len(missing)} of {len(wanted)} concepts have no split here: {shown}"
        raise DataError(what, file=path, remedy="add a line concept,split for each")
    return {concept: named[concept] for concept in wanted}


def _deal(ordered: Sequence[str]) -> dict[str, str]:
    sizes = count_concepts_per_split(len(ordered))
    names = [name for name in SHARES for _ in range(sizes[name])]
    return dict(zip(ordered, names, strict=True))


def _lines(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = {"concept", "split"} - set(reader.fieldnames or ())
            rows = [] if missing else [(reader.line_num, row) for row in reader]
    except FileNotFoundError:
        remedy = "give size, seed, or a CSV file with the columns concept and split"
        raise DataError("there is no such split rule or file", file=path, remedy=remedy) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"the splits cannot be read: {error}", file=path, remedy="check the file") from error
    if missing:
        what = f"the file has no column {', '.join(sorted(missing))}"
        raise DataError(what, file=path, remedy="its first line must be: concept,split")
    for number, row in rows:
        if not (row["concept"] and row["split"]):
            raise DataError("no concept or no split given", file=path, unit=f"line {number}", remedy="fill every line")
    return rows


MANIFEST = "manifest.csv"

_DEEPEST = 4  # folders below the root; images lie two or three deep, and one more shows that they do not


@dataclass(frozen=True)
class ConceptContextImage:
    """One image: its file, its name within the dataset (posix), what it shows and where."""

    path: Path
    name: str
    concept: str
    context: str
    split: str | None = None

    def read(self) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self.path)


def list_images(source: Path | str, *, split: str | None = None) -> tuple[ConceptContextImage, ...]:
    """All images of a folder or manifest (.csv, .parquet), sorted by name; `split` keeps one split's.

    A folder with a `manifest.csv` is read through it. A manifest has the columns path, concept and context, and
    split where there are splits; its paths are relative to its folder.
    """
    source = Path(source)
    if source.is_file():
        rows = _from_manifest(source)
    elif (source / MANIFEST).is_file():
        rows = _from_manifest(source / MANIFEST)
    elif source.is_dir():
        rows = _from_folders(source)
    else:
        raise DataError("no such folder or manifest", file=source, remedy="check the dataset's path")
    if not rows:
        raise DataError(
            "no image here", file=source, remedy="lay images out as [split/]concept/context/image or write a manifest"
        )
    if split is None:
        return rows
    kept = tuple(row for row in rows if row.split == split)
    if not kept:
        known = ", ".join(sorted({row.split or "(none)" for row in rows}))
        raise DataError(f"no image of split {split!r}", file=source, remedy=f"its splits are {known}")
    return kept


def _sorted(rows: Iterable[ConceptContextImage]) -> tuple[ConceptContextImage, ...]:
    # A manifest may list one image under several contexts, so the name alone gives no fixed order.
    return tuple(sorted(rows, key=lambda row: (row.name, row.concept, row.context)))


def _images(root: Path) -> Iterator[tuple[str, ...]]:
    """The parts of every image's path below `root`; links are followed, hidden files and folders are not seen."""
    for folder, inner, names in os.walk(root, followlinks=True):
        below = Path(folder).relative_to(root).parts
        # The bound on depth also ends a link that leads back up.
        inner[:] = sorted(name for name in inner if not name.startswith(".")) if len(below) < _DEEPEST else []
        yield from ((*below, name) for name in names if not name.startswith(".") and is_image_name(Path(name)))


def _from_folders(root: Path) -> tuple[ConceptContextImage, ...]:
    found = list(_images(root))
    depths = {len(parts) - 1 for parts in found}
    if depths - {2, 3} or len(depths) > 1:
        examples = {len(parts): "/".join(parts) for parts in sorted(found, reverse=True)}
        raise DataError(
            "images lie at different or unexpected depths: " + ", ".join(examples[key] for key in sorted(examples)),
            file=root,
            remedy="lay all of them out as concept/context/image or all as split/concept/context/image",
        )
    tops = {parts[0] for parts in found}
    if depths == {2} and len(tops) > 1 and all(normalize_split_name(name) in SPLITS for name in tops):
        raise DataError(
            f"the folders {', '.join(sorted(tops))} look like splits, and then no context is left below them",
            file=root,
            remedy="lay images out as split/concept/context/image, or write a manifest that names the contexts",
        )
    return _sorted(
        ConceptContextImage(
            root.joinpath(*parts), "/".join(parts), parts[-3], parts[-2], parts[0] if len(parts) == 4 else None
        )
        for parts in found
    )


def _from_manifest(path: Path) -> tuple[ConceptContextImage, ...]:
    import polars as pl

    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DataError(f"a manifest of type {path.suffix!r}", file=path, remedy="write it as .csv or .parquet")
    try:
        # Everything as text: a context named 2024 or NA must not turn into a number or a gap.
        table = pl.read_parquet(path) if path.suffix.lower() == ".parquet" else pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"the manifest cannot be read: {error}", file=path, remedy="check the file") from error
    missing = {"path", "concept", "context"} - set(table.columns)
    if missing:
        remedy = f"its columns are {', '.join(table.columns)}"
        raise DataError(f"the manifest has no column {', '.join(sorted(missing))}", file=path, remedy=remedy)
    rows = []
    for number, record in enumerate(table.iter_rows(named=True), start=1):
        blank = [name for name in ("path", "concept", "context") if record[name] in (None, "")]
        if blank:
            raise DataError(f"no {blank[0]} given", file=path, unit=f"row {number}", remedy="fill every row")
        split = record.get("split")
        name = str(record["path"])
        rows.append(
            ConceptContextImage(
                path.parent / name, name, str(record["concept"]), str(record["context"]), str(split) if split else None
            )
        )
    return _sorted(rows)


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
        return sort_split_names(row.split for row in self.rows if row.split is not None)

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
        return hash_files([row.path for row in self.of_split(split)])

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
        return {concept: sort_split_names(splits) for concept, splits in sorted(found.items()) if len(splits) > 1}

    def duplicates(self) -> Duplicates:
        """Images with equal bytes; a run must not train on what it is asked about."""
        groups = [tuple(self.rows[place] for place in group) for group in group_equal_hashes(self.hashes())]
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
    rows = list_images(source)
    if rule is None:
        without = [row for row in rows if row.split is None]
        if without and len(without) < len(rows):
            what = f"{len(without)} of {len(rows)} images have no split, the others have"
            raise DataError(what, file=source, unit=without[0].name, remedy="fill the column split, or choose a rule")
        return ConceptContextDataset(source, tuple(replace(row, split=_named(row.split)) for row in rows))
    images = Counter(row.concept for row in rows)
    if rule == "size":
        splits = split_concepts_by_size(images)
    elif rule == "seed":
        splits = split_concepts_by_seed(images, seed)
    else:
        splits = read_concept_splits(Path(rule).expanduser(), images)
    name = f"seed {seed}" if rule == "seed" else str(rule)
    return ConceptContextDataset(source, tuple(replace(row, split=splits[row.concept]) for row in rows), name)


def _named(split: str | None) -> str | None:
    return None if split is None else normalize_split_name(split)
