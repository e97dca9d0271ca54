import json

import polars as pl
import pytest
from leaderboard_runs import score, write_run


@pytest.fixture
def runs(tmp_path):
    write_run(tmp_path / "runs" / "one", [score("miou", 0.5)], model="one")
    write_run(tmp_path / "runs" / "two", [score("miou", 0.7)], model="two")
    write_run(tmp_path / "runs" / "other", [score("miou", 0.9)], model="other", units="xyz")
    (write_run(tmp_path / "runs" / "torn", [score("miou", 0.9)]) / "scores.json").write_text("{")
    return tmp_path / "runs"


def test_real_runs_are_ranked_and_their_files_written(hardlook, tmp_path):
    for name, stranger in (("sound", 0), ("faulty", 0.6)):
        done = hardlook("run", "closed-miou", "--model-arg", f"stranger={stranger}", "--scenes", 6, "--resamples", 20,
                        "--quiet", "--out", tmp_path / name)  # fmt: skip
        assert done.code == 0
    answer = hardlook("leaderboard", tmp_path)
    assert answer.code == 0
    assert answer.out.index("stranger=0.0") < answer.out.index("stranger=0.6")
    page = (tmp_path / "leaderboard.html").read_text()
    assert page.startswith("<!doctype html>") and "Ranking" in page
    frame = pl.read_parquet(tmp_path / "leaderboard.parquet")
    scores = json.loads((tmp_path / "sound" / "scores.json").read_text())["scores"]
    assert frame.filter(pl.col("folder") == "sound")["value"].to_list() == [one["value"] for one in scores]


def test_json_is_all_that_is_printed(hardlook, runs):
    document = json.loads(hardlook("leaderboard", runs, "--json").out)
    assert document["schema"] == "hardlook.leaderboard/1"
    [board] = document["leaderboards"]
    [standing] = board["standings"]
    assert [(row["method"], row["rank"]) for row in standing["rows"]] == [("other", None), ("two", 1), ("one", 2)]
    assert (board["first_run"], standing["score"]) == ("one", "miou")
    assert [(one["folder"], one["benchmark"]) for one in document["left_out"]] == [("torn", "closed-miou")]
    assert document["pages"] == [str(runs / "leaderboard.html")]


def test_the_terminal_says_who_has_no_rank_and_what_was_left_out(hardlook, runs):
    answer = hardlook("leaderboard", runs)
    assert "no rank: other (other units than the first run)" in answer.out
    assert "left out: torn: scores.json is not valid JSON" in answer.out


def test_several_benchmarks_get_a_page_each(hardlook, runs, tmp_path):
    write_run(runs / "pairs", [score("lca", 0.5)], benchmark="toss")
    answer = hardlook("leaderboard", runs, "--out", tmp_path / "board")
    assert answer.code == 0
    index = (tmp_path / "board" / "leaderboard.html").read_text()
    for name in ("closed-miou", "toss"):
        assert f'href="leaderboard-{name}.html"' in index
        assert (tmp_path / "board" / f"leaderboard-{name}.html").is_file()
    assert set(pl.read_parquet(tmp_path / "board" / "leaderboard.parquet")["benchmark"]) == {"closed-miou", "toss"}
    assert hardlook("leaderboard", runs, "--sort", "lca").code == 1
    chosen = hardlook("leaderboard", runs, "--benchmark", "toss", "--sort", "hca", "--json")
    assert [board["benchmark"] for board in json.loads(chosen.out)["leaderboards"]] == ["toss"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere",), "there is no such folder"),
        ((".",), "there is no run below this folder"),
        (("runs", "--benchmark", "toss"), "there is no run of toss below this folder"),
        (("runs", "--benchmark", "tos"), "there is no benchmark 'tos'"),
        (("runs", "--sort", "lca"), "closed-miou has no such score"),
        (("runs", "--out", __file__), "this is a file, not a folder"),
        (("runs/torn",), "no run below this folder can be ranked (torn: scores.json is not valid JSON"),
    ],
)
def test_what_is_wrong_is_said(hardlook, runs, tmp_path, monkeypatch, words, told):
    (tmp_path / "empty").mkdir()
    folder = tmp_path / "empty" if words[0] == "." else tmp_path / words[0]
    answer = hardlook("leaderboard", folder, *words[1:])
    assert (answer.code, told in answer.err) == (1, True)
