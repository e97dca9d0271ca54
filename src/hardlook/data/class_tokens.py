"""Tokens of the TOSS pair files: one class in one image.

Numbered tokens are `C_image`: the class number from 1 and the image's id. Named tokens, of FSS-1000, are `X_class_n`:
an arbitrary number, the class folder's name and the number of the image in it.

>>> parse_numbered_token("15_2007_000032"), parse_numbered_token("4_11149")
((15, '2007_000032'), (4, '11149'))
>>> parse_named_token("13_banana_boat_1")
('banana_boat', 1)
"""

from __future__ import annotations

import re
from functools import lru_cache

from hardlook.errors import DataError

_NUMBERED = re.compile(r"([1-9]\d{0,17})_(\S+)")
_NAMED = re.compile(r"\d+_(\S+)_(\d{1,18})")


# A pair list repeats each token about twenty times.
@lru_cache(maxsize=1 << 16)
def parse_numbered_token(token: str) -> tuple[int, str]:
    """Class number (from 1) and image id of `C_image`; a `DataError` for anything else."""
    if (found := _NUMBERED.fullmatch(token)) is None:
        remedy = "write C_image: the class number from 1, an underscore, the image's id without spaces"
        raise DataError("not a token of a class number and an image", unit=token, remedy=remedy)
    return int(found[1]), found[2]


def parse_named_token(token: str) -> tuple[str, int]:
    """Class name and image number of `X_class_n`; a `DataError` for anything else."""
    if (found := _NAMED.fullmatch(token)) is None:
        remedy = "write X_class_n: any number, the class folder's name, the image's number"
        raise DataError("not a token of a class name and an image number", unit=token, remedy=remedy)
    return found[1], int(found[2])
