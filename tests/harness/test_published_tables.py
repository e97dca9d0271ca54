"""Every published table that ships, cell for cell against the reference files, and the rows in our scores' terms."""

import csv

import polars as pl
import pytest

from hardlook.harness.options import parse_options
from hardlook.harness.registry import BUILT_IN, STUDIES, find_benchmark
from hardlook.harness.scorecard import Scorecard

# Reference file: benchmark and table.
TABLES = {
    "toss/published/table1_cnb.csv": ("toss", "table-1"),
    "toss/published/table2a_support.csv": ("toss", "table-2a"),
    "toss/published/table2b_saliency.csv": ("toss", "table-2b"),
    "toss/published/table3_sssi.csv": ("toss", "table-3"),
    "toss/published/table4_scores.csv": ("toss", "table-4"),
    "toss/published/supp_table1_leaveout.csv": ("toss", "supplement-1"),
    "toss/published/supp_table2_tier1.csv": ("toss", "supplement-2"),
    "toss/published/supp_table3_tier2.csv": ("toss", "supplement-3"),
    "toss/published/supp_table4_tier3.csv": ("toss", "supplement-4"),
    "toss/published/supp_weights.csv": ("toss", "weights"),
    "toss/published/supp_mutual_information.csv": ("toss", "information"),
    "toss/published/encoder_agreement.csv": ("toss", "agreement"),
    "metacoco/published/table1_benchmarks.csv": ("metacoco", "table-1"),
    "metacoco/published/table2_methods.csv": ("metacoco", "table-2"),
    "metacoco/published/table3_cross_domain.csv": ("metacoco", "table-3"),
    "metacoco/published/table6_5way.csv": ("metacoco", "table-6"),
    "metacoco/published/table7_10way.csv": ("metacoco", "table-7"),
    "rclicks/published/table1_display_modes.csv": ("rclicks", "table-1"),
    "rclicks/published/table2_click_counts.csv": ("rclicks", "table-2"),
    "rclicks/published/table3_clickability.csv": ("rclicks", "table-3"),
    "rclicks/published/table5_cost.csv": ("rclicks", "table-5"),
    "rclicks/published/table6_generalization.csv": ("rclicks", "table-6"),
    "rclicks/published/table7_sigma.csv": ("rclicks", "table-7"),
    "rclicks/published/table8_pc_mobile.csv": ("rclicks", "table-8"),
    "open/published/table3_similarity_stats.csv": ("open-miou", "table-3"),
    "open/published/table4_semantic.csv": ("open-miou", "table-4"),
    "open/published/table5_panoptic.csv": ("open-pq", "table-5"),
    "open/published/table6_panoptic_indataset.csv": ("open-pq", "table-6"),
    "open/published/table7_instance.csv": ("open-ap", "table-7"),
    "open/published/table8_instance_indataset.csv": ("open-ap", "table-8"),
    "open/published/table9_detection.csv": ("open-ap", "table-9"),
    "open/published/table10_similarity_ablation.csv": ("open-pq", "table-10"),
    "open/published/table11_user_study.csv": ("open-miou", "table-11"),
}

# No table of the paper.
OTHERS = {"open/published/notes.csv"}

# What we call what the files call otherwise.
WORDS = {
    "dlv3plus_iou": "IoU of a supervised DeepLabV3+",
    "distractor_weights": "distractor weights",
    "ResNeXT": "ResNeXt",
    "generalized": "generalised",
    "dining-table": "diningtable",
    "potted-plant": "pottedplant",
    "tv-monitor": "tvmonitor",
    "PQ_th": "PQ",
    "SQ_th": "SQ",
    "RQ_th": "RQ",
    **{f"{one}-{other}": f"{one}_{other}" for one in ("easy", "hard") for other in ("sal", "nsal")},
}

CLICK_COLUMNS = {
    9: ("NoC_sample", "NoC_sample_std", "NoC_base", "dSB_NoC_pct", "dGR_NoC_pct", "dHH_NoC_pct"),
    10: ("NoF_sample", "NoF_sample_std", "NoF_base", "dSB_NoF", "dGR_NoF", "dHH_NoF"),
    11: ("IoUAuC_sample", "IoUAuC_sample_std", "IoUAuC_base", "dSB_IoU", "dGR_IoU", "dHH_IoU"),
    12: ("IoU1_user", "IoU1_user_std", "IoU1_sample", "IoU1_sample_std", "IoU1_base", "NSR_user_1", "NSR_sample_20"),
}

MEANS = ("ks2d", "l1", "wasserstien", "nss")

# Table 4 is in no file: it prints columns of Table 9 again, with other names for three sizes.
HIERA = {"Hiera-S": "Hiera-B+", "Hiera-B+": "Hiera-L", "Hiera-L": "Hiera-H"}

ALL = [*BUILT_IN, *STUDIES]


def table_of(benchmark, name):
    [table] = [one for one in find_benchmark(benchmark).card.published_tables() if one.name == name]
    return table


def read(shared_data, name):
    path = shared_data / "reference" / name
    if not path.is_file():
        pytest.skip(f"no reference file {name}")
    with path.open(encoding="utf-8") as lines:
        return list(csv.reader(lines))[1:]


def cell(text):
    """A cell of a reference file as our tables hold it."""
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return WORDS.get(text, text)


@pytest.mark.real
@pytest.mark.parametrize("name", TABLES)
def test_every_cell_is_as_printed(shared_data, name):
    table = table_of(*TABLES[name])
    rows = [list(map(cell, row)) for row in read(shared_data, name)]
    if name.endswith("supp_table1_leaveout.csv"):
        rows = [row[1:] for row in rows]  # the number of the class is its place
    assert [list(row) for row in table.rows] == rows


