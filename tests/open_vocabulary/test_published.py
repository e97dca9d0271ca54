"""The published numbers, against the tables they were taken from; which runs are comparable with them."""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.open_vocabulary.options import SimilarityOptions
from hardlook.open_vocabulary.published import (
    DATASETS,
    describe_comparability,
    find_published_dataset,
    list_ap_results,
    list_miou_results,
    list_miou_tables,
    list_pq_results,
)
from hardlook.similarity.label_sets import list_label_sets
from hardlook.similarity.measures import MEASURES

COLUMNS = {"": "vanilla", "dagger-": "vanilla_global", "open-": "open_global"}


def rows(shared_data, name):
    with (shared_data / "reference" / "open" / "published" / f"{name}.csv").open() as stream:
        return [row for row in csv.DictReader(stream) if row["vanilla"]]


@pytest.mark.real
def test_every_printed_ap_is_here_and_no_other(shared_data):
    expected = {}
    for row in rows(shared_data, "table7_instance"):
        for prefix, column in COLUMNS.items():
            expected[row["method"], "Table 7, A-150, masks", prefix + row["quantity"].lower()] = float(row[column])
    for name, title in (("table8_instance_indataset", "Table 8, COCO 48/17, masks"),
                        ("table9_detection", "Table 9, COCO 48/17, boxes")):  # fmt: skip
        for row in rows(shared_data, name):
            setting = f"{row['setting'].replace('generalized', 'generalised')}, {row['classes']}"
            for prefix, column in COLUMNS.items():
                expected[row["method"], f"{title}, {setting}", f"{prefix}ap50"] = float(row[column])
    ours = {
        (result.method, result.source, name): 100 * value
        for result in list_ap_results()
        for name, value in result.values.items()
    }
    assert ours == pytest.approx(expected)


DATA = {"gt": Path("gt"), "pred": Path("pred")}


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({}, "Not comparable with the paper: these are scenes"),
        (DATA, "Not comparable with the paper's tables"),
        ({**DATA, "variant": "published", "measure": "wup"}, "Not comparable with the paper's tables"),
        ({**DATA, "variant": "published", "similarity": Path("S.csv")}, "Not comparable with the paper's tables"),
        ({**DATA, "variant": "published"}, "Comparable with the paper's tables"),
    ],
)
def test_only_the_papers_own_senses_and_measure_compare(options, start):
    assert describe_comparability(SimilarityOptions(**options)).startswith(start)


@pytest.mark.parametrize("name", ["open-miou", "open-ap", "open-pq"])
def test_every_headline_score_says_whether_it_is_comparable(name):
    rehearsal = InMemoryRun(name, {"scenes": 4, "resamples": 0})
    card = rehearsal.score(find_benchmark(name).card.default_model)
    assert card.headline
    assert all("planted world" in score.comparable for score in card.headline)


@pytest.mark.real
def test_every_printed_miou_is_here_and_no_other(shared_data):
    with (shared_data / "reference" / "open" / "published" / "table4_semantic.csv").open() as stream:
        printed = {
            (row["method"], row["dataset"]): (float(row["vanilla"]), float(row["open"]))
            for row in csv.DictReader(stream)
            if row["vanilla"]
        }
    ours = {
        (row.method, row.source.removeprefix("Table 4, ")): tuple(
            np.round([100 * row.values["miou"], 100 * row.values["open-miou"]], 6)
        )
        for row in list_miou_results()
    }
    assert ours == printed


def test_every_printed_pq_is_here(shared_data):
    tables = shared_data / "reference" / "open" / "published"
    if not tables.is_dir():
        pytest.skip("the paper's tables are not here")
    found = {(row.method, row.source): row.values for row in list_pq_results()}
    for name, source in (
        ("table5_panoptic", "Table 5, {dataset}"),
        ("table6_panoptic_indataset", "Table 6, COCO, {classes} things"),
        ("table10_similarity_ablation", "Table 10, A-150, {similarity}"),
    ):
        for row in pl.read_csv(tables / f"{name}.csv").to_dicts():
            place = source.format(**row).replace("Table 10, A-150, Path", "Table 5, A-150")
            quantity = row["quantity"].removesuffix("_th").lower()
            values = found[row["method"], place]
            assert [values[quantity], values[f"open-{quantity}"]] == pytest.approx(
                [row["vanilla"] / 100, row["open"] / 100]
            )


def test_table_3_is_what_the_measures_say():
    words = {"gpt2": "GPT-2", "wup": "WuP"}
    table = {str(row[0]).lower(): row[2:] for row in list_miou_tables()[0].rows}
    published = {
        words.get(name, name).lower(): (one.mean, one.std) for name, one in MEASURES.items() if one.mean is not None
    }
    assert table == published


def test_every_dataset_of_table_4_has_a_shipped_set():
    printed = {row.where["dataset"] for row in list_miou_results()}
    assert printed <= set(DATASETS.values())
    assert set(DATASETS) <= {shipped.name for shipped in list_label_sets()}


def test_ade20k_847_stands_beside_its_rows_and_says_what_is_not_comparable():
    options = SimilarityOptions(gt=Path("truth"), labels="ade847")
    assert find_published_dataset(options) == {"dataset": "A-847"}
    assert "Open scores are not comparable" in describe_comparability(options)
    notes = {row.where["dataset"]: row.comparable for row in list_miou_results()}
    assert "open mIoU is not" in notes["A-847"] and "--variant published" in notes["A-150"]


def test_free_words_are_not_comparable():
    options = SimilarityOptions(gt=Path("truth"), labels="ade150", variant="published", pred_words="free")
    assert describe_comparability(options).startswith("Not comparable")
    assert describe_comparability(options.model_copy(update={"pred_words": "labels"})).startswith("Comparable")
