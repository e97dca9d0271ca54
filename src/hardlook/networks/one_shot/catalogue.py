"""The one-shot segmentation networks by name, from `networks.csv`.

>>> find_network("pfenet").size, find_network("pfenet").fit
(473, 'letterbox')
"""

from __future__ import annotations

import csv
import importlib
import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from hardlook.errors import OptionError

if TYPE_CHECKING:
    from hardlook.networks.one_shot.network import OneShotNetwork

PACKAGE = "hardlook.networks.one_shot"


@dataclass(frozen=True)
class NetworkEntry:
    """A row of `networks.csv`.

    Its publication trains it with images of `size` pixels, made to fit as `fit` says; `golden` names the golden numbers
    of released code that it is checked against, empty for none.
    """

    name: str
    target: str
    golden: str
    size: int
    fit: str
    citation: str

    def load(self) -> type[OneShotNetwork]:
        """The class, imported now; it needs torch."""
        module, _, name = self.target.partition(":")
        found: type[OneShotNetwork] = getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
        return found


@lru_cache(maxsize=1)
def list_networks() -> tuple[NetworkEntry, ...]:
    """All of them, in the order of the table."""
    text = files(PACKAGE).joinpath("networks.csv").read_text(encoding="utf-8")
    return tuple(
        NetworkEntry(row["name"], row["class"], row["golden"], int(row["size"]), row["fit"], row["citation"])
        for row in csv.DictReader(text.splitlines())
    )


def find_network(name: str) -> NetworkEntry:
    """The network of that name; an error with similar names where there is none."""
    entries = {entry.name: entry for entry in list_networks()}
    if name not in entries:
        near = get_close_matches(name, entries, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise OptionError(f"there is no one-shot network {name!r}", remedy=f"{hint}one of {', '.join(entries)}")
    return entries[name]


def has_released_reading(kind: type[OneShotNetwork]) -> bool:
    """Whether released code of the network does something else than what it does by default."""
    return "released" in inspect.signature(kind.__init__).parameters
