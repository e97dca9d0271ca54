"""Runs that cannot be used: each is left out with a reason and a remedy, and the others are ranked all the same."""

import json
import os
import sys

import pytest
from leaderboard_runs import score, write_run

from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.registry import find_benchmark
from hardlook.report.leaderboard.board import build_leaderboard
from hardlook.report.leaderboard.document import build_document
from hardlook.report.leaderboard.report import write_pages
from hardlook.report.leaderboard.runs import collect_runs, find_run_folders

SCORES = [score("miou", 0.5)]


def left_out(root):
    """The one run that was left out, beside a good one that was not."""
    write_run(root / "good", SCORES)
    found = collect_runs(root)
    assert [run.folder for run in found.runs["closed-miou"]] == ["good"]
    [one] = found.left_out
    return one


def change(file, **keys):
    file.write_text(json.dumps({**parse_checked_json(file.read_text()), **keys}))


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"answers": 3}, "answers is not an object"),
        ({"answers": {"parts": []}}, "parts of answers is not an object"),
        ({"options": []}, "options is not an object"),
        ({"model": "net"}, "model is not an object"),
        ({"model": {"name": "net", "args": "k=1"}}, "the model's args are not an object"),
        ({"benchmark": "closed-miou"}, "benchmark is not an object"),
        ({"benchmark": {"version": "1"}}, "the benchmark has no name"),
        ({"model": {"name": "half \ud800", "args": {}}}, "a text in it is not Unicode"),
        ({"schema": "hardlook.run/9"}, "run.json has schema 'hardlook.run/9'"),
    ],
)
def test_a_run_file_of_a_strange_shape(tmp_path, keys, why):
    change(write_run(tmp_path / "bad", SCORES) / "run.json", **keys)
    one = left_out(tmp_path)
    assert why in one.why and one.remedy


def test_a_run_file_in_another_encoding(tmp_path):
    (write_run(tmp_path / "bad", SCORES) / "run.json").write_bytes('{"schema": "ü"}'.encode("utf-16"))
    assert "run.json is not valid JSON" in left_out(tmp_path).why


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"value": "0.5"}, "score 'miou' is not made of numbers"),
        ({"value": True}, "score 'miou' is not made of numbers"),
        ({"n": None}, "score 'miou' is not made of numbers"),
        ({"slice": {"class": 3}}, "the slice of score 'miou'"),
        ({"slice": []}, "the slice of score 'miou'"),
        ({"comparable": None}, "score 'miou' is not made of numbers and texts"),
        ({"reading": "half \udc00"}, "a text in it is not Unicode"),
        ({"colour": "red"}, "unexpected keyword"),
    ],
)
def test_scores_of_strange_values(tmp_path, row, why):
    file = write_run(tmp_path / "bad", SCORES) / "scores.json"
    [stored] = json.loads(file.read_text())["scores"]
    change(file, scores=[{**stored, **row}])
    one = left_out(tmp_path)
    assert why in one.why and "hardlook score" in one.remedy


@pytest.mark.parametrize("units", [{"planned": "many", "scored": 3, "failed": 0}, {"planned": 3}])
def test_units_that_are_not_counted(tmp_path, units):
    change(write_run(tmp_path / "bad", SCORES) / "scores.json", units=units)
    assert "scores.json cannot be read" in left_out(tmp_path).why


def test_a_key_that_is_missing_is_named(tmp_path):
    (write_run(tmp_path / "bad", SCORES) / "scores.json").write_text('{"schema": "hardlook.scores/1"}')
    assert "it lacks 'benchmark'" in left_out(tmp_path).why


