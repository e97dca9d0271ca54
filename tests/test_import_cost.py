"""What importing costs is a matter of what gets imported; the seconds are in benchmarks/startup.py."""

import subprocess
import sys

import pytest

import hardlook.harness.stats
import hardlook.similarity

HEAVY = ("torch", "polars", "scipy.stats", "cv2", "numba", "onnxruntime", "ray", "transformers", "jinja2")


def modules_after(statement):
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(answer.stdout.splitlines()[-1].split())


def test_importing_the_package_imports_nothing_heavy():
    loaded = modules_after("import hardlook")
    assert not loaded & {*HEAVY, "numpy", "pydantic", "typer"}


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["models"], ["run", "closed-miou", "--help"]])
def test_help_and_listings_load_no_extra(words):
    statement = f"import sys\nfrom hardlook.cli.app import app\ntry:\n    app({words!r})\nexcept SystemExit:\n    pass"
    loaded = modules_after(statement)
    assert "hardlook.cli.app" in loaded
    assert not loaded & {"torch", "onnxruntime", "ai_edge_litert", "ray", "transformers"}
    if words == ["--help"]:
        assert not loaded & {*HEAVY, "numpy", "pydantic"}


def test_statistics_and_metrics_load_neither_polars_nor_files():
    assert not modules_after("import hardlook.harness.stats, hardlook.metrics.mean_iou") & {
        "polars",
        "cv2",
        "scipy.stats",
    }


@pytest.mark.parametrize("package", [hardlook.harness.stats, hardlook.similarity])
def test_statistics_and_similarity_stand_on_their_own(package):
    loaded = modules_after(f"import {package.__name__}")
    assert not {name.partition(".")[0] for name in loaded} & {"scipy", "polars", "torch"}
    parents = {package.__name__.rpartition(".")[0], "hardlook", "hardlook.callable_packages", "hardlook.moved"}
    own = {name for name in loaded if name.startswith("hardlook") and not name.startswith(package.__name__)}
    assert own == parents
    assert all(hasattr(package, name) for name in package.__all__)


def test_the_names_of_the_statistics_are_in_order():
    assert sorted(hardlook.harness.stats.__all__) == hardlook.harness.stats.__all__
