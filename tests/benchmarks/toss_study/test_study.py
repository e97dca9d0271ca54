"""The study from training to tables, with a network of three convolutions on drawn images."""

import csv
import doctest

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from one_shot_folders import write_one_shot_folder
from tiny_one_shot import use_tiny

from toss_study import commands, plan, report


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_doctests():
    for module in (plan, report):
        assert doctest.testmod(module).failed == 0


def test_sixty_trainings_are_planned():
    planned = plan.list_trainings()
    assert len({one.name for one in planned}) == len(planned)
    assert sum(one.selection == "sgtss" for one in planned) == 3
    assert [one.seed for one in planned if one.seed] == [1, 2, 3]


def test_sizes_that_hsnet_takes():
    assert [commands.fit_size("hsnet", size) for size in (321, 100)] == [272, 97] and commands.fit_size(
        "pfenet", 321
    ) == 321


def test_train_run_and_report(tmp_path, monkeypatch, one_thread):
    use_tiny(monkeypatch)
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(plan, "SEEDS", ())
    monkeypatch.setattr(
        commands, "list_trainings", lambda folds: plan.list_trainings(("simpropnet",), (), (), folds=folds)
    )
    test = write_one_shot_folder(tmp_path / "test")
    trained = write_one_shot_folder(tmp_path / "train", scenes=30)
    for path in (trained.voc / "JPEGImages").iterdir():
        path.rename(path.with_name(f"t{path.name}"))
    for path in (trained.voc / "SegmentationClass").iterdir():
        path.rename(path.with_name(f"t{path.name}"))
    common = ["--out", str(tmp_path / "study"), "--folds", "2", "--quiet", "--test", str(test.voc)]
    common += ["--saliency", "planted-saliency"]
    small = "--size 33 --images 16 --batch 2 --start none --validations 1 --validation-pairs 2".split()
    commands.main(["train", *common, "--train", str(trained.voc), *small])
    cards = sorted((tmp_path / "study" / "weights").glob("*/fold*/checkpoint.json"))
    assert len(cards) == 6
    commands.main(["run", *common, "--pairs", str(test.pairs), "--floors", "whole-image"])
    commands.main(["report", "--out", str(tmp_path / "study"), "--docs", str(tmp_path)])
    scores = read(tmp_path / "study" / "scores.csv")
    assert {row["training"] for row in scores} == {
        "simpropnet-all-seed0", "simpropnet-leave-out-seed0", "simpropnet-sgtss-seed0", "whole-image-floor",
    }  # fmt: skip
    own = next(row for row in scores if row["training"] == "simpropnet-all-seed0" and row["score"] == "lca")
    assert own["published"] == "0.5859" and 0 <= float(own["value"]) <= 1
    changes = read(tmp_path / "study" / "selections.csv")
    assert {row["selection"] for row in changes} == {"leave-out", "sgtss"}
    assert read(tmp_path / "toss-study-support.csv") and read(tmp_path / "study" / "saliency.csv")
    assert (tmp_path / "study" / "comparison").exists()
