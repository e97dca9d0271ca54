"""Where kernels of Triton are tested: on a GPU if there is one, else by Triton's interpreter on the processor.

The interpreter is chosen by an environment variable that Triton reads when it is imported, so it is set here, before
any test imports Triton.
"""

import importlib.util
import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

NEEDS_TRITON = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton is not installed"
)
