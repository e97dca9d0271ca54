r"""TOSS's pair lists: which are there, reading and writing them.

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

Lines of TOSS pair files: a query and a support, one pair a line.

Tiers 1 and 3 and the fixed lists write `query support`. Tier 2 writes `query support w t`, and its level is told by
the weights and by how the tokens are dressed up; a fifth column may name the level, which tells L2 from L3.

| level | w t | query, support |
|---|---|---|
| L0 | 10 1 | the same token |
| L1 | 5 1 | `aug/xf<n>_` before the support's token |
| L2, L3 | 1 1 | two tokens of one class; `L2+L3` where no fifth column tells them apart |
| L4 | 1 -1 | a support of another class |
| L5 | 1 -1 | the support is `aug/null_C_image` |
| L6 | 1 -1 | the support is `aug/null_C_image.jpg` |

>>> pair = parse_line("aug/xf512_1_2009_000260 1_2009_000260 5 1", tier=2, fold=0, line=49)
>>> pair.query, pair.split, pair.transform
('1_2009_000260', 'L1', 512)
>>> format_line(pair)
'aug/xf512_1_2009_000260 1_2009_000260 5 1'

The sha256 of every published TOSS pair file, to tell the published lists from others of the same name.

>>> is_published("tier1/split0_q_easy_sal", b"1_2008_006637 1_2008_005253\n")
False
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hardlook.data.class_tokens import parse_named_token, parse_numbered_token
from hardlook.data.images import read_bytes
from hardlook.errors import DataError

LEVELS = ("L0", "L1", "L2", "L3", "L4", "L5", "L6")

L2_OR_L3 = "L2+L3"  # same-class pairs that the published files do not tell apart

_TRANSFORMED = re.compile(r"aug/xf(\d+)_(\S+)")

_WEIGHTS = {
    "L0": "10 1", "L1": "5 1", "L2": "1 1", "L3": "1 1", L2_OR_L3: "1 1", "L4": "1 -1", "L5": "1 -1", "L6": "1 -1",
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """One query and one support, as tokens without `aug/`, `xf<n>_`, `null_` and `.jpg`.

    `tier` 1-3, 0 for the fixed lists; `fold` from 0, -1 in tier 3, which every fold's model answers; `split` the
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


def parse_line(text: str, *, tier: int, fold: int, line: int, split: str = "") -> Pair:
    """The pair of one line; `split` is the query's partition, which in tier 1 the file's name tells."""
    columns = text.split()
    if tier == 2:
        return _cognizance_pair(columns, fold, line)
    if len(columns) != 2:
        remedy = "write two tokens a line: query, space, support"
        raise DataError(f"{len(columns)} columns where 2 are expected", remedy=remedy)
    query, support = columns
    if tier == 3:
        parse_named_token(query)
        parse_named_token(support)
    elif parse_numbered_token(query)[0] != parse_numbered_token(support)[0]:
        raise DataError(f"{query} and {support} are of two classes", remedy="pair tokens of one class here")
    return Pair(query, support, tier, fold, split, line)


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


def mixes_classes(pair: Pair) -> bool:
    """Whether a tier-3 pair joins two classes, as 389 of the published ones do (banana with banana_boat)."""
    return parse_named_token(pair.query)[0] != parse_named_token(pair.support)[0]


def _cognizance_pair(columns: list[str], fold: int, line: int) -> Pair:
    if len(columns) not in (4, 5):
        remedy = "write query, support, w, t and, if known, the level"
        raise DataError(f"{len(columns)} columns where 4 or 5 are expected", remedy=remedy)
    query, support, weights = columns[0], columns[1], " ".join(columns[2:4])
    transformed = _TRANSFORMED.fullmatch(query)
    if transformed:
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
    # Decorations belong to one level each; a transformed query elsewhere would be read as a plain one.
    if not fits or (transformed and level != "L1") or (null and level == "L4"):
        remedy = "w t are 10 1 (L0), 5 1 (L1: aug/xf<n>_), 1 1 (one class), 1 -1 (other class, aug/null_)"
        raise DataError(f"{' '.join(columns[:2])} with the weights {weights} is no level of tier 2", remedy=remedy)
    if len(columns) == 5:
        allowed = ("L2", "L3") if level == L2_OR_L3 else (level,)
        if columns[4] not in allowed:
            raise DataError(f"the level {columns[4]} where the pair is {level}", remedy="correct the fifth column")
        level = columns[4]
    return Pair(query, support, 2, fold, level, line, int(transformed[1]) if transformed else 0)


