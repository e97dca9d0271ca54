"""TOSS's pair lists: finding, reading and writing them.

| list | file in the TOSS repository's `data/` |
|---|---|
| tier 1 | `tiers/attribute/split<fold>_q_{easy,hard}_{sal,nsal}.txt` |
| tier 2 | `tiers/suppcog/split<fold>_tier2.txt` |
| tier 3 | `tiers/general/general_tier.txt` |
| fixed | `fixedsplits/{pascal5i,coco20i,...}/split<fold>_test.txt` |

Tiers 1 and 3 and the fixed lists write `query support` per line. Tier 2 writes `query support w t`; weights and token
prefixes determine the level. An optional fifth column names the level, which distinguishes L2 from L3.

| level | w t | query, support |
|---|---|---|
| L0 | 10 1 | the same token |
| L1 | 5 1 | `aug/xf<n>_` before the support's token |
| L2, L3 | 1 1 | two tokens of one class; `L2+L3` without a fifth column |
| L4 | 1 -1 | a support of another class |
| L5 | 1 -1 | the support is `aug/null_C_image` |
| L6 | 1 -1 | the support is `aug/null_C_image.jpg` |

Lines that begin with `#` are comments. A file without any line is an error, since it is a broken copy; an intentionally
empty list holds a comment.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> file = folder / "tiers" / "attribute" / "split0_q_easy_sal.txt"
>>> write_pairs(file, [Pair("1_2008_006637", "1_2008_005253", 1, 0, "easy_sal")])
>>> [(listed.name, listed.fold, listed.split) for listed in list_pair_files(folder)]
[('tier1/split0_q_easy_sal', 0, 'easy_sal')]
>>> read_pairs(list_pair_files(folder)[0]).pairs[0].support
'1_2008_005253'
>>> pair = parse_line("aug/xf512_1_2009_000260 1_2009_000260 5 1", tier=2, fold=0, line=49)
>>> pair.query, pair.split, pair.transform
('1_2009_000260', 'L1', 512)
>>> format_line(pair)
'aug/xf512_1_2009_000260 1_2009_000260 5 1'
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from hardlook.data.class_tokens import parse_named_token, parse_numbered_token
from hardlook.errors import DataError
from hardlook.reading import read_bytes

LEVELS = ("L0", "L1", "L2", "L3", "L4", "L5", "L6")
L2_OR_L3 = "L2+L3"  # pairs of one class, whose level the published files do not give
SPLITS = ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal")
EMPTY = "# no pairs\n"
_TRANSFORMED = re.compile(r"aug/xf(\d{1,18})_(\S+)")
_FOLD = re.compile(r"split(0|[1-9]\d{0,8})_")

_WEIGHTS = {
    "L0": "10 1", "L1": "5 1", "L2": "1 1", "L3": "1 1", L2_OR_L3: "1 1", "L4": "1 -1", "L5": "1 -1", "L6": "1 -1",
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """One query and one support, as tokens without the prefixes `aug/`, `xf<n>_`, `null_` and the suffix `.jpg`.

    `tier` 1-3, 0 for the fixed lists; `fold` from 0, -1 in tier 3, which the models of all folds answer; `split` the
    query's partition in tier 1 ("easy_sal", ...), the level in tier 2 ("L0", ..., "L2+L3"), else empty; `line` its
    place in the file from 1, 0 before it is written; `transform` the number after `xf` in L1: the query is that
    transform of the support's image.
    """

    query: str
    support: str
    tier: int
    fold: int
    split: str = ""
    line: int = 0
    transform: int = 0


@dataclass(frozen=True)
class PairFile:
    """One list's file; `tier` 0 for fixed lists, `fold` -1 in tier 3, `split` of the queries in tier 1, else empty.

    `name` is its name in reports: `tier1/split0_q_easy_sal`, `tier2/split0_tier2`, `tier3/general_tier`,
    `pascal5i/split0_test`.
    """

    name: str
    path: Path
    tier: int
    fold: int
    split: str = ""


@dataclass(frozen=True)
class PairList:
    """The pairs of one file, and whether it is a published one."""

    name: str
    path: Path
    pairs: tuple[Pair, ...]
    published: bool


def list_pair_files(folder: Path) -> tuple[PairFile, ...]:
    """The lists of TOSS's repository, its `data/` or a folder like it: tiers 1 to 3 by fold, then the fixed ones."""
    root = _find_root(folder)
    found = [
        locate_tier_list(root, 1, fold, split) for fold in _list_folds(root / "tiers" / "attribute") for split in SPLITS
    ]
    found += [locate_tier_list(root, 2, fold) for fold in _list_folds(root / "tiers" / "suppcog")]
    found.append(locate_tier_list(root, 3))
    sets = sorted(path for path in (root / "fixedsplits").glob("*") if path.is_dir())
    found += [locate_fixed_list(root, place.name, fold) for place in sets for fold in _list_folds(place)]
    return tuple(file for file in found if file.path.is_file())


