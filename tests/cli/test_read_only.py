"""Run folders that cannot be written: every command reads them, and none writes into a run that it only reads."""

import json

import pytest
from mounts import read_only
from small_runs import small_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("read-only") / "runs"
    small_run(root / "one")
    small_run(root / "two", args={"stranger": 0.6})
    return root


def snapshot(root):
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in [root, *root.rglob("*")]}


READING = {
    "compare": ("compare", "RUN/one", "RUN/two", "--swaps", "20", "-q", "--out", "OUT/c"),
    "export": ("export", "RUN/one", "--out", "OUT/e.json"),
    "export to a pipe": ("export", "RUN/one"),
    "table": ("table", "RUN/one", "scores"),
    "figure": ("figure", "RUN/one", "iou-of-each-class", "--out", "OUT/f.svg"),
    "figures": ("figure", "RUN/one"),
    "leaderboard": ("leaderboard", "RUN", "--out", "OUT/l"),
    "leaderboard of one": ("leaderboard", "RUN/one"),
    "verify": ("verify", "RUN/one", "RUN/two"),
    "score with changes": ("score", "RUN/one", "--set", "level=.9", "--out", "OUT/s.json"),
    "report": ("report", "RUN/one", "--out", "OUT/r.html"),
}


@pytest.mark.parametrize("name", READING)
def test_commands_that_read_runs_write_nothing_into_them(hardlook, runs, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    before = snapshot(runs)
    answer = hardlook(*(word.replace("RUN", str(runs)).replace("OUT", str(tmp_path)) for word in READING[name]))
    assert answer.code == 0, answer.err
    assert snapshot(runs) == before


@pytest.mark.parametrize("name", READING)
def test_they_read_a_read_only_folder(hardlook, runs, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    words = [word.replace("RUN", str(runs)).replace("OUT", str(tmp_path)) for word in READING[name]]
    with read_only(runs):
        answer = hardlook(*words)
    assert answer.code == 0, answer.err
    for word in words:
        if word.startswith(str(tmp_path)) and not word.endswith(("/c", "/l")):
            assert (tmp_path / word).is_file()


def test_score_prints_or_writes_to_out(hardlook, runs, tmp_path):
    stored = (runs / "one" / "scores.json").read_text()
    with read_only(runs):
        printed = hardlook("score", runs / "one", "--json")
        written = hardlook("score", runs / "one", "--out", tmp_path / "scores.json")
    assert (printed.code, printed.out) == (0, stored)
    assert "read-only, nothing was written there; --out FILE" in printed.err
    assert written.code == 0 and (tmp_path / "scores.json").read_text() == stored


def test_report_prints_the_scores_or_writes_to_out(hardlook, runs, tmp_path):
    with read_only(runs):
        printed = hardlook("report", runs / "one")
        told = hardlook("report", runs / "one", "--json")
        several = hardlook("report", runs / "one", runs / "two", "--out", tmp_path / "pages", "--json")
    assert printed.code == 0 and "12 units planned" in printed.out and "--out FILE.html" in printed.err
    assert json.loads(told.out)["pages"][0]["report"] is None
    pages = json.loads(several.out)
    assert several.code == 0 and len({one["report"] for one in pages["pages"]}) == 2
    assert all((tmp_path / "pages") in (tmp_path / one["report"]).parents for one in pages["pages"])
    assert (tmp_path / "pages" / "reports.html").read_text().count(".html") >= 2


def test_a_leaderboard_of_a_read_only_folder_is_printed(hardlook, runs):
    with read_only(runs):
        answer = hardlook("leaderboard", runs)
    assert answer.code == 0 and "stranger=0.6" in answer.out and "--out FOLDER" in answer.err


def test_a_run_there_says_so(hardlook, runs):
    with read_only(runs):
        answer = hardlook("run", "closed-miou", "--scenes", "12", "--out", runs / "new", "-q")
    assert answer.code == 1 and "Traceback" not in answer.err and str(runs) in answer.err
