"""Load a label set by its name or from a file.

The sets of the package are one CSV each, with the published and the corrected senses side by side.

>>> len(load_label_set("ade150")), load_label_set("ade150").find("palm tree").synset
(150, 'palm.n.03')
>>> [shipped.name for shipped in list_label_sets() if "published" in shipped.variants]
['voc20', 'pc59', 'pc459', 'ade150', 'coco80', 'coco133']
>>> load_shipped_set("voc20", "published").find("motorbike").synset
'minibike.n.01'
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from hardlook.errors import OptionError
from hardlook.similarity.label_files import read_label_file
from hardlook.similarity.labels import Label, LabelSet
from hardlook.similarity.wordnet.nouns import Nouns

_BOTH = ("corrected", "published")


@dataclass(frozen=True)
class ShippedSet:
    """A label set of the package: its size, the numbering of its ids, and its variants of senses."""

    name: str
    title: str
    size: int
    numbering: str
    category_numbering: str | None
    variants: tuple[str, ...]


@dataclass(frozen=True)
class SenseDifference:
    """A label whose corrected sense is not the published one, and why; None where a variant gives no synset."""

    label: str
    published: str | None
    synset: str | None
    hypernym: str | None
    reason: str


_COCO = "category_id: COCO's own"

_SETS = (
    ShippedSet("voc20", "Pascal VOC, 20", 20, "mask value - 1 (masks have 0 for background)", None, _BOTH),
    ShippedSet("pc59", "Pascal Context, 59", 59, "0-58, VOC's twenty first", None, _BOTH),
    ShippedSet("pc459", "Pascal Context, 459", 459, "0-458, alphabetical", None, _BOTH),
    ShippedSet("ade150", "ADE20K, 150", 150, "mask value - 1 (masks have 0 for other)", None, _BOTH),
    ShippedSet("coco80", "COCO, 80 things", 80, "0-79", f"{_COCO}, 1-90", _BOTH),
    ShippedSet("coco133", "COCO panoptic, 133", 133, "0-132, things first", f"{_COCO}, 1-200", _BOTH),
    ShippedSet("coco171", "COCO-Stuff, 171", 171, "0-170, things first", f"{_COCO}, 1-90 and 92-182", ("corrected",)),
    ShippedSet("cityscapes19", "Cityscapes, 19", 19, "train ids, 0-18", "category_id: label ids, 7-33", ("corrected",)),
)

_NOT_SHIPPED = {
    "ade847": "give ADE20K's own class list as a file (names, or `id: name` lines), its senses chosen with "
    "`hardlook labels map LIST --out TABLE.csv`",
    "lvis": "give LVIS's annotation json: its categories carry their synsets",
}


def load_label_set(name_or_path: str | Path, variant: str = "corrected", *, nouns: Nouns | None = None) -> LabelSet:
    """A shipped label set (`hardlook labels list`) or a user's file: CSV, TSV, JSON (LVIS's too) or plain text.

    `variant` chooses the senses of a shipped set; a file has its own. An unknown name is an `OptionError`.
    """
    name = str(name_or_path)
    shipped = [one.name for one in _SETS]
    if name in shipped:
        return load_shipped_set(name, variant)
    if Path(name).is_file():
        return read_label_file(Path(name), nouns=nouns)
    if name.lower() in _NOT_SHIPPED:
        raise OptionError(f"the labels {name!r} do not ship", remedy=_NOT_SHIPPED[name.lower()])
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), shipped, n=3) or shipped
    raise OptionError(f"no label set and no file {name!r}", remedy=f"a file, or one of {', '.join(close)}")


def list_label_sets() -> tuple[ShippedSet, ...]:
    """The label sets of the package."""
    return _SETS


@cache
def load_shipped_set(name: str, variant: str = "corrected") -> LabelSet:
    """A label set of the package; an `OptionError` for a name or a variant that it does not have."""
    variants = find_shipped_set(name).variants
    if variant not in variants:
        raise OptionError(f"{name} has no variant {variant!r}", remedy=f"it has {', '.join(variants)}")
    column = "published" if variant == "published" else "synset"
    labels = tuple(
        Label(
            id=int(row["id"]),
            name=row["name"],
            aliases=tuple(row["aliases"].split("|")) if row["aliases"] else (),
            synset=row[column] or None,
            hypernym=(row["hypernym"] or None) if variant == "corrected" else None,
            isthing=row["isthing"] == "1" if row["isthing"] else None,
            category_id=int(row["category_id"]) if row["category_id"] else None,
        )
        for row in _read_rows(name)
    )
    return LabelSet(name, variant, labels)


def find_differences(name: str) -> tuple[SenseDifference, ...]:
    """Where the corrected senses of a set differ from the published ones, by row.

    >>> find_differences("voc20")[0].reason
    'cattle; cow.n.02 is the female of any large mammal'
    """
    if "published" not in find_shipped_set(name).variants:
        have = ", ".join(shipped.name for shipped in _SETS if "published" in shipped.variants)
        raise OptionError(f"{name} has no published senses to compare with", remedy=f"one of {have}")
    return tuple(
        SenseDifference(
            row["name"], row["published"] or None, row["synset"] or None, row["hypernym"] or None, row["reason"]
        )
        for row in _read_rows(name)
        if (row["published"], "") != (row["synset"], row["hypernym"])
    )


def find_shipped_set(name: str) -> ShippedSet:
    """The entry of a shipped set; an `OptionError` that lists all for another name."""
    for shipped in _SETS:
        if shipped.name == name:
            return shipped
    raise OptionError(f"no label set {name!r}", remedy=f"one of {', '.join(shipped.name for shipped in _SETS)}")


def _read_rows(name: str) -> list[dict[str, str]]:
    text = files("hardlook.similarity").joinpath("tables", f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
