"""What `hl.load` and `hl.runs` return, and how notebooks show it."""

import json
import re
import shutil
import warnings

import polars as pl
import pytest

import hardlook as hl
from hardlook.api.runs import Scores, build_score_frame
from hardlook.errors import OptionError, RunWarning
from hardlook.harness.scorecard import Score, Scorecard


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for name, fault in (("first", 0.2), ("second", 0.6)):
        hl.run("closed-miou", model="planted-segmenter", model_args={"stranger": fault}, scenes=8, resamples=50,
               out=root / name, progress=False)  # fmt: skip
    return root


@pytest.fixture
def run(folder):
    return hl.load(folder / "first")


def test_scores_have_value_interval_and_reading(run, folder):
    stored = json.loads((folder / "first" / "scores.json").read_text())["scores"][0]
    score = run.scores[stored["name"]]
    assert (score.value, score.low, score.high) == (
        stored["value"], stored["interval"]["low"], stored["interval"]["high"],
    )  # fmt: skip
    assert score.n == 8 and score.reading == "mean-over=detectron2" and score.comparable == stored["comparable"]
    with pytest.raises(KeyError, match="there are: miou"):
        run.scores["lca"]


def test_of_several_readings_the_first_counts():
    card = Scorecard("b", "1", "m", (Score("a", 0.5, 3, reading="x"), Score("a", 0.7, 3, reading="y")))
    assert Scores(card)["a"].reading == "x" and len(Scores(card)) == 1


def test_a_notebook_shows_the_scores_and_the_first_chart(run):
    shown = run._repr_html_()
    assert f"{run.scores['miou'].value:.3f}" in shown and f"{run.scores['miou'].low:.3f}" in shown
    assert "<svg" in shown and "IoU of each class" in shown and "8 of 8 units scored" in shown
    assert "var(--" not in shown  # colours are written out: a notebook has no such variables
    assert f"{run.scores['miou'].value:.3f}" in repr(run)


def test_figures_tables_and_their_numbers(run, tmp_path):
    assert run.figures["iou-of-each-class"] == "IoU of each class"
    figure = run.figure("iou-of-each-class")
    assert run.figure("single-images").name == "miou-of-single-images"  # a part that fits one name alone
    assert figure.frame.height == len(run.slices("class")) + 1  # and the mean
    assert figure.save(tmp_path / "figure.svg").read_text().startswith("<?xml")
    assert pl.read_csv(figure.save(tmp_path / "figure.csv")).height == figure.frame.height
    with pytest.raises(OptionError, match="its suffix is no format"):
        figure.save(tmp_path / "figure.docx")
    with pytest.raises(OptionError, match="no figure 'iou'"):
        run.figure("iou")
    assert "scores" in run.tables and run.table("scores").height >= 1


def test_a_unit_is_shown_with_its_pictures(run):
    unit = run.unit("scene-0003")
    shown = unit._repr_html_()
    assert unit.record["unit"] == "scene-0003" and len(unit.pictures) >= 2
    assert shown.count("<img") == len(unit.pictures) and 'src="data:image/' in shown
    assert "scene-0003" in repr(unit)
    with pytest.raises(OptionError, match="the nearest are: scene-000"):
        run.unit("scene-003")


def test_the_report_is_shown_in_a_frame(run, tmp_path):
    page = run.report(out=tmp_path / "page.html")
    assert page.path.read_text() == page.text
    inner = re.search(r'srcdoc="([^"]*)"', page._repr_html_()).group(1)
    assert "&lt;!doctype html&gt;" in inner and "<" not in inner


def test_another_reading_changes_nothing_on_disk(run, folder):
    before = (folder / "first" / "scores.json").read_bytes()
    other = run.rescore(reading={"mean-over": "gt-only"}, level=0.5)
    assert other.scores["miou"].reading == "mean-over=gt-only"
    assert other.scores["miou"].high - other.scores["miou"].low < run.scores["miou"].high - run.scores["miou"].low
    assert hl.load(folder / "first", level=0.5).scores["miou"].low == run.rescore(level=0.5).scores["miou"].low
    assert (folder / "first" / "scores.json").read_bytes() == before


