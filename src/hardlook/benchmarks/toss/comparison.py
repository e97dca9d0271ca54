"""Whether a score of TOSS may stand beside the paper's, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardlook.benchmarks.one_shot_pairs.options import SIZES, void_reading
from hardlook.benchmarks.one_shot_pairs.planted_pairs import PLANTED
from hardlook.benchmarks.toss.options import TossOptions, mixed_reading, scs_reading

if TYPE_CHECKING:
    import polars as pl

FOLDS = (0, 1, 2, 3)
TIER_OF = {"lca": 1, "hca": 1, "scs": 2, "gs": 3}
FIXED, COGNIZANCE, GENERAL = 0, 2, 3
COMPARABLE = (
    "comparable with the published table: the same pairs; the paper does not say at which size it counts, nor what it "
    "does with void pixels"
)


@dataclass(frozen=True)
class RanPairs:
    """What ran: where the pairs come from (`listing`, empty when published and whole), and the folds of each tier."""

    listing: str
    folds: Mapping[int, tuple[int, ...]]


def ran_pairs(records: pl.DataFrame) -> RanPairs:
    """Read off the records."""
    folds = records.select("tier", "fold").unique().sort("tier", "fold")
    tiers = {tier: tuple(folds.filter(folds["tier"] == tier)["fold"]) for tier in folds["tier"].unique()}
    return RanPairs(_listing(records), tiers)


def comparable_words(name: str, where: Mapping[str, str], ran: RanPairs, options: TossOptions) -> str:
    """One sentence for a score that the paper prints, empty for others unless the pairs themselves are others.

    >>> planted = RanPairs("the pairs are of the planted world", {1: (0, 1)})
    >>> comparable_words("salient", {}, planted, TossOptions())
    'not comparable: the pairs are of the planted world'
    >>> comparable_words("iou", {"class": "cat"}, RanPairs("", {}), TossOptions())
    ''
    """
    tier = _printed_tier(name, where)
    differs: list[str] = []
    if ran.listing:
        differs = [ran.listing]
    elif tier is not None:
        differs = _of_tier(name, where, tier, ran, options)
    elif name in ("salient", "non-salient"):
        differs = ["the pairs behind the paper's number are not published"]
    if differs:
        return f"not comparable: {'; '.join(differs)}"
    return COMPARABLE if tier is not None else ""


def _of_tier(name: str, where: Mapping[str, str], tier: int, ran: RanPairs, options: TossOptions) -> list[str]:
    differs = []
    if tier != GENERAL and "fold" not in where and ran.folds.get(tier) != FOLDS:
        differs.append("the paper means over folds 0 to 3")
    if where.get("shots", str(options.shots[0])) != "1":
        differs.append("the paper has one support a pair")
    if void_reading(options) != "ignored":
        differs.append("counted with void=background")
    if options.size != "original":
        differs.append(f"counted with {SIZES[options.size]}")
    if name == "scs" and scs_reading(options) != "paper":
        differs.append("the published SCS follows scs=paper")
    if tier == COGNIZANCE and options.encoder and (name == "scs" or where.get("level") in ("L2", "L3")):
        differs.append("an encoder tells L2 from L3 here, and the published table pools them")
    if tier == GENERAL and mixed_reading(options) != "released":
        differs.append("the published pairs of two classes are left out (mixed=ours)")
    if tier == GENERAL:
        differs.append("the paper means over four folds' models, and one model ran")
    if tier == FIXED and "coco" in options.data:
        differs.append("the paper prints PASCAL-5i alone")
    return differs


def _printed_tier(name: str, where: Mapping[str, str]) -> int | None:
    """The tier whose table prints this score; None where none does."""
    if "class" in where:
        return None
    if name == "miou":
        return {"split": 1, "level": 2, "tier": 3}.get(
            next((key for key in where if key not in ("fold", "shots")), ""), 0
        )
    return TIER_OF.get(name)


def _listing(records: pl.DataFrame) -> str:
    kinds = sorted(records["listing"].unique().to_list())
    if kinds == [PLANTED]:
        return "the pairs are of the planted world"
    if any(kind.startswith("built") for kind in kinds):
        return "the pairs are not the published ones"
    partial = [kind for kind in kinds if kind != "published"]
    return f"only a part of the published pairs ran ({len(records):,} pairs in all)" if partial else ""
