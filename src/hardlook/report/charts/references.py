"""Reference lines with their names above the plot, placed so that no name covers another name or line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hardlook.report.charts.lettering import SMALL, label, text_width
from hardlook.report.charts.palette import MUTED
from hardlook.report.charts.scales import LinearScale
from hardlook.report.charts.svg import segment
from hardlook.report.markup import element
from hardlook.report.numerals import is_number, numeral

LANE = 16.0
_MOST_LANES = 6


@dataclass(frozen=True)
class Placed:
    """A reference: its line at `x`, its text from `start` to `stop` in a lane above the plot (0 is the lowest)."""

    x: float
    start: float
    stop: float
    text: str
    lane: int

    @property
    def beside(self) -> bool:
        """Whether the text stands beside its line rather than on top of it."""
        return not self.start < self.x < self.stop


def place_references(
    references: Sequence[tuple[str, float]], scale: LinearScale, decimals: int, width: float
) -> list[Placed]:
    """Each reference in the lowest lane where its text, centred or beside its line, meets nothing.

    >>> scale = LinearScale(0, 1, 0, 400)
    >>> [placed.lane for placed in place_references((("paper", 0.5), ("chance", 0.52)), scale, 2, 400)]
    [0, 0]
    """
    placed: list[Placed] = []
    known = sorted(((name, value) for name, value in references if is_number(value)), key=lambda pair: pair[1])
    for index, (name, value) in enumerate(known):
        text = f"{name} {numeral(value, decimals)}"
        x, room = scale.at(value), min(text_width(text, SMALL), width - 4)
        later = [scale.at(other) for _, other in known[index + 1 :]]
        placed.append(_lowest(x, room, text, placed, later, width))
    return placed


def draw_references(placed: Sequence[Placed], head: float, bottom: float) -> str:
    """The dashed lines from their names down through the plot; `head` is the base of the lowest lane."""
    parts = []
    for reference in placed:
        base = head - reference.lane * LANE
        top = base - 12 if reference.beside else base + 1
        parts.append(segment(reference.x, top, reference.x, bottom, MUTED, 1.2, "4 3"))
    for reference in placed:
        base = head - reference.lane * LANE - 3
        room = reference.stop - reference.start + 1
        parts.append(label(reference.start, base, reference.text, size=SMALL, fill=MUTED, room=room, halo=True))
    return element("g", *parts, class_="references")


def _lowest(x: float, room: float, text: str, placed: list[Placed], later: list[float], width: float) -> Placed:
    for lane in range(_MOST_LANES):
        for start in (x - room / 2, x - room - 5, x + 5):
            candidate = Placed(x, start, start + room, text, lane)
            if 0 <= start and start + room <= width and _is_free(candidate, placed, later):
                return candidate
    # Nothing is free: a lane of its own, where at worst it covers a line.
    start = max(2.0, min(x - room / 2, width - room - 2))
    return Placed(x, start, start + room, text, max((other.lane for other in placed), default=-1) + 1)


def _is_free(candidate: Placed, placed: list[Placed], later: list[float]) -> bool:
    for other in placed:
        if other.lane == candidate.lane and candidate.start < other.stop + 8 and other.start < candidate.stop + 8:
            return False
        if other.lane >= candidate.lane and candidate.start - 3 < other.x < candidate.stop + 3:
            return False
        if other.lane < candidate.lane and other.start - 3 < candidate.x < other.stop + 3:
            return False
    # Lines still to come may have to pass through this lane.
    return not any(candidate.start - 3 < line < candidate.stop + 3 for line in later)
