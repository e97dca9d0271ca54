"""The published numbers, cell by cell; how far the tables agree with one another; which scores are comparable."""

from __future__ import annotations

import csv

import pytest

from hardlook.rclicks.options import RClicksOptions
from hardlook.rclicks.published import (
    CLICK_MODEL_NAMES,
    DATASETS,
    INSTANCES,
    SCORE_NAMES,
    TITLES,
    describe_comparability,
    find_checkpoint,
    list_checkpoints,
    list_results,
    published_click_models,
    published_numbers,
)
from hardlook.rclicks.scores import SCORES

COLUMNS = {
    "noc90": "NoC_sample",
    "noc90-std": "NoC_sample_std",
    "noc90-base": "NoC_base",
    "dsb": "dSB_NoC_pct",
    "dgr": "dGR_NoC_pct",
    "dhh": "dHH_NoC_pct",
    "nof": "NoF_sample",
    "nof-std": "NoF_sample_std",
    "nof-base": "NoF_base",
    "dsb-nof": "dSB_NoF",
    "dgr-nof": "dGR_NoF",
    "dhh-nof": "dHH_NoF",
    "auc": "IoUAuC_sample",
    "auc-std": "IoUAuC_sample_std",
    "auc-base": "IoUAuC_base",
    "dsb-iou": "dSB_IoU",
    "dgr-iou": "dGR_IoU",
    "dhh-iou": "dHH_IoU",
    "nsr": "NSR_sample_20",
    "user-iou1": "IoU1_user",
    "user-iou1-std": "IoU1_user_std",
    "sample-iou1": "IoU1_sample",
    "sample-iou1-std": "IoU1_sample_std",
    "base-iou1": "IoU1_base",
    "nsr1": "NSR_user_1",
}

REFERENCE_NAMES = dict(zip(DATASETS, ("GrabCut", "Berkeley", "DAVIS", "COCO", "TETRIS"), strict=True))

# Three values of two digits, each off by up to half of the last one.
ROUNDING = 0.015 + 1e-9

