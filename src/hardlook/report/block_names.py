"""Names of blocks, made from their titles, as `hardlook figure`, `hardlook table` and exports use them.

>>> make_name("IoU of each class"), make_name("Größe (px) & `n`")
('iou-of-each-class', 'grosse-px-n')
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence

from hardlook.harness.sections import Chart, Gallery, Section, Table

FIXED = ("scores", "all-scores", "left-out", "readings")
_LONGEST = 60


def make_name(title: str) -> str:
    """The title in small letters, digits and hyphens; `figure` where nothing of it is left."""
    plain = unicodedata.normalize("NFKD", title.replace("ß", "ss")).encode("ascii", "ignore").decode("ascii").lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if len(words) > _LONGEST:
        words = words[:_LONGEST].rsplit("-", 1)[0]
    return words or "figure"


def name_blocks(sections: Sequence[Section]) -> dict[str, Chart | Table]:
    """Every chart and table of the sections by name, in order; a repeated title gets a number.

    >>> parts = [Section("A", "", [Table("Left out", "", ("a",), ()), Table("By size", "", ("a",), ())])]
    >>> list(name_blocks([*parts, *parts]))
    ['left-out-2', 'by-size', 'left-out-3', 'by-size-2']
    """
    named: dict[str, Chart | Table] = {}
    for section in sections:
        for block in section.blocks:
            if not isinstance(block, Gallery):
                named[make_unique_name(block.title, (*FIXED, *named))] = block
    return named


def make_unique_name(title: str, taken: Collection[str]) -> str:
    """The name for a title, with a number where it is already taken."""
    wanted = name = make_name(title)
    number = 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name
