"""`hardlook bias support`: the same queries under right, wrong, unmasked and empty supports.

These are the ablations of the paper's Table 2A. A model that uses its support finds next to nothing under all but the
right one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from hardlook.caching import ArrayCache
from hardlook.data.toss_pairs import Pair
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Dial, ScoreMeaning, Unit, UnitList
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.harness.rounding import format_percent
from hardlook.harness.scorecard import LeftOut, Scorecard
from hardlook.harness.sections import Dot, DotChart, Section, score_dot
from hardlook.harness.tally import DIFFERENCE, SumTally
from hardlook.harness.verdicts import judge
from hardlook.metrics.one_shot import class_iou
from hardlook.randomness import generator
from hardlook.toss.evaluation import COUNTS, make_record, note_empty_supports, predict_masks
from hardlook.toss.galleries import add_pair_iou, build_gallery, describe_pair, draw_unit
from hardlook.toss.options import shared_readings
from hardlook.toss.pair_lists import (
    StudyOptions,
    list_other_class_tokens,
    list_pair_sources,
    list_study_folds,
    open_study_lists,
)
from hardlook.toss.pairs import Labels, OneShotPair, SupportContent, read_pair
from hardlook.toss.pixel_sums import (
    CREDIT,
    IOU,
    NamedScore,
    Totals,
    compute_credits,
    mean_iou,
    pair_iou,
    score_classes,
    score_folds,
    score_tallies,
    sum_pixels,
    tally_scores,
)
from hardlook.toss.published import list_support_results, list_tables, read_numbers
from hardlook.toss.report import build_class_heat_map
from hardlook.toss.support_use import FOLLOWED_BELOW, IGNORED_ABOVE

if TYPE_CHECKING:
    import polars as pl

    from hardlook.toss.pair_lists import OpenedList


@dataclass(frozen=True)
class Condition:
    """One kind of support: its name as a score, a description, and how it is made."""

    name: str
    description: str
    other_class: bool
    content: SupportContent


CONDITIONS = (
    Condition("correct", "the right class and its mask", False, "as it is"),
    Condition("other-class", "another class: C(q) != C(s)", True, "as it is"),
    Condition("no-mask", "the right image, no mask: M_s = 0", False, "no mask"),
    Condition("no-image", "a black image, the right mask: I_s = 0", False, "no image"),
    Condition("other-class-no-mask", "another class's image, no mask", True, "no mask"),
)
CORRECT, *SPURIOUS = CONDITIONS
LABELS = ("condition", "fold", "class", "compared")
SLICES = (
    Column("condition", "text", "what the support shows", "slice"),
    Column("fold", "int", "the fold of the class", "slice"),
    Column("class", "text", "the class to find", "slice"),
)
SCHEMA = RecordSchema((*SLICES, *COUNTS))
COMPARABLE = "beside the paper's: its pairs are not published, so only the pattern compares"
_CACHE = ArrayCache()


class BiasSupportOptions(StudyOptions):
    """Options of `hardlook bias support`."""

    command: ClassVar[str] = "hardlook bias support"


def list_units(options: StudyOptions) -> UnitList:
    """Five units per pair; without the two of another class in a fold that has a single class."""
    opened = open_study_lists(options)
    units, without = [], []
    for listed in opened.lists:
        others = list_other_class_tokens(listed)
        for pair in listed.pairs:
            made = list(_make_units(listed, pair, others, options.seed))
            units += made
            without += [listed.name] if len(made) < len(CONDITIONS) else []
    left_out = list(opened.left_out)
    if without:
        why = "their fold has one class only"
        left_out.append(LeftOut("pairs without a support of another class", len(without), why, (without[0],)))
    return UnitList(units, left_out)


def _make_units(listed: OpenedList, pair: Pair, others: dict[str, tuple[str, ...]], seed: int) -> Iterator[Unit]:
    """The units of one pair, such as `fold2-00007-other-class`."""
    source = listed.settings.source
    name = source.class_of(pair.query)
    # Both ablations with another class show the same image, so that only the mask differs between them.
    pool = others.get(name, ())
    other = pool[int(generator(seed, "other class", pair.query, pair.support).integers(len(pool)))] if pool else ""
    for condition in CONDITIONS:
        support = other if condition.other_class else pair.support
        if support:
            slices: Labels = {"condition": condition.name, "fold": pair.fold, "class": name}
            payload = OneShotPair(listed.settings, pair.query, (support,), slices, content=condition.content)
            yield Unit(f"fold{pair.fold}-{pair.line:05d}-{condition.name}", payload, group=source.image_of(pair.query))


def prepare_unit(unit: Unit) -> Unit:
    """Read query, truth and support."""
    return replace(unit, payload=read_pair(unit.payload, unit.id, _CACHE))


def evaluate_units(units: Sequence[Unit], model: Any) -> Sequence[Record]:
    """Segment all queries in one call, then count pixels."""
    return [make_record(unit, mask, SLICES) for unit, mask in zip(units, predict_masks(units, model), strict=True)]


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: StudyOptions) -> Scorecard:
    """Every score with its interval over query images."""
    scores = tuple(score_tallies(tally_records(records, options), options))
    return Scorecard(card.name, card.version, "", scores, left_out=note_empty_supports(records))


def tally_records(records: pl.DataFrame, options: StudyOptions) -> list[SumTally]:
    """The pixels of every condition, fold and class.

    `drop` and `left` are of the pairs that both supports have: other pairs would be found better or worse under any.
    """
    sums = sum_pixels(_add_conditions_compared(records), LABELS, void_ignored=options.void_ignored)
    compared = sums.values_of("compared", sums.where())
    shared = {
        one.name: sums.where(
            compared=tuple(names for names in compared if {CORRECT.name, one.name} <= set(names.split()))
        )
        for one in SPURIOUS
    }
    chosen = {one.name: cells for one in CONDITIONS if (cells := sums.where(condition=one.name)).any()}

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        means = {name: mean_iou(sums, totals, cells) for name, cells in chosen.items()}
        scores = [NamedScore(name, {}, values, chosen[name]) for name, values in means.items()]
        for name, both in shared.items():
            if CORRECT.name in chosen and name in chosen:
                counted, at = chosen[CORRECT.name] & both, {"support": name}
                right, values = (mean_iou(sums, totals, chosen[one] & both) for one in (CORRECT.name, name))
                used = counted | (chosen[name] & both)
                scores.append(NamedScore("drop", at, right - values, used, DIFFERENCE, counted))
                scores.append(NamedScore("left", at, class_iou(values, right), used, (0.0, math.inf), counted))
        for name, cells in chosen.items():
            at = {"support": name}
            scores.append(NamedScore("pair-iou", at, pair_iou(totals, cells), cells))
            scores += score_folds("miou", sums, totals, cells, at) + score_classes("iou", sums, totals, cells, at)
        return scores

    key = ("bias-support", "bootstrap")
    return tally_scores(sums, name_scores, key=key, more=lambda one: {"comparable": "" if one.slice else COMPARABLE})


def _add_conditions_compared(records: pl.DataFrame) -> pl.DataFrame:
    """The records with the column `compared`: all conditions under which their pair is answered, in one text."""
    import polars as pl

    pair = pl.col("unit").str.strip_suffix(pl.lit("-") + pl.col("condition"))
    return records.with_columns(compared=pl.col("condition").sort().str.join(" ").over(pair))


def compute_unit_qualities(records: pl.DataFrame, options: StudyOptions) -> pl.DataFrame:
    """Credit and IoU of each pair."""
    import polars as pl

    return compute_credits(records, void_ignored=options.void_ignored, spurious=pl.col("condition") != CORRECT.name)


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """What is left under each support, the classes, and pairs whose object is found nevertheless."""
    heat_map = build_class_heat_map(
        scorecard,
        "support",
        {one.name: one.name for one in CONDITIONS},
        "IoU of each class under each support",
        "Classes that stay warm across the row are found without the support.",
    )
    pairs = _build_pair_section(records, scorecard)
    sections = [_build_condition_section(scorecard), Section("Which classes", "", (heat_map,))]
    return [*sections, pairs] if pairs else sections


def _build_condition_section(scorecard: Scorecard) -> Section:
    known = {score.name: score for score in scorecard.headline}
    rows = [score_dot(known[one.name], one.description, "this model") for one in CONDITIONS if one.name in known]
    published = read_numbers().supports
    rows += [Dot(one.description, published[one.name].mean, group="the paper's baseline") for one in CONDITIONS]
    caption = (
        "The truth is the query's own class throughout. A model that uses its support finds next to nothing in all "
        "rows but the first."
    )
    chart = DotChart("mIoU with the query's object, by what the support shows", caption, tuple(rows), axis="mIoU")
    return Section("What is left when the support misleads", _describe_support_use(scorecard), (chart,))


def _describe_support_use(scorecard: Scorecard) -> str:
    left = {score.slice["support"]: score for score in scorecard.scores if score.name == "left"}
    if not left or not scorecard.get(CORRECT.name).value > 0:
        return "With the right support next to nothing is found, so there is nothing that other supports could leave."
    parts = []
    for one in SPURIOUS:
        if score := left.get(one.name):
            span = (
                f" ({format_percent(score.interval.low, gap='')} to {format_percent(score.interval.high, gap='')})"
                if score.interval
                else ""
            )
            parts.append(f"{format_percent(score.value, gap='')}{span} with {one.description}")
    found, kept = ([judge(score, limit) for score in left.values()] for limit in (FOLLOWED_BELOW, IGNORED_ABOVE))
    if all(one.side == "above" for one in kept):
        meaning = "The model all but ignores its support: it segments what it would segment anyway."
    elif all(one.side == "below" for one in found):
        meaning = "The model needs its support and follows it."
    elif any(one.side == "above" for one in found) and any(one.side == "below" for one in kept):
        meaning = "The model uses its support in part; the rows far to the right are what it finds without its support."
    else:
        meaning = next(one.why for one in (*found, *kept) if one.why)
    return f"Of the mIoU with the right support this is left: {'; '.join(parts)}. {meaning}"


def _build_pair_section(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """What is found although the support does not show it; None if the support is followed."""
    pairs = add_pair_iou(records, scorecard)
    blocks = [
        build_gallery(
            pairs.filter(pairs["condition"] == one.name),
            f"Found with {one.description}",
            "Highest IoU first.",
            "condition",
        )
        for one in SPURIOUS
    ]
    shown = tuple(block for block in blocks if block.examples)
    return Section("Found nevertheless", "One pair per query image.", shown) if shown else None


def describe_unit(record: Record) -> str:
    """What the support showed, and how well the query's object was found."""
    [condition] = [one for one in CONDITIONS if one.name == record["condition"]]
    setting = f"support: {condition.description.partition(':')[0]}"
    return describe_pair(record, setting, spurious=condition is not CORRECT)


