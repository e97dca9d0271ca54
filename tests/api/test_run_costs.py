"""The cost of a run's model: measured once, kept beside the run, never in the way of its scores."""

import json
import sys
import warnings
from dataclasses import replace

import pytest

import hardlook as hl
from hardlook.api.run_costs import build_costs_sections, measure_cost
from hardlook.errors import ModelError, RunWarning
from hardlook.harness.registry import find_benchmark
from hardlook.rclicks import cost_comparison

FEW = {"scenes": 2, "groups": 2, "rounds": 2, "user_clicks": "none", "resamples": 0, "progress": False, "report": False}


@pytest.fixture(autouse=True)
def few_clicks(monkeypatch):
    monkeypatch.setattr(cost_comparison, "IMAGES", 1)
    monkeypatch.setattr(cost_comparison, "CLICKS", 1)


@pytest.fixture
def run(tmp_path):
    return hl.run("rclicks", model="disc", out=tmp_path / "disc", **FEW)


@pytest.fixture
def rclicks():
    """The benchmark, with a list of what was measured."""
    found, calls = find_benchmark("rclicks"), []

    def measure(named, threads):
        calls.append((named.identity.name, dict(named.identity.args), threads))
        return found.cost_measure.measure(named, threads)

    return replace(found, cost_measure=replace(found.cost_measure, measure=measure)), calls


def test_a_cost_is_measured_once_with_the_arguments_of_the_run(run, rclicks):
    benchmark, calls = rclicks
    scores, manifest = (run.folder / "scores.json").read_bytes(), (run.folder / "run.json").read_bytes()
    said = []
    for _ in range(2):
        measure_cost(benchmark, run, threads=1, say=said.append)
    assert calls == [("disc", {"blunt": 0.0, "fragility": 0.0, "seed": 0}, 1)]
    assert said == ["measuring what disc costs"]
    assert (run.folder / "scores.json").read_bytes() == scores and (run.folder / "run.json").read_bytes() == manifest
    assert json.loads((run.folder / "cost.json").read_text())["cost"]["clicks"] == 1
    [section] = build_costs_sections(benchmark, [run.folder, run.folder.with_name("not run")])
    assert section.blocks[-1].rows[0][0] == "disc"
    assert hl.run("rclicks", model="disc", out=run.folder, **FEW).scorecard == run.scorecard, "the run resumes"


def test_threads_are_limited_while_a_cost_is_measured_and_as_before_after_it(run, rclicks):
    torch = pytest.importorskip("torch")
    benchmark, _ = rclicks
    seen, before = [], torch.get_num_threads()

    def fail(named, threads):
        seen.append(torch.get_num_threads())
        raise RuntimeError("no memory")

    broken = replace(benchmark, cost_measure=replace(benchmark.cost_measure, measure=fail))
    torch.set_num_threads(3)
    try:
        with pytest.warns(RunWarning, match="was not measured"):
            measure_cost(broken, run, threads=2)
        measure_cost(benchmark, run, threads=1)
        assert seen == [2] and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_cost_of_the_command_is_kept(hardlook, run, rclicks):
    benchmark, calls = rclicks
    answer = hardlook(
        "clicks", "cost", "disc", "--images", "2", "--clicks", "1", "--size", "64x48", "--out", run.folder
    )
    assert answer.code == 0, answer.err
    measure_cost(benchmark, run, threads=1)
    assert calls == [] and "64 x 48 pixels" in build_costs_sections(benchmark, [run.folder])[0].blocks[-1].rows[0][-1]


def test_a_damaged_cost_and_that_of_another_model_are_measured_again(run, rclicks):
    benchmark, calls = rclicks
    (run.folder / "cost.json").write_text('{"schema"')
    with pytest.warns(RunWarning, match="measured again"):
        measure_cost(benchmark, run, threads=1)
    stored = json.loads((run.folder / "cost.json").read_text())
    (run.folder / "cost.json").write_text(json.dumps(stored | {"model": {**stored["model"], "weights": {"a": "1f"}}}))
    measure_cost(benchmark, run, threads=1)
    assert len(calls) == 2


@pytest.mark.parametrize("error", [RuntimeError("CUDA out of memory"), ModelError("no such file"), MemoryError()])
def test_what_goes_wrong_is_a_warning(run, rclicks, error):
    benchmark, _ = rclicks

    def fail(named, threads):
        raise error

    broken = replace(benchmark, cost_measure=replace(benchmark.cost_measure, measure=fail))
    with pytest.warns(RunWarning, match=r"the cost of disc was not measured: (RuntimeError: CUDA|no such|MemoryError)"):
        measure_cost(broken, run, threads=1)
    assert not (run.folder / "cost.json").exists() and build_costs_sections(broken, [run.folder]) == []


def test_a_model_on_a_gpu_without_torch(run, rclicks, monkeypatch):
    benchmark, _ = rclicks
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setitem(run.manifest["model"], "device", "cuda:0")
    fixed = replace(benchmark, cost_measure=replace(benchmark.cost_measure, measure=lambda named, threads: {"cost": 1}))
    measure_cost(fixed, run, threads=1)
    assert json.loads((run.folder / "cost.json").read_text()) == {"cost": 1}


def test_an_unfinished_run_and_benchmarks_without_costs_have_none(tmp_path, run, rclicks):
    benchmark, calls = rclicks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shard = hl.run("rclicks", model="disc", out=tmp_path / "shard", shard=(1, 2), batch_size=1, **FEW)
        assert shard.progress.open
        measure_cost(benchmark, shard, threads=1)
        measure_cost(replace(benchmark, cost_measure=None), run, threads=1)
    assert calls == [] and build_costs_sections(replace(benchmark, cost_measure=None), [run.folder]) == []


def test_the_leaderboard_has_columns_of_costs_and_names_a_damaged_one(tmp_path, run, rclicks):
    benchmark, _ = rclicks
    plain = hl.leaderboard(tmp_path)
    assert plain.boards[0].costs is None
    measure_cost(benchmark, run, threads=1)
    (board,) = hl.leaderboard(tmp_path, out=tmp_path).boards
    assert board.costs is not None and board.entries[0].costs["first mask, ms"] > 0
    ranking = board.rankings[0]
    assert next(row for row in ranking.of("run")).costs == board.entries[0].costs
    printed = {row.method: row.costs for row in ranking.of("published") if row.costs}
    assert len(printed) == 4 and printed["SAM ViT-H (SA-1B)"]["first mask, ms"] == 150.0
    page = (tmp_path / "leaderboard.html").read_text()
    assert "first mask, ms" in page and "Robustness against latency" in page
    (run.folder / "cost.json").write_text("{")
    (damaged,) = hl.leaderboard(tmp_path).boards
    assert damaged.costs is None and "not a cost" in damaged.entries[0].run.cost_problem
