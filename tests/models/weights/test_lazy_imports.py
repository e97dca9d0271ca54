"""Modules of models can be imported where no runtime is installed."""

from __future__ import annotations

import subprocess
import sys

MODULES = (
    "hardlook.models.weights.install",
    "hardlook.networks.loading",
    "hardlook.models.u2netp",
    "hardlook.models.deeplabv3_voc",
    "hardlook.models.encoders.efficientnet_lite0",
    "hardlook.models.encoders.minilm",
)

RUNTIMES = ("torch", "onnxruntime", "ai_edge_litert", "tokenizers", "transformers", "safetensors")


def test_no_runtime_is_imported_with_the_modules() -> None:
    code = f"import sys, {', '.join(MODULES)}; print([name for name in {RUNTIMES} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
