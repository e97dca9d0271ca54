"""Open AP: instance segmentation and detection where a wrong label counts by how wrong it is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Quality
from hardlook.harness.scorecard import Scorecard
from hardlook.open_vocabulary.ap.evaluation import SCHEMA, evaluate_units, merge_vocabularies
from hardlook.open_vocabulary.ap.options import OpenApOptions, get_readings
from hardlook.open_vocabulary.ap.report import build_sections, describe_unit, draw_unit
from hardlook.open_vocabulary.ap.scores import SCORES, compute_unit_qualities, score_records, tally_records
from hardlook.open_vocabulary.ap.units import find_units, list_sources, list_units, prepare_unit
from hardlook.open_vocabulary.cards import CITATION, DATA_LICENCE, open_dials
from hardlook.open_vocabulary.free_words import check_words
from hardlook.open_vocabulary.options import list_presets, offer_labels
from hardlook.open_vocabulary.published import find_published_dataset, list_ap_results, list_ap_tables

MODEL = "planted-instances"


def find_published_slice(scorecard: Scorecard, options: OpenApOptions) -> Mapping[str, str]:
    """The paper's dataset that the labels belong to, and what overlaps."""
    where = find_published_dataset(options)
    return {**where, "iou": options.iou} if where else where


CARD = BenchmarkCard(
    name="open-ap",
    version="1",
    title="Open AP",
    summary="Instances or boxes where a similar label is partly right, beside COCO's AP and AP-dagger.",
    role="instance-segmenter",
    default_model=MODEL,
    citation=CITATION,
    data_licence=DATA_LICENCE,
    scores=SCORES,
    qualities=(
        Quality("image-open-ap50", "open AP50 of the image, all labels in one ranking"),
        Quality("image-ap50", "AP50 of the image, all labels in one ranking, right labels only"),
    ),
    published=list_ap_results,
    published_tables=list_ap_tables,
    presets=partial(list_presets, "open-ap"),
    # Beyond some seven in ten the gain shrinks: recall and precision are then both bounded by the similarity.
    dials=open_dials(MODEL, "ap", ("missed", "ragged"), most_siblings=0.5),
    example="hardlook run open-ap --gt instances.json --pred results.json --labels coco80 --out runs/open-ap",
)

OPEN_AP = Benchmark(
    card=CARD,
    options=OpenApOptions,
    schema=SCHEMA,
    list_units=list_units,
    find_units=find_units,
    evaluate=evaluate_units,
    score=partial(score_records, CARD),
    report=build_sections,
    prepare=prepare_unit,
    setup=check_words,
    sources=list_sources,
    readings=get_readings,
    pictures=draw_unit,
    tallies=tally_records,
    merge_vocabularies=merge_vocabularies,
    qualities=compute_unit_qualities,
    caption=describe_unit,
    model_arguments=offer_labels,
    published_slice=find_published_slice,
)
