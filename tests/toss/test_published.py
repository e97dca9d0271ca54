"""The published numbers, cell by cell, how far they follow from one another, and which scores are comparable."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from one_shot_folders import write_one_shot_folder

from hardlook.data import toss_pairs
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.metrics.one_shot import (
    POOLED_LEVELS,
    SPLITS,
    class_scs_paper,
    class_scs_released,
    generalization_score,
    lca_hca,
)
from hardlook.toss import pair_lists
from hardlook.toss.benchmark import TOSS
from hardlook.toss.options import TossOptions
from hardlook.toss.published import METHODS, PairsRun, describe_comparability, list_tables, read_numbers

# A value printed with two digits is off by up to half of the last one.
ROUNDING = 0.005

SPLIT_NAMES = {
    "easy+salient": "easy_sal",
    "easy+non-salient": "easy_nsal",
    "hard+salient": "hard_sal",
    "hard+non-salient": "hard_nsal",
    "LCA": "lca",
    "HCA": "hca",
}

NUMBERS = read_numbers()

TIER_1, TIER_2, TIER_3, SCORES = NUMBERS.tier_1, NUMBERS.tier_2, NUMBERS.tier_3, NUMBERS.scores


def printed(shared_data, name):
    with (shared_data / "reference" / "toss" / "published" / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def numbers(row, unit=1):
    return [float(row[f"fold{fold}"]) / unit for fold in (1, 2, 3, 4)], float(row["mean"]) / unit


def check(ours, row, unit=1):
    folds, mean = numbers(row, unit)
    assert (list(ours.folds), ours.mean) == (pytest.approx(folds, abs=1e-9), pytest.approx(mean, abs=1e-9))


def splits_of(method):
    return np.array([TIER_1[method][split].folds for split in SPLITS]).T


def levels_of(method):
    return np.array([TIER_2[method][level].folds for level in POOLED_LEVELS]).T


@pytest.mark.real
def test_every_cell_of_tier_1(shared_data):
    rows = printed(shared_data, "supp_table2_tier1.csv")
    for row in rows:
        check(TIER_1[row["method"]][SPLIT_NAMES[row["split"]]], row)
    assert len(rows) == sum(map(len, TIER_1.values())) == 30


@pytest.mark.real
def test_every_cell_of_tier_2(shared_data):
    rows = printed(shared_data, "supp_table3_tier2.csv")
    for row in rows:
        check(TIER_2[row["method"]][row["level"]], row)
    assert len(rows) == sum(map(len, TIER_2.values())) == 30


@pytest.mark.real
def test_every_cell_of_tier_3_and_of_the_leaderboard(shared_data):
    for row in printed(shared_data, "supp_table4_tier3.csv"):
        check(TIER_3[row["method"]], row)
    leaderboard = printed(shared_data, "table4_scores.csv")
    for row in leaderboard:
        values = {name.lower(): pytest.approx(float(row[name]) / 100, abs=1e-9) for name in ("LCA", "HCA", "SCS", "GS")}
        assert SCORES[row["method"]] == values
    assert len(leaderboard) == len(TIER_3) == len(SCORES) == len(METHODS) == 5


def test_all_forty_lca_and_hca_cells_follow_from_their_splits():
    """Inputs and outputs are both rounded, so the tolerance is .01; with .25 as last weight 37 cells miss it."""
    misses = {0.5: 0, 0.25: 0}
    for method in METHODS:
        splits = splits_of(method)
        cells = TIER_1[method]["lca"].folds, TIER_1[method]["hca"].folds
        for score, cell in zip(lca_hca(splits), cells, strict=True):
            assert score == pytest.approx(cell, abs=2 * ROUNDING)
        for last in misses:
            weights = np.array([3, 0.75, 0.75, last])
            for order, cell in zip((weights, weights[::-1]), cells, strict=True):
                ours = splits @ order / weights.sum()
                misses[last] += int((np.abs(ours - cell) > 2 * ROUNDING + 1e-9).sum())
    assert misses == {0.5: 0, 0.25: 37}


def test_mean_lca_and_hca_follow_from_all_splits():
    for method in METHODS:
        low, high = (score.mean() for score in lca_hca(splits_of(method)))
        assert low == pytest.approx(SCORES[method]["lca"], abs=ROUNDING + 5e-5)
        assert high == pytest.approx(SCORES[method]["hca"], abs=ROUNDING + 5e-5)
        assert SCORES[method]["lca"] == pytest.approx(TIER_1[method]["lca"].mean, abs=ROUNDING + 1e-9)
        assert SCORES[method]["hca"] == pytest.approx(TIER_1[method]["hca"].mean, abs=ROUNDING + 1e-9)


def test_scs_of_the_paper_fits_three_methods_from_their_folds():
    """The specification's figures: 68.83, 54.67, 68.23 within rounding; PFENet 62.23 and HSNet are off."""
    ours = {method: float(class_scs_paper(levels_of(method)).mean()) for method in METHODS}
    assert ours["Baseline"] == pytest.approx(0.6883, abs=5e-5)
    assert ours["RPMM"] == pytest.approx(0.5467, abs=5e-5)
    assert ours["RePRI"] == pytest.approx(0.6823, abs=5e-5)
    assert ours["PFENet"] == pytest.approx(0.6223, abs=5e-5)
    fits = {method: abs(ours[method] - SCORES[method]["scs"]) <= ROUNDING for method in METHODS}
    assert fits == {"Baseline": True, "PFENet": False, "RPMM": True, "RePRI": True, "HSNet": False}


