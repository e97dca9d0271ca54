"""A method is a learner and its encoder: runs of one learner with two encoders are told apart where they are named."""

import json

import pytest

import hardlook as hl
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import score_run
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.explorer.run_data import RunData
from hardlook.report.explorer.views import build_compare_view, build_index_view, build_run_view

PLAIN, TURNED = "ridge with planted-encoder", "ridge with planted-encoder (turn=.3)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, written):
    """Two runs of one learner, with two encoders."""
    folder = tmp_path_factory.mktemp("runs")
    options = {"tasks": 4, "queries": 2, "shots": "1", "repeats": 1, "modes": "blind", "resamples": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDLOOK_CACHE", str(folder / "cache"))
        for name, given in (("a", ""), ("b", "turn=.3")):
            method = {"model": "ridge", "encoder": "planted-encoder", "encoder_args": given}
            more = {"data": written, "out": folder / name, "report": False, "progress": False}
            hl.run("metacoco", **method, **options, **more)
    return folder


def test_a_comparison_names_both(folder):
    compared = compare_runs([score_run(RunFolder(folder / name)) for name in "ab"], swaps=99)
    assert compared.models == (PLAIN, TURNED)


def test_a_leaderboard_names_both_and_ranks_them(folder, tmp_path):
    hl.leaderboard(folder, site=tmp_path / "site")
    pages = "".join(path.read_text() for path in (tmp_path / "site").rglob("*.html"))
    assert PLAIN in pages and TURNED in pages


def test_python_and_reports_name_both(folder, tmp_path):
    runs = hl.runs(folder)
    assert [run.method for run in runs] == [PLAIN, TURNED] and {run.model for run in runs} == {"ridge"}
    assert TURNED in repr(runs) and TURNED in runs._repr_html_() and repr(runs[1]).startswith(f"Run of {TURNED} on")
    assert f"<b>{TURNED}</b>" in runs[1]._repr_html_()
    assert runs[0].table("published-accuracies")["method"][0] == PLAIN
    assert TURNED in runs.report(out=tmp_path).index.read_text()
    assert "encoder" not in (folder / "b" / "scores.json").read_text()


def test_several_models_in_one_call_and_single_units_are_named_with_their_encoder(written, tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))
    options = {
        "tasks": 3,
        "queries": 2,
        "shots": "1",
        "repeats": 1,
        "modes": "blind",
        "resamples": 0,
        "progress": False,
    }
    given = {"data": written, "encoder": "planted-encoder", "model": ["ridge", "nearest-centroid"], **options}
    hl.run("metacoco", **given, out=tmp_path / "runs")
    assert "nearest-centroid with planted-encoder" in (tmp_path / "runs" / "report.html").read_text()
    results = hl.run("metacoco", **given, unit="5way-1shot-blind-00001")
    assert [one.model for one in results] == [PLAIN, "nearest-centroid with planted-encoder"]


def test_the_explorer_names_both(folder):
    data = RunData(folder)
    first, second = data.index.runs()
    assert (first.method, second.method) == (PLAIN, TURNED)
    (group,) = build_index_view(data)["groups"]
    assert [row["method"] for row in group["runs"]] == [PLAIN, TURNED]
    assert ("Model", TURNED) in build_run_view(data, second.key, [])["facts"]
    assert build_compare_view(data, [("first", first.key), ("second", second.key)])["second"].method == TURNED


def test_naming_a_run_loads_no_code_of_somebody_else(folder, tmp_path, monkeypatch):
    """The run.json of a stranger names a learner by its module; neither index nor leaderboard imports it."""
    target = tmp_path / "runs" / "c"
    target.mkdir(parents=True)
    manifest = json.loads((folder / "a" / "run.json").read_text())
    manifest["model"]["name"] = "stranger_learner:Learner"
    manifest["options"]["encoder"] = None
    manifest.pop("checksum", None)
    (target / "run.json").write_text(json.dumps(manifest))
    (tmp_path / "stranger_learner.py").write_text("from pathlib import Path\nPath(__file__ + '.imported').touch()\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [run.method for run in RunData(tmp_path / "runs").index.runs()] == ["stranger_learner:Learner"]
    assert hl.Run(target).method == "stranger_learner:Learner"
    assert not (tmp_path / "stranger_learner.py.imported").exists()