def test_scores_are_saved_as_by_the_command(hardlook, folder, tmp_path):
    shutil.copytree(folder / "first", tmp_path / "run")
    stored = (tmp_path / "run" / "scores.json").read_bytes()
    other = hl.load(tmp_path / "run").rescore(reading={"mean-over": "gt-only"}, level=0.5)
    other.save_scores(tmp_path / "function.json")
    words = ("--reading", "mean-over=gt-only", "--set", "level=.5", "--out", tmp_path / "command.json")
    hardlook("score", tmp_path / "run", *words)
    assert (tmp_path / "function.json").read_bytes() == (tmp_path / "command.json").read_bytes() != stored
    with pytest.raises(OptionError, match="another reading or other options"):
        other.save_scores()
    assert (tmp_path / "run" / "scores.json").read_bytes() == stored
    (tmp_path / "run" / "scores.json").write_text("{}")
    (tmp_path / "run" / "report.html").unlink()
    hl.Run(tmp_path / "run").rescore().save_scores()
    assert (tmp_path / "run" / "scores.json").read_bytes() == stored and (tmp_path / "run" / "report.html").is_file()


def test_tables_and_figures_are_those_of_the_command(hardlook, run, tmp_path):
    for words, settings in (
        ((), {}),
        (("--format", "latex", "--intervals", "plus-minus"), {"format": "latex", "intervals": "plus-minus"}),
        (("--format", "csv"), {"format": "csv"}),
    ):
        assert run.format_table("scores", **settings) == hardlook("table", run.folder, "scores", *words).out
    assert run.format_table("scores", out=tmp_path / "a.tex") == (tmp_path / "a.tex").read_text()
    assert (tmp_path / "a.tex").read_text() == run.format_table("scores", format="latex")
    with pytest.raises(OptionError, match="contradict"):
        run.format_table("scores", format="csv", out=tmp_path / "a.tex")
    with pytest.raises(OptionError, match="one of latex, markdown, csv"):
        run.format_table("scores", format="word")
    hardlook("figure", run.folder, "iou-of-each-class", "--width", 85, "--out", tmp_path / "command.svg")
    run.figure("iou-of-each-class").save(tmp_path / "function", format="svg", width=85)
    assert (tmp_path / "function").read_bytes() == (tmp_path / "command.svg").read_bytes()


def test_frames_become_pandas_frames(run):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    slices = run.slices("class").to_pandas()
    assert isinstance(slices, pandas.DataFrame) and list(slices.columns) == run.slices("class").columns
    assert slices["value"].tolist() == pytest.approx(run.slices("class")["value"].fill_null(float("nan")), nan_ok=True)
    for frame in (run.records, run.failures, run.table("scores"), run.figure("iou-of-each-class").frame):
        assert len(frame.to_pandas()) == frame.height


def test_an_unfinished_run_warns(folder, tmp_path):
    hl.run("closed-miou", scenes=6, batch_size=2, shard=(1, 3), out=tmp_path / "part", progress=False)
    with pytest.warns(RunWarning, match="2 of 6 units are scored"):
        part = hl.load(tmp_path / "part")
    assert len(part.records) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hl.load(folder / "first")


def test_all_runs_below_a_folder(folder, tmp_path):
    runs = hl.runs(folder)
    assert [run.folder.name for run in runs] == ["first", "second"] and len(runs[:1]) == 1
    assert runs.frame.filter(pl.col("score") == "miou")["value"].to_list() == [
        run.scores["miou"].value for run in runs
    ]  # fmt: skip
    assert "planted-segmenter" in runs._repr_html_() and len(hl.runs(folder, benchmark="toss")) == 0
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    with pytest.warns(RunWarning, match="is not valid JSON"):
        assert len(hl.runs(tmp_path)) == 0
    with pytest.raises(OptionError, match="no such folder"):
        hl.runs(tmp_path / "nowhere")


def test_a_slice_may_have_the_name_of_a_column():
    frame = build_score_frame([Score("a", 0.5, 3, slice={"n": "many"})], ["n"])
    assert frame["slice n"].to_list() == ["many"] and frame["n"].to_list() == [3]
    assert frame["low"].to_list() == [None]
