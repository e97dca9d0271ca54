"""TOSS's pair lists: which are there, reading and writing them.

| list | file in the TOSS repository's `data/` |
|---|---|
| tier 1 | `tiers/attribute/split<fold>_q_{easy,hard}_{sal,nsal}.txt` |
| tier 2 | `tiers/suppcog/split<fold>_tier2.txt` |
| tier 3 | `tiers/general/general_tier.txt` |
| fixed | `fixedsplits/{pascal5i,coco20i,...}/split<fold>_test.txt` |

Lines that begin with `#` are comments. A file without any line is refused as a broken copy; a list that is meant to
be empty holds a comment.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> file = folder / "tiers" / "attribute" / "split0_q_easy_sal.txt"
>>> write_pairs(file, [Pair("1_2008_006637", "1_2008_005253", 1, 0, "easy_sal")])
>>> [(listed.name, listed.fold, listed.split) for listed in list_pair_files(folder)]
[('tier1/split0_q_easy_sal', 0, 'easy_sal')]
>>> read_pairs(list_pair_files(folder)[0]).pairs[0].support
'1_2008_005253'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hardlook.data.images import read_bytes
from hardlook.data.toss_pair_lines import LEVELS, UNTOLD, Pair, format_line, mixes_classes, parse_line
from hardlook.data.toss_published_files import is_published
from hardlook.errors import DataError

__all__ = [
    "LEVELS", "SPLITS", "UNTOLD", "Mixed", "Pair", "PairFile", "PairList", "fixed_file", "list_pair_files",
    "pair_file", "read_pairs", "write_pairs",
]  # fmt: skip

Mixed = Literal["released", "ours"]
SPLITS = ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal")
EMPTY = "# no pairs\n"
_FOLD = re.compile(r"split(0|[1-9]\d*)_")


@dataclass(frozen=True)
class PairFile:
    """Where one list is; `tier` 0 for fixed lists, `fold` -1 in tier 3, `split` of the queries in tier 1, else empty.

    `name` is how reports call it: `tier1/split0_q_easy_sal`, `tier2/split0_tier2`, `tier3/general_tier`,
    `pascal5i/split0_test`.
    """

    name: str
    path: Path
    tier: int
    fold: int
    split: str = ""


@dataclass(frozen=True)
class PairList:
    """The pairs of one file.

    `published`: the file is, byte for byte, the published one. `mixed`: how many of its lines join two classes
    (tier 3); `dropped`: how many of these are not among `pairs`.
    """

    name: str
    path: Path
    pairs: tuple[Pair, ...]
    published: bool
    mixed: int = 0
    dropped: int = 0


def list_pair_files(folder: Path) -> tuple[PairFile, ...]:
    """The lists that are in `folder`, tier 1 to 3 by fold, then the fixed lists.

    `folder` is the TOSS repository, its `data/`, or any folder with `tiers/` and `fixedsplits/`.
    """
    root = _root(folder)
    found = [pair_file(root, 1, fold, split) for fold in _folds(root / "tiers" / "attribute") for split in SPLITS]
    found += [pair_file(root, 2, fold) for fold in _folds(root / "tiers" / "suppcog")]
    found.append(pair_file(root, 3))
    sets = sorted(path for path in (root / "fixedsplits").glob("*") if path.is_dir())
    found += [fixed_file(root, place.name, fold) for place in sets for fold in _folds(place)]
    return tuple(file for file in found if file.path.is_file())


def pair_file(root: Path, tier: int, fold: int = -1, split: str = "") -> PairFile:
    """Where a tier's list lies under `root` (the folder with `tiers/`), there or not; for builders too."""
    if tier == 1:
        stem, place = f"split{fold}_q_{split}", "attribute"
    elif tier == 2:
        stem, place, split = f"split{fold}_tier2", "suppcog", ""
    else:
        stem, place, fold, split = "general_tier", "general", -1, ""
    return PairFile(f"tier{tier}/{stem}", root / "tiers" / place / f"{stem}.txt", tier, fold, split)


def fixed_file(root: Path, name: str, fold: int) -> PairFile:
    """Where the fixed list of a fold lies; `name` is that of its set, such as pascal5i."""
    stem = f"split{fold}_test"
    return PairFile(f"{name}/{stem}", root / "fixedsplits" / name / f"{stem}.txt", 0, fold)


def read_pairs(file: PairFile, *, mixed: Mixed = "released") -> PairList:
    """The pairs of one list; a `DataError` names file and line of what cannot be read."""
    content = read_bytes(file.path)
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError("this is no text", file=file.path, remedy="copy the pair list again") from error
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
        raise DataError("a pair list without a line", file=file.path, remedy="copy the pair list again")
    kept = pairs if file.tier != 3 else [pair for pair in pairs if not mixes_classes(pair)]
    count = len(pairs) - len(kept)
    if mixed == "released":
        kept = pairs
    published = is_published(file.name, content)
    return PairList(file.name, file.path, tuple(kept), published, count, len(pairs) - len(kept))


def write_pairs(path: Path, rows: Sequence[Pair]) -> None:
    """Write pairs of one tier in the published format; tier 2 gets its fifth column where L2 and L3 are told apart.

    What was written reads back as the same pairs. Pairs that would not are a `DataError`, and nothing is written.
    """
    told = any(pair.split in ("L2", "L3") for pair in rows)
    if len({pair.tier for pair in rows}) > 1 or (told and any(pair.split == UNTOLD for pair in rows)):
        remedy = "write one file a tier; in tier 2 tell L2 from L3 in all pairs or in none"
        raise DataError("pairs that cannot stand in one list", file=path, remedy=remedy)
    lines = []
    for number, pair in enumerate(rows, start=1):
        line = format_line(pair, with_level=told)
        read = parse_line(line, tier=pair.tier, fold=pair.fold, line=pair.line, split=pair.split)
        if read != pair:
            remedy = "tokens, level and transform must fit the level's row in the table of levels"
            raise DataError(f"{line!r} reads back as another pair", file=path, unit=f"line {number}", remedy=remedy)
        lines.append(line + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines) or EMPTY, encoding="utf-8", newline="\n")


def _root(folder: Path) -> Path:
    for root in (folder, folder / "data"):
        if (root / "tiers").is_dir() or (root / "fixedsplits").is_dir():
            return root
    remedy = "give the TOSS repository, its data folder, or what `hardlook build toss` wrote"
    what = "no pair lists here (no tiers/, no fixedsplits/)" if folder.is_dir() else "the folder does not exist"
    raise DataError(what, file=folder, remedy=remedy)


def _folds(folder: Path) -> list[int]:
    """The folds that any file of the folder is called after."""
    named = (_FOLD.match(path.name) for path in folder.glob("split*.txt"))
    return sorted({int(found[1]) for found in named if found})
