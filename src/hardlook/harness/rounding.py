"""The one rule by which a number becomes digits, in every report, comparison, table and sentence.

>>> format_fixed(0.8725, 3), format_fixed(0.87250000000000005, 3), format_fixed(0.1 + 0.7725, 3)
('0.872', '0.872', '0.872')
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal

# Scores are exact to about 15 digits; two ways to compute one may differ in the last of these, and in no earlier one.
_EXACT = Context(prec=13, rounding=ROUND_HALF_EVEN)


def format_fixed(value: float, decimals: int, *, sign: bool = False, group: bool = False) -> str:
    """The number with that many decimals; a half, but for rounding errors, goes to the even digit.

    With `sign` numbers above 0 have one, too; with `group` there are commas between thousands.

    >>> format_fixed(0.0625, 3), format_fixed(0.1875, 3), format_fixed(2.5, 0), format_fixed(0.5, 1, sign=True)
    ('0.062', '0.188', '2', '+0.5')
    """
    mark = f"{'+' if sign else ''}{',' if group else ''}"
    if not math.isfinite(value):
        return f"{value:{mark}.{decimals}f}"
    exact = _EXACT.create_decimal(Decimal(float(value)))
    rounded = exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN, Context(prec=400))
    return f"{rounded:{mark}.{decimals}f}"


def format_percent(share: float, decimals: int = 0, gap: str = " ") -> str:
    """The share in [0, 1] in per cent, rounded as by `format_fixed`; `gap` stands before the sign.

    >>> format_percent(0.125), format_percent(0.375), format_percent(0.0725, 1), format_percent(0.5, gap="")
    ('12 %', '38 %', '7.2 %', '50%')
    """
    return f"{format_fixed(100 * share, decimals)}{gap}%"