def test_infinite_and_undefined_values_are_shown_without_a_rank(tmp_path):
    for name, value in (("a", "Infinity"), ("b", "NaN"), ("c", "null")):
        file = write_run(tmp_path / name, [score("miou", 0.25, half=0)], model=name) / "scores.json"
        document = json.dumps(parse_checked_json(file.read_text()))
        file.write_text(document.replace("0.25", value))
    write_run(tmp_path / "d", SCORES, model="d")
    found = collect_runs(tmp_path)
    board = build_leaderboard(found.benchmarks["closed-miou"], found.runs["closed-miou"])
    rows = build_document(board)["standings"][0]["rows"]
    assert [(row["method"], row["rank"], row["value"]) for row in rows] == [
        ("d", 1, 0.5), ("a", None, None), ("b", None, None), ("c", None, None),
    ]  # fmt: skip
    assert {row["comparable"] for row in rows[1:]} == {"the score is undefined"}
    json.dumps(rows, allow_nan=False)


def test_a_folder_name_that_is_not_unicode_is_shown_and_written(tmp_path):
    root = tmp_path / "runs"
    root.mkdir()
    try:
        (root / os.fsdecode(b"caf\xe9")).mkdir()
    except OSError:
        pytest.skip("this file system takes Unicode names alone")
    [path] = root.iterdir()
    write_run(path, SCORES)
    found = collect_runs(root)
    [run] = found.runs["closed-miou"]
    assert run.folder == "caf\N{REPLACEMENT CHARACTER}"
    board = build_leaderboard(found.benchmarks["closed-miou"], found.runs["closed-miou"])
    pages, _ = write_pages([board], tmp_path / "out")
    assert run.folder in pages[0].read_text(encoding="utf-8")


def test_linked_runs_are_found_once_and_circles_end(tmp_path):
    write_run(tmp_path / "elsewhere" / "run", SCORES)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a").symlink_to(tmp_path / "elsewhere" / "run")
    (tmp_path / "runs" / "b").symlink_to(tmp_path / "elsewhere" / "run")
    (tmp_path / "runs" / "up").symlink_to(tmp_path / "runs")
    assert [path.name for path in find_run_folders(tmp_path / "runs")] == ["a"]


def test_a_folder_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    (tmp_path / "locked").mkdir()
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    one = left_out(tmp_path)
    assert (one.folder, one.why) == ("locked", "the folder cannot be read (Permission denied)")


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A module of a user that takes the built-in benchmark for its own, under another name, or fails."""
    text = (
        "from dataclasses import replace\n"
        "from hardlook.open_vocabulary.closed_miou import CLOSED_MIOU\n"
        "MINE = replace(CLOSED_MIOU, card=replace(CLOSED_MIOU.card, name='mine'))\n"
        "TWIN, EMPTY = replace(CLOSED_MIOU), 3\n"
    )
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "own_board_benchmark.py").write_text(text)
    (tmp_path / "modules" / "torn_board_benchmark.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    yield "own_board_benchmark"
    sys.modules.pop("own_board_benchmark", None)


def of_benchmark(folder, name, own):
    version = find_benchmark("closed-miou").card.version
    write_run(folder, SCORES)
    change(folder / "run.json", benchmark={"name": name, "version": version})
    change(folder / "scores.json", benchmark=own)


def test_a_benchmark_of_a_user_has_a_board(tmp_path, own_module):
    of_benchmark(tmp_path / "runs" / "a", f"{own_module}:MINE", "mine")
    found = collect_runs(tmp_path / "runs")
    [run] = found.runs["mine"]
    assert build_leaderboard(found.benchmarks["mine"], [run]).rankings[0].rows[0].rank == 1
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("own_board_benchmark:GONE", "cannot be loaded"),
        ("own_board_benchmark:EMPTY", "cannot be loaded"),
        ("torn_board_benchmark:X", "RuntimeError: no licence"),
        ("no_such_module:X", "No module named 'no_such_module'"),
        ("gone-benchmark", "there is no benchmark 'gone-benchmark'"),
        (":", "there is no benchmark ':'"),
        ("own_board_benchmark:TWIN", "has the name closed-miou, as another one has"),
    ],
)
def test_a_benchmark_that_is_not_there_is_told_on_the_page_of_others(tmp_path, own_module, name, why):
    of_benchmark(tmp_path / "runs" / "later", name, "closed-miou")
    one = left_out(tmp_path / "runs")
    assert why in one.why and one.remedy
    assert one in collect_runs(tmp_path / "runs").list_skipped("closed-miou")
