"""Datasets of concepts in contexts: their images, the splits of their concepts, and their content as arrays.

Images are in folders `split/concept/context/image` or `concept/context/image`, or listed in a manifest (CSV or Parquet:
path, concept, context, split); docs/concept-context-data.md describes the layouts. Splits share no concept. A rule can
assign them: by size as MetaCoCo's authors did, by a seed, or by a file. Of 100 concepts 64 train, 20 test and 16
validate; other numbers have the same shares, by largest remainders.

>>> import tempfile
>>> root = Path(tempfile.mkdtemp())
>>> for name in ("cat/snow/a.jpg", "cat/snow/b.jpg", "dog/grass/c.jpg"):
...     (root / name).parent.mkdir(parents=True, exist_ok=True)
...     _ = (root / name).write_text(name)
>>> dataset = open_dataset(root, rule="size")
>>> dataset.splits, [row.name for row in dataset.of_split("train")]
(('train', 'test'), ['cat/snow/a.jpg', 'cat/snow/b.jpg'])
>>> dataset.cells("train")
{('cat', 'snow'): 2}
"""

from __future__ import annotations

import csv
import os
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import is_image_name, read_image
from hardlook.data.stored_files import Stored, hash_stored, read_stored_image
from hardlook.data.stored_files.samples import LabelledSample
from hardlook.errors import DataError, shorten
from hardlook.file_hashes import group_equal_hashes, hash_file, hash_files
from hardlook.randomness import generator
from hardlook.reading import reading

# Percentages, in the order in which concepts are assigned.
SHARES = {"train": 64, "test": 20, "val": 16}
SPLITS = ("train", "val", "test")
MANIFEST = "manifest.csv"
_SPLIT_ALIASES = {"training": "train", "validation": "val", "valid": "val", "testing": "test"}
_MAX_DEPTH = 4  # folders below the root: images are two or three deep, one more detects other layouts


@dataclass(frozen=True)
class ConceptContextImage:
    """One image: its file, its name within the dataset (posix), its concept, context and split.

    `file` is the image where it is not a file of its own (`hardlook.data.stored_files`).
    """

    path: Path
    name: str
    concept: str
    context: str
    split: str | None = None
    file: Stored | None = None

    def read(self) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self.path) if self.file is None else read_stored_image(self.file)


@dataclass(frozen=True, eq=False)
class ImageTable:
    """Labels (n,) int64 of n images: `concept`, `context` index the sorted names; equal `content` means equal files."""

    concepts: tuple[str, ...]
    contexts: tuple[str, ...]
    concept: NDArray[np.int64]
    context: NDArray[np.int64]
    content: NDArray[np.int64]

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in ("concept", "context", "content")}
        if len(set(lengths.values())) > 1:
            counted = ", ".join(f"{count} of {name}" for name, count in lengths.items())
            raise DataError(f"an image table needs one number per image in every column, it has {counted}")
        for column, names in (("concept", self.concepts), ("context", self.contexts)):
            numbers = getattr(self, column)
            if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(names):
                raise DataError(
                    f"the column {column!r} of an image table must lie in 0..{len(names) - 1}, "
                    f"it reaches from {numbers.min()} to {numbers.max()}"
                )

    def __len__(self) -> int:
        """How many images there are."""
        return len(self.concept)


@dataclass(frozen=True)
class Duplicates:
    """Groups of images with equal bytes, within one split and across splits."""

    within: tuple[tuple[ConceptContextImage, ...], ...]
    across: tuple[tuple[ConceptContextImage, ...], ...]