def test_scs_of_pfenet_fits_its_printed_means_and_hsnet_fits_nothing():
    means = {method: [TIER_2[method][level].mean for level in POOLED_LEVELS] for method in METHODS}
    assert class_scs_paper(means["PFENet"]) == pytest.approx(SCORES["PFENet"]["scs"], abs=ROUNDING)
    assert abs(class_scs_paper(means["HSNet"]) - SCORES["HSNet"]["scs"]) > 0.04


def test_released_scs_misses_by_one_to_eight():
    """L4 to L6 are pooled by their mean, since the counts are not printed."""
    misses = {}
    for method in METHODS:
        levels = levels_of(method)
        groups = np.stack([*levels[:, :3].T, levels[:, 3:].mean(axis=1)], axis=-1)
        released = class_scs_released(groups, np.ones_like(groups)).mean()
        misses[method] = round(100 * abs(released - SCORES[method]["scs"]))
    assert min(misses.values()) == 1 and max(misses.values()) == 8


def test_gs_is_the_mean_of_the_folds_but_for_the_baseline():
    fits = {}
    for method in METHODS:
        ours = generalization_score(np.array(TIER_3[method].folds)[:, None])
        fits[method] = abs(ours - SCORES[method]["gs"]) <= ROUNDING
    assert fits == {"Baseline": False, "PFENet": True, "RPMM": True, "RePRI": True, "HSNet": True}


def test_printed_means_that_contradict_their_folds():
    contradicted = {
        (method, level)
        for method in METHODS
        for level, row in TIER_2[method].items()
        if abs(np.mean(row.folds) - row.mean) > 2 * ROUNDING + 1e-9
    }
    assert contradicted == {("Baseline", "L2+L3"), ("PFENet", "L2+L3"), ("RePRI", "L2+L3"), ("HSNet", "L4")}


COLUMNS = {
    "dlv3plus_iou": "iou",
    "size": "area_ratio",
    "centeredness": "offset_ratio",
    "salience": "saliou",
    "blobs": "blob_count",
    "distractor_weights": "distractor_weight",
}

REMEDIES = {"": "none", "Leaveout": "leave-out", "SGTSS": "sgtss", "SSSI": "sssi"}

SUPPORTS = {
    "correct support": "correct",
    "class differs": "other-class",
    "null mask": "no-mask",
    "null image": "no-image",
    "class differs + null mask": "other-class-no-mask",
}


def check_percent(ours, row):
    expected = [float(row[name]) / 100 for name in ("fold1", "fold2", "fold3", "fold4", "mean")]
    assert [*ours.folds, ours.mean] == pytest.approx(expected, abs=1e-9)


@pytest.mark.real
@pytest.mark.parametrize(("name", "base"), [("table1_cnb.csv", "none"), ("table3_sssi.csv", "none, table 3")])
def test_every_cell_of_the_remedies(shared_data, name, base):
    rows = printed(shared_data, name)
    for row in rows:
        method, _, remedy = row["method"].partition("+")
        values = NUMBERS.remedies["Baseline" if method == "Base" else method]
        check_percent(values[REMEDIES[remedy] if remedy else base], row)
    assert len(rows) == (9 if base == "none" else 6)


