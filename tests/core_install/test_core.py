"""The core without any extra: driven from here, run by the interpreter of a second environment.

`.ci/run` makes that environment and names its interpreter in HARDLOOK_CORE_PYTHON.
"""

import json
import os
import subprocess
import sys

import numpy as np
import PIL.Image
import pytest

PYTHON = os.environ.get("HARDLOOK_CORE_PYTHON", "")

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="HARDLOOK_CORE_PYTHON does not name the interpreter of an environment without extras"
)


def call(*words, code=0, python=PYTHON):
    answer = subprocess.run([python, "-m", "hardlook", *map(str, words)], capture_output=True, text=True)
    assert answer.returncode == code, answer.stderr
    return answer


def list_versions(python):
    program = "import cv2, numpy, scipy; print(cv2.__version__, numpy.__version__, scipy.__version__)"
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout


def numbers_of(value):
    """Every number of a document with its path."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {(key, *path): number for key, part in items for path, number in numbers_of(part).items()}
    return {(): value} if isinstance(value, int | float) else {}


def test_no_extra_is_installed_there():
    program = "import importlib.util as u; print([m for m in %r if u.find_spec(m)])"
    modules = ["torch", "onnxruntime", "ai_edge_litert", "transformers", "ray", "starlette", "sqlalchemy"]
    answer = subprocess.run([PYTHON, "-c", program % modules], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_every_module_of_the_package_can_be_imported():
    """All but the store, which needs a database library, and networks and training, which need torch.

    Nothing else may import these when it is imported.
    """
    program = (
        "import hardlook, importlib, pkgutil\n"
        "names = [m.name for m in pkgutil.walk_packages(hardlook.__path__, 'hardlook.') if '__main__' not in m.name]\n"
        "networks = ('backbones', 'few_shot.', 'one_shot.', 'interactive.', 'open_vocabulary.', 'precision', 'mask_')\n"
        "networks += ('kernels.fused_norm', 'kernels.task_')\n"
        "apart = ('collect.store.', 'training', *(f'networks.{name}' for name in networks))\n"
        "names = [name for name in names if not name.removeprefix('hardlook.').startswith(apart)]\n"
        "[importlib.import_module(name) for name in names]\nprint(len(names))"
    )
    answer = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert int(answer.stdout) > 100


def test_help_models_run_and_score_work(tmp_path):
    assert "Usage" in call("--help").stdout
    assert "planted-segmenter" in call("models").stdout
    call("run", "closed-miou", "--scenes", 6, "--out", tmp_path / "run", "--quiet")
    before = (tmp_path / "run" / "scores.json").read_text()
    assert call("score", tmp_path / "run", "--json").stdout == before
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert call("weights", "list", "--json").stdout.startswith("[")


def test_what_needs_an_extra_names_it(tmp_path):
    answer = call("run", "closed-miou", "--model", "deeplabv3-voc", "--out", tmp_path / "run", code=1)
    assert 'pip install "hardlook[litert]"' in answer.stderr
    answer = call("run", "closed-miou", "--engine", "ray", "--scenes", 4, "--out", tmp_path / "run", code=1)
    assert 'pip install "hardlook[ray]"' in answer.stderr
    call("collect", "init", "clicks", tmp_path / "study", "--scenes", 2, "--quiet")
    for verb in ("serve", "rehearse", "status", "export"):
        answer = call("collect", verb, tmp_path / "study", code=1)
        assert 'pip install "hardlook[web]"' in answer.stderr


def test_same_scores_of_the_same_files_as_with_extras(tmp_path):
    """Also where the two environments have other versions of numpy, scipy, polars and OpenCV."""
    rng = np.random.default_rng(0)
    for index in range(12):
        truth = rng.integers(0, 5, (6, 8)).repeat(8, 0).repeat(8, 1).astype(np.uint8)
        prediction = np.where(rng.random(truth.shape) < 0.2, rng.integers(0, 5, truth.shape), truth).astype(np.uint8)
        for folder, labels in (("truth", truth), ("predictions", prediction)):
            (tmp_path / folder).mkdir(exist_ok=True)
            PIL.Image.fromarray(labels).save(tmp_path / folder / f"image-{index}.png")
    (tmp_path / "labels.txt").write_text("cat\ndog\ncar\nbus\ntree\n")
    words = ("--gt", tmp_path / "truth", "--pred", tmp_path / "predictions", "--labels", tmp_path / "labels.txt")
    for python, out in ((PYTHON, "there"), (sys.executable, "here")):
        call("run", "closed-miou", *words, "--out", tmp_path / out, "--quiet", python=python)
    here, there = (json.loads((tmp_path / out / "scores.json").read_text()) for out in ("here", "there"))
    assert 0.6 < here["scores"][0]["value"] < 0.9
    assert numbers_of(here) == pytest.approx(numbers_of(there), rel=1e-12)
    assert list_versions(sys.executable) != list_versions(PYTHON) or here == there


def test_same_planted_scores_as_with_extras(tmp_path):
    """OpenCV draws the planted scenes: another version draws some borders otherwise."""
    from small_runs import scores_text, small_run

    if list_versions(sys.executable) != list_versions(PYTHON):
        pytest.skip("the two environments have different versions of OpenCV, numpy or scipy")
    small_run(tmp_path / "here")
    words = ("--model-arg", "stranger=.3", "--scenes", 12, "--resamples", 200, "--batch-size", 4)
    call("run", "closed-miou", *words, "--out", tmp_path / "there", "--quiet")
    here, there = json.loads(scores_text(tmp_path / "here")), json.loads(scores_text(tmp_path / "there"))
    assert here == there
