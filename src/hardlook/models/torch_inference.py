"""Inference with torch that gives the same numbers alone and in a batch, on a GPU too.

By default cuDNN rounds convolutions to TF32 on recent GPUs: three digits fewer, and other ones for each batch size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal

from hardlook.networks.gpu import multiplying

Precision = Literal["float32", "tf32", "bfloat16"]
"""How a GPU multiplies: all digits of float32, rounded to TF32's three digits, or in bfloat16."""


@contextlib.contextmanager
def exact_inference(precision: Precision = "float32", *, inner_gradients: bool = False) -> Iterator[None]:
    """No gradients, and one algorithm for a shape; what was set before is set again afterwards.

    With `float32` the numbers are the same alone and in a batch; the other precisions are for speed, on a GPU.
    Autocast is off, except with `bfloat16`, whatever was set outside. With `inner_gradients` a network may
    differentiate within its call, as those do that adapt to supports.
    """
    import torch

    with (
        torch.no_grad() if inner_gradients else torch.inference_mode(),
        multiplying(rounded=precision != "float32", benchmark=False, deterministic=True),
        _autocast(precision),
    ):
        yield


@contextlib.contextmanager
def _autocast(precision: Precision) -> Iterator[None]:
    import torch

    with contextlib.ExitStack() as stack:
        for kind in ("cuda", "cpu"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if precision == "bfloat16":
            # Weights that are converted anew at each call may be part of a CUDA graph; those of a cache may not.
            stack.enter_context(torch.autocast("cuda", torch.bfloat16, cache_enabled=False))
        yield
