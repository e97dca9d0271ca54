"""The study from training to tables, with a network of three convolutions on drawn images."""

import csv
import doctest

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from one_shot_folders import write_one_shot_folder
from tiny_one_shot import use_tiny

from toss_study import classes, commands, plan, report


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_doctests():
    for module in (plan, report, classes):
        assert doctest.testmod(module).failed == 0


def test_seventeen_trainings_are_planned():
    planned = plan.list_trainings()
    assert len({one.name for one in planned}) == len(planned)
    assert {one.network for one in planned if one.seed} == {"simpropnet"}
    for seed in plan.SEEDS:
        own = [one.selection for one in planned if (one.network, one.seed) == ("simpropnet", seed)]
        assert own == list(plan.SELECTIONS)
    assert [one.selection for one in planned if one.network in plan.OTHERS] == ["all", "all"]


def test_sizes_that_hsnet_takes():
    assert [commands.fit_size("hsnet", size) for size in (321, 100)] == [272, 97] and commands.fit_size(
        "pfenet", 321
    ) == 321


def test_train_run_and_report(tmp_path, monkeypatch, one_thread):
    use_tiny(monkeypatch)
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    test = write_one_shot_folder(tmp_path / "test")
    trained = write_one_shot_folder(tmp_path / "train", scenes=30)
    for path in (trained.voc / "JPEGImages").iterdir():
        path.rename(path.with_name(f"t{path.name}"))
    for path in (trained.voc / "SegmentationClass").iterdir():
        path.rename(path.with_name(f"t{path.name}"))
    study, devkits = tmp_path / "study", ["--test", str(test.voc)]
    common = ["--out", str(study), "--folds", "2", "--quiet", *devkits, "--saliency", "planted-saliency"]
    common += ["--compared", "simpropnet", "--others", "", "--seeds", "0,1"]
    small = "--size 33 --set batch=2 --images 16 --start none --validations 1 --validation-pairs 2".split()
    commands.main(["train", *common, "--train", str(trained.voc), *small])
    cards = sorted((study / "weights").glob("*/fold*/checkpoint.json"))
    assert len(cards) == 12
    tested = ["--pairs", str(test.pairs), "--floors", "whole-image", "--pairs-a-class", "3", "--thresholds", "0.3"]
    tested += ["--studied", ",".join(plan.SELECTIONS)]
    commands.main(["run", *common, *tested])
    (tmp_path / "docs" / "images").mkdir(parents=True)
    told = ["--out", str(study), "--train", str(trained.voc), *devkits, "--docs", str(tmp_path / "docs")]
    commands.main(["report", *told])
    scores = read(study / "toss-study-scores.csv")
    methods = {"simpropnet-all": "2", "simpropnet-leave-out": "2", "simpropnet-sgtss": "2", "whole-image-floor": "1"}
    assert {row["method"]: row["seeds"] for row in scores} == methods
    own = next(row for row in scores if row["method"] == "simpropnet-all" and row["score"] == "lca")
    assert own["published"] == "0.5859" and 0 <= float(own["value"]) <= 1
    changes = {(row["method"], row["less"]) for row in read(study / "toss-study-differences.csv")}
    remedies = {(f"simpropnet-{name}", "simpropnet-all") for name in ("leave-out", "sgtss")}
    assert {pair for pair in changes if not any("-at" in name for name in pair)} == {
        *remedies,
        ("simpropnet-all", "whole-image-floor"),
    }
    assert {(f"{first}-at0.3", f"{second}-at0.3") for first, second in remedies} <= changes
    masks = read(study / "toss-study-masks.csv")
    assert {row["threshold"] for row in masks if "all-seed1" in row["run"]} == {"0.3", "0.5"}
    written = {path.name for path in (tmp_path / "docs").rglob("*") if path.is_file()}
    assert {"toss-study-support.csv", "toss-study-saliency.csv", "toss-study-classes-simpropnet.csv"} <= written
    assert {"toss-study-class-means-simpropnet-drawn.csv", "toss-study-classes-simpropnet-drawn.svg"} <= written
    assert {"toss-study-scores.svg", "toss-study-salience-simpropnet-all.jpg"} <= written
    commands.main(["report", *told, "--name", "again"])
    assert {path.name.replace("again", "toss-study") for path in (tmp_path / "docs").rglob("again-*")} == written
    assert read(study / "again-scores.csv") == scores
    classes_of = read(study / "toss-study-classes-simpropnet.csv")
    assert all(0 <= float(row["share_of_masks"]) <= 1 for row in classes_of) and len(classes_of) > 2


def test_differences_of_classes_are_paired():
    """Both trainings vary with the images in the same way, so that their difference does not."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.5, 0.1, (500, 2))
    first = classes.ClassScores(("a", "b"), np.array([[0.6, 0.5], [0.62, 0.5]]), drawn + np.array([0.11, 0.0]), (5, 5))
    second = classes.ClassScores(("a", "b"), np.array([[0.5, 0.5], [0.5, 0.5]]), drawn, (5, 5))
    found = classes.compare(first, second, [0])
    assert found["value"] == pytest.approx(0.11)
    assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * 0.01)  # of the two seeds alone
    assert classes.compare(first, second, [0, 1])["value"] == pytest.approx(0.055)


def test_the_share_as_background_goes_with_the_iou():
    names = tuple("abcdef")
    shares = {name: {"share_of_masks": place / 10} for place, name in enumerate(names)}
    values = np.array([[0.6, 0.5, 0.4, 0.3, 0.2, 0.1]])
    scored = {"all": classes.ClassScores(names, values, np.repeat(values, 3, 0), (1,) * 6)}
    (row,) = classes.list_associations(scored, shares)
    assert row["spearman"] == -1 and row["p"] < 0.01


def test_the_class_that_is_background_most_often_is_told_from_the_others():
    names, values = ("a", "b", "c"), np.array([[0.2, 0.5, 0.6]])
    shares = {name: {"share_of_masks": share} for name, share in zip(names, (0.3, 0.1, 0.0), strict=True)}
    base = classes.ClassScores(names, values, np.repeat(values, 3, 0), (1,) * 3)
    other = classes.ClassScores(names, values + np.array([[0.2, 0.0, 0.1]]), base.resampled, (1,) * 3)
    rows = classes.list_class_means({"all": base, "leave-out": other}, shares)
    found = {row["classes"]: row["value"] for row in rows}
    assert found == pytest.approx({"all": 0.1, "a": 0.2, "all but a": 0.05})