def locate_tier_list(root: Path, tier: int, fold: int = -1, split: str = "") -> PairFile:
    """The file of a tier's list below `root` (the folder with `tiers/`), whether or not it exists."""
    if tier == 1:
        stem, place = f"split{fold}_q_{split}", "attribute"
    elif tier == 2:
        stem, place, split = f"split{fold}_tier2", "suppcog", ""
    else:
        stem, place, fold, split = "general_tier", "general", -1, ""
    return PairFile(f"tier{tier}/{stem}", root / "tiers" / place / f"{stem}.txt", tier, fold, split)


def locate_fixed_list(root: Path, name: str, fold: int) -> PairFile:
    """The file of a fold's fixed list; `name` is that of the set, such as pascal5i."""
    stem = f"split{fold}_test"
    return PairFile(f"{name}/{stem}", root / "fixedsplits" / name / f"{stem}.txt", 0, fold)


def read_pairs(file: PairFile) -> PairList:
    """The pairs of one list; a `DataError` names the file and the line that cannot be read."""
    content = read_bytes(file.path)
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError("not a text file", file=file.path, remedy="copy the pair list again") from error
    pairs = []
    for number, text in enumerate(lines, start=1):
        if not text.strip() or text.startswith("#"):
            continue
        try:
            pairs.append(parse_line(text, tier=file.tier, fold=file.fold, line=number, split=file.split))
        except DataError as error:
            where = f"line {number}" + (f", {error.unit}" if error.unit else "")
            raise DataError(error.what, file=file.path, unit=where, remedy=error.remedy) from error
    if not pairs and not any(text.startswith("#") for text in lines):
        raise DataError("the pair list is empty", file=file.path, remedy="copy the pair list again")
    return PairList(file.name, file.path, tuple(pairs), is_published(file.name, content))


def read_pair(file: PairFile, line: int) -> Pair | None:
    """The pair in that line of a list, from 1; None where it holds none. The file is kept for the next line."""
    state = file.path.stat()
    lines = _read_lines(file.path, state.st_size, state.st_mtime_ns)
    text = lines[line - 1] if 0 < line <= len(lines) else "#"
    if not text.strip() or text.startswith("#"):
        return None
    return parse_line(text, tier=file.tier, fold=file.fold, line=line, split=file.split)


@lru_cache(maxsize=16)
def _read_lines(path: Path, size: int, modified: int) -> list[str]:
    return read_bytes(path).decode("utf-8-sig").splitlines()


def write_pairs(path: Path, rows: Sequence[Pair]) -> None:
    """Write pairs of one tier in the published format; tier 2 gets its fifth column if L2 and L3 are distinguished.

    Reading the file gives the same pairs. If it would not, a `DataError` is raised and nothing is written.
    """
    has_levels = any(pair.split in ("L2", "L3") for pair in rows)
    if len({pair.tier for pair in rows}) > 1 or (has_levels and any(pair.split == L2_OR_L3 for pair in rows)):
        remedy = "write one file per tier; in tier 2 distinguish L2 from L3 in all pairs or in none"
        raise DataError("these pairs cannot be written to one list", file=path, remedy=remedy)
    lines = []
    for number, pair in enumerate(rows, start=1):
        line = format_line(pair, with_level=has_levels)
        if parse_line(line, tier=pair.tier, fold=pair.fold, line=pair.line, split=pair.split) != pair:
            remedy = "tokens, level and transform must fit the level's row in the table of levels"
            raise DataError(f"{line!r} reads back as another pair", file=path, unit=f"line {number}", remedy=remedy)
        lines.append(line + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines) or EMPTY, encoding="utf-8", newline="\n")