# Table 4 as printed: backbone, data; then for DAVIS, COCO-MVal and TETRIS: Sample, its std, dSB and dGR.
TABLE_4 = """
RN50 C+L 6.44 0.85 16.88 53.65 4.74 1.31 26.43 79.00 3.87 0.79 19.55 56.43
RN34 C+L 5.95 0.73 14.95 45.88 4.13 0.85 15.15 49.79 3.10 0.53 14.16 44.06
RN34 SBD 7.87 1.25 23.39 64.95 6.36 1.29 20.86 51.58 4.51 0.76 17.08 55.22
HR18 C+L 6.23 0.67 6.92 16.13 3.71 0.78 10.27 20.22 3.69 0.52 7.02 13.95
HR18s-IT C+L 6.71 0.99 20.88 54.15 3.65 0.92 16.81 33.89 3.80 0.67 15.79 32.66
HR18-IT C+L 6.15 0.83 11.37 31.14 3.22 0.83 15.84 37.01 3.48 0.60 11.59 23.99
HR32-IT C+L 5.90 0.89 18.34 51.07 3.24 0.83 15.50 37.31 3.44 0.65 17.47 30.69
HR18-IT SBD 7.42 1.03 17.85 38.39 4.81 1.24 17.17 43.23 4.80 0.74 11.96 25.31
ViT-B C+L 4.97 0.40 8.60 15.14 2.93 0.58 9.44 19.75 2.62 0.37 6.99 12.94
ViT-B SBD 5.37 0.49 8.69 17.94 4.33 1.06 14.59 35.07 3.49 0.50 8.40 16.44
ViT-B C+L 5.32 0.54 9.05 26.33 3.07 0.70 11.72 23.60 2.73 0.41 8.86 16.64
ViT-L C+L 5.03 0.42 8.71 16.67 2.67 0.56 8.05 20.88 2.46 0.35 7.11 10.01
ViT-H C+L 5.00 0.42 7.06 12.29 2.57 0.54 6.14 17.65 2.36 0.33 6.94 10.83
ViT-XT SBD 8.35 1.36 18.67 51.05 5.86 1.65 26.28 61.63 5.49 1.22 28.57 35.40
ViT-B SBD 5.77 0.58 8.44 25.72 4.52 1.07 17.58 36.18 3.75 0.54 11.42 19.50
ViT-L SBD 5.56 0.53 7.26 15.97 3.83 0.88 10.02 33.06 3.40 0.43 7.32 16.15
ViT-H SBD 5.49 0.55 7.67 23.69 3.74 0.86 10.46 31.97 3.32 0.43 7.37 16.88
ViT-H C+L 4.53 0.46 9.32 18.47 2.70 0.63 9.58 24.13 2.12 0.34 8.76 14.33
ViT-Tiny SA-1B 5.96 0.56 8.63 15.39 5.25 0.78 9.79 19.78 3.42 0.48 7.47 12.69
ViT-B SA-1B 5.30 0.53 8.26 11.27 4.91 0.79 9.88 15.73 3.04 0.51 11.17 10.06
ViT-L SA-1B 5.21 0.41 8.82 11.59 4.81 0.63 8.89 14.97 2.60 0.40 8.11 7.08
ViT-H SA-1B 5.42 0.49 8.00 15.02 5.14 0.68 7.63 15.61 2.66 0.38 5.95 8.50
ViT-B SA-1B 5.32 0.50 7.45 13.03 5.39 0.89 12.48 16.68 3.35 0.67 16.41 10.74
ViT-L SA-1B 5.19 0.48 8.58 15.69 5.05 0.74 9.64 13.50 2.81 0.51 11.02 7.69
ViT-H SA-1B 5.16 0.44 8.15 18.36 4.97 0.68 7.71 12.36 2.75 0.41 6.78 7.95
Hiera-T SA-V 4.65 0.28 4.86 7.46 3.86 0.64 7.79 13.14 3.11 0.50 9.45 3.57
Hiera-B+ SA-V 4.67 0.33 8.49 15.86 3.75 0.61 7.44 12.67 3.02 0.47 9.51 4.79
Hiera-L SA-V 4.61 0.29 9.51 13.28 3.84 0.62 9.12 12.35 2.83 0.41 7.46 4.10
Hiera-H SA-V 4.39 0.23 7.55 10.03 3.42 0.51 6.12 9.34 2.74 0.38 6.51 4.87
Hiera-T SA-V 4.67 0.32 7.08 8.99 3.91 0.68 8.45 11.88 3.11 0.50 9.75 3.35
Hiera-B+ SA-V 4.63 0.32 9.72 14.30 3.76 0.62 8.16 12.35 3.04 0.49 9.59 4.70
Hiera-L SA-V 4.67 0.32 11.75 15.39 3.88 0.62 7.47 11.95 2.87 0.43 8.35 4.51
Hiera-H SA-V 4.44 0.25 10.35 9.48 3.51 0.52 6.78 9.91 2.81 0.39 7.41 4.50
"""


@pytest.fixture(scope="module")
def reference(shared_data):
    path = shared_data / "reference" / "rclicks" / "rclicks_tables_9_12.csv"
    with path.open(encoding="utf-8") as lines:
        return {(row["model"], row["dataset"]): row for row in csv.DictReader(lines)}


def every_row():
    return [(one, dataset, one.scores[dataset]) for one in list_checkpoints() for dataset in DATASETS]


@pytest.mark.real
def test_every_cell(reference):
    for one, dataset, scores in every_row():
        row = reference[one.name, REFERENCE_NAMES[dataset]]
        assert {name: float(row[column]) for name, column in COLUMNS.items()} == dict(scores)
        assert (row["arch"], row["data"].replace("C+L", "COCO+LVIS")) == (one.backbone, one.trained_on)
    assert len(every_row()) == len(reference) == 165


@pytest.mark.real
def test_the_identities_hold_in_the_reference(reference):
    for row in reference.values():
        for measure, change in (("NoF", "dSB_NoF"), ("IoUAuC", "dSB_IoU")):
            difference = float(row[f"{measure}_sample"]) - float(row[f"{measure}_base"])
            assert difference == pytest.approx(float(row[change]), abs=ROUNDING)


@pytest.mark.parametrize(("sample", "ending"), [("nof", "-nof"), ("auc", "-iou")])
def test_the_identities_hold_in_our_copy(sample, ending):
    for _, _, scores in every_row():
        assert scores[sample] - scores[f"{sample}-base"] == pytest.approx(scores[f"dsb{ending}"], abs=ROUNDING)


