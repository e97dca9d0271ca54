"""Closed mIoU of a semantic segmenter, by class and by context: the smallest complete benchmark.

Read it top to bottom as the example of how a benchmark is made: options, scores from records, report sections, and at
the end the card and the `Benchmark`. Units and records are those of open mIoU (`hardlook.open_vocabulary.miou`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Dial, Quality, ScoreMeaning, Unit
from hardlook.harness.records import Record
from hardlook.harness.scorecard import LeftOut, Score, Scorecard
from hardlook.harness.sections import DistributionChart, DotChart, HeatMap, Section, Table, score_dot
from hardlook.harness.tally import Entry, SumTally, score_tally, with_ranges
from hardlook.harness.verdicts import describe_kind
from hardlook.metrics.mean_iou import MeanOver, class_counts_of_pairs, class_iou
from hardlook.open_vocabulary.cards import DATA_LICENCE, misname_half
from hardlook.open_vocabulary.free_words import check_words
from hardlook.open_vocabulary.lower_contexts import explain_lower_contexts
from hardlook.open_vocabulary.miou.evaluation import (
    NO_LABEL,
    SCHEMA,
    count_pixels,
    make_record,
    predict_maps,
    sum_pairs,
)
from hardlook.open_vocabulary.miou.options import SemanticOptions, mean_over, mean_over_reading
from hardlook.open_vocabulary.miou.report import describe_unit, draw_unit
from hardlook.open_vocabulary.miou.scores import (
    VANILLA,
    count_basis,
    note_empty_images,
    note_numbering,
    overall_scores,
    per_image_miou,
)
from hardlook.open_vocabulary.miou.units import find_units, list_sources, list_units, prepare_unit
from hardlook.open_vocabulary.record_columns import read_label_names
from hardlook.open_vocabulary.sections import add_warnings, find_scores, find_scores_by_class
from hardlook.open_vocabulary.vocabulary import check_same_truth, map_to_closed_labels, relabel_map

if TYPE_CHECKING:
    import polars as pl

MAX_CONFUSIONS = 20
MODEL = "planted-segmenter"


class ClosedMiouOptions(SemanticOptions):
    """Options of `hardlook run closed-miou`."""


def evaluate_units(units: Sequence[Unit], model: Any) -> list[Record]:
    """Segment the images as one batch and count pixels, in the truth's labels."""
    records: list[Record] = []
    for unit, (predicted, labels) in zip(units, predict_maps(units, model), strict=True):
        names = unit.payload.labels
        *table, no_label = map_to_closed_labels(names, labels)
        record = make_record(unit, relabel_map(predicted, np.array(table, np.int32), no_label), names)
        missing = [name for place, name in enumerate(names) if place not in {*table, no_label}]
        records.append({**record, "missing_labels": "\n".join(missing)})
    return records


def score_records(card: BenchmarkCard, records: pl.DataFrame, options: ClosedMiouOptions) -> Scorecard:
    """Every score with its interval over images."""
    scores = [score for tally in tally_records(records, options) for score in score_tally(tally, options)]
    notes = (*note_empty_images(records), *note_numbering(records, options), *note_missing_labels(records))
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=notes)


def note_missing_labels(records: pl.DataFrame) -> tuple[LeftOut, ...]:
    """Labels of the data that the model or the stored predictions lack, and so never predict."""
    found = sorted({name for lines in records["missing_labels"].unique() for name in lines.splitlines()})
    why = "no pixel can be predicted as one of them, so that their IoU is 0: rename labels, or run open-miou"
    what = "labels of the data that the predictions lack"
    return (LeftOut(what, len(found), why, tuple(found[:5]), kept=True, warning=True),) if found else ()


def tally_records(records: pl.DataFrame, options: ClosedMiouOptions) -> list[SumTally]:
    """Pixels hit, true and predicted of each class: over all images, then of each context."""
    names = read_label_names(records)
    tallies = [_tally(count_pixels(records), names, options, {})]
    for context in sorted(set(records["context"]) - {""}):
        inside = (records["context"] == context).to_numpy()
        tallies.append(_tally(count_pixels(records.filter(inside)), names, options, {"context": context}))
    return tallies


