"""Models by scores of a comparison: the best in bold, ties marked, in three formats."""

import csv
import io
import json
import shutil
import subprocess

import numpy as np
import pytest
from compared_runs import hits_run
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError
from hardlook.harness.registry import add
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.document import build_document
from hardlook.report.compare.method_table import (
    build_method_table,
    find_comparison,
    format_method_table,
    read_method_table,
)


def score(name, value, low=None, high=None, slice_=None):
    interval = None if low is None else {"low": low, "high": high}
    return {"name": name, "value": value, "interval": interval, "slice": slice_ or {}}


def difference(first, second, values, verdict, name="miou", slice_=None):
    first_value, second_value = values
    own = {"first": first, "second": second, "first_value": first_value, "second_value": second_value}
    return {"name": name, "slice": slice_ or {}, "reading": "", "verdict": verdict, **own}


# b leads in mIoU and cannot be told from c, which cannot be told from a_1; a_1 is worse than b. Of fw-iou, which is no
# headline, nothing is known of c.
DOCUMENT = {
    "schema": "hardlook.comparison/1",
    "benchmark": {"name": "closed-miou", "version": "1"},
    "models": [{"name": "a_1"}, {"name": "b"}, {"name": "c"}],
    "alpha": 0.05,
    "headline": ["miou"],
    "differences": [
        difference("a_1", "b", (0.5, 0.8124), "worse"),
        difference("a_1", "c", (0.5, 0.8), "cannot tell"),
        difference("b", "c", (0.8124, 0.8), "cannot tell"),
        difference("a_1", "b", (0.9, 0.1), "better", slice_={"context": "sea"}),
        difference("a_1", "b", (0.25, 0.75), "cannot tell", "fw-iou"),
        difference("a_1", "c", (0.25, None), "undefined", "fw-iou"),
        difference("b", "c", (0.75, None), "undefined", "fw-iou"),
    ],
    "scores": {
        "a_1": [score("miou", 0.5, 0.4, 0.6), score("miou", 0.1, slice_={"context": "sea"}), score("fw-iou", 0.25)],
        "b": [score("miou", 0.8124, 0.75, 0.85), score("fw-iou", 0.75)],
        "c": [score("miou", 0.8, 0.7, 0.88), score("fw-iou", None)],
    },
}


@pytest.fixture
def comparison(tmp_path):
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_latex_sets_the_best_in_bold_and_marks_ties(comparison):
    lines = format_method_table(read_method_table(comparison), "latex").splitlines()
    assert lines[0].startswith("% bold: the best; dagger: not distinguishable from the best at level 0.05")
    assert lines[3] == r"model & mIoU $\uparrow$ \\"
    assert lines[5:8] == [r"a\_1 & 0.500 \\", r"b & \textbf{0.812} \\", r"c & 0.800$^{\dagger}$ \\"]


def test_intervals_and_every_score(comparison):
    table = read_method_table(comparison, every_score=True)
    assert table.scores == ("miou", "fw-iou")
    rows = format_method_table(table, "markdown", "brackets").splitlines()
    assert rows[2:5] == [
        "| a_1 | 0.500 [0.400, 0.600] | 0.250\N{DAGGER} |",
        "| b | **0.812** [0.750, 0.850] | **0.750** |",
        "| c | 0.800\N{DAGGER} [0.700, 0.880] | \N{EN DASH} |",
    ]
    assert "0.812** \N{PLUS-MINUS SIGN}0.050" in format_method_table(table, "markdown", "plus-minus")


def test_csv_has_exact_numbers(comparison):
    table = read_method_table(comparison, every_score=True)
    rows = list(csv.DictReader(io.StringIO(format_method_table(table, "csv"))))
    assert [row["model"] for row in rows] == ["a_1", "b", "c"]
    assert [float(row["miou"]) for row in rows] == [0.5, 0.8124, 0.8]
    assert [(row["miou best"], row["miou tied"]) for row in rows] == [("0", "0"), ("1", "0"), ("0", "1")]
    assert rows[2]["fw-iou"] == "" and float(rows[1]["miou high"]) == 0.85


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(comparison, tmp_path):
    table = format_method_table(read_method_table(comparison, every_score=True), "latex", "plus-minus")
    page = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n" + table + "\\end{document}\n"
    (tmp_path / "page.tex").write_text(page)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "page.pdf").stat().st_size > 1000


def test_the_command_takes_the_json_the_page_and_the_folder(comparison, hardlook, tmp_path):
    (tmp_path / "comparison.html").write_text("<p>a page</p>")
    texts = {
        hardlook("table", path, "--format", "latex").out
        for path in (comparison, tmp_path, tmp_path / "comparison.html")
    }
    assert len(texts) == 1 and r"\textbf{0.812}" in texts.pop()
    written = hardlook("table", comparison, "all-scores", "--out", tmp_path / "table.csv")
    assert written.code == 0 and (tmp_path / "table.csv").read_text().startswith("model,miou,miou low")
    document = json.loads(hardlook("table", comparison, "--json").out)
    assert document["rows"][2]["scores"]["miou"] == {
        "value": 0.8,
        "low": 0.7,
        "high": 0.88,
        "best": False,
        "tied": True,
    }
    wrong = hardlook("table", comparison, "left-out")
    assert wrong.code == 1 and "a comparison has no table 'left-out'" in wrong.err


def test_who_is_lower_than_the_best_has_no_dagger_for_being_like_the_second():
    # cat is .1 below ant in every unit; bee is .05 below in the mean, now above, now below.
    ant, cat = np.full(14, 0.9), np.full(14, 0.8)
    bee = 0.85 + np.tile([0.3, -0.3], 7)
    runs = [hits_run(values, name) for values, name in ((ant, "ant"), (bee, "bee"), (cat, "cat"))]
    add(runs[0].benchmark)
    comparison = compare_runs(runs)
    assert [one.is_significant for one in comparison.headline] == [False, True, False]
    marks = {model: row["rate"] for model, row in build_method_table(build_document(comparison, runs)).cells.items()}
    assert [model for model, cell in marks.items() if cell.best] == ["ant"]
    assert [model for model, cell in marks.items() if cell.tied] == ["bee"]


def test_other_json_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"schema": "something"}')
    assert find_comparison(path) == path
    with pytest.raises(DataError, match="this is not a comparison"):
        read_method_table(path)


@given(st.data())
def test_a_damaged_document_is_one_error(tmp_path_factory, data):
    """Any value in any place of the document."""
    document = json.loads(json.dumps(DOCUMENT))
    where = document
    while True:
        key = data.draw(st.sampled_from(sorted(where) if isinstance(where, dict) else range(len(where))))
        if not isinstance(where[key], dict | list) or not where[key] or data.draw(st.booleans()):
            break
        where = where[key]
    where[key] = data.draw(
        st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3) | st.just([]) | st.just({})
    )
    path = tmp_path_factory.mktemp("damaged") / "comparison.json"
    path.write_text(json.dumps(document))
    try:
        table = read_method_table(path, every_score=True)
        for text_format in ("latex", "markdown", "csv"):
            format_method_table(table, text_format, "brackets")
    except DataError as error:
        assert str(path) in str(error)
