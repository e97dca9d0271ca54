"""Scores of TOSS from records: LCA, HCA, SCS, GS, and the mIoU of every split, level, class and fold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.data.toss_pairs import L2_OR_L3
from hardlook.harness.benchmark import BenchmarkCard, ScoreMeaning
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.tally import DIFFERENCE, SumTally
from hardlook.metrics.one_shot import (
    LEVELS,
    POOLED_LEVELS,
    RELEASED_GROUPS,
    SPLITS,
    class_iou,
    generalization_score,
    lca_hca,
    scs_paper,
    scs_released,
)
from hardlook.toss.evaluation import NO_SIMILARITY, note_empty_supports
from hardlook.toss.options import COGNIZANCE, COMPLEXITY, FIXED, GENERAL, TossOptions
from hardlook.toss.pair_lists import EXAMPLES
from hardlook.toss.pixel_sums import (
    INTERSECTION,
    UNION,
    Chosen,
    NamedScore,
    PixelSums,
    Totals,
    Values,
    class_ious,
    compute_credits,
    foreground_background_iou,
    mean_defined,
    mean_iou,
    pair_iou,
    pair_union_expression,
    score_classes,
    score_folds,
    score_tallies,
    sum_pixels,
    tally_scores,
)
from hardlook.toss.published import describe_comparability, find_pairs_run
from hardlook.toss.salience_following import FOLLOWING_SCORES, FOLLOWS_TRUTH, tally_following

if TYPE_CHECKING:
    import polars as pl

SALIENT, NOT_SALIENT = ("easy_sal", "hard_sal"), ("easy_nsal", "hard_nsal")
SPURIOUS = ("L4", "L5", "L6")
SAME_CLASS = ("L2", "L3", L2_OR_L3)
LABELS = ("tier", "fold", "split", "class", "shots")
# With a spurious support an empty mask is right, so a lower IoU is better.
_SPURIOUS_LEVELS = tuple(("level", level) for level in SPURIOUS)
SCORES = (
    ScoreMeaning(
        "lca",
        "LCA",
        "low-complexity accuracy: mIoU of the four splits of tier 1, weighted towards easy and salient queries",
        headline=True,
    ),
    ScoreMeaning("hca", "HCA", "high-complexity accuracy: the same, weighted towards hard queries", headline=True),
    ScoreMeaning(
        "scs",
        "SCS",
        "support cognizance: high where the support shows the class, and finding nothing where it does not",
        headline=True,
    ),
    ScoreMeaning("gs", "GS", "generalisation: mean IoU over classes unlike any trained on", headline=True),
    ScoreMeaning("salient", "salient", "mIoU of queries whose target is salient"),
    ScoreMeaning("non-salient", "non-salient", "mIoU of queries whose target is not salient"),
    ScoreMeaning(
        "salience-gap", "salience gap", "mIoU of salient minus mIoU of other targets; near 0 is even", ranked=False
    ),
    *FOLLOWING_SCORES,
    ScoreMeaning("rejection", "rejection", "1 - mean IoU under spurious supports (L4 to L6): 1 finds nothing there"),
    ScoreMeaning(
        "miou",
        "mIoU",
        "mean over classes, then folds, of summed intersections / summed unions",
        inverted_slices=_SPURIOUS_LEVELS,
    ),
    ScoreMeaning(
        "fb-iou",
        "FB-IoU",
        "mean of the IoU of object and background, the classes of a fold pooled, then over folds",
        inverted_slices=_SPURIOUS_LEVELS,
    ),
    ScoreMeaning(
        "pair-iou",
        "pair IoU",
        "mean IoU over single pairs; beside mIoU, never in its place",
        inverted_slices=_SPURIOUS_LEVELS,
    ),
    ScoreMeaning("iou", "IoU", "summed intersections / summed unions of one class", inverted_slices=_SPURIOUS_LEVELS),
)


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: TossOptions) -> Scorecard:
    """Every score with its interval over query images."""
    scored, _ = _select_scored(records, options)
    scores = score_tallies(tally_records(records, options), options)
    left_out = list_left_out(records, scored, scores, options)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=left_out)


def tally_records(records: pl.DataFrame, options: TossOptions) -> list[SumTally]:
    """Pixels by tier, fold, split, class and shots; then what masks follow, for each number of shots."""
    import polars as pl

    scored, similar_above = _select_scored(records, options)
    sums = sum_pixels(scored, LABELS, void_ignored=options.void_ignored)
    reading, ran = options.scs_reading, find_pairs_run(scored)
    first, *rest = options.shots
    slices: dict[int, dict[str, str]] = {first: {}, **{shots: {"shots": str(shots)} for shots in rest}}

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        return [
            score
            for shots, where in slices.items()
            for score in _score_shots(sums, totals, sums.where(shots=shots), reading, where)
        ]

    def more(score: NamedScore) -> Mapping[str, Any]:
        how = f"scs={reading}" if score.name == "scs" else ""
        if similar_above is not None and score.slice.get("level") in ("L2", "L3"):
            how = f"L2 has cosines above {format_fixed(similar_above, 4)}"
        return {"reading": how, "comparable": describe_comparability(score.name, score.slice, ran, options)}

    tallies = tally_scores(sums, name_scores, key=("toss", "bootstrap"), more=more)
    others = scored.filter((pl.col("tier") == COMPLEXITY) & pl.col("split").is_in(NOT_SALIENT))
    for shots, where in slices.items():
        tallies += tally_following(
            others.filter(pl.col("shots") == shots),
            void_ignored=options.void_ignored,
            key=("toss", "following", shots),
            where=where,
            comparable=describe_comparability(FOLLOWS_TRUTH, {}, ran, options),
        )
    return tallies


def compute_unit_qualities(records: pl.DataFrame, options: TossOptions) -> pl.DataFrame:
    """Credit and IoU of each pair; NaN for pairs of two classes where the reading drops them."""
    import polars as pl

    return compute_credits(
        records,
        void_ignored=options.void_ignored,
        spurious=pl.col("split").is_in(SPURIOUS),
        scored=None if options.mixed_kept else ~pl.col("mixed"),
    )


def split_levels(records: pl.DataFrame, shots: int) -> tuple[pl.DataFrame, float | None]:
    """The records with `L2+L3` split at the mean cosine of those pairs: above it L2 (similar), else L3; and that mean.

    The mean is over the records of this number of `shots`, so each pair counts once. None if no encoder ran.

    >>> import polars as pl
    >>> rows = {"split": ["L2+L3", "L2+L3", "L0"], "similarity": [0.9, 0.1, -2.0], "shots": [1, 1, 1]}
    >>> split, mean = split_levels(pl.DataFrame(rows), 1)
    >>> split["split"].to_list(), mean
    (['L2', 'L3', 'L0'], 0.5)
    """
    import polars as pl

    if "similarity" not in records.columns:
        return records, None
    measured = (pl.col("split") == L2_OR_L3) & (pl.col("similarity") > NO_SIMILARITY)
    # Sorted, so that the sum does not depend on the order of the records.
    cosines = records.filter(measured & (pl.col("shots") == shots))["similarity"].sort()
    if cosines.is_empty():
        return records, None
    mean = float(cosines.to_numpy().mean())
    level = pl.when(pl.col("similarity") > mean).then(pl.lit("L2")).otherwise(pl.lit("L3"))
    return records.with_columns(split=pl.when(measured).then(level).otherwise(pl.col("split"))), mean


def _select_scored(records: pl.DataFrame, options: TossOptions) -> tuple[pl.DataFrame, float | None]:
    """The records that are scored, with L2 separate from L3 where an encoder ran, and the cosine between them."""
    return split_levels(records if options.mixed_kept else records.filter(~records["mixed"]), options.shots[0])


def _score_shots(
    sums: PixelSums, totals: Totals, chosen: Chosen, reading: str, where: Mapping[str, str]
) -> list[NamedScore]:
    """All scores of one number of shots, the four headline scores first."""
    scores: list[NamedScore] = []
    if (fixed := chosen & sums.where(tier=FIXED)).any():
        scores += _score_means(sums, totals, fixed, where) + score_folds("miou", sums, totals, fixed, where)
        scores += score_classes("iou", sums, totals, fixed, where)
    if (tier1 := chosen & sums.where(tier=COMPLEXITY)).any():
        scores += _score_query_complexity(sums, totals, tier1, where)
    if (tier2 := chosen & sums.where(tier=COGNIZANCE)).any():
        scores += _score_support_cognizance(sums, totals, tier2, reading, where)
    if (tier3 := chosen & sums.where(tier=GENERAL)).any():
        scores += _score_generalisation(sums, totals, tier3, where)
    order = ("lca", "hca", "scs", "gs")
    return sorted(
        scores,
        key=lambda score: order.index(score.name) if score.name in order and score.slice == where else len(order),
    )


def _score_query_complexity(
    sums: PixelSums, totals: Totals, tier: Chosen, where: Mapping[str, str]
) -> list[NamedScore]:
    """LCA and HCA, of all folds and of each; the salience gap; the mIoU of every split, fold and class."""
    scores: list[NamedScore] = []
    low, high = [], []
    used = np.zeros_like(tier)
    for fold in sums.values_of("fold", tier):
        here = tier & sums.where(fold=fold)
        # A fold that lacks a split has neither score.
        complete = here & (set(SPLITS) <= set(sums.values_of("split", here)))
        used |= complete
        splits = {split: mean_iou(sums, totals, here & sums.where(split=split)) for split in SPLITS}
        fold_low, fold_high = lca_hca(splits)
        low.append(fold_low)
        high.append(fold_high)
        at = {**where, "fold": str(fold)}
        scores += [NamedScore("lca", at, fold_low, complete), NamedScore("hca", at, fold_high, complete)]
        scores += [
            NamedScore("miou", {**at, "split": split}, values, chosen)
            for split, values in splits.items()
            if (chosen := here & sums.where(split=split)).any()
        ]
    headline = [NamedScore("lca", where, mean_defined(low), used), NamedScore("hca", where, mean_defined(high), used)]
    halves = {}
    for name, members in (("salient", SALIENT), ("non-salient", NOT_SALIENT)):
        half = tier & sums.where(split=members)
        halves[name] = mean_iou(sums, totals, half)
        headline.append(NamedScore(name, where, halves[name], half))
    both = tier & all((tier & sums.where(split=members)).any() for members in (SALIENT, NOT_SALIENT))
    headline.append(NamedScore("salience-gap", where, halves["salient"] - halves["non-salient"], both, DIFFERENCE))
    for split in SPLITS:
        here = tier & sums.where(split=split)
        if here.any():
            scores += _score_means(sums, totals, here, {**where, "split": split})
            scores += score_classes("iou", sums, totals, here, {**where, "split": split})
    return headline + scores


def _score_support_cognizance(
    sums: PixelSums, totals: Totals, tier: Chosen, reading: str, where: Mapping[str, str]
) -> list[NamedScore]:
    """SCS of all folds and of each, how well spurious supports are rejected, and every level."""
    scores, folds = [], []
    used = np.zeros_like(tier)
    for fold in sums.values_of("fold", tier):
        here = tier & sums.where(fold=fold)
        groups = _group_levels(sums, here, reading)
        complete = _find_complete_classes(sums, here, groups)
        used |= complete
        folds.append(_fold_scs(sums, totals, here, reading, groups))
        scores.append(NamedScore("scs", {**where, "fold": str(fold)}, folds[-1], complete))
    present = set(sums.values_of("split", tier))
    levels = [level for level in (*LEVELS[:2], *SAME_CLASS, *LEVELS[4:]) if level in present]
    means = {level: mean_iou(sums, totals, tier & sums.where(split=level)) for level in levels}
    headline = [NamedScore("scs", where, mean_defined(folds), used)]
    if spurious := [means[level] for level in SPURIOUS if level in means]:
        chosen = tier & sums.where(split=SPURIOUS)
        headline.append(NamedScore("rejection", where, 1 - mean_defined(spurious), chosen))
    for level in levels:
        here, at = tier & sums.where(split=level), {**where, "level": level}
        scores += _score_means(sums, totals, here, at) + score_folds("miou", sums, totals, here, at)
        scores += score_classes("iou", sums, totals, here, at)
    return headline + scores


def _score_generalisation(sums: PixelSums, totals: Totals, tier: Chosen, where: Mapping[str, str]) -> list[NamedScore]:
    """GS of all folds' models and of each, and the classes; fold -1 is one model without a fold."""
    folds = {fold: tier & sums.where(fold=fold) for fold in sums.values_of("fold", tier)}
    ious = {fold: class_ious(sums, totals, cells) for fold, cells in folds.items()}
    gs = {fold: generalization_score(values[:, None]) for fold, (_, values) in ious.items()}
    at = {**where, "tier": "3"}
    scores = [NamedScore("gs", where, mean_defined(list(gs.values())), tier)]
    scores += [NamedScore("gs", {**where, "fold": str(fold)}, gs[fold], folds[fold]) for fold in folds if fold >= 0]
    scores += _score_means(sums, totals, tier, at)
    for name in sums.values_of("class", tier):
        own = [values[:, names.index(name)] for names, values in ious.values() if name in names]
        cells = tier & sums.where(**{"class": name})
        scores.append(NamedScore("iou", {**at, "class": name}, mean_defined(own), cells))
    return scores


