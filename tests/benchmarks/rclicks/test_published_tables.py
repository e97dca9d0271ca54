"""The published numbers about clicks and click models, cell by cell."""

import csv

import pytest

from hardlook.benchmarks.rclicks import published_tables as ours
from hardlook.benchmarks.rclicks.published import DATASETS, INSTANCES, TITLES

MODELS = dict(zip(("UD", "DT", "SI", "SM", "Ours"), ours.MODELS, strict=True))
DATASET_NAMES = {title: name for name, title in TITLES.items()} | {"TETRIS (val)": "tetris"}


@pytest.fixture(scope="module")
def printed(shared_data):
    def read(name):
        with (shared_data / "reference" / "rclicks" / "published" / name).open(encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    return read


def check(found, row, columns=("KS", "PL1", "WD", "NSS", "PDE")):
    assert {column: getattr(found, column.lower()) for column in columns} == {c: float(row[c]) for c in columns}


@pytest.mark.real
def test_click_models_of_tables_3_and_6(printed):
    rows = printed("table6_generalization.csv")
    for row in rows:
        check(ours.CLICK_MODELS[DATASET_NAMES[row["dataset"]]][MODELS[row["model"]]], row)
    assert len(rows) == sum(map(len, ours.CLICK_MODELS.values())) == 25
    for row in printed("table3_clickability.csv"):
        check(ours.CLICK_MODELS["tetris"][MODELS[row["model"]]], row)


@pytest.mark.real
def test_sigmas_of_table_7(printed):
    rows = printed("table7_sigma.csv")
    for row in rows:
        check(ours.SIGMAS[float(row["sigma"])], row)
    assert len(rows) == len(ours.SIGMAS)


@pytest.mark.real
@pytest.mark.parametrize(
    ("file", "key", "table", "names"),
    [
        ("table1_display_modes.csv", "display_mode", ours.DISPLAY_MODES, {}),
        ("table8_pc_mobile.csv", "dataset", ours.DEVICES, DATASET_NAMES),
    ],
)
def test_sets_of_clicks_of_tables_1_and_8(printed, file, key, table, names):
    rows = printed(file)
    for row in rows:
        check(table[names.get(row[key], row[key])], row, ("KS", "PL1", "WD"))
    assert len(rows) == len(table)


@pytest.mark.real
def test_counts_of_table_2(printed):
    rows = {row["dataset"]: row for row in printed("table2_click_counts.csv")}
    for name in DATASETS:
        row, found = rows[TITLES[name]], ours.CLICK_COUNTS[name]
        assert [str(found.first), str(found.later), str(found.all)] == list(row.values())[1:]


@pytest.mark.real
def test_costs_of_table_5(printed):
    rows = printed("table5_cost.csv")
    for row in rows:
        cost = ours.COSTS[row["model"]]
        found = (cost.parameters, cost.gflops, cost.memory, cost.milliseconds, cost.spread, cost.side, cost.side)
        assert found == tuple(float(value) for value in list(row.values())[1:])
    assert len(rows) == len(ours.COSTS)


def test_the_totals_that_the_paper_names():
    assert sum(count.first for count in ours.CLICK_COUNTS.values()) == 185_349
    assert sum(count.all for count in ours.CLICK_COUNTS.values()) == 475_544


def test_sigma_5_is_the_network_of_table_6():
    sigma, network = ours.SIGMAS[5], ours.CLICK_MODELS["tetris"]["clickability"]
    assert (sigma.ks, sigma.wd, sigma.nss, sigma.pde) == (network.ks, network.wd, network.nss, network.pde)
    assert sigma.pl1 == pytest.approx(network.pl1, abs=0.005)


def test_the_costs_of_the_published_evaluation_follow_from_its_counts():
    """The specification's section 10: courses of the centre rule and of ten groups, and people's first clicks."""
    instances, people = sum(INSTANCES.values()), sum(count.first for count in ours.CLICK_COUNTS.values())
    images, rounds, groups = 3291, 20, 10
    # One for each click of each course, two for each first click by people.
    encodings = instances * rounds * (1 + groups) + 2 * people
    assert encodings == 1_212_418
    assert round(encodings / images) == 368
    # The centre rule needs no click model.
    assert instances * rounds * groups + people == 950_549
    # In the first round all groups, and all people, meet the same map: one of each is no repeat.
    assert instances * groups + people - 2 * instances == 215_957
