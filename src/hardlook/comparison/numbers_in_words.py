"""Numbers as sentences say them."""

from __future__ import annotations

import math


def decimals_of(*values: float) -> int:
    """How many decimals show these values and their differences: three on the unit range, fewer for large numbers.

    >>> decimals_of(0.512, 0.498), decimals_of(55.25), decimals_of(0.0004)
    (3, 2, 5)
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest == 0 or 0.01 <= largest < 10:
        return 3
    digits = math.floor(math.log10(largest))
    return min(1 - digits, 8) if largest < 0.01 else max(3 - digits, 1)


def number(value: float, decimals: int = 3) -> str:
    r"""A number with a true minus; a dash where there is none.

    >>> number(0.0314), number(12345.678, 1), number(-0.5) == "\N{MINUS SIGN}0.500"
    ('0.031', '12,345.7', True)
    """
    if not math.isfinite(value):
        return "\N{EN DASH}"
    text = f"{value:,.{decimals}f}"
    if not text.startswith("-"):
        return text
    return text[1:] if float(text.replace(",", "")) == 0 else "\N{MINUS SIGN}" + text[1:]


def p_text(p_value: float) -> str:
    """A p-value: three decimals, or one digit where that would be zero.

    >>> p_text(0.6123), p_text(0.0001), p_text(1.0)
    ('0.612', '0.0001', '1')
    """
    if not math.isfinite(p_value):
        return "\N{EN DASH}"
    if p_value >= 0.001:
        return f"{p_value:.3f}" if p_value < 1 else "1"
    return f"{p_value:.{max(4, math.ceil(-math.log10(p_value)))}f}" if p_value > 0 else "0"


def about(count: float) -> str:
    """A planned number of units with two digits, rounded up: it is an order of magnitude, not a promise.

    >>> about(3_367), about(48), about(12_345_678)
    ('3,400', '48', '13 million')
    """
    if count >= 1e6:
        millions = count / 1e6
        step = 10 ** max(0, math.floor(math.log10(millions)) - 1)
        rounded = math.ceil(millions / step) * step
        return f"{rounded:,} million" if rounded < 1_000_000 else "more than a million million"
    step = 10 ** max(0, math.floor(math.log10(max(count, 1))) - 1)
    return f"{math.ceil(count / step) * step:,}"


def plural(noun: str, count: float = 2) -> str:
    """The noun of several things.

    >>> plural("image"), plural("query image", 1), plural("class")
    ('images', 'query image', 'classes')
    """
    if count == 1:
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")