# With these supports finding the object is the fault, so a lower IoU is better.
MISLED = tuple(("support", one.name) for one in SPURIOUS)
CARD = BenchmarkCard(
    name="bias-support",
    version="1",
    title="Support ablations",
    summary="What a one-shot model still finds when its support shows another class, no mask, or nothing.",
    role="one-shot-segmenter",
    default_model="planted-one-shot",
    citation="What Ails One-Shot Image Segmentation: A Data Perspective, Table 2A.",
    scores=(
        *(
            ScoreMeaning(one.name, one.name, f"mIoU with {one.description}", one is CORRECT, headline=True)
            for one in CONDITIONS
        ),
        ScoreMeaning("drop", "drop", "mIoU with the right support minus mIoU with this one, on the same pairs"),
        ScoreMeaning("left", "left", "share of the right support's mIoU that is left with this one", False),
        ScoreMeaning(
            "miou", "mIoU", "mean over classes of summed intersections / summed unions", inverted_slices=MISLED
        ),
        ScoreMeaning("pair-iou", "pair IoU", "mean IoU over single pairs", inverted_slices=MISLED),
        ScoreMeaning("iou", "IoU", "summed intersections / summed unions of one class", inverted_slices=MISLED),
    ),
    qualities=(CREDIT, IOU),
    published=list_support_results,
    published_tables=lambda: list_tables("table-2a"),
    dials=(Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "no-mask"),),
    example="hardlook bias support --data voc=VOC2012 --model prototype --out bias/support",
)


BIAS_SUPPORT = Benchmark(
    card=CARD,
    options=BiasSupportOptions,
    schema=SCHEMA,
    list_units=list_units,
    evaluate=evaluate_units,
    score=partial(score_records, CARD),
    report=build_sections,
    prepare=prepare_unit,
    sources=list_pair_sources,
    readings=shared_readings,
    pictures=partial(draw_unit, cache=_CACHE),
    tallies=tally_records,
    qualities=compute_unit_qualities,
    caption=describe_unit,
    list_folds=list_study_folds,
)