@dataclass(frozen=True)
class ConceptContextDataset:
    """The images of a dataset, sorted by name; `rule` is the split rule: size, seed, a file, or None."""

    source: Path
    rows: tuple[ConceptContextImage, ...]
    rule: str | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """Train, val, test, then others; () if the dataset has no splits."""
        return sort_split_names(row.split for row in self.rows if row.split is not None)

    def of_split(self, split: str | None = None) -> tuple[ConceptContextImage, ...]:
        """The images of a split, all images for None; a `DataError` if there are none."""
        rows = self.rows if split is None else tuple(row for row in self.rows if row.split == split)
        if not rows:
            remedy = "it has no splits: choose a split rule, or all images"
            if self.splits:
                remedy = f"its splits are {', '.join(self.splits)}"
            raise DataError(f"no image of split {split!r}", file=self.source, remedy=remedy)
        return rows

    def cells(self, split: str | None = None) -> dict[tuple[str, str], int]:
        """The number of images in each cell, by (concept, context), sorted by name."""
        return dict(sorted(Counter((row.concept, row.context) for row in self.of_split(split)).items()))

    def hashes(self, split: str | None = None) -> tuple[str, ...]:
        """The content hash of every image of a split, in the order of `of_split`; cached on disk."""
        return hash_images(self.of_split(split))

    def image_table(self, split: str | None = None) -> ImageTable:
        """A split as arrays in the order of `of_split`; concepts and contexts are those of the split."""
        rows = self.of_split(split)
        return build_image_table([row.concept for row in rows], [row.context for row in rows], self.hashes(split))

    def shared_concepts(self) -> dict[str, tuple[str, ...]]:
        """Concepts in more than one split, with those splits; few-shot evaluation allows none."""
        splits_of: dict[str, set[str]] = {}
        for row in self.rows:
            if row.split is not None:
                splits_of.setdefault(row.concept, set()).add(row.split)
        return {concept: sort_split_names(splits) for concept, splits in sorted(splits_of.items()) if len(splits) > 1}

    def duplicates(self) -> Duplicates:
        """Images with equal bytes; a model must not be trained on test images."""
        groups = [tuple(self.rows[i] for i in indices) for indices in group_equal_hashes(self.hashes())]
        return Duplicates(
            tuple(group for group in groups if len({row.split for row in group}) == 1),
            tuple(group for group in groups if len({row.split for row in group}) > 1),
        )


def drop_images(dataset: ConceptContextDataset, names: Collection[str]) -> ConceptContextDataset:
    """The dataset without the images of these names."""
    return replace(dataset, rows=tuple(row for row in dataset.rows if row.name not in names)) if names else dataset


def hash_images(rows: Sequence[ConceptContextImage]) -> tuple[str, ...]:
    """The content hash of every image; cached on disk for files."""
    if any(row.file is not None for row in rows):
        return tuple(hash_file(row.path) if row.file is None else hash_stored(row.file) for row in rows)
    return hash_files([row.path for row in rows])


def build_image_table(concepts: Sequence[str], contexts: Sequence[str], contents: Sequence[str]) -> ImageTable:
    """The table of images with these concepts, contexts and contents (such as hashes), in their order.

    Contents are numbered in order of first appearance, so that random draws do not depend on the hash function.
    """
    concept_names, concept = _number_names(concepts)
    context_names, context = _number_names(contexts)
    first: dict[str, int] = {}
    content = np.array([first.setdefault(name, len(first)) for name in contents], dtype=np.int64)
    return ImageTable(concept_names, context_names, concept, context, content)


