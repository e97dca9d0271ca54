"""What an address or a form asks for: choices from a list, whole numbers, short texts; anything else is refused.

>>> asked = Asked([("sort", "inside"), ("page", "2")], known=("sort", "page"))
>>> asked.choice("sort", ("participant", "inside")), asked.whole("page", 1, 1, 100), asked.text("sort")
('inside', 2, 'inside')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, urlencode

from hardlook.collect.research.refusals import Refused, shortened

Pairs = list[tuple[str, str]]
MOST_PARAMETERS, MOST_TEXT = 50, 300


def read_pairs(query: bytes) -> Pairs:
    """The parameters of an address, or the fields of a form.

    >>> read_pairs(b"a=1&b=")
    [('a', '1'), ('b', '')]
    """
    try:
        return parse_qsl(
            query.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="replace"
        )
    except ValueError:
        raise Refused("The address or the form cannot be read.") from None


class Asked:
    """The parameters of one request, each at most once and each known to the page."""

    def __init__(self, pairs: Iterable[tuple[str, str]], known: Sequence[str]) -> None:
        self.values: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                raise Refused(f"There is no parameter {shortened(name)}.")
            if name in self.values:
                raise Refused(f"The parameter {name} is given twice.")
            self.values[name] = value

    def text(self, name: str, most: int = MOST_TEXT) -> str:
        """A text without blanks around it, of at most `most` characters."""
        value = self.values.get(name, "").strip()
        if len(value) > most:
            raise Refused(f"The parameter {name} has {len(value)} characters; {most} are allowed.")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """One of the choices; the first, or `default`, where none is said."""
        value = self.values.get(name, "") or (choices[0] if default is None else default)
        if value != default and value not in choices:
            raise Refused(f"The parameter {name} is one of {', '.join(choices)}, not {shortened(value)}.")
        return value

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number from `least` to `most`."""
        value = self.values.get(name, "").strip()
        if not value:
            return default
        if not (value.isascii() and value.isdigit()) or len(value) > 9 or not least <= int(value) <= most:
            raise Refused(f"{name} is a whole number from {least} to {most}, not {shortened(value)}.")
        return int(value)

    def address(self, path: str, **changes: object) -> str:
        """The address of this page with some parameters changed; empty ones are left out.

        >>> Asked([("q", "cat"), ("page", "2")], ("q", "page")).address("/research/images", page=3)
        '/research/images?q=cat&page=3'
        """
        values = {**self.values, **{name: str(value) for name, value in changes.items()}}
        query = urlencode([(name, value) for name, value in values.items() if value])
        return f"{path}?{query}" if query else path
