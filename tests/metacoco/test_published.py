"""The published tables, cell by cell."""

import csv

import pytest

from hardlook.metacoco.published import ACCURACY_TABLES, list_results, list_rows

TABLE_2, TABLE_3, TABLE_6, TABLE_7 = map(list_rows, ACCURACY_TABLES)

FILES = {
    "table-2": "table2_methods.csv",
    "table-3": "table3_cross_domain.csv",
    "table-6": "table6_5way.csv",
    "table-7": "table7_10way.csv",
}

# Our column, then that of the file; what a file does not have, the paper does not print.
TEXTS = {"method": "method", "type": "type", "backbone": "backbone", "venue": "venue", "built on": "base_method"}
NUMBERS = {
    "1 shot": "acc_1shot",
    "5 shots": "acc_5shot",
    "+-": "ci_1shot",
    "+- of 5 shots": "ci_5shot",
    "GL": "GL",
    "LL": "LL",
    "TT": "TT",
}


def printed(shared_data, name):
    with (shared_data / "reference" / "metacoco" / "published" / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.real
@pytest.mark.parametrize("table", FILES)
def test_every_cell_of_the_accuracies(shared_data, table):
    rows, ours = printed(shared_data, FILES[table]), list_rows(table)
    assert len(rows) == len(ours)
    for row, one in zip(rows, ours, strict=True):
        for column, name in TEXTS.items():
            assert one.get(column) == (row.get(name) or None)
        for column, name in NUMBERS.items():
            assert one.get(column) == (float(row[name]) if row.get(name) else None)
            assert (column in one) == (name in row)


@pytest.mark.real
def test_every_cell_of_the_datasets(shared_data):
    rows, ours = printed(shared_data, "table1_benchmarks.csv"), list_rows("table-1")
    assert len(rows) == len(ours) == 18
    for row, one in zip(rows, ours, strict=True):
        assert (one["dataset"], one["contexts"], one["similarity"]) == (
            row["dataset"],
            int(row["context"]),
            float(row["similarity"]),
        )
        for what in ("classes", "images"):
            for part in ("all", "train", "val", "test"):
                cell = row[f"{what}_{part}"]
                assert one[f"{what}, {part}"] == (int(cell) if cell else None)


def test_results_are_fractions_by_ways_and_shots():
    row = next(one for one in list_results() if one.source == "Table 7" and one.where["shots"] == "5")
    assert row.method == f"{TABLE_7[0]['method']}, {TABLE_7[0]['backbone']}"
    assert (dict(row.values), dict(row.where)) == ({"blind": 0.3688}, {"ways": "10", "shots": "5"})
    assert {one.where["shots"] for one in list_results()} == {"1", "5"}


def test_tables_2_and_6_agree_where_both_have_a_row():
    main, both = (
        {(row["method"], row["backbone"]): (row["1 shot"], row["5 shots"]) for row in table}
        for table in (TABLE_2, TABLE_6)
    )
    shared = main.keys() & both.keys()
    assert len(shared) == 9
    assert all(main[key] == both[key] for key in shared)


def test_the_contradictions_that_the_docstrings_name():
    main, crossed = ({row["method"]: row for row in table} for table in (TABLE_2, TABLE_3))
    for method in ("MAML", "MTL"):
        assert main[method]["1 shot"] != crossed[method]["1 shot"]
    assert {row["method"] for row in (*TABLE_2, *TABLE_3) if row["1 shot"] == 46.78} == {
        "Baseline", "DeepBDC", "FGFL", "GNN + ATA",
    }  # fmt: skip
    assert not {"RENet", "LRP"} & {row["method"] for row in (*TABLE_2, *TABLE_3, *TABLE_6, *TABLE_7)}
    own = list_rows("table-1")[-1]
    assert own["images, all"] - sum(own[f"images, {part}"] for part in ("train", "val", "test")) == 864