def test_table_4_repeats_three_datasets_one_by_one():
    rows = [line.split() for line in TABLE_4.split("\n") if line]
    assert len(rows) == len(list_checkpoints())
    for one, (_, data, *printed) in zip(list_checkpoints(), rows, strict=True):
        found = [one.scores[d][s] for d in DATASETS[2:] for s in ("noc90", "noc90-std", "dsb", "dgr")]
        assert found == [float(value) for value in printed]
        assert one.trained_on == data.replace("C+L", "COCO+LVIS")


def test_table_4_names_hiera_a_size_too_large():
    rows = [line.split() for line in TABLE_4.split("\n") if line]
    differing = {
        (one.backbone, row[0]) for one, row in zip(list_checkpoints(), rows, strict=True) if one.backbone != row[0]
    }
    assert differing == {("Hiera-S", "Hiera-B+"), ("Hiera-B+", "Hiera-L"), ("Hiera-L", "Hiera-H")}


def test_the_ranges_that_the_text_draws_from_table_4():
    three = [scores for _, dataset, scores in every_row() if dataset in DATASETS[2:]]
    dsb, dgr = ([scores[name] for scores in three] for name in ("dsb", "dgr"))
    assert (round(min(dsb)), round(max(dsb))) == (5, 29)
    assert (round(min(dgr)), round(max(dgr))) == (3, 79)


def test_the_best_that_the_text_names():
    def best(dataset):
        return min(list_checkpoints(), key=lambda one: one.scores[dataset]["noc90"]).name

    assert [best(name) for name in DATASETS[2:]] == ["sam2_hiera_large", "cocolvis_vit_huge", "cocolvis_icl_vit_huge"]


def test_eleven_methods_and_thirty_three_checkpoints():
    assert len({one.method for one in list_checkpoints()}) == 11
    assert len({one.label for one in list_checkpoints()}) == len({one.name for one in list_checkpoints()}) == 33


def test_instances_are_those_of_the_paper():
    assert sum(INSTANCES.values()) == 3826
    for _, dataset, scores in every_row():
        assert scores["nof"] <= INSTANCES[dataset]


def test_every_name_is_a_score_of_the_benchmark():
    assert set(SCORE_NAMES) <= {meaning.name for meaning in SCORES}
    assert all(tuple(scores) == SCORE_NAMES for _, _, scores in every_row())


def test_a_mean_weighs_datasets_alike():
    # MobileSAM's dSB on DAVIS, COCO-MVal and TETRIS, from Table 4.
    assert find_checkpoint("mobile_sam").mean(DATASETS[2:])["dsb"] == pytest.approx((8.63 + 9.79 + 7.47) / 3)


def test_a_mean_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one of grabcut"):
        find_checkpoint("mobile_sam").mean(())


def test_published_results_are_means_and_datasets():
    sources = [row.source for row in list_results()]
    assert [sources.count(source) for source in dict.fromkeys(sources)] == [33] * 6
    table_9 = next(row for row in list_results() if row.method == "SAM ViT-H (SA-1B)" and row.source.endswith("DAVIS"))
    assert table_9.values["noc90"] == 5.42
    assert "345 instances of DAVIS" in table_9.comparable


DATASET_NAMES = {title: name for name, title in TITLES.items()} | {"TETRIS (val)": "tetris"}


