"""Load a label set by its name or from a file.

`label_sets.csv` lists the sets of the package; each is one CSV in `tables/`, with published and corrected senses.

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


WORDS = "words"
"""The variant of labels that are given as words, without senses."""

_NOT_SHIPPED = {
    "lvis": "give LVIS's annotation json: its categories carry their synsets",
}


def load_label_set(name_or_path: str | Path, variant: str = "corrected", *, nouns: Nouns | None = None) -> LabelSet:
    """A shipped label set (`hardlook labels list`), a user's file (CSV, TSV, JSON, plain text), or words.

    `variant` chooses the senses of a shipped set; a file has its own. Words are any strings with commas between; they
    have no senses. An unknown name is an `OptionError`.

    >>> load_label_set("cat, the red barn").names
    ('cat', 'the red barn')
    """
    name = str(name_or_path)
    shipped = [one.name for one in list_label_sets()]
    if name in shipped:
        return load_shipped_set(name, variant)
    if Path(name).is_file():
        return read_label_file(Path(name), nouns=nouns)
    if "," in name and Path(name).suffix.lower() not in (".csv", ".tsv", ".json", ".txt"):
        words = [word.strip() for word in name.split(",") if word.strip()]
        return LabelSet("words", WORDS, tuple(Label(row, word) for row, word in enumerate(words)))
    if name.lower() in _NOT_SHIPPED:
        raise OptionError(f"the labels {name!r} do not ship", remedy=_NOT_SHIPPED[name.lower()])
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), shipped, n=3) or shipped
    remedy = f"a file, one of {', '.join(close)}, or words with commas between"
    raise OptionError(f"no label set and no file {name!r}", remedy=remedy)


@cache
def list_label_sets() -> tuple[ShippedSet, ...]:
    """The label sets of the package."""
    return tuple(
        ShippedSet(
            row["name"],
            row["title"],
            len(_read_rows(f"tables/{row['name']}.csv")),
            row["numbering"],
            row["category_numbering"] or None,
            tuple(row["variants"].split("|")),
        )
        for row in _read_rows("label_sets.csv")
    )


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
        for row in _read_rows(f"tables/{name}.csv")
    )
    return LabelSet(name, variant, labels)


def find_differences(name: str) -> tuple[SenseDifference, ...]:
    """Where the corrected senses of a set differ from the published ones, by row.

    >>> find_differences("voc20")[0].reason
    'cattle; cow.n.02 is the female of any large mammal'
    """
    if "published" not in find_shipped_set(name).variants:
        have = ", ".join(shipped.name for shipped in list_label_sets() if "published" in shipped.variants)
        raise OptionError(f"{name} has no published senses to compare with", remedy=f"one of {have}")
    return tuple(
        SenseDifference(
            row["name"], row["published"] or None, row["synset"] or None, row["hypernym"] or None, row["reason"]
        )
        for row in _read_rows(f"tables/{name}.csv")
        if (row["published"], "") != (row["synset"], row["hypernym"])
    )


def find_shipped_set(name: str) -> ShippedSet:
    """The entry of a shipped set; an `OptionError` that lists all for another name."""
    sets = {one.name: one for one in list_label_sets()}
    if name in sets:
        return sets[name]
    raise OptionError(f"no label set {name!r}", remedy=f"one of {', '.join(sets)}")


def _read_rows(table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(files("hardlook.similarity").joinpath(table).read_text(encoding="utf-8").splitlines()))
