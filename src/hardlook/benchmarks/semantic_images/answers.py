"""Label maps answered by a model, or read from stored predictions, with the labels they are written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hardlook.benchmarks.semantic_images.dataset import LabelledImage
from hardlook.contract.benchmark import Unit
from hardlook.errors import OptionError
from hardlook.models.roles import LabelMap


def answered_maps(units: Sequence[Unit], model: Any) -> list[tuple[LabelMap, tuple[str, ...]]]:
    """One map a unit and the names that its numbers stand for; the images go to the model as one batch."""
    contents: list[LabelledImage] = [unit.payload for unit in units]
    if model is not None:
        answers = model.segment([content.image for content in contents])
        return [(answer, tuple(model.labels)) for answer in answers]
    return [(_stored_map(content, unit.id), content.spoken) for content, unit in zip(contents, units, strict=True)]


def _stored_map(content: LabelledImage, unit: str) -> LabelMap:
    if content.predicted_map is None:
        raise OptionError(
            "there is neither a model nor a stored prediction", unit=unit, remedy="give --model or --pred"
        )
    return content.predicted_map
