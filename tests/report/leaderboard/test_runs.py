"""Which runs are found, and why the others are not used."""

import json

import pytest
from leaderboard_runs import score, write_run

from hardlook.errors import DataError, OptionError
from hardlook.report.leaderboard.runs import collect_runs, find_run_folders

SCORES = [score("miou", 0.5)]


def why(root):
    return {one.folder: one.why for one in collect_runs(root).left_out}


def test_runs_are_found_at_any_depth_and_nothing_is_looked_for_inside_of_one(tmp_path):
    write_run(tmp_path / "b" / "deep", SCORES)
    write_run(tmp_path / "a", SCORES)
    write_run(tmp_path / "a" / "records" / "inner", SCORES)
    assert [str(path.relative_to(tmp_path)) for path in find_run_folders(tmp_path)] == ["a", "b/deep"]
    assert {run.folder for run in collect_runs(tmp_path).runs["closed-miou"]} == {"a", "b/deep"}


def test_the_earliest_run_comes_first(tmp_path):
    write_run(tmp_path / "a", SCORES, created="2030-02-01T00:00:00+00:00")
    write_run(tmp_path / "b", SCORES, created="2030-01-01T00:00:00+00:00")
    runs = collect_runs(tmp_path).runs["closed-miou"]
    assert [(run.folder, run.date) for run in runs] == [("b", "2030-01-01"), ("a", "2030-02-01")]


def test_benchmarks_are_kept_apart_and_one_can_be_chosen(tmp_path):
    write_run(tmp_path / "a", SCORES)
    write_run(tmp_path / "b", [score("lca", 0.5)], benchmark="toss")
    write_run(tmp_path / "c", SCORES, counts=(20, 5, 0))
    assert sorted(collect_runs(tmp_path).runs) == ["closed-miou", "toss"]
    chosen = collect_runs(tmp_path, "toss")
    assert (list(chosen.runs), chosen.left_out) == (["toss"], ())
    with pytest.raises(OptionError, match="there is no benchmark 'tos'"):
        collect_runs(tmp_path, "tos")


def test_what_cannot_be_used_is_listed_with_the_reason(tmp_path):
    write_run(tmp_path / "good", SCORES)
    write_run(tmp_path / "old", SCORES)
    manifest = json.loads((tmp_path / "old" / "run.json").read_text())
    manifest["benchmark"] = {"name": "closed-miou", "version": "0"}
    (tmp_path / "old" / "run.json").write_text(json.dumps(manifest))
    manifest["benchmark"] = {"name": "gone-benchmark", "version": "1"}
    write_run(tmp_path / "gone", SCORES)
    (tmp_path / "gone" / "run.json").write_text(json.dumps(manifest))
    (write_run(tmp_path / "unscored", SCORES) / "scores.json").unlink()
    write_run(tmp_path / "unfinished", SCORES, counts=(20, 12, 3))
    write_run(tmp_path / "name.old-1", SCORES)
    (write_run(tmp_path / "half", SCORES) / "scores.json").write_text('{"schema": "hardlook.sc')
    (write_run(tmp_path / "other", SCORES) / "scores.json").write_text('{"schema": "else/1"}')
    (write_run(tmp_path / "torn", SCORES) / "run.json").write_text("{")
    (write_run(tmp_path / "list", SCORES) / "run.json").write_text("[]")
    write_run(tmp_path / "swapped", SCORES, benchmark="toss")
    manifest["benchmark"] = {"name": "closed-miou", "version": "1"}
    (tmp_path / "swapped" / "run.json").write_text(json.dumps(manifest))
    told = why(tmp_path)
    expected = {
        "old": "made by version 0 of closed-miou",
        "gone": "there is no benchmark 'gone-benchmark'",
        "unscored": "not scored yet",
        "unfinished": "unfinished: 12 of 20 units",
        "name.old-1": "set aside by --new",
        "half": "scores.json is not valid JSON",
        "other": "expected a scores file of schema",
        "torn": "run.json is not valid JSON",
        "list": "run.json has schema None",
        "swapped": "scores.json is of toss",
    }
    assert set(told) == set(expected)
    assert all(expected[name] in told[name] for name in expected)
    assert [run.folder for run in collect_runs(tmp_path).runs["closed-miou"]] == ["good"]


@pytest.mark.parametrize(
    "scores", ['{"schema": "hardlook.scores/1"}', '{"schema": "hardlook.scores/1", "scores": 3}', "[]"]
)
def test_scores_of_a_strange_shape_are_left_out(tmp_path, scores):
    (write_run(tmp_path / "a", SCORES) / "scores.json").write_text(scores)
    assert "scores.json cannot be read" in why(tmp_path)["a"]


def test_a_run_folder_itself_may_be_given(tmp_path):
    write_run(tmp_path / "mine", SCORES)
    [run] = collect_runs(tmp_path / "mine").runs["closed-miou"]
    assert run.folder == "mine"


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="there is no such folder"):
        collect_runs(tmp_path / "none")
