import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from hardlook.errors import DataError
from hardlook.harness.stats import t_interval
from zoo.report import (
    SCORES,
    compare_published,
    compare_trainings,
    find_published,
    rank,
    read_methods,
    read_results,
    score_trainings,
    write_report,
)

MODES = ("blind", "iid", "ood", "swapped")


def make_lines(method, means, *, correlation=0.0, seeds=(0,), tasks=40, shift=0.0, family="metric", noise=0):
    """Lines of `run`: right answers of 20 per task around `means` (blind, iid, ood, swapped)."""
    lines = []
    for seed in seeds:
        rng = np.random.default_rng([seed, noise])
        for mode, mean in zip(MODES, means, strict=True):
            correct = rng.binomial(20, min(1.0, mean + shift * seed), tasks)
            common = {"ways": 2, "shots": 5, "queries": 10, "budget": "6000images", "image_size": 32, "images": 6000}
            more = {
                "parameters": 10,
                "train_seconds": 1.0,
                "test_seconds": 1.0,
                "backbone": "conv64f",
                "family": family,
            }
            counts = {"correct": correct.tolist(), "attracted": ((20 - correct) // 2).tolist()}
            counts["misleading"] = ((20 - correct) // 4).tolist()
            lines.append(
                {"method": method, "correlation": correlation, "seed": seed, "set": "caltech101", "mode": mode}
                | common | more | counts
            )  # fmt: skip
    return lines


def write(path, *groups):
    path.write_text("".join(json.dumps(line) + "\n" for group in groups for line in group))
    return path


def test_accuracy_of_one_seed_has_the_interval_over_tasks(tmp_path):
    lines = make_lines("protonet", (0.6, 0.7, 0.5, 0.4))
    found, failed = read_results([write(tmp_path / "r.jsonl", lines)], "caltech101")
    scores = score_trainings(found["protonet", 0.0])
    shares = {line["mode"]: np.array(line["correct"]) / 20 for line in lines}
    for mode in MODES:
        expected = t_interval(shares[mode], range=(0, 1))
        assert scores[mode].value == pytest.approx(shares[mode].mean())
        assert scores[mode].low == pytest.approx(expected.low, abs=0.004)
        assert scores[mode].high == pytest.approx(expected.high, abs=0.004)
    assert scores["gap"].value == pytest.approx(shares["iid"].mean() - shares["ood"].mean())
    assert scores["swapped-gap"].value == pytest.approx(shares["iid"].mean() - shares["swapped"].mean())
    wrong = 20 - np.array(lines[2]["correct"])
    assert scores["attraction"].value == pytest.approx((wrong // 2).sum() / wrong.sum())
    assert scores["excess-attraction"].value == pytest.approx((wrong // 2 - wrong // 4).sum() / wrong.sum())
    assert not failed and scores["ood"].seeds == 1 and scores["ood"].tasks == 40


def test_seeds_are_a_level_of_their_own(tmp_path):
    """Trainings that differ by .1 each widen the interval far beyond what tasks do."""
    widths = {}
    for shift in (0.0, 0.1):
        path = write(tmp_path / f"{shift}.jsonl", make_lines("protonet", (0.5,) * 4, seeds=(0, 1, 2), shift=shift))
        score = score_trainings(read_results([path], "caltech101")[0]["protonet", 0.0])["ood"]
        widths[shift] = score.high - score.low
        means = [line["correct"] for line in map(json.loads, path.open()) if line["mode"] == "ood"]
        assert score.value == pytest.approx(np.mean(means) / 20) and score.seeds == 3
    # Three means .1 apart: a standard error of .058 with about 2 degrees of freedom, bounded by 0 and 1.
    assert widths[0.0] < 0.12 and widths[0.1] > 0.35


def test_methods_differ_by_task_and_rank_with_ties(tmp_path):
    groups = [
        make_lines("protonet", (0.6, 0.7, 0.6, 0.4)),
        make_lines("dn4", (0.6, 0.7, 0.6, 0.4), noise=1),
        make_lines("can", (0.6, 0.7, 0.3, 0.4), noise=2),
    ]
    found, _ = read_results([write(tmp_path / "r.jsonl", *groups)], "caltech101")
    places = rank(list(found.values()), "ood", higher_is_better=True)
    assert places["can"].rank == 3 and {places["protonet"].rank, places["dn4"].rank} == {1}
    assert not set(places["can"].sets) & set(places["dn4"].sets)
    score, p = compare_trainings(found["protonet", 0.0], found["can", 0.0], "ood")
    assert p < 1e-6 and 0.2 < score.low < score.value < score.high < 0.4
    same, p = compare_trainings(found["protonet", 0.0], found["protonet", 0.0], "ood")
    assert same.value == 0 and p == 1.0


def test_the_report_and_its_csv(tmp_path):
    groups = [
        make_lines(method, means, correlation=correlation, seeds=(0, 1, 2), family=family, noise=noise)
        for correlation, drop in ((0.0, 0.0), (0.9, 0.2))
        for method, family, means, noise in (
            ("relationnet", "metric", (0.6, 0.8, 0.6 - drop, 0.5 - drop), 1),
            ("ata-relationnet", "cross-domain", (0.6, 0.8, 0.7 - drop, 0.6 - drop), 2),
        )
    ]
    groups.append([{"method": "maml", "backbone": "conv64f", "correlation": 0.9, "seed": 0, "error": "RunError: no"}])
    path = write(tmp_path / "r.jsonl", *groups)
    text = write_report([path], csv_path=tmp_path / "scores.csv", picture=tmp_path / "zoo.svg")
    assert (
        "2 methods, 12 trainings (seeds 0, 1, 2), each on a budget of 6,000 images at 32 pixels" in text
        and "maml (correlation 0.9): RunError: no" in text
    )
    assert "| 57.7 (Table 3) |" in text  # RelationNet at 5 shots, printed without a backbone
    assert "| 0.9 | ata-relationnet | relationnet | +." in text and "-0.8 |" in text
    assert "it rises in 2 of 2 methods, in 2 of them by more than chance" in text
    rows = list(csv.DictReader(io.StringIO((tmp_path / "scores.csv").read_text())))
    assert len(rows) == 4 * len(SCORES) and {row["seeds"] for row in rows} == {"3"}
    one = next(row for row in rows if row["method"] == "relationnet" and row["score"] == "iid")
    assert float(one["low"]) < float(one["value"]) < float(one["high"])
    assert (tmp_path / "zoo.svg").read_text().startswith("<?xml")


def test_the_paper_s_number_of_the_same_backbone_comes_first():
    assert find_published("protonet", "conv64f", 5) == (51.39, "Conv64F")
    assert find_published("protonet", "resnet12", 1) == (42.69, "ResNet12")
    assert find_published("moco", "conv64f", 5) == (70.65, "ResNet50")
    assert find_published("adm", "conv64f", 5) is None


def test_the_paper_s_difference_is_of_one_table_and_backbone():
    assert compare_published("ata-relationnet", "relationnet", 5) == pytest.approx(56.94 - 57.73)
    assert compare_published("ssfsl-rotation", "protonet", 5) == pytest.approx(54.31 - 57.84)  # ResNet18
    assert compare_published("bf3s", "protonet", 1) == pytest.approx(43.78 - 43.67)  # WRN-28-10
    assert compare_published("ifsl-knn", "k-nn", 5) is None and compare_published("adm", "dn4", 5) is None


def test_every_method_has_a_row_and_every_name_is_printed():
    from hardlook.metacoco.published import list_rows
    from hardlook.networks.few_shot.catalogue import list_methods

    known, rows = {one.name for one in list_methods()}, read_methods()
    assert set(rows) == known
    assert {row["base"] for row in rows.values()} - {""} <= known
    printed = {row["method"] for table in ("table-2", "table-3", "table-6") for row in list_rows(table)}
    assert {row["paper"] for row in rows.values()} - {""} <= printed


def test_results_without_this_set_or_that_are_none(tmp_path):
    path = write(tmp_path / "r.jsonl", make_lines("protonet", (0.6, 0.7, 0.5, 0.4)))
    with pytest.raises(DataError, match="caltech101"):
        read_results([path], "pacs")
    path.write_text("{")
    with pytest.raises(DataError, match="no results of `run`"):
        read_results([path], "caltech101")


def test_all_methods_count_with_the_tasks_that_all_have(tmp_path):
    groups = make_lines("protonet", (0.5,) * 4), make_lines("dn4", (0.5,) * 4, tasks=30)
    found, _ = read_results([write(tmp_path / "r.jsonl", *groups)], "caltech101")
    assert {one.sums["ood"].shape for one in found.values()} == {(1, 30, 4)}
    shares = np.array(groups[0][2]["correct"][:30]) / 20
    assert score_trainings(found["protonet", 0.0])["ood"].value == pytest.approx(shares.mean())


def test_a_training_that_lacks_a_mode_is_left_out(tmp_path):
    lines = make_lines("protonet", (0.6, 0.7, 0.5, 0.4), seeds=(0, 1))[:-1]
    found, _ = read_results([write(tmp_path / "r.jsonl", lines)], "caltech101")
    assert found["protonet", 0.0].seeds == (0,)


def test_seeds_are_paired_by_number(tmp_path):
    groups = make_lines("protonet", (0.5,) * 4, seeds=(0, 1, 2)), make_lines("dn4", (0.5,) * 4, seeds=(2,))
    found, _ = read_results([write(tmp_path / "r.jsonl", *groups)], "caltech101")
    # The same draws with the same seed: no difference.
    score, p = compare_trainings(found["protonet", 0.0], found["dn4", 0.0], "ood")
    assert (score.value, score.seeds, p) == (0.0, 1, 1.0)
    other = make_lines("can", (0.5,) * 4, seeds=(3, 4))
    found, _ = read_results([write(tmp_path / "r.jsonl", *groups, other)], "caltech101")
    assert compare_trainings(found["protonet", 0.0], found["can", 0.0], "ood")[0].seeds == 2


def test_backbones_are_not_mixed(tmp_path):
    groups = [make_lines("protonet", (0.5,) * 4), make_lines("protonet", (0.9,) * 4), make_lines("cpea", (0.5,) * 4)]
    for group, backbone in zip(groups, ("conv64f", "resnet12", "vit-small"), strict=True):
        group[:] = [{**line, "backbone": backbone} for line in group]
    path = write(tmp_path / "r.jsonl", *groups)
    for backbone, expected in (("conv64f", 0.5), ("resnet12", 0.9)):
        found, _ = read_results([path], "caltech101", backbone=backbone)
        assert {method for method, _ in found} == {"protonet", "cpea"}
        assert score_trainings(found["protonet", 0.0])["ood"].value == pytest.approx(expected, abs=0.05)


def test_some_seeds_can_be_chosen(tmp_path):
    path = write(tmp_path / "r.jsonl", make_lines("protonet", (0.6, 0.7, 0.5, 0.4), seeds=(0, 1, 2)))
    assert read_results([path], "caltech101", (0, 2))[0]["protonet", 0.0].seeds == (0, 2)
    assert "1 trainings (seeds 1)" in write_report([path], seeds=(1,))


def test_the_published_scores_are_those_of_the_stored_results(tmp_path):
    root = Path(__file__).parents[3]
    stored = root / "benchmarks/zoo/results.jsonl.gz"
    text = write_report([stored], csv_path=tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_bytes() == (root / "docs/zoo-scores.csv").read_bytes()
    write_report([stored], csv_path=tmp_path / "pacs.csv", test_set="pacs")
    assert (tmp_path / "pacs.csv").read_bytes() == (root / "docs/zoo-pacs-scores.csv").read_bytes()
    page = (root / "docs/zoo.md").read_text()
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(tables) > 130 and all(line in page for line in tables)
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(stored.read_bytes()[:-1000])
    with pytest.raises(DataError, match="no results of `run`") as raised:
        write_report([damaged])
    assert "damaged" in str(raised.value)
