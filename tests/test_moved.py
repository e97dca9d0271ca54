"""Import paths of 0.1.0 that the documentation named, in a fresh process."""

import csv
import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import hardlook

ROWS = list(
    csv.DictReader((Path(hardlook.__file__).parent / "moved_names.csv").read_text(encoding="utf-8").splitlines())
)
OLD_MODULES = sorted({row["old_module"] for row in ROWS})


@pytest.mark.parametrize("module", OLD_MODULES)
def test_every_old_name_is_the_new_object(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old = importlib.import_module(module)
        for row in ROWS:
            if row["old_module"] == module:
                new = getattr(importlib.import_module(row["new_module"]), row["new_name"])
                assert getattr(old, row["old_name"]) is new, row


def test_the_names_that_the_documentation_used_are_there():
    named = {(row["old_module"], row["old_name"]) for row in ROWS}
    assert {
        ("hardlook.benchmarks", "find_benchmark"),
        ("hardlook.contract.benchmark", "BenchmarkCard"),
        ("hardlook.contract.options", "BenchmarkOptions"),
        ("hardlook.contract.records", "RecordSchema"),
        ("hardlook.contract.scorecard", "score_of"),
        ("hardlook.contract.sections", "Gallery"),
        ("hardlook.stats", "bootstrap_mean"),
        ("hardlook.labels", "load_label_set"),
        ("hardlook.labels.measures", "similarity_of"),
        ("hardlook.comparison", "compare"),
        ("hardlook.runs.launch", "launch"),
        ("hardlook.runs.scoring", "score_run"),
        ("hardlook.runs.folder", "RunFolder"),
        ("hardlook.clicks.planted_users", "draw_clicks"),
        ("hardlook.metrics.panoptic_matching", "Segments"),
        ("hardlook.export.score_rows", "scorecard_of"),
        ("hardlook.data.click_table", "COLUMNS"),
    } <= named


def test_an_old_path_warns_and_says_where_the_name_is():
    code = "import warnings; warnings.simplefilter('error'); from hardlook.runs.launch import launch"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "hardlook.runs.launch.launch is hardlook.harness.runs.launch.launch now" in answer.stderr


def test_other_missing_modules_and_names_are_missing():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("hardlook.no_such_module")
    with pytest.raises(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        exec("from hardlook.runs.launch import nothing_of_that_name")
