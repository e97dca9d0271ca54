"""The study from training to tables, with a small network on drawn images; its statistics on planted values."""

import csv
import doctest

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from hardlook.world.layouts import write_world
from robust_clicks import commands, plan, report


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_doctests():
    for module in (plan, report):
        assert doctest.testmod(module).failed == 0


def test_three_regimes_and_three_seeds_are_planned():
    planned = plan.list_trainings()
    assert len({one.name for one in planned}) == len(planned) == 9


def make_run(regime, seed, clicks="uniform", shift=0.0, images=60):
    """Objects, two in each image, whose IoU rises by equal steps; `shift` adds to those of the drawn clicks."""
    rng = np.random.default_rng(images)
    level = np.repeat(rng.uniform(300, 500, images), 2)[:, None, None]
    rise = np.array([0, 150, 300])[None, None] + np.array([0, shift, shift])[None, :, None]
    hits = np.clip(level + rise, 0, 1000).astype(np.int64)
    names = tuple(f"{place // 2}" for place in range(2 * images))
    units = tuple(map(str, range(2 * images)))
    return report.Tested(regime, seed, clicks, units, names, hits, np.full_like(hits, 1000), None)


def test_a_planted_effect_is_found_and_none_is_not():
    runs = [
        make_run(regime, seed, shift=shift) for regime, shift in (("centre", -50), ("uniform", -20)) for seed in (0, 1)
    ]
    rows = {row["metric"]: row for row in report.list_differences(runs, 70)}
    assert rows["dsb-iou"]["value"] == pytest.approx(3.0, abs=0.2) and rows["dsb-iou"]["low"] > 0
    assert rows["auc-base"]["value"] == rows["auc-base"]["smallest_effect"] == 0
    assert rows["noc"]["value"] <= 0 and rows["noc"]["seeds"] == 2 and rows["noc"]["objects"] == 120


def test_errors_count_images_and_seeds():
    rng = np.random.default_rng(0)
    images = [str(place // 4) for place in range(400)]
    shared = np.repeat(rng.standard_normal(100), 4)
    together = report.estimate(np.stack([shared, shared]), images)
    alone = report.estimate(np.stack([shared, shared]), list(map(str, range(400))))
    assert together.error == pytest.approx(0.1, rel=0.15) and alone.error == pytest.approx(0.05, rel=0.15)
    moved = report.estimate(np.stack([shared, shared + 1]), images)
    assert moved.between_seeds == pytest.approx(0.5**0.5) and moved.error**2 == pytest.approx(together.error**2 + 0.25)


def test_differences_need_a_common_seed():
    assert report.list_differences([make_run("centre", 0), make_run("uniform", 1)], 70) == []


def test_train_run_and_report(tmp_path, monkeypatch, one_thread):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "docs" / "images").mkdir(parents=True)
    trained = write_world(tmp_path / "train", "voc", count=6, seed=5)
    for folder in ("JPEGImages", "SegmentationClass", "SegmentationObject"):
        for path in (trained / folder).iterdir():
            path.rename(path.with_name(f"t{path.name}"))
    for path in (trained / "ImageSets" / "Segmentation").iterdir():
        path.write_text("".join(f"t{line}\n" for line in path.read_text().split()))
    test = write_world(tmp_path / "test", "voc", count=4)
    (test / "ImageSets" / "Segmentation" / "val.txt").unlink()
    study = ["--out", str(tmp_path / "study"), "--test", str(test), "--quiet", "--regimes", "centre,uniform-G1"]
    small = {"size": 32, "batch": 2, "most_clicks": 2, "least_area": 0, "option.stages": 1, "option.width": 8}
    changes = [word for key, value in small.items() for word in ("--set", f"{key}={value}")]
    commands.main(
        ["train", *study, "--train", str(trained), "--images", "4", "--start", "none", "--seeds", "0", *changes]
    )
    assert len(list((tmp_path / "study" / "weights").glob("*/checkpoint.json"))) == 3
    options = "--tested uniform --groups 2 --rounds 2 --objects 3 --no-flip --seeds 0".split()
    commands.main(["run", *study, *options])
    commands.main(["report", "--out", str(tmp_path / "study"), "--docs", str(tmp_path / "docs"), "--percent", "60"])
    cells = read(tmp_path / "docs" / "robust-clicks-cells.csv")
    assert {row["training"] for row in cells} == {"centre", "uniform-G1", "untrained"}
    assert {row["metric"] for row in cells} == set(report.METRICS) and cells[0]["objects"] == "3"
    assert {row["training"] for row in read(tmp_path / "study" / "robust-clicks-differences.csv")} == {"uniform-G1"}
    assert "<svg" in (tmp_path / "docs" / "images" / "robust-clicks-uniform.svg").read_text()
    assert (tmp_path / "docs" / "images" / "robust-clicks-examples.jpg").stat().st_size > 1000


def test_a_study_without_runs_says_so(tmp_path):
    with pytest.raises(SystemExit, match="no finished run"):
        report.write_report(tmp_path, None)
