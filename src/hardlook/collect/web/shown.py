"""When trials were first shown, by this server's own clock: no click comes before its phases can have passed.

>>> times = ShownTimes()
>>> times.note("a", 10.0), times.note("a", 12.0), times.since("a", 15.0), times.since("b", 15.0)
(None, None, 5.0, None)
"""

from __future__ import annotations

import threading
from collections import OrderedDict

MOST = 100_000


class ShownTimes:
    """The first time of each trial, in bounded memory; of a trial that another process showed nothing is known."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._first = most, OrderedDict[str, float]()
        self._lock = threading.Lock()

    def note(self, trial: str, now: float) -> None:
        """Keep the time of a trial's first show."""
        with self._lock:
            self._first.setdefault(trial, now)
            while len(self._first) > self._most:
                self._first.popitem(last=False)

    def since(self, trial: str, now: float) -> float | None:
        """Seconds since the first show; None when it is not known here."""
        first = self._first.get(trial)
        return None if first is None else now - first
