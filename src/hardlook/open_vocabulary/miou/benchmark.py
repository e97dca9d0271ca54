"""Open mIoU: semantic segmentation where a wrong label counts by how wrong it is."""

from __future__ import annotations

from functools import partial

from hardlook.harness.benchmark import Benchmark, BenchmarkCard, Quality
from hardlook.open_vocabulary.cards import CITATION, DATA_LICENCE, open_dials
from hardlook.open_vocabulary.free_words import check_words
from hardlook.open_vocabulary.miou.evaluation import SCHEMA, evaluate_units, merge_vocabularies
from hardlook.open_vocabulary.miou.options import OpenMiouOptions, get_readings
from hardlook.open_vocabulary.miou.report import build_sections, describe_unit, draw_unit
from hardlook.open_vocabulary.miou.scores import SCORES, compute_unit_qualities, score_records, tally_records
from hardlook.open_vocabulary.miou.units import find_units, list_sources, list_units, prepare_unit
from hardlook.open_vocabulary.options import list_presets, offer_labels
from hardlook.open_vocabulary.published import find_published_dataset, list_miou_results, list_miou_tables

MODEL = "planted-segmenter"

CARD = BenchmarkCard(
    name="open-miou",
    version="1",
    title="Open mIoU",
    summary="Semantic segmentation where a similar label is partly right, by WordNet or embeddings.",
    role="semantic-segmenter",
    default_model=MODEL,
    citation=CITATION,
    data_licence=DATA_LICENCE,
    scores=SCORES,
    qualities=(
        Quality("image-open-miou", "open mIoU of the image"),
        Quality("image-miou", "vanilla mIoU of the image"),
        Quality("image-gain", "what similarity gives back on the image"),
    ),
    published=list_miou_results,
    published_tables=list_miou_tables,
    presets=partial(list_presets, "open-miou"),
    dials=open_dials(MODEL, "miou", ("ragged",)),
    example="hardlook run open-miou --model planted-segmenter --model-arg sibling=.3 --out runs/open",
)

OPEN_MIOU = Benchmark(
    card=CARD,
    options=OpenMiouOptions,
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
