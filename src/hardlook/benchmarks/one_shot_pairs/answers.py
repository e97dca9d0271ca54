"""Asking a model: one mask a pair, checked for shape and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hardlook.contract.benchmark import Unit
from hardlook.errors import ModelError
from hardlook.models.one_shot.averaging import segment_with_supports
from hardlook.models.roles import Mask

REMEDY = "`hardlook check one-shot-segmenter MODEL` shows what else does not fit"


def answered_masks(units: Sequence[Unit], model: Any) -> list[Mask]:
    """The model's masks, or the stored ones where there is no model."""
    pairs = [unit.payload for unit in units]
    if model is None:
        return [pair.predicted for pair in pairs]
    masks = segment_with_supports(model, [pair.image for pair in pairs], [pair.support for pair in pairs])
    if len(masks) != len(units):
        raise ModelError(f"the model answered {len(masks)} masks for {len(units)} pairs", remedy=REMEDY)
    for unit, answer in zip(units, masks, strict=True):
        mask: Any = answer  # whatever an outside model returned
        expected = unit.payload.truth.mask.shape
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != expected:
            came = f"{mask.dtype} {mask.shape}" if isinstance(mask, np.ndarray) else type(mask).__name__
            raise ModelError(
                f"the model answered {came} for a query of bool {expected} (height, width)",
                unit=unit.id,
                remedy=REMEDY,
            )
    return list(masks)
