"""The tool that compiles kernels: what it says without a GPU, and a kernel compiled for one."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra torch is not installed")

TOOL = Path(__file__).parents[2] / "tools" / "compile_kernels.py"


def run(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run([sys.executable, TOOL, *arguments], env=environment, capture_output=True, text=True)


def test_kernels_are_run_on_a_gpu_only():
    import torch

    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    done = run("--run")
    assert (
        done.returncode == 1 and done.stderr.startswith("torch finds no NVIDIA GPU") and "Traceback" not in done.stderr
    )


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the package triton is not installed")
def test_all_kernels_compile_for_an_h200():
    done = run("--architectures", "90", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)["90"]
    trials = {row["trial"].partition(" ")[0] for row in rows}
    assert {"fused_norm", "split_products", "task_kernels", "gpu_convolutions"} <= trials and len(rows) > 90
    assert all("error" not in row and row["registers"] <= 255 for row in rows)
