"""The published numbers of the bias studies, cell by cell."""

import csv

import numpy as np
import pytest

from hardlook.benchmarks.toss import published_biases as biases

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
    "class differs": "other class",
    "null mask": "null mask",
    "null image": "null image",
    "class differs + null mask": "other class, null mask",
}


def printed(shared_data, name):
    with (shared_data / "reference" / "toss" / "published" / name).open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def check(ours, row):
    expected = [float(row[name]) / 100 for name in ("fold1", "fold2", "fold3", "fold4", "mean")]
    assert [*ours.folds, ours.mean] == pytest.approx(expected, abs=1e-9)


@pytest.mark.real
@pytest.mark.parametrize(("name", "base"), [("table1_cnb.csv", "none"), ("table3_sssi.csv", "none, table 3")])
def test_every_cell_of_the_remedies(shared_data, name, base):
    rows = printed(shared_data, name)
    for row in rows:
        method, _, remedy = row["method"].partition("+")
        values = biases.REMEDIES["Baseline" if method == "Base" else method]
        check(values[REMEDIES[remedy] if remedy else base], row)
    assert len(rows) == (9 if base == "none" else 6)


@pytest.mark.real
def test_every_cell_of_the_supports_and_of_salience(shared_data):
    supports = printed(shared_data, "table2a_support.csv")
    for row in supports:
        check(biases.SUPPORTS[SUPPORTS[row["support_type"]]], row)
    assert len(supports) == len(biases.SUPPORTS)
    halves = printed(shared_data, "table2b_saliency.csv")
    for row in halves:
        ours = biases.SALIENCE[row["method"]]
        expected = float(row["salient"]) / 100, float(row["non_salient"]) / 100
        assert (ours.salient, ours.non_salient) == pytest.approx(expected, abs=1e-9)
    assert len(halves) == len(biases.SALIENCE)


@pytest.mark.real
def test_every_cell_of_the_classes(shared_data):
    rows = printed(shared_data, "supp_table1_leaveout.csv")
    for row, ours in zip(rows, biases.CLASSES, strict=True):
        assert (ours.name, ours.fold + 1) == (row["class"].replace("-", ""), int(row["fold"]))
        names = ("base", "base_leaveout", "rpmm", "rpmm_leaveout", "percent_distractors")
        values = [ours.base, ours.base_leave_out, ours.rpmm, ours.rpmm_leave_out, ours.distractors]
        assert values == pytest.approx([float(row[name]) / 100 for name in names], abs=1e-9)


@pytest.mark.real
def test_every_cell_of_the_design_studies(shared_data):
    for row in printed(shared_data, "supp_mutual_information.csv"):
        ours = biases.MUTUAL_INFORMATION[COLUMNS[row["attribute"]]]
        assert ours.printed == float(row["mutual_information"])
        assert ours.repository == float(row["mutual_information_repository"])
    for row in printed(shared_data, "encoder_agreement.csv"):
        ours = biases.ENCODER_AGREEMENT[{"ResNeXT": "ResNeXt"}.get(row["encoder"], row["encoder"])]
        expected = pytest.approx(float(row["agreement_percent"]) / 100)
        assert (ours.reference, ours.share, ours.pairs) == (row["reference"], expected, int(row["pairs"]))
    for row in printed(shared_data, "supp_weights.csv"):
        ours = biases.WEIGHT_STUDY[row["split"].replace("-", "_")]
        values = [ours.salience, ours.supervised_miou, ours.product_share, ours.proportion, ours.adjusted]
        assert values == [float(value) for name, value in row.items() if name != "split"]


def test_weights_follow_from_salience_times_supervised_iou():
    """Shares of the products, five in all; the printed inputs have two digits, so the shares agree roughly."""
    studies = list(biases.WEIGHT_STUDY.values())
    products = np.array([study.salience * study.supervised_miou for study in studies])
    shares = products / products.sum()
    assert shares == pytest.approx([study.product_share for study in studies], abs=0.02)
    assert 5 * shares == pytest.approx([study.proportion for study in studies], abs=0.1)


def test_class_means_are_the_folds_of_the_first_table_where_the_paper_agrees_with_itself():
    """Folds 1 to 3 of the paper for Base and RPMM, within .01 of a percent as printed."""
    for fold in (0, 1, 2):
        classes = [one for one in biases.CLASSES if one.fold == fold]
        for method, attribute in (("Baseline", "base"), ("RPMM", "rpmm")):
            mean = np.mean([getattr(one, attribute) for one in classes])
            assert mean == pytest.approx(biases.REMEDIES[method]["none"].folds[fold], abs=1.1e-4)
