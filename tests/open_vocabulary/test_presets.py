"""The presets of the paper's tables: options exist, label sets and splits ship, published rows stand beside."""

from pathlib import Path

import pytest

from hardlook.data.presets import get_preset_labels
from hardlook.data.presets import list_presets as list_datasets
from hardlook.harness.options import parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.open_vocabulary.class_sets import SHIPPED, load_class_sets
from hardlook.open_vocabulary.label_similarity import check_similarity
from hardlook.open_vocabulary.options import list_presets
from hardlook.similarity.label_sets import load_label_set

BENCHMARKS = ("open-miou", "open-pq", "open-ap")
PARTS = [(preset, part) for name in BENCHMARKS for preset in list_presets(name) for part in preset.parts]


@pytest.mark.parametrize(("preset", "part"), PARTS, ids=lambda one: getattr(one, "name", None) or one.data)
def test_a_part_is_options_that_could_be_written_out(preset, part):
    benchmark = find_benchmark(preset.benchmark)
    options = parse_options(benchmark.options, {"preset": preset.name_part(part), "data": {part.data: Path("x")}})
    by_hand = parse_options(benchmark.options, {**part.options, "data": {part.data: Path("x")}})
    assert options.model_copy(update={"preset": None}) == by_hand
    assert part.data in list_datasets() and get_preset_labels(part.data) == options.labels
    labels = load_label_set(options.labels, options.variant)
    check_similarity(labels.names, options, complete=True)
    masks = load_class_sets(options.class_sets, labels.names)
    if options.class_sets:
        assert str(options.class_sets) in SHIPPED
        assert all(mask.any() for mask in masks.values())
    where = benchmark.published_slice(None, options)
    assert where["dataset"] == part.dataset
    beside = [row for row in benchmark.card.published() if row.source.startswith(preset.published)]
    assert any(row.where["dataset"] == part.dataset for row in beside)


def test_every_table_of_results_is_a_preset_and_all_its_rows_stand_beside():
    presets = [preset for name in BENCHMARKS for preset in find_benchmark(name).card.presets()]
    assert {preset.table for preset in presets} == {f"Table {number}" for number in range(4, 11)}
    for name in BENCHMARKS:
        beginnings = tuple(one for preset in list_presets(name) for one in preset.published)
        assert all(row.source.startswith(beginnings) for row in find_benchmark(name).card.published())


def test_cocos_unknown_things_are_things_and_the_others_known():
    things = [label.name for label in load_label_set("coco133") if label.isthing]
    masks = load_class_sets(Path("coco-things-64-16"), things)
    assert {name: int(mask.sum()) for name, mask in masks.items()} == {"known": 64, "unknown": 16}
    assert not (masks["known"] & masks["unknown"]).any()
    both = load_class_sets(Path("coco-48-17-all"), things)
    assert (both["all"] == (both["base"] | both["novel"])).all() and both["all"].sum() == 65
