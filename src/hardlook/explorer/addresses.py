"""Addresses within the explorer, and their parameters read back: nothing in them is ever a path of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl, urlencode

from hardlook.explorer.refusals import Refused

Pairs = list[tuple[str, str]]
MOST_PARAMETERS = 200


def read_pairs(query: bytes) -> Pairs:
    """The parameters of an address, empty ones too.

    >>> read_pairs(b"id=a%2Fb&q=")
    [('id', 'a/b'), ('q', '')]
    """
    try:
        text = query.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="replace")
    except ValueError:
        raise Refused("The address cannot be read.") from None


def take(pairs: Pairs, names: Sequence[str]) -> tuple[dict[str, list[str]], Pairs]:
    """The values of some parameters, and the parameters that are left."""
    taken: dict[str, list[str]] = {name: [value for key, value in pairs if key == name] for name in names}
    return taken, [(key, value) for key, value in pairs if key not in taken]


def only(values: list[str], name: str, default: str = "") -> str:
    """The one value of a parameter."""
    if len(values) > 1:
        raise Refused(f"The parameter {name} is given twice.")
    return values[0] if values else default


def run_address(key: str, query: str = "") -> str:
    """The page of a run."""
    return f"/run/{key}" + (f"?{query}" if query else "")


def unit_address(key: str, unit: str, more: Sequence[tuple[str, str]] = ()) -> str:
    """The page of a unit; ids hold any character, so they are a parameter.

    >>> unit_address("ab12", "a/b <c>")
    '/run/ab12/unit?id=a%2Fb+%3Cc%3E'
    """
    return f"/run/{key}/unit?" + urlencode([("id", unit), *more])


def picture_address(key: str, unit: str, number: int, *, overlay: bool) -> str:
    """One picture of a unit."""
    shown = "on" if overlay else "off"
    return f"/run/{key}/picture?" + urlencode([("id", unit), ("number", str(number)), ("overlay", shown)])


def compare_address(first: str, second: str, quality: str = "", more: Sequence[tuple[str, str]] = ()) -> str:
    """Two runs unit by unit."""
    named = [("quality", quality)] if quality else []
    return "/compare?" + urlencode([("first", first), ("second", second), *named, *more])
