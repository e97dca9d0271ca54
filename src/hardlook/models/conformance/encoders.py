"""Contracts of the encoders of images and texts.

>>> from hardlook.models.planted.encoders import PlantedTextEncoder
>>> [answer] = TEXT_ENCODER.call(PlantedTextEncoder(), ["cat"])
>>> TEXT_ENCODER.find_faults(PlantedTextEncoder(), "cat", answer[:3])
['vector: expected shape (dimension) = (64,), got (3,)']
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hardlook.models.conformance.checks import (
    AnswerError,
    RoleContract,
    describe_difference,
    find_array_faults,
    missing_fields,
    split_answers,
    split_rows,
)
from hardlook.models.conformance.probes import Probe, pictures

TEXTS = {
    "word": "cat",
    "phrase": "a photo of a dog",
    "empty text": "",
    "foreign text": "Bär und Möwe, 熊",
    "long text": "the barn beside the road " * 60,
}

UNIT_TOLERANCE = 1e-3


def _image_probes(model: Any) -> list[Probe]:
    return [Probe(name, image) for name, image in pictures().items()]


def _text_probes(model: Any) -> list[Probe]:
    return [Probe(name, text) for name, text in TEXTS.items()]


def _dimension_faults(model: Any) -> list[str]:
    right = isinstance(model.dimension, int | np.integer) and model.dimension > 0
    return [] if right else [f"dimension: expected a whole number above 0, got {model.dimension!r}"]


def _vector_faults(model: Any, vector: Any) -> list[str]:
    return find_array_faults("vector", vector, np.float32, {"dimension": int(model.dimension)})


def _unit_faults(model: Any, value: Any, vector: Any) -> list[str]:
    faults = _vector_faults(model, vector)
    length = float(np.linalg.norm(vector))
    if not faults and abs(length - 1) > UNIT_TOLERANCE:
        faults.append(f"vector: expected length 1, got {length:.4g}")
    return faults


def _encode(model: Any, images: list[Any]) -> list[Any]:
    features = model.encode(images)
    faults = missing_fields(features, "vectors", "maps")
    if faults:
        raise AnswerError("; ".join(faults))
    vectors = split_rows(features.vectors, len(images), int(model.dimension), "images")
    if features.maps is None:
        return [(vector, None) for vector in vectors]
    return list(zip(vectors, split_answers(features.maps, len(images), "images"), strict=True))


def _encoded_faults(model: Any, image: Any, answer: Any) -> list[str]:
    vector, cells = answer
    faults = _vector_faults(model, vector)
    if cells is not None:
        shape = cells.shape if isinstance(cells, np.ndarray) and cells.ndim == 3 else (0, 0, 0)
        faults += find_array_faults("map", cells, np.float32, dict(zip(("C", "h", "w"), shape, strict=True)))
    return faults


def _encoded_difference(first: Any, second: Any) -> str:
    if (first[1] is None) != (second[1] is None):
        return "one has a map and the other has none"
    return describe_difference("vector", first[0], second[0]) or (
        describe_difference("map", first[1], second[1]) if first[1] is not None else ""
    )


def _encode_both(model: Any, values: list[Any]) -> list[Any]:
    images = [value for value in values if not isinstance(value, str)]
    texts = [value for value in values if isinstance(value, str)]
    width = int(model.dimension)
    seen = iter(split_rows(model.encode_images(images), len(images), width, "images"))
    read = iter(split_rows(model.encode_text(texts), len(texts), width, "texts"))
    return [next(read) if isinstance(value, str) else next(seen) for value in values]


ENCODER = RoleContract(
    input_name="images",
    probes=_image_probes,
    call=_encode,
    find_faults=_encoded_faults,
    compare=_encoded_difference,
    attribute_faults=_dimension_faults,
)

TEXT_ENCODER = RoleContract(
    input_name="texts",
    probes=_text_probes,
    call=lambda model, texts: split_rows(model.encode_text(texts), len(texts), int(model.dimension), "texts"),
    find_faults=lambda model, text, vector: _vector_faults(model, vector),
    compare=lambda first, second: describe_difference("vector", first, second),
    attribute_faults=_dimension_faults,
)

IMAGE_TEXT_ENCODER = RoleContract(
    input_name="images and texts",
    probes=lambda model: _image_probes(model) + _text_probes(model),
    call=_encode_both,
    find_faults=_unit_faults,
    compare=lambda first, second: describe_difference("vector", first, second),
    attribute_faults=_dimension_faults,
)