@pytest.fixture(scope="module")
def printed(shared_data):
    def read(name):
        with (shared_data / "reference" / "rclicks" / "published" / name).open(encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    return read


def first_clicks():
    return {name: int(published_numbers().number("table-2", title, "first round")) for name, title in TITLES.items()}


@pytest.mark.real
def test_click_models_of_tables_3_and_6(printed):
    found = published_click_models()
    rows = printed("table6_generalization.csv")
    for row in rows:
        metrics = found[DATASET_NAMES[row["dataset"]]][CLICK_MODEL_NAMES[row["model"]]]
        assert metrics == {name: float(row[name.upper()]) for name in ("ks", "pl1", "wd", "nss", "pde")}
    assert len(rows) == sum(map(len, found.values())) == 25
    for row in printed("table3_clickability.csv"):
        metrics = found["tetris"][CLICK_MODEL_NAMES[row["model"]]]
        assert metrics == {name: float(row[name.upper()]) for name in ("ks", "pl1", "wd", "nss", "pde")}


@pytest.mark.real
@pytest.mark.parametrize(
    ("file", "table", "columns"),
    [
        ("table1_display_modes.csv", "table-1", ("PL1", "KS", "WD")),
        ("table7_sigma.csv", "table-7", ("KS", "PL1", "WD", "NSS", "PDE")),
        ("table8_pc_mobile.csv", "table-8", ("KS", "PL1", "WD")),
    ],
)
def test_metrics_of_tables_1_7_and_8(printed, file, table, columns):
    rows, numbers = printed(file), published_numbers()
    for row in rows:
        label = next(iter(row.values()))
        assert [numbers.number(table, label, column) for column in columns] == [float(row[c]) for c in columns]
    assert len(rows) == len(numbers.rows(table))


@pytest.mark.real
@pytest.mark.parametrize(("file", "table"), [("table2_click_counts.csv", "table-2"), ("table5_cost.csv", "table-5")])
def test_every_cell_of_tables_2_and_5(printed, file, table):
    rows, found = printed(file), published_numbers().tables[table].rows
    assert [row[0] for row in found] == [next(iter(row.values())) for row in rows]
    for row, cells in zip(rows, found, strict=True):
        assert [float(value) for value in list(row.values())[1:]] == list(cells[1:])


def test_the_totals_that_the_paper_names():
    assert sum(first_clicks().values()) == published_numbers().number("table-2", "All", "first round") == 185_349
    everything = [published_numbers().number("table-2", title, "all") for title in TITLES.values()]
    assert sum(everything) == published_numbers().number("table-2", "All", "all") == 475_544


def test_first_and_later_rounds_add_up():
    for row in published_numbers().tables["table-2"].rows:
        assert row[1] + row[2] == row[3]


def test_sigma_5_is_the_network_of_table_6():
    network = published_click_models()["tetris"]["clickability"]
    sigma = {name: published_numbers().number("table-7", "5", name.upper()) for name in network}
    assert sigma | {"pl1": 0} == network | {"pl1": 0}
    assert sigma["pl1"] == pytest.approx(network["pl1"], abs=0.005)


def test_the_costs_of_the_published_evaluation_follow_from_its_counts():
    """The specification's section 10: courses of the centre rule and of ten groups, and people's first clicks."""
    instances, people = sum(INSTANCES.values()), sum(first_clicks().values())
    images, rounds, groups = 3291, 20, 10
    # One for each click of each course, two for each first click by people.
    encodings = instances * rounds * (1 + groups) + 2 * people
    assert encodings == 1_212_418
    assert round(encodings / images) == 368
    # The centre rule needs no click model.
    assert instances * rounds * groups + people == 950_549
    # In the first round all groups, and all people, meet the same map: one of each is no repeat.
    assert instances * groups + people - 2 * instances == 215_957


# As the paper ran it: spec, sections 1, 4, 5 and 6.
SIZES = {"grabcut": 50, "berkeley": 100, "davis": 345, "coco-mval": 800, "tetris": 2531}

CENTRES = ("noc90-base", "nof-base", "auc-base", "base-iou1")


def options(*datasets, **more):
    data = {name: f"/{name}" for name in datasets or ("grabcut",)}
    return RClicksOptions(**{"data": data, "clicks": "clickability", "perfect": "released", **more})


@pytest.mark.parametrize(("dataset", "size"), SIZES.items())
def test_a_whole_dataset_under_the_papers_settings_is_comparable(dataset, size):
    assert describe_comparability(dataset, size, options(dataset), "noc90").startswith(
        "comparable with the published scores"
    )
    assert describe_comparability(dataset, size - 1, options(dataset), "noc90").startswith("not comparable: ")


def test_all_datasets_in_the_mean():
    words = describe_comparability("", 3826, options(*SIZES), "dgr")
    assert words.startswith(
        "comparable with the published scores of GrabCut, Berkeley, DAVIS, COCO-MVal and TETRIS, in"
    )
    assert describe_comparability("", 3825, options(*SIZES), "dgr").startswith(
        "not comparable: 3,825 instances were scored, and the published scores are those of 3,826"
    )


def test_one_dataset_alone_is_all_that_ran():
    assert describe_comparability("", 50, options(), "dsb") == describe_comparability("grabcut", 50, options(), "dsb")


def test_other_spellings_of_a_dataset_are_the_same():
    words = describe_comparability("", 800, options("COCO_MVal"), "noc90")
    assert words.startswith("comparable with the published scores of COCO-MVal")


def test_other_datasets_and_the_planted_world():
    assert (
        describe_comparability("voc", 50, options("voc"), "noc90") == "not comparable: the paper has no scores of voc"
    )
    assert "no scores of voc" in describe_comparability("", 100, options("grabcut", "voc"), "noc90")
    words = describe_comparability("", 100, options("grabcut", "instances", "images"), "noc90")
    assert words == "not comparable: the paper has no scores of instances"
    assert "planted world" in describe_comparability("planted", 48, RClicksOptions(), "noc90-base")


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"clicks": "uniform"}, "drawn by uniform"),
        ({"groups": 4}, "4 groups"),
        ({"group_rule": "exact"}, "group-rule=exact"),
        ({"rounds": 5}, "5 rounds"),
    ],
)
def test_each_setting_is_named(setting, word):
    words = describe_comparability("grabcut", 50, options(**setting), "noc90")
    assert words.startswith("not comparable: ")
    assert word in words


