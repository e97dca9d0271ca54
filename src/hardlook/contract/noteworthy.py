"""Units worth looking at: the best, the worst, the most typical, and those that surprise.

A unit surprises when its quality is far from what the other units of its slices got: a failure where this kind of
unit is easy, or a success where it is hard.

>>> import polars as pl
>>> found = noteworthy(
...     pl.DataFrame({"unit": list("abcde"), "iou": [0.9, 0.8, 0.1, 0.2, 0.3]}),
...     pl.DataFrame({"unit": list("abcde"), "context": ["sea", "sea", "sea", "sky", "sky"]}),
...     Quality("iou", "IoU"), most=1)
>>> found
{'best': ['a'], 'worst': ['c'], 'typical': ['e'], 'surprising': ['c']}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hardlook.contract.benchmark import Quality

if TYPE_CHECKING:
    import polars as pl

# Means of equal numbers differ from them in the last bits.
ROUNDING = 1e-9
KINDS = ("best", "worst", "typical", "surprising")


def noteworthy(qualities: pl.DataFrame, slices: pl.DataFrame, quality: Quality, most: int) -> Mapping[str, list[str]]:
    """At most `most` unit ids of each kind, the most telling first.

    `qualities` has `unit` and the column of the quality, `slices` has `unit` and one column a slice. Ties go by unit
    id. A unit whose quality is NaN is never chosen, and no unit is both among the best and the worst. Typical units
    are those nearest to the median. Where no slice says anything, or all units got the same, nothing surprises; where
    all got the same, none is the worst.
    """
    import polars as pl

    known = expected_qualities(qualities, slices, quality)
    down = pl.col("value") if quality.higher_is_better else -pl.col("value")
    ordered = known.sort(-down, "unit")
    # With few units, or many equal ones, both ends of the order would meet: each is chosen from its own half.
    half = (len(known) + 1) // 2
    best = _first(ordered.head(half), -down, most)
    others = ordered.tail(len(known) - half)
    worst = _first(others.filter(pl.col("value") != pl.lit(ordered["value"].first())), down, most)
    typical = _first(known, (pl.col("value") - pl.col("value").median()).abs(), most)
    surprising = _first(known.filter(_distance() > ROUNDING), -_distance(), most)
    return dict(zip(KINDS, (best, worst, typical, surprising), strict=True))


def expected_qualities(qualities: pl.DataFrame, slices: pl.DataFrame, quality: Quality) -> pl.DataFrame:
    """`unit`, `value` and `expected` of every unit whose quality is known, sorted by unit.

    `expected` is the mean, over the slice columns, of the mean of the other units with the same slice value; null
    where no slice column tells the unit from some and joins it to others.
    """
    import polars as pl

    values = qualities.select("unit", value=pl.col(quality.name).cast(pl.Float64))
    known = values.filter(pl.col("value").is_finite()).join(slices, on="unit", how="left").sort("unit")
    columns = [name for name in slices.columns if name != "unit" and known[name].n_unique() > 1]
    if not columns:
        return known.select("unit", "value", expected=pl.lit(None, pl.Float64))
    others = [_others(name).alias(f"{index}") for index, name in enumerate(columns)]
    return known.select("unit", "value", *others).select(
        "unit", "value", expected=pl.mean_horizontal(pl.col(f"{index}") for index in range(len(columns)))
    )


def _others(column: str) -> pl.Expr:
    """The mean of the other units with the same value in this column; null where there is none."""
    import polars as pl

    total, count = pl.col("value").sum().over(column), pl.len().over(column)
    return pl.when(count > 1).then((total - pl.col("value")) / (count - 1))


def _distance() -> pl.Expr:
    import polars as pl

    return (pl.col("value") - pl.col("expected")).abs()


def _first(known: pl.DataFrame, order: pl.Expr, most: int) -> list[str]:
    units: list[str] = known.sort(order, "unit").head(max(most, 0))["unit"].to_list()
    return units
