"""The core without any extra: driven from here, run by the interpreter of a second environment.

`.ci/run` makes that environment and names its interpreter in HARDLOOK_CORE_PYTHON.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ.get("HARDLOOK_CORE_PYTHON", "")

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="HARDLOOK_CORE_PYTHON does not name the interpreter of an environment without extras"
)


def core(*words, code=0):
    answer = subprocess.run([PYTHON, "-m", "hardlook", *map(str, words)], capture_output=True, text=True)
    assert answer.returncode == code, answer.stderr
    return answer


def test_no_extra_is_installed_there():
    program = "import importlib.util as u; print([m for m in %r if u.find_spec(m)])"
    modules = ["torch", "onnxruntime", "ai_edge_litert", "transformers", "ray", "starlette", "sqlalchemy"]
    answer = subprocess.run([PYTHON, "-c", program % modules], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_every_module_of_the_package_can_be_imported():
    """All but the store, which needs a database library: nothing else may import it."""
    program = (
        "import hardlook, importlib, pkgutil\n"
        "names = [m.name for m in pkgutil.walk_packages(hardlook.__path__, 'hardlook.') if '__main__' not in m.name]\n"
        "names = [name for name in names if not name.startswith('hardlook.collect.store.')]\n"
        "[importlib.import_module(name) for name in names]\nprint(len(names))"
    )
    answer = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) > 100


def test_help_models_run_and_score_work(tmp_path):
    assert "Usage" in core("--help").stdout
    assert "planted-segmenter" in core("models").stdout
    core("run", "closed-miou", "--scenes", 6, "--out", tmp_path / "run", "--quiet")
    before = (tmp_path / "run" / "scores.json").read_text()
    assert core("score", tmp_path / "run", "--json").stdout == before
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert core("weights", "list", "--json").stdout.startswith("[")


def test_what_needs_an_extra_names_it(tmp_path):
    answer = core("run", "closed-miou", "--model", "deeplabv3-voc", "--out", tmp_path / "run", code=1)
    assert 'pip install "hardlook[litert]"' in answer.stderr
    answer = core("run", "closed-miou", "--engine", "ray", "--scenes", 4, "--out", tmp_path / "run", code=1)
    assert 'pip install "hardlook[ray]"' in answer.stderr
    core("collect", "init", "clicks", tmp_path / "study", "--scenes", 2, "--quiet")
    for verb in ("serve", "rehearse", "status", "export"):
        answer = core("collect", verb, tmp_path / "study", code=1)
        assert 'pip install "hardlook[web]"' in answer.stderr


def test_same_scores_as_with_extras(tmp_path):
    from small_runs import scores_text, small_run

    small_run(tmp_path / "here")
    words = ("--model-arg", "stranger=.3", "--scenes", 12, "--resamples", 200, "--batch-size", 4)
    core("run", "closed-miou", *words, "--out", tmp_path / "there", "--quiet")
    here, there = json.loads(scores_text(tmp_path / "here")), json.loads(scores_text(tmp_path / "there"))
    assert here == there
    assert Path(PYTHON).exists()
