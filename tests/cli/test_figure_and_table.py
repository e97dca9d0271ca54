"""`hardlook figure` and `hardlook table`: parts of a report as files."""

import csv
import io
import json
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from small_runs import small_run

from hardlook.extras import is_installed
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import score_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "first"
    small_run(folder, scenes=24)
    return folder


@pytest.fixture(scope="module")
def scorecard(run):
    return score_run(RunFolder(run)).scorecard


def test_names_are_listed_and_stand_on_the_page(hardlook, run, tmp_path):
    listed = json.loads(hardlook("figure", run, "--json").out)["figures"]
    assert listed["iou-of-each-class"] == "IoU of each class"
    assert "iou-of-each-class " in hardlook("figure", run).out
    tables = json.loads(hardlook("table", run, "--json").out)["tables"]
    assert list(tables)[:5] == ["scores", "all-scores", "left-out", "noted", "readings"]
    assert set(listed) < set(tables)
    hardlook("report", run, "--examples", 0, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert all(f"<code>{name}</code>" in page for name in tables if name not in ("left-out", "noted"))


@pytest.mark.parametrize(
    "words",
    [
        "table RUN scores --format csv --out RUN/scores.json",
        "figure RUN iou-of-each-class --format csv --out RUN/run.json",
        "score RUN --out RUN/scores.json --reading mean-over=gt-only",
        "report OTHER --out RUN",
        "export RUN --out OTHER/scores.json",
        "gate RUN OTHER --junit RUN/scores.json",
        "attributes --data voc=nowhere --out RUN",
        "build toss --data voc=nowhere --out RUN",
    ],
)
def test_what_is_written_elsewhere_replaces_no_part_of_a_run(hardlook, run, tmp_path, words):
    small_run(tmp_path / "other", scenes=2)
    places = [run, tmp_path / "other"]
    files = {path: path.read_bytes() for place in places for path in place.rglob("*") if path.is_file()}
    answer = hardlook(*(word.replace("RUN", str(run)).replace("OTHER", str(places[1])) for word in words.split()))
    assert answer.code == 1 and "would replace a part of the run" in answer.err
    assert files == {path: path.read_bytes() for place in places for path in place.rglob("*") if path.is_file()}


def test_an_svg_is_written_beside_by_default_and_its_format_by_its_ending(hardlook, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert hardlook("figure", run, "iou-of-each-class").out.strip() == "iou-of-each-class.svg"
    root = ElementTree.parse(tmp_path / "iou-of-each-class.svg").getroot()
    assert root.get("width") == "165mm"
    answer = hardlook("figure", run, "iou-of-each-class", "--out", "a/b.csv", "--json")
    assert json.loads(answer.out) == {"figure": "iou-of-each-class", "format": "csv", "file": "a/b.csv"}
    refused = hardlook("figure", run, "iou-of-each-class", "--out", "a.docx")
    assert refused.code == 1 and "--format" in refused.err


def test_the_csv_of_a_chart_holds_the_exact_scores(hardlook, run, scorecard, tmp_path):
    hardlook("figure", run, "iou-of-each-class", "--format", "csv", "--out", tmp_path / "x")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "x").read_text())))
    read = {row["name"]: (float(row["IoU"]), float(row["low"])) for row in rows if row["low"]}
    known = {s.slice["class"]: s for s in scorecard.scores if s.name == "iou" and set(s.slice) == {"class"}}
    assert len(read) > 5
    for name, (value, low) in read.items():
        assert (value, low) == (known[name].value, known[name].interval.low)


@pytest.mark.skipif(not is_installed("typst"), reason="the extra figures is not installed")
@pytest.mark.parametrize(("form", "start"), [("pdf", b"%PDF-"), ("png", b"\x89PNG")])
def test_pdf_and_png(hardlook, run, tmp_path, form, start):
    out = tmp_path / f"figure.{form}"
    words = ("--out", out, "--width", 85, "--dark", "--ppi", 72)
    assert hardlook("figure", run, "iou-of-each-class-in-each-context", *words).code == 0
    assert out.read_bytes().startswith(start)


def test_without_the_extra_pdf_says_how_to_get_it_and_svg_works(hardlook, run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    real = __import__("importlib").import_module

    def without(name, package=None):
        if name == "typst":
            raise ModuleNotFoundError("No module named 'typst'", name="typst")
        return real(name, package)

    monkeypatch.setattr("importlib.import_module", without)
    answer = hardlook("figure", run, "iou-of-each-class", "--out", tmp_path / "a.pdf")
    assert answer.code == 1 and 'pip install "hardlook[figures]"' in answer.err
    assert not (tmp_path / "a.pdf").exists()
    assert hardlook("figure", run, "iou-of-each-class", "--out", tmp_path / "a.svg").code == 0


@pytest.mark.parametrize("verb", ["figure", "table"])
def test_an_unknown_name_suggests_the_nearest(hardlook, run, verb):
    answer = hardlook(verb, run, "iou-by-class")
    assert answer.code == 1
    assert "iou-of-each-class" in answer.err and f"hardlook {verb}" in answer.err


def test_the_scores_as_latex_markdown_and_json(hardlook, run, scorecard, tmp_path):
    score = scorecard.get("miou")
    interval = f"[{score.interval.low:.3f}, {score.interval.high:.3f}]"
    latex = hardlook("table", run, "scores", "--format", "latex").out
    assert latex.startswith("\\begin{tabular}{lrrrl}\n\\toprule") and latex.endswith("\\end{tabular}\n")
    assert f"mIoU & {score.value:.3f} & {interval} & 24 & 24 images, 22 classes \\\\" in latex
    assert (
        f"| mIoU | {score.value:.3f} | {interval} | 24 | 24 images, 22 classes |"
        in hardlook("table", run, "scores").out
    )
    half = (score.interval.high - score.interval.low) / 2
    assert f"| ±{half:.3f} |" in hardlook("table", run, "scores", "--intervals", "plus-minus").out
    document = json.loads(hardlook("table", run, "scores", "--json").out)
    assert document["columns"] == ["score", "value", "low", "high", "n", "rests on"]
    assert document["rows"][0] == [
        "mIoU",
        score.value,
        score.interval.low,
        score.interval.high,
        24,
        "24 images, 22 classes",
    ]
    answer = hardlook("table", run, "all-scores", "--format", "csv", "--out", tmp_path / "all.csv")
    assert answer.out.strip() == str(tmp_path / "all.csv")
    assert len((tmp_path / "all.csv").read_text().splitlines()) == len(scorecard.scores) + 1


@pytest.mark.parametrize(("ending", "start"), [("tex", "\\begin{tabular}"), ("md", "| score"), ("csv", "score,")])
def test_the_ending_of_a_table_says_its_format(hardlook, run, tmp_path, ending, start):
    assert hardlook("table", run, "scores", "--out", tmp_path / f"a.{ending}").code == 0
    assert (tmp_path / f"a.{ending}").read_text().startswith(start)


@pytest.mark.parametrize(
    "words", [("figure", "iou-of-each-class", "a.png", "pdf"), ("table", "scores", "a.csv", "latex")]
)
def test_a_format_and_an_ending_that_contradict_each_other_are_refused(hardlook, run, tmp_path, words):
    verb, name, out, form = words
    answer = hardlook(verb, run, name, "--out", tmp_path / out, "--format", form)
    assert answer.code == 1 and f"--format {form}" in answer.err and "omit --format" in answer.err
    assert not (tmp_path / out).exists()
