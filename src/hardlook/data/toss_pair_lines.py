"""Lines of TOSS pair files: a query and a support, one pair a line.

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
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hardlook.data.class_tokens import named_token, numbered_token
from hardlook.errors import DataError

LEVELS = ("L0", "L1", "L2", "L3", "L4", "L5", "L6")
UNTOLD = "L2+L3"  # same-class pairs that the published files do not tell apart
_TRANSFORMED = re.compile(r"aug/xf(\d+)_(\S+)")
_WEIGHTS = {
    "L0": "10 1", "L1": "5 1", "L2": "1 1", "L3": "1 1", UNTOLD: "1 1", "L4": "1 -1", "L5": "1 -1", "L6": "1 -1",
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
        named_token(query)
        named_token(support)
    elif numbered_token(query)[0] != numbered_token(support)[0]:
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
    return named_token(pair.query)[0] != named_token(pair.support)[0]


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
    same_class = numbered_token(query)[0] == numbered_token(support)[0]
    if transformed and query == support:
        level = "L1"
    elif null and same_class:
        level = "L6" if empty else "L5"
    elif not same_class:
        level = "L4"
    else:
        level = "L0" if weights == _WEIGHTS["L0"] else UNTOLD
    fits = weights == _WEIGHTS[level] and (level != "L0" or query == support)
    # Decorations belong to one level each; a transformed query elsewhere would be read as a plain one.
    if not fits or (transformed and level != "L1") or (null and level == "L4"):
        remedy = "w t are 10 1 (L0), 5 1 (L1: aug/xf<n>_), 1 1 (one class), 1 -1 (other class, aug/null_)"
        raise DataError(f"{' '.join(columns[:2])} with the weights {weights} is no level of tier 2", remedy=remedy)
    if len(columns) == 5:
        allowed = ("L2", "L3") if level == UNTOLD else (level,)
        if columns[4] not in allowed:
            raise DataError(f"the level {columns[4]} where the pair is {level}", remedy="correct the fifth column")
        level = columns[4]
    return Pair(query, support, 2, fold, level, line, int(transformed[1]) if transformed else 0)
