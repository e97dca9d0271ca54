"""RClicks: interactive segmentation under the clicks that people make."""

from __future__ import annotations

from functools import partial

from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Dial
from hardlook.rclicks.cost_comparison import COST_MEASURE
from hardlook.rclicks.evaluation import SCHEMA, check_first_prompt, evaluate_each, evaluate_units
from hardlook.rclicks.options import RClicksOptions, get_readings
from hardlook.rclicks.published import list_results, list_tables, published_slice
from hardlook.rclicks.report import build_sections, describe_unit, draw_unit
from hardlook.rclicks.scores import QUALITIES, SCORES, compute_unit_qualities, score_records, tally_records
from hardlook.rclicks.units import find_units, list_sources, list_units, prepare_unit

CARD = BenchmarkCard(
    name="rclicks",
    version="1",
    title="RClicks: interactive segmentation under people's clicks",
    summary="Interactive segmentation when clicks fall where people click, in likely places and in unlikely ones.",
    role="promptable-segmenter",
    default_model="disc",
    citation="RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation, NeurIPS 2024.",
    data_licence="datasets: their own; the planted world: MIT",
    scores=SCORES,
    qualities=QUALITIES,
    batch_size=8,
    published=list_results,
    published_tables=list_tables,
    whole_groups=True,
    dials=(
        Dial("fragile off the centre", "disc", lambda v: {"fragility": v}, "dgr"),
        Dial("fragile off the centre", "disc", lambda v: {"fragility": v}, "nsr"),
        Dial("fragile off the centre", "disc", lambda v: {"fragility": v}, "noc90-base", moves=False),
        Dial("loses the rim", "disc", lambda v: {"blunt": v}, "auc-base"),
    ),
    calibrated={"scenes": 12, "rounds": 8, "resamples": 0},
    example="hardlook run rclicks --data grabcut=GrabCut --model mobile-sam --clicks distance --out runs/mobile-sam",
)
RCLICKS = Benchmark(
    card=CARD,
    options=RClicksOptions,
    schema=SCHEMA,
    list_units=list_units,
    find_units=find_units,
    setup=check_first_prompt,
    evaluate=evaluate_units,
    evaluate_each=evaluate_each,
    score=partial(score_records, CARD),
    report=build_sections,
    prepare=prepare_unit,
    sources=list_sources,
    readings=get_readings,
    pictures=draw_unit,
    tallies=tally_records,
    qualities=compute_unit_qualities,
    caption=describe_unit,
    published_slice=published_slice,
    cost_measure=COST_MEASURE,
)