def _tally(counts: NDArray[np.int64], names: list[str], options: ClosedMiouOptions, where: dict[str, str]) -> SumTally:
    classes, over = len(names), mean_over(options)

    def statistic(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = totals.reshape(len(totals), 3, classes)
        return np.concatenate([overall_scores(sums, over), class_iou(sums)], axis=-1)

    reading = f"mean-over={over}"
    present = counts[:, 1:].sum(1) > 0
    images = present.sum(0)
    basis = count_basis(present)
    entries = [Entry(name, slice=where, reading=reading if name == "miou" else "", **basis) for name in VANILLA]
    entries += [
        Entry("iou", int(n), {**where, "class": name}, clusters=int(n)) for name, n in zip(names, images, strict=True)
    ]
    key = ("closed-miou", "bootstrap", *where.values())
    return SumTally(with_ranges(entries), counts.reshape(len(counts), -1), statistic, key, "image")


def merge_vocabularies(runs: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
    """The runs as they are: all records are in the truth's labels, which must be equal."""
    lists = [read_label_names(records) for records in runs]
    check_same_truth(lists, max(map(len, lists), default=0))
    return runs


def compute_unit_qualities(records: pl.DataFrame, options: ClosedMiouOptions) -> pl.DataFrame:
    """`unit` and `image-miou`, the mIoU of each image by itself."""
    import polars as pl

    return pl.DataFrame({"unit": records["unit"], "image-miou": per_image_miou(records)})


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections of the report that have content: classes, contexts, confusions, images."""
    sections = [
        _build_classes(scorecard),
        _build_contexts(records, scorecard),
        _build_confusions(records),
        _build_images(records),
    ]
    return [section for section in sections if section is not None]


def _build_classes(scorecard: Scorecard) -> Section:
    ranked = sorted(find_scores_by_class(scorecard, "iou").values(), key=lambda score: -score.value)
    chart = DotChart(
        "IoU of each class",
        "Dots are IoU over all images, lines the interval that resampling images gives. "
        "The mean hides the classes on the left.",
        tuple(score_dot(score, score.slice["class"]) for score in ranked),
        axis="IoU",
        references=(("mIoU", scorecard.get("miou").value),),
    )
    text = add_warnings(describe_kind(scorecard, ranked, "IoU of a class", ("class",)), scorecard)
    return Section("Classes", text, (chart,))


def _build_contexts(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    ranked = sorted(find_scores(scorecard, "miou", "context"), key=lambda score: -score.value)
    if len(ranked) < 2:
        return None
    total = scorecard.get("miou")
    caption = "The same score over the images of one context."
    if ranked[0].value < total.value:
        caption = f"{caption} {_explain_lower_contexts(records, total)}".strip()
    chart = DotChart(
        "mIoU in each context",
        caption,
        tuple(score_dot(score, score.slice["context"]) for score in ranked),
        axis="mIoU",
        references=(("all images", total.value),),
    )
    cells = {
        (score.slice["class"], score.slice["context"]): score.value
        for score in find_scores(scorecard, "iou", "class", "context")
    }
    classes = sorted({name for name, _ in cells})
    contexts = [score.slice["context"] for score in ranked]
    heat = HeatMap(
        "IoU of each class in each context",
        "Empty cells: the class does not occur there.",
        classes,
        contexts,
        [[cells.get((name, context), float("nan")) for context in contexts] for name in classes],
        row_axis="class",
        column_axis="context",
    )
    return Section("Contexts", describe_kind(scorecard, ranked, "mIoU in a context", ("context",)), (chart, heat))


def _explain_lower_contexts(records: pl.DataFrame, total: Score) -> str:
    """Why every context lies below all images; in the chart's caption, so that it stands wherever the chart does."""
    counts = count_pixels(records)
    contexts = [(records["context"] == name).to_numpy() for name in sorted(set(records["context"]) - {""})]
    inside = np.stack([counts[chosen].sum(0) for chosen in contexts])
    over: MeanOver = "gt-only" if total.reading == "mean-over=gt-only" else "detectron2"
    return explain_lower_contexts(counts.sum(0), inside, read_label_names(records), over)


def _build_confusions(records: pl.DataFrame) -> Section | None:
    names, pairs = [*read_label_names(records), NO_LABEL], sum_pairs(records)
    truth = class_counts_of_pairs(pairs)[1]
    wrong = [
        (names[row], names[column], int(pixels), pixels / truth[row])
        for row, column, pixels in zip(*pairs.pairs(), strict=True)
        if row != column
    ]
    if not wrong:
        return None
    wrong.sort(key=lambda cell: -cell[2])
    table = Table(
        "The largest confusions",
        "Pixels of one class that were predicted as another.",
        ("true", "called", "pixels", "share of the true class"),
        tuple(wrong[:MAX_CONFUSIONS]),
    )
    return Section("Confusions", "", (table,))


def _build_images(records: pl.DataFrame) -> Section | None:
    values = per_image_miou(records)
    defined = values[~np.isnan(values)].tolist()
    if not defined:
        return None
    spread = DistributionChart(
        "mIoU of single images",
        "The mean over these is not the headline: the headline sums pixels over images first.",
        (("images", defined),),
        axis="mIoU of one image",
    )
    return Section("Images", "", (spread,))


CARD = BenchmarkCard(
    name="closed-miou",
    version="1",
    title="Closed mIoU, by class and context",
    summary="Semantic segmentation scored with one fixed list of labels: every wrong label counts the same.",
    role="semantic-segmenter",
    default_model=MODEL,
    citation="Everingham et al., The Pascal Visual Object Classes Challenge, IJCV 2010 (the IoU of a class).",
    data_licence=DATA_LICENCE,
    scores=(
        ScoreMeaning("miou", "mIoU", "mean over classes of pixels hit / pixels true or predicted", headline=True),
        ScoreMeaning("pixel-accuracy", "pixel accuracy", "share of pixels with the right label"),
        ScoreMeaning("mean-accuracy", "mean accuracy", "mean over classes of the share of its pixels that is found"),
        ScoreMeaning("fw-iou", "fwIoU", "IoU of each class weighted by its share of the pixels"),
        ScoreMeaning("iou", "IoU", "pixels hit / pixels true or predicted, of one class"),
    ),
    qualities=(Quality("image-miou", "mIoU of the image"),),
    dials=(
        Dial("a stranger's name", MODEL, lambda v: {"stranger": v}, "miou"),
        Dial("ragged borders", MODEL, lambda v: {"ragged": v}, "miou"),
        Dial("sibling or stranger", MODEL, misname_half, "miou", moves=False),
    ),
    example="hardlook run closed-miou --model planted-segmenter --model-arg stranger=.2 --out runs/first",
)

CLOSED_MIOU = Benchmark(
    card=CARD,
    options=ClosedMiouOptions,
    schema=SCHEMA,
    list_units=list_units,
    find_units=find_units,
    evaluate=evaluate_units,
    score=partial(score_records, CARD),
    report=build_sections,
    prepare=prepare_unit,
    setup=check_words,
    sources=list_sources,
    readings=lambda options: (mean_over_reading(options),),
    pictures=draw_unit,
    tallies=tally_records,
    merge_vocabularies=merge_vocabularies,
    qualities=compute_unit_qualities,
    caption=describe_unit,
)
