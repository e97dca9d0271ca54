"""The published tables, cell by cell."""

import csv

import pytest

from hardlook.metacoco.published import list_accuracies, list_datasets

DATASETS = list_datasets()
TABLE_2, TABLE_3, TABLE_6, TABLE_7 = map(list_accuracies, ("table-2", "table-3", "table-6", "table-7"))

TICKS = {"1": True, "0": False, "": None}

# What a file does not have, the paper does not print.
TABLES = {
    "table2_methods.csv": (2, 5, TABLE_2),
    "table3_cross_domain.csv": (3, 5, TABLE_3),
    "table6_5way.csv": (6, 5, TABLE_6),
    "table7_10way.csv": (7, 10, TABLE_7),
}


def printed(shared_data, name):
    with (shared_data / "reference" / "metacoco" / "published" / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def fraction(text):
    return pytest.approx(float(text) / 100, abs=1e-9) if text is not None else None


@pytest.mark.real
@pytest.mark.parametrize("name", TABLES)
def test_every_cell_of_the_accuracies(shared_data, name):
    table, ways, ours = TABLES[name]
    rows = printed(shared_data, name)
    assert len(rows) == len(ours)
    for row, one in zip(rows, ours, strict=True):
        assert (one.table, one.ways, one.method, one.kind) == (table, ways, row["method"], row["type"])
        assert one.backbone == row.get("backbone")
        assert one.venue == row.get("venue")
        assert one.built_on == (row.get("base_method") or None)
        for shots, accuracy in ((1, one.one_shot), (5, one.five_shot)):
            assert accuracy.value == fraction(row[f"acc_{shots}shot"])
            assert accuracy.half_width == fraction(row.get(f"ci_{shots}shot"))
            assert one.accuracy(shots) is accuracy
        ticks = one.flags and (one.flags.pretrained, one.flags.episodic, one.flags.adapts)
        assert ticks == (tuple(TICKS[row[flag]] for flag in ("GL", "LL", "TT")) if "GL" in row else None)


@pytest.mark.real
def test_every_cell_of_the_datasets(shared_data):
    rows = printed(shared_data, "table1_benchmarks.csv")
    assert len(rows) == len(DATASETS) == 18
    for row, one in zip(rows, DATASETS, strict=True):
        assert (one.name, one.contexts, one.similarity) == (
            row["dataset"],
            int(row["context"]),
            float(row["similarity"]),
        )
        for what, counts in (("classes", one.classes), ("images", one.images)):
            cells = [row[f"{what}_{part}"] for part in ("all", "train", "val", "test")]
            assert [counts.all, counts.train, counts.val, counts.test] == [
                int(cell) if cell else None for cell in cells
            ]


def test_shots_that_are_not_printed_have_no_accuracy():
    assert TABLE_2[0].accuracy(10) is None


def test_tables_2_and_6_agree_where_both_have_a_row():
    main = {(row.method, row.backbone): (row.one_shot.value, row.five_shot.value) for row in TABLE_2}
    both = {(row.method, row.backbone): (row.one_shot.value, row.five_shot.value) for row in TABLE_6}
    shared = main.keys() & both.keys()
    assert len(shared) == 9
    assert all(main[key] == both[key] for key in shared)


def test_the_contradictions_that_the_docstrings_name():
    main, crossed = ({row.method: row for row in table} for table in (TABLE_2, TABLE_3))
    for method in ("MAML", "MTL"):
        assert main[method].one_shot.value != crossed[method].one_shot.value
    assert {row.method for row in (*TABLE_2, *TABLE_3) if row.one_shot.value == 0.4678} == {
        "Baseline", "DeepBDC", "FGFL", "GNN + ATA",
    }  # fmt: skip
    assert not {"RENet", "LRP"} & {row.method for row in (*TABLE_2, *TABLE_3, *TABLE_6, *TABLE_7)}
    own = DATASETS[-1]
    assert own.images.all - (own.images.train + own.images.val + own.images.test) == 864
