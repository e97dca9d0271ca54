"""MetaCoCo as a benchmark: its card, and the functions that list, evaluate, score and report its tasks."""

from __future__ import annotations

from functools import partial

from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Dial
from hardlook.metacoco.evaluation import SCHEMA, encode_images, evaluate_units
from hardlook.metacoco.options import MetaCocoOptions, get_readings
from hardlook.metacoco.published import list_results, list_tables
from hardlook.metacoco.report import QUALITIES, build_sections, describe_unit, draw_unit
from hardlook.metacoco.scores import SCORES, compute_unit_qualities, find_published_slice, score_records, tally_records
from hardlook.metacoco.units import find_units, list_sources, list_units

# Without other errors every error follows context, however few there are, and the share could not move.
NOISE = 0.3

CARD = BenchmarkCard(
    name="metacoco",
    version="1",
    title="MetaCoCo: few-shot classification and its contexts",
    summary="Few-shot classification with queries inside and outside of the context that the supports were shown in.",
    role="few-shot-learner",
    default_model="planted-learner",
    citation="MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation, ICLR 2024.",
    data_licence="the planted world: MIT; your own data: yours",
    scores=SCORES,
    qualities=QUALITIES,
    batch_size=64,
    published=list_results,
    published_tables=list_tables,
    dials=(
        Dial("follows context", "planted-learner", lambda v: {"context": v}, "gap"),
        Dial("follows context", "planted-learner", lambda v: {"context": v, "noise": NOISE}, "excess-attraction"),
        Dial("follows context", "planted-learner", lambda v: {"context": v, "noise": NOISE}, "attraction"),
        Dial("follows context", "planted-learner", lambda v: {"context": v}, "iid", moves=False),
        Dial("guesses", "planted-learner", lambda v: {"noise": v}, "iid"),
    ),
    calibrated={"tasks": 20, "resamples": 0},
    example="hardlook run metacoco --data root=PACS --model nearest-centroid --modes iid,ood --out runs/pacs",
)

METACOCO = Benchmark(
    card=CARD,
    options=MetaCocoOptions,
    schema=SCHEMA,
    list_units=list_units,
    find_units=find_units,
    evaluate=evaluate_units,
    score=partial(score_records, CARD),
    report=build_sections,
    sources=list_sources,
    readings=get_readings,
    pictures=draw_unit,
    setup=encode_images,
    tallies=tally_records,
    qualities=compute_unit_qualities,
    caption=describe_unit,
    published_slice=find_published_slice,
)
