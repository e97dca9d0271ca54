"""Open PQ: panoptic segmentation where a wrong label gets partial credit by its similarity to the true one."""

from __future__ import annotations

from functools import partial

from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Quality
from hardlook.open_vocabulary.cards import CITATION, DATA_LICENCE, open_dials
from hardlook.open_vocabulary.free_words import check_words
from hardlook.open_vocabulary.options import list_presets, offer_labels
from hardlook.open_vocabulary.pq.evaluation import SCHEMA, evaluate_units, merge_vocabularies
from hardlook.open_vocabulary.pq.options import OpenPqOptions, get_readings
from hardlook.open_vocabulary.pq.report import build_sections, describe_unit, draw_unit
from hardlook.open_vocabulary.pq.scores import SCORES, compute_unit_qualities, score_records, tally_records
from hardlook.open_vocabulary.pq.units import find_units, list_sources, list_units, prepare_unit
from hardlook.open_vocabulary.published import find_published_dataset, list_pq_results, list_pq_tables

MODEL = "planted-panoptic"

CARD = BenchmarkCard(
    name="open-pq",
    version="1",
    title="Open PQ",
    summary="Panoptic segmentation where a similar label is partly right, by WordNet or embeddings.",
    role="panoptic-segmenter",
    default_model=MODEL,
    citation=CITATION,
    data_licence=DATA_LICENCE,
    scores=SCORES,
    qualities=(Quality("image-open-pq", "open PQ of the image"), Quality("image-pq", "vanilla PQ of the image")),
    published=list_pq_results,
    published_tables=list_pq_tables,
    presets=partial(list_presets, "open-pq"),
    dials=open_dials(MODEL, "pq", ("missed", "ragged")),
    example="hardlook run open-pq --model planted-panoptic --model-arg sibling=.3 --out runs/open-pq",
)

OPEN_PQ = Benchmark(
    card=CARD,
    options=OpenPqOptions,
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
    published_slice=lambda scorecard, options: find_published_dataset(options),
)
