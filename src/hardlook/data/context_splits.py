"""Which concepts train, test and validate: by size as MetaCoCo's authors did, by a seed, or by a file.

Splits share no concept. Of 100 concepts 64 train, 20 test and 16 validate; of any other number the shares are the same,
by largest remainders.

>>> split_by_size({"cat": 30, "dog": 50, "owl": 20, "fox": 10})
{'dog': 'train', 'cat': 'train', 'owl': 'test', 'fox': 'val'}
>>> split_sizes(7)
{'train': 5, 'test': 1, 'val': 1}
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hardlook.errors import DataError
from hardlook.randomness import generator

# In the order in which concepts are dealt out, in hundredths.
SHARES = {"train": 64, "test": 20, "val": 16}
SPLITS = ("train", "val", "test")
_SAME = {"training": "train", "validation": "val", "valid": "val", "testing": "test"}


def split_name(name: str) -> str:
    """The split by the name that hardlook uses: training is train, validation and valid are val, testing is test.

    >>> split_name("Validation"), split_name("held out")
    ('val', 'held out')
    """
    return _SAME.get(name.lower(), name.lower() if name.lower() in SPLITS else name)


def split_order(names: Iterable[str]) -> tuple[str, ...]:
    """Distinct names of splits: train, val, test, then others by name.

    >>> split_order(["test", "dev", "train", "test"])
    ('train', 'test', 'dev')
    """
    found = set(names)
    return (*(name for name in SPLITS if name in found), *sorted(found - set(SPLITS)))


def split_sizes(concepts: int) -> dict[str, int]:
    """How many of so many concepts go into each split."""
    sizes = {name: concepts * share // 100 for name, share in SHARES.items()}
    rest = {name: concepts * share % 100 for name, share in SHARES.items()}
    left = concepts - sum(sizes.values())
    for name in sorted(SHARES, key=lambda name: -rest[name])[:left]:
        sizes[name] += 1
    return sizes


def split_by_size(images: Mapping[str, int]) -> dict[str, str]:
    """Concept to split: the largest concepts train, the next test, the last validate; ties go by name."""
    return _deal(sorted(images, key=lambda concept: (-images[concept], concept)))


def split_by_seed(concepts: Iterable[str], seed: int) -> dict[str, str]:
    """Concept to split, in a random order that depends on the seed and the names alone.

    >>> split_by_seed(["cat", "dog"], 1) == split_by_seed(["dog", "cat"], 1)
    True
    """
    drawn = {concept: float(generator(seed, "concept split", concept).random()) for concept in concepts}
    return _deal(sorted(drawn, key=lambda concept: (drawn[concept], concept)))


def split_by_file(path: Path, concepts: Iterable[str]) -> dict[str, str]:
    r"""Concept to split by a CSV file with the columns concept and split; it may name more concepts than there are.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "splits.csv"
    >>> _ = path.write_text("concept,split\ncat,training\ndog,test\n")
    >>> split_by_file(path, ["cat"])
    {'cat': 'train'}
    """
    named: dict[str, str] = {}
    for number, row in _lines(path):
        concept, split = row["concept"], split_name(row["split"])
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
    sizes = split_sizes(len(ordered))
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
