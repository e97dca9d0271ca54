"""Inference with torch that gives the same numbers alone and in a batch, on a GPU too.

By default cuDNN rounds convolutions to TF32 on recent GPUs: three digits fewer, and other ones for each batch size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def exact_inference() -> Iterator[None]:
    """No gradients, full float32, and one algorithm for a shape; what was set before is set again afterwards."""
    import torch

    # The matrix product has a switch of its own; since torch 2.9 the older one for cuDNN lives in its flags only.
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with (
            torch.inference_mode(),
            torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
        ):
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
