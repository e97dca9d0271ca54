"""How a list of units is shown: as a grid of pictures or as a table, and what is laid over the pictures.

Both are parameters of the URL, `view` and `overlay`, so that every link keeps them.

>>> parse_display({"view": ["table"], "overlay": []}).parameters()
[('view', 'table')]
>>> Display().parameters(overlay="off")
[('overlay', 'off')]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from hardlook.report.explorer import urls
from hardlook.report.explorer.query import truncate
from hardlook.report.explorer.thumbnails import Overlay

View = Literal["grid", "table"]
NAMES = ("view", "overlay")
OVERLAYS: dict[Overlay, str] = {
    "on": "truth and prediction",
    "truth": "truth",
    "prediction": "prediction",
    "off": "nothing",
}


@dataclass(frozen=True)
class Display:
    """The view and the overlay of a page; the defaults are not written into URLs."""

    view: View = "grid"
    overlay: Overlay = "on"

    def parameters(self, **changes: Any) -> list[tuple[str, str]]:
        """The display as parameters of a URL, with some fields changed."""
        one, usual = replace(self, **changes), Display()
        pairs = [("view", one.view, usual.view), ("overlay", one.overlay, usual.overlay)]
        return [(name, value) for name, value, default in pairs if value != default]


def parse_display(named: Mapping[str, list[str]]) -> Display:
    """The display in the parameters of a URL; other values give an error page."""
    return Display(_choose(named, "view", get_args(View)), _choose(named, "overlay", tuple(OVERLAYS)))


def _choose(named: Mapping[str, list[str]], name: str, choices: tuple[Any, ...]) -> Any:
    """The value of a parameter, the first choice where it is not given; a form also sends its empty fields."""
    chosen = urls.get_single_value(named[name], name) or choices[0]
    if chosen not in choices:
        raise urls.PageError(f"The {name} is {', '.join(choices[:-1])} or {choices[-1]}, not {truncate(chosen)}.")
    return chosen