PUBLISHED_SHA256 = {
    "tier1/split0_q_easy_nsal": "570188f9a5076c29dd59713e0ae35fd0e2bceb79083b8d5f540ce3300f45b8c3",
    "tier1/split0_q_easy_sal": "7c09cc3706eb5dfde8bad97c395aa384fb220656dd217fa5bb6891c40d4ab7dc",
    "tier1/split0_q_hard_nsal": "00f6231d0cd280f8e0a0226e4567b07d3d16175de1a9e546c6a3a83579c6aff5",
    "tier1/split0_q_hard_sal": "3451cd421172e743cf4a8dff708be8530e0b3d8dabcc67c88bf3c25c900ee413",
    "tier1/split1_q_easy_nsal": "c4a9dd711d9d4ef92607f01061b0d049692dd9285b53448db1b539d4817519b0",
    "tier1/split1_q_easy_sal": "e070588024362c723466c5464f8ad131b42d80a38ab026c87827490f2b9bc5b7",
    "tier1/split1_q_hard_nsal": "1eb858e3ff3d65a650afe0d28cd5f149b422828ded2eaf94efefc48a04cbae43",
    "tier1/split1_q_hard_sal": "581dbf0762a38852baa2eb83b059a6b64192ab9807547fc551fa81e5bdf8e895",
    "tier1/split2_q_easy_nsal": "5df9f8e4772ddae05976a65772555dca51624dcdbbd78d0c84e8006d02f6490b",
    "tier1/split2_q_easy_sal": "5e1ed383a1c49151eab51ebd6956a907a0e101d88d71b57715d095c4f889f762",
    "tier1/split2_q_hard_nsal": "6479889d55a55f3919e223d941071c99c202341f5842e971e0cdfc597904154a",
    "tier1/split2_q_hard_sal": "f7c739329f62e0b37206ef1ea429c9c9ca46876d9356ceb41fbea387194fbad8",
    "tier1/split3_q_easy_nsal": "d5944747f5d0ee3ff34151bc65deaea55dde73af50bcd05d62e7374d413a8716",
    "tier1/split3_q_easy_sal": "34dea0db4d5e4d1fbbcccf663a4768fccf6d0e221f924a05502bd68ec6c08037",
    "tier1/split3_q_hard_nsal": "ad748215f83975c9e96d22ff088519d373bf61c51e791337ad71fe5648207485",
    "tier1/split3_q_hard_sal": "0cfeaad398c024cb48446f9c0fd1ed239c16bf173d4f35fba9c0fd3ef9c44063",
    "tier2/split0_tier2": "05d1555676e04b420870c98e9bbcab96d20df6f37b3fc0f29c32017aeeb8112b",
    "tier2/split1_tier2": "beb3a0e126cbc8e99f258443a5cc89575753d24db1f3d6be29c3a98acfceeeeb",
    "tier2/split2_tier2": "8fe0bc8e10527229c56d77063aa954f5dd08d3eb9eb39ebec16261318c117774",
    "tier2/split3_tier2": "26fa85dca07924de6828da64cd13b7facbca55fb3a4c8adeeb42198ec5190470",
    "tier3/general_tier": "0f5a96b576dfc95febc0c756d09f8b74ef799032227a169564653bd5cb08d88a",
    "pascal5i/split0_test": "4082a6917c42bf9409a9ec968a05562f2725eeba9bd538876a256defa3b355a0",
    "pascal5i/split1_test": "425a5041f01b39cabd5db8b1460e8c85405978edb728fc7959af5078c19ab536",
    "pascal5i/split2_test": "0e9c697bdf88c6127ee2ce49f777599d29d8caac3fafd789cc4e1979a90daeb1",
    "pascal5i/split3_test": "aed9f905dab9914e1033a1ff7cbdfe9d07cfc461ecd34d34dc00560e41f26d01",
    "coco20i/split0_test": "d9550b51378ba956ed08f4f5b26741602d52462baeab48f5743162f939bf9e9d",
    "coco20i/split1_test": "82ae95e5c68dd886f7d2999ce93fc6d2d77f60d7840be8810440239aed9722a4",
    "coco20i/split2_test": "31401556a340190b9db239d7f422ec26fc3edf0c2871e075addd5b7c98f6a8ef",
    "coco20i/split3_test": "f33e72ba38d2f6219f40f54b2e1da070cf0d72600c21b88ad8b471279a6f3aaf",
}


def is_published(name: str, content: bytes) -> bool:
    """Whether `content` is that of the published list `name`; line ends that Git turned to CR LF do not count."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() == PUBLISHED_SHA256.get(name)


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
    found = [
        locate_tier_list(root, 1, fold, split) for fold in _folds(root / "tiers" / "attribute") for split in SPLITS
    ]
    found += [locate_tier_list(root, 2, fold) for fold in _folds(root / "tiers" / "suppcog")]
    found.append(locate_tier_list(root, 3))
    sets = sorted(path for path in (root / "fixedsplits").glob("*") if path.is_dir())
    found += [locate_fixed_list(root, place.name, fold) for place in sets for fold in _folds(place)]
    return tuple(file for file in found if file.path.is_file())


def locate_tier_list(root: Path, tier: int, fold: int = -1, split: str = "") -> PairFile:
    """Where a tier's list lies under `root` (the folder with `tiers/`), there or not; for builders too."""
    if tier == 1:
        stem, place = f"split{fold}_q_{split}", "attribute"
    elif tier == 2:
        stem, place, split = f"split{fold}_tier2", "suppcog", ""
    else:
        stem, place, fold, split = "general_tier", "general", -1, ""
    return PairFile(f"tier{tier}/{stem}", root / "tiers" / place / f"{stem}.txt", tier, fold, split)


def locate_fixed_list(root: Path, name: str, fold: int) -> PairFile:
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
    if len({pair.tier for pair in rows}) > 1 or (told and any(pair.split == L2_OR_L3 for pair in rows)):
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
