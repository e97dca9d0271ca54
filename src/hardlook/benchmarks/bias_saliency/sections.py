"""What the page of the saliency study shows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.bias_saliency.suppression import SUPPRESSED
from hardlook.benchmarks.bias_saliency.units import PLAIN
from hardlook.benchmarks.one_shot_pairs.following_section import following_chart, following_words
from hardlook.benchmarks.one_shot_pairs.pair_galleries import with_iou
from hardlook.benchmarks.one_shot_pairs.shown_scores import number_of
from hardlook.benchmarks.toss.published_biases import REMEDIES, SALIENCE
from hardlook.contract.scorecard import Scorecard
from hardlook.contract.sections import Block, CurveChart, Dot, DotChart, Example, Gallery, Line, Section, Table, dot_of
from hardlook.randomness import generator
from hardlook.stats import bootstrap_mean

if TYPE_CHECKING:
    import polars as pl

SHOWN = 4
EDGES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
LEAST_IN_BIN = 5
OURS = "this model"


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The gap, the remedy, and the pairs that it changed."""
    pairs = with_iou(records, scorecard)
    sections = [_gap(pairs, scorecard), _remedy(scorecard), _changed(pairs)]
    return [section for section in sections if section is not None]


def _gap(pairs: pl.DataFrame, scorecard: Scorecard) -> Section:
    rows = [dot_of(scorecard.get(name), name, OURS) for name in ("salient", "non-salient")]
    for method, result in SALIENCE.items():
        rows.append(Dot("salient", result.salient, group=f"{method}, published"))
        rows.append(Dot("non-salient", result.non_salient, group=f"{method}, published"))
    chart = DotChart(
        "mIoU of salient and of other targets",
        "A target is salient where its mask and the saliency model's mask overlap by more than half.",
        tuple(rows),
        axis="mIoU",
    )
    gap = scorecard.get("salience-gap")
    if gap.interval and gap.interval.low > 0:
        words = "Targets that catch the eye are found better."
    elif gap.interval and gap.interval.high < 0:
        words = "Targets that catch the eye are found less well."
    else:
        words = "No difference shows between targets that catch the eye and others."
    text = f"{words} The gap is {number_of(gap)}; a supervised model may have one too. {following_words(scorecard)}"
    blocks: list[Block] = [chart, _curve(pairs)]
    if followed := following_chart(scorecard):
        blocks.insert(1, followed)
    return Section("Salient against other targets", text.strip(), tuple(blocks))


def _curve(pairs: pl.DataFrame) -> CurveChart:
    lines = []
    for condition, name in ((PLAIN, "as it is"), (SUPPRESSED, "salient region blurred")):
        chosen = pairs.filter(pairs["condition"] == condition)
        salience, iou = chosen["salience"].to_numpy(), chosen["iou"].to_numpy()
        queries = chosen["query"].to_numpy()
        x, y, low, high = [], [], [], []
        for first, last in pairwise(EDGES):
            inside = (salience >= first) & ((salience < last) | (last == EDGES[-1]))
            if inside.sum() < LEAST_IN_BIN:
                continue
            rng = generator(0, "salience curve", condition, str(first))
            mean = bootstrap_mean(iou[inside], rng=rng, clusters=queries[inside].tolist(), resamples=500)
            x.append(float(np.mean(salience[inside])))
            y.append(mean.value)
            low.append(mean.interval.low if mean.interval.defined else mean.value)
            high.append(mean.interval.high if mean.interval.defined else mean.value)
        lines.append(Line(name, x, y, low, high))
    return CurveChart(
        "Mean IoU of single pairs by how salient the target is",
        "A line that climbs shows that salient targets are found better. Bands are intervals over query images.",
        tuple(line for line in lines if line.x),
        "IoU of target and saliency mask",
        "mean IoU of pairs",
    )


def _remedy(scorecard: Scorecard) -> Section:
    wanted = (
        ("base", "all, as they are"),
        ("sssi", "all, with SSSI for non-salient targets"),
        ("suppressed-all", "all, every query blurred"),
        ("non-salient", "non-salient, as they are"),
        ("non-salient-sssi", "non-salient, blurred"),
        ("salient", "salient, as they are"),
        ("salient-suppressed", "salient, blurred"),
    )
    chart = DotChart(
        "mIoU with and without suppression",
        "SSSI blurs the salient region of queries whose target is known not to be salient. Blurring a salient target "
        "takes it away: the last row is what a wrong guess costs.",
        tuple(dot_of(scorecard.get(name), words) for name, words in wanted),
        axis="mIoU",
    )
    rows = [
        (method, row["none"].mean, row["sssi"].mean, row["sssi"].mean - row["none"].mean)
        for method, row in REMEDIES.items()
        if "sssi" in row
    ]
    ours = [scorecard.get(name).value for name in ("base", "sssi", "gain")]
    table = Table(
        "Beside the published effect",
        "Means over folds. The paper's pairs differ from ours, so compare the direction and not the value.",
        ("model", "base", "with SSSI", "gain"),
        ((scorecard.model or OURS, *ours), *rows),
    )
    gain = scorecard.get("gain")
    if gain.interval and gain.interval.low > 0:
        words = "Blurring what is salient helps: the distraction was what kept other targets from being found."
    elif gain.interval and gain.interval.high < 0:
        words = "Blurring what is salient hurts: this model does not lose its targets to what is salient."
    else:
        words = "Blurring what is salient makes no difference that could be told from chance."
    return Section("Does suppression help?", f"{words} The gain is {number_of(gain)}.", (chart, table))


def _changed(pairs: pl.DataFrame) -> Section | None:
    import polars as pl

    wide = pairs.pivot(on="condition", index=["pair", "class", "query"], values="iou")
    if not {PLAIN, SUPPRESSED} <= set(wide.columns):
        return None
    change = wide.with_columns(change=pl.col(SUPPRESSED) - pl.col(PLAIN)).drop_nulls("change")
    blocks = []
    for title, caption, descending in (
        ("Found once the salient region is blurred", "Largest gains; each pair as it is, then blurred.", True),
        ("Lost when the salient region is blurred", "Largest losses; each pair as it is, then blurred.", False),
    ):
        ordered = change.sort("change", "pair", descending=[descending, False]).unique("query", maintain_order=True)
        examples = [
            Example(f"{row['pair']}-{condition}", f"{row['class']}, {condition}: IoU {row[condition]:.3f}")
            for row in ordered.head(SHOWN).iter_rows(named=True)
            for condition in (PLAIN, SUPPRESSED)
        ]
        blocks.append(Gallery(title, caption, tuple(examples)))
    return Section("Pairs that change", "", tuple(block for block in blocks if block.examples))