def _number_names(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct names, sorted, and the position of each given name among them."""
    number = {name: position for position, name in enumerate(sorted(set(names)))}
    return tuple(number), np.array([number[name] for name in names], dtype=np.int64)


def open_dataset(source: Path | str, *, rule: str | Path | None = None, seed: int = 0) -> ConceptContextDataset:
    """A dataset of any layout, its concepts split by `rule`.

    `rule` is "size" (of 100 concepts the 64 largest train, the next 20 test, the last 16 validate), "seed" (the same
    shares at random, by `seed`) or a CSV file concept,split; it replaces the splits of the data. None keeps those;
    training, validation and testing become train, val and test.
    """
    source = Path(source).expanduser()
    return split_dataset(source, list_images(source), rule=rule, seed=seed)


def open_samples(
    source: Path, samples: Iterable[LabelledSample], *, rule: str | Path | None = None, seed: int = 0
) -> ConceptContextDataset:
    """A dataset of images that lie inside files or objects: labels are concepts; split as by `open_dataset`."""
    rows = [
        ConceptContextImage(one.image.path, one.id, one.label, one.context, one.split, one.image) for one in samples
    ]
    return split_dataset(source, _check_names(source, _sort_images(rows)), rule=rule, seed=seed)


def split_dataset(
    source: Path, rows: Sequence[ConceptContextImage], *, rule: str | Path | None = None, seed: int = 0
) -> ConceptContextDataset:
    """The dataset of these images, its concepts split by `rule` (`open_dataset`)."""
    if rule is None:
        without = [row for row in rows if row.split is None]
        if without and len(without) < len(rows):
            what = f"{len(without)} of {len(rows)} images have no split, the others do"
            raise DataError(what, file=source, unit=without[0].name, remedy="fill the column split, or choose a rule")
        named = (replace(row, split=row.split and normalize_split_name(row.split)) for row in rows)
        return ConceptContextDataset(source, tuple(named))
    images = Counter(row.concept for row in rows)
    if rule == "size":
        splits = split_concepts_by_size(images)
    elif rule == "seed":
        splits = split_concepts_by_seed(images, seed)
    else:
        splits = read_concept_splits(Path(rule).expanduser(), images)
    name = f"seed {seed}" if rule == "seed" else str(rule)
    return ConceptContextDataset(source, tuple(replace(row, split=splits[row.concept]) for row in rows), name)


def list_images(source: Path | str, *, split: str | None = None) -> tuple[ConceptContextImage, ...]:
    """All images of a folder or manifest (.csv, .parquet), sorted by name; `split` selects one split.

    A folder with a `manifest.csv` is read through it. A manifest has the columns path, concept and context, and
    split if there are splits; its paths are relative to its folder.
    """
    source = Path(source)
    if source.is_file():
        rows = _list_from_manifest(source)
    elif (source / MANIFEST).is_file():
        rows = _list_from_manifest(source / MANIFEST)
    elif source.is_dir():
        rows = _list_from_folders(source)
    else:
        raise DataError("no such folder or manifest", file=source, remedy="check the dataset's path")
    if not rows:
        remedy = "arrange images as [split/]concept/context/image or write a manifest"
        raise DataError("no image here", file=source, remedy=remedy)
    return ConceptContextDataset(source, _check_names(source, rows)).of_split(split)


def _check_names(source: Path, rows: tuple[ConceptContextImage, ...]) -> tuple[ConceptContextImage, ...]:
    def refuse(what: str, row: ConceptContextImage, remedy: str) -> NoReturn:
        unit = row.name if _is_unicode(row.name) else ascii(row.name)
        raise DataError(what, file=source, unit=unit, remedy=remedy)

    known: dict[tuple[str, str], str] = {}
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if not _is_unicode(row.name):
            refuse("a name is not UTF-8, so that no table can list it", row, "rename the file or folder in UTF-8")
        for kind, name in (("concept", row.concept), ("context", row.context)):
            if (kind, name) in seen:
                continue
            seen.add((kind, name))
            # Records and tables list names line by line.
            if len(name.splitlines()) > 1:
                refuse(f"a line break in the name {name!r}", row, "rename the folder, or correct the manifest")
            if (other := known.setdefault((kind, _print_name(name)), name)) != name:
                what = f"two {kind}s look the same: {other!a} and {name!a}"
                refuse(what, row, "give both one name: rename the folder, or correct the manifest")
    return rows


def _is_unicode(name: str) -> bool:
    """Whether a text can be written in UTF-8: names of files may be any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _print_name(name: str) -> str:
    """The name as it looks: accents composed, and no spaces that cannot be seen."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def plain_name(name: str) -> str:
    """A name as it is compared: case, `_`, `-` and spaces do not count.

    >>> plain_name("Hot_air-balloon")
    'hot air balloon'
    """
    return " ".join(name.lower().replace("_", " ").replace("-", " ").split())


def find_similar_names(rows: Iterable[ConceptContextImage]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Of `concepts` and `contexts` the groups of names that differ in case, `_`, `-` and spaces alone.

    >>> rows = [ConceptContextImage(Path(), "", "cat", context) for context in ("Snow", "snow", "sand")]
    >>> find_similar_names(rows)
    {'concepts': (), 'contexts': (('Snow', 'snow'),)}
    """
    named = list(rows)
    found = {}
    for kind, names in (("concepts", {row.concept for row in named}), ("contexts", {row.context for row in named})):
        groups: dict[str, list[str]] = {}
        for name in sorted(names):
            groups.setdefault(plain_name(name), []).append(name)
        found[kind] = tuple(tuple(group) for group in groups.values() if len(group) > 1)
    return found


def _list_from_folders(root: Path) -> tuple[ConceptContextImage, ...]:
    paths = list(_walk_images(root))
    depths = {len(parts) - 1 for parts in paths}
    if depths - {2, 3} or len(depths) > 1:
        counts = Counter(len(parts) - 1 for parts in paths)
        examples = {len(parts) - 1: "/".join(parts) for parts in sorted(paths, reverse=True)}
        where = {0: "directly here", 1: "below 1 folder"}
        places = (
            f"{counts[depth]} {where.get(depth, f'below {depth} folders')}, such as {examples[depth]}"
            for depth in sorted(examples)
        )
        what = "images at different or unexpected depths: " + "; ".join(places)
        remedy = "arrange all of them as concept/context/image or all as split/concept/context/image"
        if depths == {1}:
            what = f"the images have a class and no context: {'/'.join(min(paths))}"
            remedy = (
                "list them in manifest.csv in this folder, with the columns path,concept,context (no contexts: one "
                "word for all, and --modes blind), or arrange them as concept/context/image"
            )
        raise DataError(what, file=root, remedy=remedy)
    tops = {parts[0] for parts in paths}
    if depths == {2} and len(tops) > 1 and all(normalize_split_name(name) in SPLITS for name in tops):
        what = f"the folders {', '.join(sorted(tops))} look like splits, but there are no contexts below them"
        remedy = "arrange images as split/concept/context/image, or write a manifest that names the contexts"
        raise DataError(what, file=root, remedy=remedy)
    return _sort_images(
        ConceptContextImage(
            root.joinpath(*parts), "/".join(parts), parts[-3], parts[-2], parts[0] if len(parts) == 4 else None
        )
        for parts in paths
    )


def _walk_images(root: Path) -> Iterator[tuple[str, ...]]:
    """The parts of every image's path below `root`; links are followed, hidden files and folders skipped."""
    for folder, inner, names in os.walk(root, followlinks=True):
        below = Path(folder).relative_to(root).parts
        # The bound on depth also stops cyclic links.
        inner[:] = sorted(name for name in inner if not name.startswith(".")) if len(below) < _MAX_DEPTH else []
        yield from ((*below, name) for name in names if not name.startswith(".") and is_image_name(Path(name)))


def _list_from_manifest(path: Path) -> tuple[ConceptContextImage, ...]:
    import polars as pl

    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DataError(f"no reader for files of type {path.suffix!r}", file=path, remedy="write .csv or .parquet")
    with reading(path, "the manifest cannot be read", remedy="check the file"):
        # Everything as text: a context named 2024 or NA must not become a number or a missing value.
        table = pl.read_parquet(path) if path.suffix.lower() == ".parquet" else pl.read_csv(path, infer_schema=False)
    if missing := {"path", "concept", "context"} - set(table.columns):
        remedy = f"its columns are {shorten(', '.join(table.columns))}"
        raise DataError(f"the manifest has no column {', '.join(sorted(missing))}", file=path, remedy=remedy)
    rows = []
    for number, record in enumerate(table.iter_rows(named=True), start=1):
        if blank := [name for name in ("path", "concept", "context") if record[name] in (None, "")]:
            raise DataError(f"no {blank[0]}", file=path, unit=f"row {number}", remedy="fill every row")
        split = record.get("split")
        name = str(record["path"])
        rows.append(
            ConceptContextImage(
                path.parent / name, name, str(record["concept"]), str(record["context"]), str(split) if split else None
            )
        )
    return _sort_images(rows)


def _sort_images(rows: Iterable[ConceptContextImage]) -> tuple[ConceptContextImage, ...]:
    # A manifest may list one image with several contexts, so the name alone does not determine the order.
    return tuple(sorted(rows, key=lambda row: (row.name, row.concept, row.context)))


def normalize_split_name(name: str) -> str:
    """The name that hardlook uses for a split: training is train, validation and valid are val, testing is test.

    >>> normalize_split_name("Validation "), normalize_split_name("held out")
    ('val', 'held out')
    """
    name = name.strip()
    return _SPLIT_ALIASES.get(name.lower(), name.lower() if name.lower() in SPLITS else name)


def sort_split_names(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct split names: train, val, test, then others by name.

    >>> sort_split_names(["test", "dev", "train", "test"])
    ('train', 'test', 'dev')
    """
    distinct = set(names)
    return (*(name for name in SPLITS if name in distinct), *sorted(distinct - set(SPLITS)))


def split_concepts_by_size(images: Mapping[str, int]) -> dict[str, str]:
    """Concept to split: the largest concepts train, the next test, the smallest validate; ties by name.

    >>> split_concepts_by_size({"cat": 30, "dog": 50, "owl": 20, "fox": 10})
    {'dog': 'train', 'cat': 'train', 'owl': 'test', 'fox': 'val'}
    """
    return _assign_splits(sorted(images, key=lambda concept: (-images[concept], concept)))


def split_concepts_by_seed(concepts: Iterable[str], seed: int) -> dict[str, str]:
    """Concept to split, in a random order that depends only on the seed and the names.

    >>> split_concepts_by_seed(["cat", "dog"], 1) == split_concepts_by_seed(["dog", "cat"], 1)
    True
    """
    drawn = {concept: float(generator(seed, "concept split", concept).random()) for concept in concepts}
    return _assign_splits(sorted(drawn, key=lambda concept: (drawn[concept], concept)))


def read_concept_splits(path: Path, concepts: Iterable[str]) -> dict[str, str]:
    r"""Concept to split from a CSV file with the columns concept and split; it may list further concepts.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "splits.csv"
    >>> _ = path.write_text("concept,split\ncat,training\ndog,test\n")
    >>> read_concept_splits(path, ["cat"])
    {'cat': 'train'}
    """
    if not path.exists():
        remedy = "pass size, seed, or a CSV file with the columns concept and split"
        raise DataError("no such split rule or file", file=path, remedy=remedy)
    with (
        reading(path, "the splits cannot be read", remedy="check the file"),
        path.open(encoding="utf-8-sig", newline="") as stream,
    ):
        reader = csv.DictReader(stream)
        columns = set(reader.fieldnames or ())
        rows = [(f"line {reader.line_num}", row) for row in reader]
    if absent := {"concept", "split"} - columns:
        what = f"the file has no column {', '.join(sorted(absent))}"
        raise DataError(what, file=path, remedy="its first line must be: concept,split")
    named: dict[str, str] = {}
    for line, row in rows:
        if not (row["concept"] and row["split"]):
            raise DataError("no concept or no split", file=path, unit=line, remedy="fill every line")
        concept, split = row["concept"], normalize_split_name(row["split"])
        if named.setdefault(concept, split) != split:
            what = f"the concept {concept!r} is in the splits {named[concept]} and {split}"
            raise DataError(what, file=path, unit=line, remedy="keep one line per concept")
    wanted = sorted(set(concepts))
    if missing := [concept for concept in wanted if concept not in named]:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        what = f"{len(missing)} of {len(wanted)} concepts have no split: {shown}"
        raise DataError(what, file=path, remedy="add a line concept,split for each")
    return {concept: named[concept] for concept in wanted}


def count_concepts_per_split(concepts: int) -> dict[str, int]:
    """The number of concepts in each split, out of `concepts`, by largest remainders.

    >>> count_concepts_per_split(7)
    {'train': 5, 'test': 1, 'val': 1}
    """
    sizes = {name: concepts * share // 100 for name, share in SHARES.items()}
    remainders = {name: concepts * share % 100 for name, share in SHARES.items()}
    unassigned = concepts - sum(sizes.values())
    for name in sorted(SHARES, key=lambda name: -remainders[name])[:unassigned]:
        sizes[name] += 1
    return sizes


def _assign_splits(ordered: Sequence[str]) -> dict[str, str]:
    sizes = count_concepts_per_split(len(ordered))
    return dict(zip(ordered, [name for name in SHARES for _ in range(sizes[name])], strict=True))
