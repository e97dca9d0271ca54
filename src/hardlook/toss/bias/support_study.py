"""`hardlook bias support`: the same queries under right, wrong, unmasked and empty supports.

These are the ablations of the paper's Table 2A. A model that uses its support finds next to nothing under all but the
right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hardlook.caching import ArrayCache
from hardlook.data.toss_pairs import Pair
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Dial, ScoreMeaning, Unit, UnitList
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.sections import Dot, DotChart, HeatMap, Section, score_dot
from hardlook.harness.tally import SumTally
from hardlook.metrics.one_shot import class_iou
from hardlook.randomness import generator
from hardlook.toss.evaluation import COUNTS, make_record, predict_masks
from hardlook.toss.galleries import add_pair_iou, build_gallery, describe_pair, draw_unit
from hardlook.toss.options import shared_readings, void_reading
from hardlook.toss.pair_lists import (
    OpenedList,
    StudyOptions,
    list_other_class_tokens,
    list_pair_sources,
    open_study_lists,
)
from hardlook.toss.pairs import Labels, OneShotPair, SupportContent, read_pair
from hardlook.toss.pixel_sums import (
    CREDIT,
    IOU,
    NamedScore,
    Totals,
    class_ious,
    compute_credits,
    mean_iou,
    pair_iou,
    score_tallies,
    sum_pixels,
    tally_scores,
)
from hardlook.toss.published import list_support_results, list_tables, read_numbers
from hardlook.toss.report import FOLLOWED_BELOW, IGNORED_ABOVE

if TYPE_CHECKING:
    import polars as pl


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


def describe_condition(name: str) -> str:
    """What a condition is, without its formula.

    >>> describe_condition("other-class")
    'another class'
    """
    [text] = [one.description for one in CONDITIONS if one.name == name]
    return text.partition(":")[0]


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
    source = listed.settings.source
    name = source.class_of(pair.query)
    tokens = others.get(name, ())
    for condition in CONDITIONS:
        if condition.other_class and not tokens:
            continue
        support = _draw_other_class(tokens, pair, seed) if condition.other_class else pair.support
        slices: Labels = {"condition": condition.name, "fold": pair.fold, "class": name}
        payload = OneShotPair(listed.settings, pair.query, (support,), slices, content=condition.content)
        yield Unit(unit_id(pair, condition), payload, group=source.image_of(pair.query))


def unit_id(pair: Pair, condition: Condition) -> str:
    """Fold, line and condition.

    >>> unit_id(Pair("1_a", "1_b", 0, 2, "", 7), CONDITIONS[1])
    'fold2-00007-other-class'
    """
    return f"fold{pair.fold}-{pair.line:05d}-{condition.name}"


def _draw_other_class(tokens: tuple[str, ...], pair: Pair, seed: int) -> str:
    # Both ablations with another class show the same image, so that only the mask differs between them.
    return tokens[int(generator(seed, "other class", pair.query, pair.support).integers(len(tokens)))]


LABELS = ("condition", "fold", "class")
COMPARABLE = "beside the paper's: its pairs are not published, so only the pattern compares"


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: StudyOptions) -> Scorecard:
    """Every score with its interval over query images."""
    scores = score_tallies(tally_records(records, options), options)
    return Scorecard(card.name, card.version, "", tuple(scores))


def tally_records(records: pl.DataFrame, options: StudyOptions) -> list[SumTally]:
    """The pixels of every condition, fold and class."""
    sums = sum_pixels(records, LABELS, void_ignored=void_reading(options) == "ignored")
    present = [one for one in CONDITIONS if sums.where(condition=one.name).any()]

    def name_scores(totals: Totals) -> Sequence[NamedScore]:
        chosen = {one.name: sums.where(condition=one.name) for one in present}
        means = {name: mean_iou(sums, totals, where) for name, where in chosen.items()}
        scores = [NamedScore(name, {}, values, chosen[name]) for name, values in means.items()]
        right = means.get(CORRECT.name, np.full(len(totals), np.nan))
        for one in SPURIOUS:
            if one.name in means and CORRECT.name in means:
                both = chosen[CORRECT.name] | chosen[one.name]
                at = {"support": one.name}
                scores.append(NamedScore("drop", at, right - means[one.name], both))
                scores.append(NamedScore("left", at, class_iou(means[one.name], right), both))
        for name, where in chosen.items():
            at = {"support": name}
            scores.append(NamedScore("pair-iou", at, pair_iou(totals, where), where))
            for fold in sums.values_of("fold", where):
                here = where & sums.where(fold=fold)
                scores.append(NamedScore("miou", {**at, "fold": str(fold)}, mean_iou(sums, totals, here), here))
            names, ious = class_ious(sums, totals, where)
            scores += [
                NamedScore("iou", {**at, "class": label}, ious[:, place], where & sums.where(**{"class": label}))
                for place, label in enumerate(names)
            ]
        return scores

    def more(score: NamedScore) -> dict[str, str]:
        return {"comparable": COMPARABLE if not score.slice else ""}

    return tally_scores(sums, name_scores, key=("bias-support", "bootstrap"), more=more)


OURS, PAPER = "this model", "the paper's baseline"


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """What is left under each support, the classes, and pairs whose object is found nevertheless."""
    sections = [
        _build_condition_section(scorecard),
        _build_class_section(scorecard),
        _build_pair_section(records, scorecard),
    ]
    return [section for section in sections if section is not None]


def _build_condition_section(scorecard: Scorecard) -> Section:
    known = {score.name: score for score in scorecard.headline}
    rows = [score_dot(known[one.name], one.description, OURS) for one in CONDITIONS if one.name in known]
    published = read_numbers().supports
    rows += [Dot(one.description, published[one.name].mean, group=PAPER) for one in CONDITIONS]
    chart = DotChart(
        "mIoU with the query's object, by what the support shows",
        "The truth is the query's own class throughout. A model that uses its support finds next to nothing in all "
        "rows but the first.",
        tuple(rows),
        axis="mIoU",
    )
    return Section("What is left when the support misleads", _describe_support_use(scorecard), (chart,))


def _describe_support_use(scorecard: Scorecard) -> str:
    left = {score.slice["support"]: score for score in scorecard.scores if score.name == "left"}
    if not left or not scorecard.get(CORRECT.name).value > 0:
        return "With the right support next to nothing is found, so nothing can be said about what is left."
    parts = [
        f"{left[one.name].value:.0%}{_format_interval(left[one.name])} with {one.description}"
        for one in SPURIOUS
        if one.name in left
    ]
    shares = [score.value for score in left.values()]
    if min(shares) >= IGNORED_ABOVE:
        meaning = "The model all but ignores its support: it segments what it would segment anyway."
    elif max(shares) <= FOLLOWED_BELOW:
        meaning = "The model needs its support and follows it."
    else:
        meaning = "The model uses its support in part; the rows far to the right are what it finds without its support."
    return f"Of the mIoU with the right support this is left: {'; '.join(parts)}. {meaning}"


def _format_interval(score: Score) -> str:
    return f" ({score.interval.low:.0%} to {score.interval.high:.0%})" if score.interval else ""


def _build_class_section(scorecard: Scorecard) -> Section:
    cells = {
        (score.slice["class"], score.slice["support"]): score.value for score in scorecard.scores if score.name == "iou"
    }
    classes = list(dict.fromkeys(name for name, _ in cells))
    heat = HeatMap(
        "IoU of each class under each support",
        "Classes that stay warm across the row are found without the support.",
        classes,
        [one.name for one in CONDITIONS],
        [[cells.get((name, one.name), float("nan")) for one in CONDITIONS] for name in classes],
        row_axis="class",
        column_axis="support",
    )
    return Section("Which classes", "", (heat,))


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


SLICES = (
    Column("condition", "text", "what the support shows", "slice"),
    Column("fold", "int", "the fold of the class", "slice"),
    Column("class", "text", "the class to find", "slice"),
)

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
        ScoreMeaning("drop", "drop", "mIoU with the right support minus mIoU with this one"),
        ScoreMeaning("left", "left", "share of the right support's mIoU that is left with this one", False),
        ScoreMeaning(
            "miou", "mIoU", "mean over classes of summed intersections / summed unions", inverted_slices=MISLED
        ),
        ScoreMeaning("pair-iou", "pair IoU", "mean IoU over single pairs", inverted_slices=MISLED),
        ScoreMeaning("iou", "IoU", "summed intersections / summed unions of one class", inverted_slices=MISLED),
    ),
    qualities=(CREDIT, IOU),
    batch_size=64,
    published=list_support_results,
    published_tables=lambda: list_tables("table-2a"),
    dials=(Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "no-mask"),),
    example="hardlook bias support --data voc=VOC2012 --model prototype --out bias/support",
)


SCHEMA = RecordSchema((*SLICES, *COUNTS))
_CACHE = ArrayCache()


def prepare_unit(unit: Unit) -> Unit:
    """Read query, truth and support."""
    return replace(unit, payload=read_pair(unit.payload, unit.id, _CACHE))


def evaluate_units(units: Sequence[Unit], model: Any) -> Sequence[Record]:
    """Segment all queries in one call, then count pixels."""
    masks = predict_masks(units, model)
    return [make_record(unit, mask, SLICES) for unit, mask in zip(units, masks, strict=True)]


def unit_qualities(records: pl.DataFrame, options: BiasSupportOptions) -> pl.DataFrame:
    """Credit and IoU of each pair."""
    import polars as pl

    void_ignored = void_reading(options) == "ignored"
    return compute_credits(records, void_ignored=void_ignored, spurious=pl.col("condition") != CORRECT.name)


def describe_unit(record: Record) -> str:
    """What the support showed, and how well the query's object was found."""
    condition = str(record["condition"])
    return describe_pair(record, f"support: {describe_condition(condition)}", spurious=condition != CORRECT.name)


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
    qualities=unit_qualities,
    caption=describe_unit,
)
