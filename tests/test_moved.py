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
# Every import of the pages of 0.1.0: a module, and the names taken from it.
DOCUMENTED = """\
hardlook: randomness
hardlook.benchmarks: find_benchmark
hardlook.clicks.planted_users: draw_clicks user_map
hardlook.comparison: compare meaning_of sentence
hardlook.contract.benchmark: BenchmarkCard ScoreMeaning Unit
hardlook.contract.options: BenchmarkOptions option
hardlook.contract.records: Column RecordSchema
hardlook.contract.scorecard: Scorecard score_of
hardlook.contract.sections: DistributionChart Example Gallery Picture Section
hardlook.data: rle
hardlook.data.click_file: check_clicks write_clicks
hardlook.data.click_table: COLUMNS
hardlook.data.concept_context: open_dataset
hardlook.data.object_instances: list_instances
hardlook.export.score_rows: scorecard_of
hardlook.labels: load_label_set one_edge_below
hardlook.labels.measures: similarity_of
hardlook.metrics: OpenMeanIoU
hardlook.metrics.open_pq: OpenPQ
hardlook.metrics.panoptic_matching: Segments
hardlook.models: roles
hardlook.models.conformance: check_model
hardlook.models.encoders.efficientnet_lite0: EfficientNetLite0
hardlook.models.feature_cache: CachedEncoder
hardlook.models.few_shot: published_settings
hardlook.models.few_shot.dn4: DN4
hardlook.models.one_shot: averaging
hardlook.models.registry: build list_models register
hardlook.models.roles: Clicks Episode Prompted Support
hardlook.models.weights: loading
hardlook.models.weights.install: install list_weights status where
hardlook.randomness: generator
hardlook.runs.folder: RunFolder
hardlook.runs.launch: launch
hardlook.runs.scoring: score_run
hardlook.stats: bootstrap_indices bootstrap_mean bootstrap_score bootstrap_scores holm paired_bootstrap
hardlook.stats: permutation_test rank_models ratio significant_pairs spearman t_interval units_needed
hardlook.world.planted: PlantedWorld"""

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


@pytest.mark.parametrize("line", DOCUMENTED.split("\n"))
def test_what_the_documentation_imported_can_be_imported(line):
    module, _, names = line.partition(": ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for name in names.split():
            exec(f"from {module} import {name}")


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


@pytest.mark.parametrize("name", ["benchmarks", "runs"])
def test_an_old_package_with_the_name_of_a_public_function_can_be_called(name, tmp_path):
    """Python puts an imported `hardlook.runs` in the place of the function `hardlook.runs`."""
    program = (
        f"import hardlook as hl, hardlook.{name}, types\n"
        f"assert isinstance(hl.{name}, types.ModuleType)\n"
        f"print(len(hl.{name}({'' if name == 'benchmarks' else repr(str(tmp_path))})))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert (int(answer.stdout) > 0) == (name == "benchmarks")
