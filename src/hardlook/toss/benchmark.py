"""TOSS: one-shot segmentation in tiers.

Tier 1 tests which queries are found (easy or hard, salient or not), tier 2 whether the support is used, tier 3 whether
the model works for classes unlike any that it was trained on.
"""

from __future__ import annotations

from functools import partial

from hardlook.caching import ArrayCache
from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Dial
from hardlook.toss.evaluation import SCHEMA, evaluate_units
from hardlook.toss.galleries import draw_unit
from hardlook.toss.options import TossOptions, get_readings
from hardlook.toss.pixel_sums import CREDIT, IOU
from hardlook.toss.published import list_results, list_tables
from hardlook.toss.report import build_sections, describe_unit
from hardlook.toss.scores import SCORES, compute_unit_qualities, score_records, tally_records
from hardlook.toss.units import find_units, list_run_folds, list_sources, list_units, prepare_unit

CARD = BenchmarkCard(
    name="toss",
    version="1",
    title="TOSS: tiered one-shot segmentation",
    summary="One-shot segmentation by tiers: hard queries, supports that mislead, classes never seen.",
    role="one-shot-segmenter",
    default_model="planted-one-shot",
    citation="What Ails One-Shot Image Segmentation: A Data Perspective, NeurIPS 2022 Datasets and Benchmarks.",
    data_licence="pair lists: MIT; images: VOC's, COCO's and FSS-1000's own; the planted world: MIT",
    scores=SCORES,
    qualities=(CREDIT, IOU),
    published=list_results,
    published_tables=list_tables,
    dials=(
        Dial("follows salience", "planted-one-shot", lambda v: {"saliency": v}, "hca"),
        Dial("follows salience", "planted-one-shot", lambda v: {"saliency": v}, "salience-gap"),
        Dial("follows salience", "planted-one-shot", lambda v: {"saliency": v}, "rejection", moves=False),
        Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "scs"),
        Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "rejection"),
        Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "hca", moves=False),
        Dial("ignores the support", "planted-one-shot", lambda v: {"support_blind": v}, "salience-gap", moves=False),
    ),
    calibrated={"scenes": 32, "resamples": 0},
    example="hardlook run toss --data pairs=TOSS --data voc=VOC2012 --model prototype --out runs/prototype",
)

# What was read last, for units that share images; it changes no answer.
_CACHE = ArrayCache()
TOSS = Benchmark(
    card=CARD,
    options=TossOptions,
    schema=SCHEMA,
    list_units=list_units,
    find_units=find_units,
    evaluate=evaluate_units,
    score=partial(score_records, CARD),
    report=build_sections,
    prepare=partial(prepare_unit, cache=_CACHE),
    sources=list_sources,
    readings=get_readings,
    pictures=partial(draw_unit, cache=_CACHE),
    tallies=tally_records,
    qualities=compute_unit_qualities,
    caption=describe_unit,
    list_folds=list_run_folds,
)
