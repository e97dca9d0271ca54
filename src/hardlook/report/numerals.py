"""Numbers as a reader sees them: one count of decimals a column, a true minus, a dash where there is none.

>>> values = [0.5, 0.25, None]
>>> [numeral(value, decimals_for(values)) for value in values][:2]
['0.500', '0.250']
"""

from __future__ import annotations

import math
from collections.abc import Iterable

NOTHING = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"
_FEW = 4


def is_number(value: object) -> bool:
    """Whether the value is a finite number; NaN, None and texts are not."""
    return isinstance(value, int | float) and math.isfinite(value)


def finite(values: Iterable[float | None]) -> list[float]:
    """The values that can be drawn."""
    return [float(value) for value in values if value is not None and is_number(value)]


def decimals_for(values: Iterable[float | None]) -> int:
    """How many decimals suit all of these values together: three for scores, none for counts.

    >>> decimals_for([0.123, 0.9]), decimals_for([3, 12]), decimals_for([55.25]), decimals_for([0.0004])
    (3, 0, 2, 5)
    """
    numbers = finite(values)
    if not numbers:
        return 3
    largest = max(abs(number) for number in numbers)
    # Whole values on the unit range are scores that happen to be 0 or 1, not counts.
    if largest > 1 and all(number == int(number) for number in numbers):
        return 0
    if largest == 0 or 0.01 <= largest < 10:
        return 3
    digits = math.floor(math.log10(largest))
    return min(1 - digits, 8) if largest < 0.01 else max(3 - digits, 1)


def column_decimals(values: Iterable[float | int], decimals: int | None) -> int:
    """The decimals of a column: none for ints and very large numbers, and not more than two where all have no more.

    `decimals` are those asked for; None takes as many as suit the values.

    >>> column_decimals([1, 2], 3), column_decimals([0.67, 0.5, 0.54, 0.26], 3), column_decimals([2_614_377.4], 2)
    (0, 2, 0)
    """
    numbers = list(values)
    if all(isinstance(number, int) for number in numbers):
        return 0
    if decimals is None:
        return decimals_for(numbers)
    known = finite(numbers)
    if known and max(abs(number) for number in known) >= 10_000:
        return 0
    # A few numbers may be round by chance; a column of them was printed so, and a third decimal would pretend.
    printed = len(known) >= _FEW and all(number == round(number, 2) for number in known)
    return min(decimals, 2) if printed and any(number % 1 for number in known) else decimals


def numeral(value: float | None, decimals: int) -> str:
    """The number with that many decimals; very large ones with an exponent."""
    if value is None or not is_number(value):
        return NOTHING
    # Beside larger values a tiny one is zero; among its like, which take eight decimals, it is shown.
    if abs(value) >= 1e9 or (decimals >= 8 and 0 < abs(value) < 1e-6):
        return f"{value:.3g}".replace("-", _MINUS)
    text = f"{value:,.{decimals}f}" if abs(value) >= 10_000 else f"{value:.{decimals}f}"
    if text.startswith("-"):
        # A value that rounds to zero carries no sign.
        text = text[1:] if float(text.replace(",", "")) == 0 else _MINUS + text[1:]
    return text


def span(low: float | None, high: float | None, decimals: int) -> str:
    """An interval in words, or nothing when an end is missing.

    >>> span(0.1, 0.25, 2), span(None, 1.0, 2)
    ('0.10 to 0.25', '')
    """
    if low is None or high is None or not (is_number(low) and is_number(high)):
        return ""
    return f"{numeral(low, decimals)} to {numeral(high, decimals)}"


def counted(count: int, one: str, many: str = "") -> str:
    """A count with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1200 rows')
    """
    return f"{numeral(count, 0)} {one if count == 1 else many or one + 's'}"
