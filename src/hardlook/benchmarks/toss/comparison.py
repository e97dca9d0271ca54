"""Whether a score of TOSS may stand beside the paper's, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hardlook.benchmarks.one_shot_pairs.planted_pairs import PLANTED
from hardlook.benchmarks.toss.options import TossOptions

if TYPE_CHECKING:
    import polars as pl

PAPER_PRINTS = frozenset({"lca", "hca", "scs", "gs", "miou", "salient", "non-salient"})
FOLDS = (0, 1, 2, 3)


def listing_of(records: pl.DataFrame) -> str:
    """Where the pairs of a run come from, in words; empty when every list is the published one, whole."""
    kinds = sorted(records["listing"].unique().to_list())
    if kinds == [PLANTED]:
        return "the pairs are of the planted world"
    if any(kind.startswith("built") for kind in kinds):
        return "the pairs are not the published ones"
    partial = [kind for kind in kinds if kind != "published"]
    return f"only a part of the published pairs ran ({len(records):,} pairs in all)" if partial else ""


def comparable_words(name: str, where: Mapping[str, str], listing: str, options: TossOptions) -> str:
    """One sentence for a score that the paper prints, empty for others.

    >>> comparable_words("lca", {}, "the pairs are of the planted world", TossOptions())
    'not comparable: the pairs are of the planted world'
    >>> comparable_words("iou", {"class": "cat"}, "", TossOptions())
    ''
    """
    if listing:
        return f"not comparable: {listing}"
    if name not in PAPER_PRINTS:
        return ""
    if "fold" not in where and tuple(sorted(options.folds)) != FOLDS:
        return "not comparable: the paper means over folds 0 to 3"
    if where.get("shots", str(options.shots[0])) != "1":
        return "not comparable: the paper has one support a pair"
    return "comparable with the published table: the same pairs; the paper does not say at which size it counts"