def _group_levels(sums: PixelSums, chosen: Chosen, reading: str) -> list[tuple[str, ...]]:
    """The levels, or in the reading `released` the groups of levels, that SCS needs of a class."""
    pooled = L2_OR_L3 in sums.values_of("split", chosen)
    return _list_groups(reading, pooled=pooled)


def _list_groups(reading: str, *, pooled: bool) -> list[tuple[str, ...]]:
    """The groups of levels; `pooled` says that some pairs of L2 and L3 are not told apart: then none of them are."""
    if reading == "released":
        return [SAME_CLASS if "L2" in group else group for group in RELEASED_GROUPS]
    return [SAME_CLASS if level == L2_OR_L3 else (level,) for level in (POOLED_LEVELS if pooled else LEVELS)]


def _find_complete_classes(sums: PixelSums, chosen: Chosen, groups: Sequence[tuple[str, ...]]) -> Chosen:
    """The cells of classes that have pairs in every group of levels: SCS has no others."""
    classes = [set(sums.values_of("class", chosen & sums.where(split=levels))) for levels in groups]
    members = [level for levels in groups for level in levels]
    return chosen & sums.where(**{"class": tuple(sorted(set.intersection(*classes))), "split": tuple(members)})


def _fold_scs(
    sums: PixelSums, totals: Totals, chosen: Chosen, reading: str, groups: Sequence[tuple[str, ...]]
) -> Values:
    classes = sums.values_of("class", chosen)

    def pool(levels: tuple[str, ...]) -> Totals:
        cells = [chosen & sums.where(**{"class": name, "split": levels}) for name in classes]
        return np.stack([totals[:, one].sum(1) for one in cells], axis=1)

    pooled = np.stack([pool(levels) for levels in groups], axis=2)
    if reading == "released":
        return scs_released(pooled[..., INTERSECTION], pooled[..., UNION])
    return scs_paper(class_iou(pooled[..., INTERSECTION], pooled[..., UNION]))