def parse_line(text: str, *, tier: int, fold: int, line: int, split: str = "") -> Pair:
    """The pair of one line; `split` is the query's partition, which in tier 1 follows from the file's name."""
    columns = text.split()
    if tier == 2:
        return _parse_tier_2(columns, fold, line)
    if len(columns) != 2:
        remedy = "write two tokens per line: query, space, support"
        raise DataError(f"expected 2 columns, got {len(columns)}", remedy=remedy)
    query, support = columns
    if tier == 3:
        parse_named_token(query)
        parse_named_token(support)
    elif parse_numbered_token(query)[0] != parse_numbered_token(support)[0]:
        raise DataError(f"{query} and {support} are of different classes", remedy="pair tokens of one class")
    return Pair(query, support, tier, fold, split, line)


def _parse_tier_2(columns: list[str], fold: int, line: int) -> Pair:
    if len(columns) not in (4, 5):
        remedy = "write query, support, w, t and, if known, the level"
        raise DataError(f"expected 4 or 5 columns, got {len(columns)}", remedy=remedy)
    query, support, weights = columns[0], columns[1], " ".join(columns[2:4])
    if transformed := _TRANSFORMED.fullmatch(query):
        query = transformed[2]
    empty, null = support.endswith(".jpg"), support.startswith("aug/null_")
    if null:
        support = support.removeprefix("aug/null_").removesuffix(".jpg")
    same_class = parse_numbered_token(query)[0] == parse_numbered_token(support)[0]
    if transformed and query == support:
        level = "L1"
    elif null and same_class:
        level = "L6" if empty else "L5"
    elif not same_class:
        level = "L4"
    else:
        level = "L0" if weights == _WEIGHTS["L0"] else L2_OR_L3
    fits = weights == _WEIGHTS[level] and (level != "L0" or query == support)
    # Each prefix belongs to one level; elsewhere a transformed query would be read as a plain one.
    if not fits or (transformed and level != "L1") or (null and level == "L4"):
        remedy = "w t are 10 1 (L0), 5 1 (L1: aug/xf<n>_), 1 1 (one class), 1 -1 (other class, aug/null_)"
        raise DataError(f"{' '.join(columns[:2])} with the weights {weights} matches no level of tier 2", remedy=remedy)
    if len(columns) == 5:
        allowed = ("L2", "L3") if level == L2_OR_L3 else (level,)
        if columns[4] not in allowed:
            raise DataError(f"expected the level {level}, got {columns[4]}", remedy="correct the fifth column")
        level = columns[4]
    return Pair(query, support, 2, fold, level, line, int(transformed[1]) if transformed else 0)


def format_line(pair: Pair, *, with_level: bool = False) -> str:
    """The line of a pair, as the published files write it; `with_level` adds tier 2's fifth column."""
    if pair.tier != 2:
        return f"{pair.query} {pair.support}"
    query, support = pair.query, pair.support
    if pair.split == "L1":
        query = f"aug/xf{pair.transform}_{query}"
    elif pair.split in ("L5", "L6"):
        support = f"aug/null_{support}" + (".jpg" if pair.split == "L6" else "")
    level = f" {pair.split}" if with_level else ""
    return f"{query} {support} {_WEIGHTS[pair.split]}{level}"


def is_published(name: str, content: bytes) -> bool:
    r"""Whether `content` is that of the published list `name`; CR LF line ends count as LF.

    >>> is_published("tier1/split0_q_easy_sal", b"1_2008_006637 1_2008_005253\n")
    False
    """
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() == _read_published_hashes().get(name)


@cache
def _read_published_hashes() -> dict[str, str]:
    """The sha256 of every published list, by the list's name."""
    text = files("hardlook.data").joinpath("published_pair_lists.csv").read_text(encoding="utf-8")
    return {row["list"]: row["sha256"] for row in csv.DictReader(text.splitlines())}


def _find_root(folder: Path) -> Path:
    for root in (folder, folder / "data"):
        if (root / "tiers").is_dir() or (root / "fixedsplits").is_dir():
            return root
    remedy = "pass the TOSS repository, its data folder, or the output of `hardlook build toss`"
    what = "no pair lists here (no tiers/, no fixedsplits/)" if folder.is_dir() else "the folder does not exist"
    raise DataError(what, file=folder, remedy=remedy)


def _list_folds(folder: Path) -> list[int]:
    """The folds in the names of the folder's files."""
    return sorted({int(found[1]) for found in (_FOLD.match(path.name) for path in folder.glob("split*.txt")) if found})