@pytest.mark.real
def test_every_cell_of_the_supports_and_of_salience(shared_data):
    supports = printed(shared_data, "table2a_support.csv")
    for row in supports:
        check_percent(NUMBERS.supports[SUPPORTS[row["support_type"]]], row)
    assert len(supports) == len(NUMBERS.supports)
    halves = printed(shared_data, "table2b_saliency.csv")
    for row in halves:
        ours = NUMBERS.salience[row["method"]]
        expected = float(row["salient"]) / 100, float(row["non_salient"]) / 100
        assert (ours["salient"], ours["non-salient"]) == pytest.approx(expected, abs=1e-9)
    assert len(halves) == len(NUMBERS.salience)


@pytest.mark.real
def test_every_cell_of_the_classes(shared_data):
    rows = printed(shared_data, "supp_table1_leaveout.csv")
    for row, ours in zip(rows, NUMBERS.classes, strict=True):
        assert (ours.name, ours.fold + 1) == (row["class"].replace("-", ""), int(row["fold"]))
        names = ("base", "base_leaveout", "rpmm", "rpmm_leaveout", "percent_distractors")
        values = [ours.base, ours.base_leave_out, ours.rpmm, ours.rpmm_leave_out, ours.distractors]
        assert values == pytest.approx([float(row[name]) / 100 for name in names], abs=1e-9)


@pytest.mark.real
def test_every_cell_of_the_design_studies(shared_data):
    information, agreement = (table.rows for table in list_tables("information", "agreement"))
    for row, (_, value, repository) in zip(
        printed(shared_data, "supp_mutual_information.csv"), information, strict=True
    ):
        assert NUMBERS.information[COLUMNS[row["attribute"]]] == value == float(row["mutual_information"])
        assert repository == float(row["mutual_information_repository"])
    encoders = {name: values for name, *values in agreement}
    for row in printed(shared_data, "encoder_agreement.csv"):
        name = {"ResNeXT": "ResNeXt"}.get(row["encoder"], row["encoder"])
        assert encoders[name] == [row["reference"], float(row["agreement_percent"]), int(row["pairs"])]
        assert NUMBERS.agreement[name] == float(row["agreement_percent"])
    for row in printed(shared_data, "supp_weights.csv"):
        ours = NUMBERS.weights[row["split"].replace("-", "_")]
        values = [ours.salience, ours.supervised_miou, ours.product_share, ours.proportion, ours.adjusted]
        assert values == [float(value) for name, value in row.items() if name != "split"]


def test_weights_follow_from_salience_times_supervised_iou():
    """Shares of the products, five in all; the printed inputs have two digits, so the shares agree roughly."""
    studies = list(NUMBERS.weights.values())
    products = np.array([study.salience * study.supervised_miou for study in studies])
    shares = products / products.sum()
    assert shares == pytest.approx([study.product_share for study in studies], abs=0.02)
    assert 5 * shares == pytest.approx([study.proportion for study in studies], abs=0.1)


def test_class_means_are_the_folds_of_the_first_table_where_the_paper_agrees_with_itself():
    """Folds 1 to 3 of the paper for Base and RPMM, within .01 of a percent as printed."""
    for fold in (0, 1, 2):
        classes = [one for one in NUMBERS.classes if one.fold == fold]
        for method, attribute in (("Baseline", "base"), ("RPMM", "rpmm")):
            mean = np.mean([getattr(one, attribute) for one in classes])
            assert mean == pytest.approx(NUMBERS.remedies[method]["none"].folds[fold], abs=1.1e-4)


def records(kinds, folds=(0, 1, 2, 3)):
    rows = [
        {
            "unit": f"{fold}-{split}", "tier": 1, "fold": fold, "split": split, "class": f"class {fold}", "shots": 1,
            "mixed": False, "query": "a", "support": "b", "intersection": 1, "predicted": 2, "truth": 2,
            "predicted_void": 0, "void": 0, "pixels": 9, "listing": kinds[place % len(kinds)], "prediction": "",
            "salient": -1, "predicted_salient": -1, "truth_salient": -1, "found_salient": -1, "similarity": -2.0,
        }
        for fold in folds
        for place, split in enumerate(SPLITS)
    ]  # fmt: skip
    return TOSS.schema.frame(rows)


def words(kinds, folds=(0, 1, 2, 3), **given):
    card = TOSS.score(records(kinds, folds), TossOptions(resamples=0, folds=folds, **given))
    return {(score.name, tuple(sorted(score.slice))): score.comparable for score in card.scores}


def test_whole_published_lists_are_comparable():
    found = words(["published"])
    assert found["lca", ()].startswith("comparable")
    assert found["lca", ("fold",)].startswith("comparable")
    assert found["iou", ("class", "split")] == ""