def _score_means(sums: PixelSums, totals: Totals, chosen: Chosen, where: Mapping[str, str]) -> list[NamedScore]:
    return [
        NamedScore("miou", where, mean_iou(sums, totals, chosen), chosen),
        NamedScore("fb-iou", where, foreground_background_iou(sums, totals, chosen), chosen),
        NamedScore("pair-iou", where, pair_iou(totals, chosen), chosen),
    ]


Cell = tuple[int, int, str]
"""Shots, fold and class."""


def list_left_out(
    records: pl.DataFrame, scored: pl.DataFrame, scores: Sequence[Score], options: TossOptions
) -> tuple[LeftOut, ...]:
    """Mixed pairs, pairs without a true pixel, classes without a split or level, folds without a score."""
    import polars as pl

    splits, levels = (_find_present_splits(scored, tier, options.void_ignored) for tier in (COMPLEXITY, COGNIZANCE))
    kept = len(scored) == len(records)
    notes = [
        (
            "pairs of two classes in tier 3",
            records.filter(records["mixed"])["unit"].to_list(),
            "the reading is mixed=released: they count for the query's class" if kept else "the reading is mixed=ours",
        ),
        (
            "pairs without anything to find",
            scored.filter(pl.col("truth") == 0)["unit"].to_list(),
            "the query's truth has no pixel of the class; what is predicted there still enters the unions",
        ),
        (
            "classes missing from a split of tier 1",
            _list_lacking_splits(splits),
            "a class that a split has no pair of leaves that split's mean over classes",
        ),
        (
            "classes without scs",
            _list_lacking_levels(levels, options.scs_reading),
            "SCS needs every level of a class; these leave the mean over classes",
        ),
    ]
    for name, needed in (("lca", "every split"), ("hca", "every split"), ("scs", "a class with every level")):
        without = [
            f"fold {score.slice['fold']}"
            for score in scores
            if score.name == name and set(score.slice) == {"fold"} and math.isnan(score.value)
        ]
        notes.append((f"folds without {name}", without, f"it needs {needed}"))
    still = {"pairs without anything to find", *(["pairs of two classes in tier 3"] if kept else [])}
    found = [(what, len(names), why, tuple(names[:EXAMPLES])) for what, names, why in notes if names]
    return (*(LeftOut(*note, kept=note[0] in still) for note in found), *note_empty_supports(scored))


