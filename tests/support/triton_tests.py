"""Where kernels of Triton are tested: on a GPU if there is one, else by Triton's interpreter on the processor.

The interpreter is chosen by an environment variable that Triton reads when it is imported: tests/conftest.py sets it.
"""

import importlib.util

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

NEEDS_TRITON = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton is not installed"
)
