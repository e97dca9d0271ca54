"""Whether a batch was answered in less time than it takes, by the server's own clock.

A page shows one task after another, so that the phases of all clicks of a batch follow each other. A program may have
all tasks shown at once and answer all of them when the phases of one are over:

>>> at_once = [TimedAnswer(least=5.0, shown=0.0, received=5.3) for _ in range(10)]
>>> one_by_one = [TimedAnswer(least=5.0, shown=6.0 * i, received=6.0 * i + 5.6) for i in range(10)]
>>> is_too_quick(at_once), is_too_quick(one_by_one)
(True, False)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

# Share of the planned seconds by which clocks, and frames of a screen, may differ from the plan.
TOLERANCE = 0.05


@dataclass(frozen=True)
class TimedAnswer:
    """An answer that takes `least` seconds at least; its task was first shown at `shown`, seconds since 1970."""

    least: float
    shown: float | None
    received: float


def is_too_quick(answers: Iterable[TimedAnswer], least_mean: float = 0.0) -> bool:
    """Whether one person cannot have given these answers of a batch, one after another, in this time.

    Two bars: the answers' `least` seconds do not fit between the times when tasks were shown and answers received;
    or the time from the first task shown to the last answer is below `least_mean` seconds per answer. Answers whose
    task was never shown, or was shown after the answer since a clock was set back, say nothing.
    """
    known = [one for one in answers if one.shown is not None and one.shown <= one.received]
    busy_until, planned = -math.inf, 0.0
    for one in sorted(known, key=lambda one: one.received):
        busy_until = max(busy_until, one.shown or 0.0) + one.least
        planned += one.least
        if one.received < busy_until - TOLERANCE * planned:
            return True
    if not known:
        return False
    seconds = max(one.received for one in known) - min(one.shown or 0.0 for one in known)
    return seconds < least_mean * len(known)