@pytest.mark.parametrize("kinds", [["built"], ["published", "published, 3 of 4 pairs"], ["published", "built"]])
def test_other_lists_and_parts_are_not(kinds):
    assert all(text.startswith("not comparable") for text in words(kinds).values())


def test_some_folds_are_comparable_fold_by_fold():
    found = words(["published"], folds=(0, 1))
    assert found["lca", ()] == "not comparable: the paper averages over folds 0 to 3"
    assert found["lca", ("fold",)].startswith("comparable")


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        ({"reading": {"void": "background"}}, "counted with void=background"),
        ({"size": "512"}, "counted with images and masks squashed to 512 x 512 first"),
        ({"shots": (5,)}, "the paper has one support per pair"),
    ],
)
def test_what_is_counted_otherwise_is_not_comparable_and_says_so(given, differs):
    ran = PairsRun("", {0: (0, 1, 2, 3), 1: (0, 1, 2, 3), 2: (0, 1, 2, 3)})
    for name, where in (("lca", {}), ("scs", {}), ("miou", {}), ("miou", {"split": "easy_sal", "fold": "1"})):
        assert describe_comparability(name, where, ran, TossOptions()).startswith("comparable")
        assert describe_comparability(name, where, ran, TossOptions(**given)) == f"not comparable: {differs}"


def test_readings_of_one_score_leave_the_others():
    ran = PairsRun("", {1: (0, 1, 2, 3), 2: (0, 1, 2, 3), 3: (-1,)})
    released = TossOptions(reading={"scs": "released"})
    shots = TossOptions(shots=(1, 5))
    assert describe_comparability("lca", {}, ran, shots).startswith("comparable")
    assert "one support per pair" in describe_comparability("lca", {"shots": "5"}, ran, shots)
    assert describe_comparability("lca", {"shots": "1"}, ran, TossOptions(shots=(5, 1))).startswith("comparable")
    assert describe_comparability("scs", {}, ran, released) == "not comparable: the published SCS follows scs=paper"
    assert describe_comparability("lca", {}, ran, released).startswith("comparable")
    options = TossOptions(encoder="planted-encoder")
    assert "pools them" in describe_comparability("scs", {}, ran, options)
    assert describe_comparability("miou", {"level": "L0"}, ran, options).startswith("comparable")


def test_one_models_gs_is_not_the_papers_mean_over_models():
    ran = PairsRun("", {3: (-1,)})
    assert describe_comparability("gs", {}, ran, TossOptions()) == (
        "not comparable: the paper averages over the models of four folds, and one model ran"
    )
    dropped = describe_comparability("gs", {}, ran, TossOptions(reading={"mixed": "ours"}))
    assert "pairs of two classes are left out (mixed=ours)" in dropped


def test_the_papers_salient_half_is_of_other_pairs():
    found = words(["published"])
    assert found["salient", ()].startswith("not comparable")
    assert found["salience-gap", ()] == ""


@pytest.fixture
def published(monkeypatch):
    """Every list counts as the published one."""
    monkeypatch.setattr(toss_pairs, "is_published", lambda name, content: True)


def kinds_of(folder, **given):
    rehearsal = InMemoryRun("toss", {"data": folder.data, "resamples": 0, "tiers": "1", "folds": "1", **given})
    card = rehearsal.score("empty")
    return set(rehearsal.records("empty")["listing"]), {score.comparable for score in card.scores}


def test_a_list_of_which_no_pair_is_left_marks_the_others(published, tmp_path):
    folder = write_one_shot_folder(tmp_path, folds=(1,))
    assert kinds_of(folder)[0] == {"published"}
    gone = folder.pairs / "tiers" / "attribute" / "split1_q_hard_sal.txt"
    gone.write_text("1_2026_999999 1_2026_999998\n")
    listings, comparable = kinds_of(folder, subset="available")
    assert listings == {"published" + pair_lists.IN_PART}
    assert all(text.startswith("not comparable: only a part") for text in comparable)


def test_a_list_that_is_not_there_marks_the_others_of_its_tier(published, tmp_path):
    folder = write_one_shot_folder(tmp_path, folds=(1,))
    (folder.pairs / "tiers" / "attribute" / "split1_q_hard_sal.txt").unlink()
    listings, comparable = kinds_of(folder)
    assert listings == {"published" + pair_lists.IN_PART}
    assert all(text.startswith("not comparable: only a part") for text in comparable)