@pytest.mark.real
def test_no_reference_table_is_left_out(shared_data):
    folder = shared_data / "reference"
    if not folder.is_dir():
        pytest.skip("no reference files")
    found = {str(path.relative_to(folder)) for path in folder.glob("*/published/*.csv")}
    assert found == set(TABLES) | OTHERS


@pytest.mark.real
def test_classes_that_were_removed(shared_data):
    listed = (shared_data / "reference" / "toss" / "published" / "removed_classes.txt").read_text().split()
    assert [name for (name,) in table_of("toss", "removed").rows] == sorted(name.replace("-", "_") for name in listed)


@pytest.mark.real
@pytest.mark.parametrize("number", CLICK_COLUMNS)
def test_tables_9_to_12_of_rclicks(shared_data, number):
    path = shared_data / "reference" / "rclicks" / "rclicks_tables_9_12.csv"
    printed = {(row["model"], row["dataset"]): row for row in pl.read_csv(path).to_dicts()}
    rows = table_of("rclicks", f"table-{number}").rows
    for checkpoint, backbone, data, dataset, *values in rows:
        row = printed[checkpoint, dataset.removesuffix("-MVal")]
        assert values == [float(row[column]) for column in CLICK_COLUMNS[number]]
        assert (backbone, data) == (row["arch"], row["data"].replace("C+L", "COCO+LVIS"))
    assert len(rows) == len(printed) == len({(row[0], row[3]) for row in rows})


@pytest.mark.real
def test_table_4_of_rclicks_repeats_table_9(shared_data):
    printed = pl.read_csv(shared_data / "reference" / "rclicks" / "rclicks_tables_9_12.csv")
    models = printed["model"].unique(maintain_order=True).to_list()
    table = table_of("rclicks", "table-4")
    for model, (_, backbone, _, *values) in zip(models, table.rows, strict=True):
        expected = []
        for dataset in ("DAVIS", "COCO", "TETRIS"):
            [row] = printed.filter((pl.col("model") == model) & (pl.col("dataset") == dataset)).to_dicts()
            expected += [row[name] for name in ("NoC_sample", "NoC_sample_std", "dSB_NoC_pct", "dGR_NoC_pct")]
        assert values == expected
        assert backbone == HIERA.get(row["arch"], row["arch"])


def rounded(row, digits):
    """A row of the released means as it is printed; PDE has three significant digits."""
    printed = [f"{row[name]:.{places}f}" for name, places in zip(MEANS, digits, strict=True)]
    return [float(value) for value in (*printed, f"{row['pde']:.2e}")]


def means(shared_data, name):
    rows = pl.read_csv(shared_data / "reference" / "rclicks" / f"{name}_mean.csv").to_dicts()
    return {row["model_name"]: row for row in rows}


@pytest.mark.real
def test_table_6_of_rclicks_is_the_released_means(shared_data):
    short = {"UD": "ud", "DT": "dt", "SI": "si", "SM": "sm", "Ours": "cm"}
    for dataset, model, *values in table_of("rclicks", "table-6").rows:
        found = means(shared_data, dataset.removesuffix(" (val)").removesuffix("-MVal"))[short[model]]
        assert values == rounded(found, (2, 2, 2, 2))


@pytest.mark.real
def test_table_7_of_rclicks_is_the_released_means(shared_data):
    found = means(shared_data, "TETRIS")
    for sigma, *values in table_of("rclicks", "table-7").rows:
        name = "cm" if sigma == 5 else f"cm_{str(sigma).replace('.', '')}"
        assert values == rounded(found[name], (2, 3, 2, 2))


@pytest.mark.parametrize("name", ALL)
def test_tables_are_whole_and_have_names(name):
    tables = find_benchmark(name).card.published_tables()
    assert len({table.name for table in tables}) == len(tables)
    for table in tables:
        assert table.source and table.title
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert len(set(table.columns)) == len(table.columns)


@pytest.mark.parametrize("name", ALL)
def test_published_rows_speak_of_our_scores(name):
    card = find_benchmark(name).card
    known = {meaning.name for meaning in card.scores}
    for row in card.published():
        assert set(row.values) <= known
        assert row.source and row.comparable
    said = [
        (row.method, row.source, score, *sorted(row.where.items())) for row in card.published() for score in row.values
    ]
    assert len(set(said)) == len(said)


@pytest.mark.parametrize(
    ("name", "options", "where"),
    [
        ("metacoco", {"ways": "5,10", "shots": "1", "data": {"root": "x"}}, {}),
        ("metacoco", {"ways": "10", "shots": "5", "data": {"root": "x"}}, {"ways": "10", "shots": "5"}),
        ("open-miou", {"gt": "x", "labels": "voc20"}, {"dataset": "PAS-20"}),
        ("open-pq", {"gt": "x", "labels": "mine.csv"}, {}),
        ("open-ap", {"gt": "x", "labels": "ade150"}, {"dataset": "A-150", "iou": "segm"}),
        ("open-ap", {"labels": "ade150"}, {}),
        ("rclicks", {}, {}),
    ],
)
def test_what_scores_over_all_units_stand_beside(name, options, where):
    benchmark = find_benchmark(name)
    assert benchmark.published_slice is not None
    given = parse_options(benchmark.options, options)
    assert benchmark.published_slice(Scorecard(name, "1", ""), given) == where
