"""Numbers, counts and slices as texts for readers: the same decimals in a column, a true minus, a dash for no value.

>>> values = [0.5, 0.25, None]
>>> [format_number(value, choose_decimals(values)) for value in values][:2]
['0.500', '0.250']
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from hardlook.harness.rounding import format_fixed

MISSING = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a finite number; NaN, None and texts are not."""
    return isinstance(value, int | float) and math.isfinite(value)


def keep_finite(values: Iterable[float | None]) -> list[float]:
    """The finite values, as floats."""
    return [float(value) for value in values if is_number(value)]


def choose_decimals(values: Iterable[float | None], *, counts: bool = True) -> int:
    """How many decimals suit all of these values and their differences: three for scores, none for counts.

    Without `counts` whole numbers are scores, too.

    >>> choose_decimals([0.123, 0.9]), choose_decimals([3, 12]), choose_decimals([55.25]), choose_decimals([0.0004])
    (3, 0, 2, 5)
    >>> choose_decimals([55.0], counts=False)
    2
    """
    numbers = keep_finite(values)
    largest = max(map(abs, numbers), default=0.0)
    # Whole values on the unit range are scores that happen to be 0 or 1, not counts.
    if counts and largest > 1 and all(number == int(number) for number in numbers):
        return 0
    if largest == 0 or 0.01 <= largest < 10:
        return 3
    digits = math.floor(math.log10(largest))
    return min(1 - digits, 8) if largest < 0.01 else max(3 - digits, 1)


def choose_column_decimals(values: Iterable[float | int], decimals: int | None) -> int:
    """The decimals of a column: none for ints and very large numbers, and at most two where all values have no more.

    `decimals` is the requested number; None takes as many as suit the values.

    >>> choose_column_decimals([1, 2], 3), choose_column_decimals([0.67, 0.5, 0.54, 0.26], 3)
    (0, 2)
    >>> choose_column_decimals([2_614_377.4], 2)
    0
    """
    numbers = list(values)
    if all(isinstance(number, int) for number in numbers):
        return 0
    if decimals is None:
        return choose_decimals(numbers)
    known = keep_finite(numbers)
    if known and max(abs(number) for number in known) >= 10_000:
        return 0
    # Four numbers with two decimals at most were rounded to two; fewer may be round by chance.
    rounded = len(known) >= 4 and all(number == round(number, 2) for number in known)
    return min(decimals, 2) if rounded and any(number % 1 for number in known) else decimals


def format_number(value: float | None, decimals: int = 3, *, group_from: float = 10_000) -> str:
    r"""The number with that many decimals, and commas between thousands where it is at least `group_from`.

    Very large numbers, and very small ones among their like, are written with an exponent.

    >>> format_number(0.0314), format_number(12345.678, 1), format_number(-0.5) == "\N{MINUS SIGN}0.500"
    ('0.031', '12,345.7', True)
    """
    if not is_number(value):
        return MISSING
    # Beside larger values a tiny one is zero; among its like, which take eight decimals, it is shown.
    if abs(value) >= 1e9 or (decimals >= 8 and 0 < abs(value) < 1e-6):
        return f"{value:.3g}".replace("-", _MINUS)
    text = format_fixed(value, decimals, group=abs(value) >= group_from)
    if text.startswith("-"):
        # A value that rounds to zero carries no sign.
        text = text[1:] if float(text.replace(",", "")) == 0 else _MINUS + text[1:]
    return text


def format_exact(value: float | int | None) -> str:
    """The number with all its digits, for programs; empty where there is none.

    >>> format_exact(0.1), format_exact(3), format_exact(math.nan)
    ('0.1', '3', '')
    """
    if not is_number(value):
        return ""
    # numpy's own floats would write their type beside the number.
    return repr(float(value)) if isinstance(value, float) else repr(value)


def format_interval(low: float | None, high: float | None, decimals: int) -> str:
    """An interval as `low to high`; empty where an end is missing.

    >>> format_interval(0.1, 0.25, 2), format_interval(None, 1.0, 2)
    ('0.10 to 0.25', '')
    """
    known = is_number(low) and is_number(high)
    return f"{format_number(low, decimals)} to {format_number(high, decimals)}" if known else ""


def format_level(level: float) -> str:
    """The level of an interval in per cent, with as many digits as it has.

    >>> format_level(0.95), format_level(0.995)
    ('95%', '99.5%')
    """
    return f"{100 * level:g}%"


def format_p_value(p_value: float) -> str:
    """A p-value: three decimals, or one digit where that would be zero.

    >>> format_p_value(0.6123), format_p_value(0.0001), format_p_value(1.0)
    ('0.612', '0.0001', '1')
    """
    if not math.isfinite(p_value):
        return MISSING
    if p_value >= 0.001:
        return format_fixed(p_value, 3) if p_value < 1 else "1"
    return f"{p_value:.{max(4, math.ceil(-math.log10(p_value)))}f}" if p_value > 0 else "0"


def format_rough_count(count: float) -> str:
    """A planned number of units, rounded up to two digits.

    >>> format_rough_count(3_367), format_rough_count(48), format_rough_count(12_345_678)
    ('3,400', '48', '13 million')
    """
    if count >= 1e6:
        millions = count / 1e6
        step = 10 ** max(0, math.floor(math.log10(millions)) - 1)
        rounded = math.ceil(millions / step) * step
        return f"{rounded:,} million" if rounded < 1_000_000 else "more than a million million"
    step = 10 ** max(0, math.floor(math.log10(max(count, 1))) - 1)
    return f"{math.ceil(count / step) * step:,}"


def format_count(count: int, one: str, many: str = "") -> str:
    """A count with its noun; `many` is the plural where it is not that of `pluralize`.

    >>> format_count(1, "row"), format_count(1200, "row")
    ('1 row', '1200 rows')
    """
    return f"{format_number(count, 0)} {one if count == 1 else many or pluralize(one)}"


def pluralize(noun: str, count: float = 2) -> str:
    """The noun for that many things.

    >>> pluralize("image"), pluralize("query image", 1), pluralize("class")
    ('images', 'query image', 'classes')
    """
    if count == 1:
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def format_slice(where: Mapping[str, str]) -> str:
    """A slice as a label; empty for all units.

    >>> format_slice({"dataset": "davis", "size": "small"})
    'dataset: davis, size: small'
    """
    return ", ".join(f"{key}: {value}" for key, value in where.items())


def describe_slice(where: Mapping[str, str]) -> str:
    """A slice as a clause of a sentence.

    >>> describe_slice({"class": "cat", "context": "night"})
    'class is cat and context is night'
    """
    return " and ".join(f"{key} is {value}" for key, value in where.items())