def test_all_that_differs_is_named_at_once():
    words = describe_comparability("grabcut", 7, options(clicks="uniform", rounds=3, groups=2), "noc90")
    assert words.count(";") == 3


@pytest.mark.parametrize("score", CENTRES)
def test_the_centre_rule_needs_no_click_model(score):
    other = options(clicks="uniform", groups=4, group_rule="exact")
    assert describe_comparability("grabcut", 50, other, score).startswith("comparable")
    assert "authors' weights" not in describe_comparability("grabcut", 50, other, score)


def test_one_click_needs_no_rounds():
    few = options(rounds=1)
    for score in ("base-iou1", "sample-iou1"):
        assert describe_comparability("grabcut", 50, few, score).startswith("comparable")
    assert describe_comparability("grabcut", 50, few, "auc-base").startswith("not comparable")


@pytest.mark.parametrize(("users", "words"), [("planted", "simulated"), ("none", "no people's clicks")])
def test_peoples_scores_need_people(users, words):
    assert words in describe_comparability("grabcut", 50, options(user_clicks=users), "user-iou1")
    real = options(user_clicks="/clicks.csv", clicks="uniform", rounds=1)
    assert describe_comparability("grabcut", 50, real, "nsr1").endswith(
        "provided that the clicks are the published clicks.csv"
    )


def test_readings_touch_their_own_scores_alone():
    nof = options(reading={"nof": "ours"})
    dhh = options(reading={"dhh": "paper"}, halves=True)
    spoilt = {
        meaning.name: [
            describe_comparability("grabcut", 50, chosen, meaning.name).startswith("not comparable")
            for chosen in (nof, dhh)
        ]
        for meaning in SCORES
    }
    assert {name for name, (by_nof, _) in spoilt.items() if by_nof} == {
        *("nof", "nof-std", "nof-base", "dsb-nof", "dgr-nof", "dhh-nof"),
        *("user-iou1", "user-iou1-std", "nsr1"),
    }
    assert {name for name, (_, by_dhh) in spoilt.items() if by_dhh} == {
        *("dhh", "dhh-nof", "dhh-iou"),
        *("user-iou1", "user-iou1-std", "nsr1"),
    }


def test_perfect_masks_are_told_where_areas_are():
    stops = options(perfect="ours")
    assert "perfect mask" in describe_comparability("grabcut", 50, stops, "auc")
    assert "perfect mask" not in describe_comparability("grabcut", 50, stops, "noc90")


@pytest.mark.parametrize("score", ["noc85", "noc95", "noc85-base", "noc95-base"])
def test_what_the_paper_does_not_print(score):
    assert describe_comparability("grabcut", 50, options(), score).startswith("not in the paper")


def test_without_a_name_every_setting_counts():
    assert describe_comparability("grabcut", 50, options(reading={"nof": "ours"})).startswith("not comparable")
    assert describe_comparability("grabcut", 50, options()).startswith("comparable")