def _find_present_splits(scored: pl.DataFrame, tier: int, void_ignored: bool) -> dict[Cell, set[str]]:
    """Which splits or levels of a tier have pixels, by shots, fold and class."""
    import polars as pl

    union = pair_union_expression(void_ignored=void_ignored)
    rows = scored.filter(pl.col("tier") == tier).group_by("shots", "fold", "class", "split").agg(union=union.sum())
    present: dict[Cell, set[str]] = {}
    for row in rows.iter_rows(named=True):
        cell = present.setdefault((row["shots"], row["fold"], row["class"]), set())
        cell |= {row["split"]} if row["union"] > 0 else set()
    return dict(sorted(present.items()))


def _list_lacking_splits(present: dict[Cell, set[str]]) -> list[str]:
    """Classes that lack a split which other classes of their fold have."""
    of_fold: dict[tuple[int, int], set[str]] = {}
    for (shots, fold, _), splits in present.items():
        of_fold[shots, fold] = of_fold.get((shots, fold), set()) | splits
    return [
        f"{name} in {split} of fold {fold}"
        for (shots, fold, name), splits in present.items()
        for split in SPLITS
        if split in of_fold[shots, fold] - splits
    ]


def _list_lacking_levels(present: dict[Cell, set[str]], scs: str) -> list[str]:
    """Classes that lack a level, or in the reading `released` a group of levels."""
    pooled = {(shots, fold) for (shots, fold, _), levels in present.items() if L2_OR_L3 in levels}
    lacking = []
    for (shots, fold, name), levels in present.items():
        groups = _list_groups(scs, pooled=(shots, fold) in pooled)
        if gone := [" or ".join(group) for group in groups if not levels & set(group)]:
            lacking.append(f"{name} of fold {fold}: no {', '.join(gone)}")
    return lacking
