"""The published APs, against the tables they were taken from."""

import csv

import pytest

from hardlook.benchmarks.open_labels.published_ap import PUBLISHED_AP

COLUMNS = {"": "vanilla", "dagger-": "vanilla_global", "open-": "open_global"}


def rows(shared_data, name):
    with (shared_data / "reference" / "open" / "published" / f"{name}.csv").open() as stream:
        return [row for row in csv.DictReader(stream) if row["vanilla"]]


@pytest.mark.real
def test_every_printed_value_is_here_and_no_other(shared_data):
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
        for result in PUBLISHED_AP
        for name, value in result.values.items()
    }
    assert ours == pytest.approx(expected)
