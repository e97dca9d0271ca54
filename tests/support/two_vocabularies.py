"""Planted models that rename some labels, and their records in each of the benchmarks on words."""

from __future__ import annotations

from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.evaluation import evaluate_batch
from hardlook.models.registry import build

MODELS = {
    "closed-miou": ("planted-segmenter", {"sibling": 0.3, "stranger": 0.1, "ragged": 0.5}),
    "open-miou": ("planted-segmenter", {"sibling": 0.3, "stranger": 0.1, "ragged": 0.5}),
    "open-pq": ("planted-panoptic", {"sibling": 0.3, "stranger": 0.1, "ragged": 0.5, "missed": 0.1}),
    "open-ap": ("planted-instances", {"sibling": 0.3, "stranger": 0.1, "ragged": 0.5, "missed": 0.1}),
}


def spoken_records(name, scenes, renamed=None, **faults):
    """Light records of a planted model that says `renamed[word]` where it means `word`."""
    benchmark = find_benchmark(name)
    model, usual = MODELS[name]
    built = build(model, role=benchmark.card.role, args={**usual, **faults})
    built.labels = tuple((renamed or {}).get(word, word) for word in built.labels)
    outcome = evaluate_batch(benchmark, benchmark.list_units(benchmark.options(scenes=scenes)), built)
    assert not outcome.failures
    return benchmark.schema.frame(outcome.records).select(benchmark.schema.light).sort("unit")
