"""Reading one unit's files: two PNGs of segment ids that must fit each other and their tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_pq.dataset import SegmentedImage, Side
from hardlook.data.coco_panoptic import decode_ids
from hardlook.data.images import read_image
from hardlook.errors import DataError
from hardlook.metrics.panoptic_matching import Segments
from hardlook.models.roles import LabelMap
from hardlook.world.vocabulary import VOID


def read_unit(content: SegmentedImage, unit: str, *, picture: bool = True) -> SegmentedImage:
    """The unit with its maps, and its image where there is one and `picture` asks for it; sizes must agree."""
    if content.scene is not None:
        return _rendered(content)
    if content.results is not None and content.predicted is None:
        raise DataError(
            "there is no prediction for this image",
            file=content.results,
            unit=unit,
            remedy="add its row to the annotations; a model that found nothing has a row without segments",
        )
    truth, predicted = _read(content.truth, unit), content.predicted and _read(content.predicted, unit)
    image = read_image(content.picture) if picture and content.picture else None
    assert truth.map is not None
    if content.size and content.size[::-1] != truth.map.shape:
        remedy = "take the PNG and the JSON from one release"
        _refuse_size("PNG", truth.map, "JSON says", content.size, truth.png, unit, remedy)
    size = truth.map.shape[1], truth.map.shape[0]
    remedy = "resize predictions by nearest neighbour to their truth, outside hardlook"
    if predicted and predicted.map is not None and predicted.map.shape != truth.map.shape:
        _refuse_size("prediction", predicted.map, "truth is", size, predicted.png, unit, remedy)
    if image is not None and image.shape[:2] != truth.map.shape:
        _refuse_size("image", image, "truth is", size, content.picture, unit, "take images and truth from one release")
    return replace(content, truth=truth, predicted=predicted, image=image)


def table_misfits(segment_map: LabelMap, segments: Segments) -> list[str]:
    """What does not fit between a map of segment ids and its table; empty when all fits."""
    drawn, listed = np.setdiff1d(segment_map, 0), np.asarray(segments.ids)
    kinds = (
        ("drawn but not listed", np.setdiff1d(drawn, listed)),
        ("listed but not drawn", np.setdiff1d(listed, drawn)),
    )
    return [f"segments {', '.join(map(str, ids[:5]))} are {what}" for what, ids in kinds if len(ids)]


def _read(side: Side, unit: str) -> Side:
    assert side.png is not None
    try:
        return replace(side, map=decode_ids(read_image(side.png)))
    except DataError as error:
        raise error.at(unit=unit) from None


def _rendered(content: SegmentedImage) -> SegmentedImage:
    assert content.scene is not None
    world, index = content.scene
    rendered = world[index]
    ids = rendered.classes.astype(np.int32) * 4 + rendered.instances
    ids[rendered.classes == VOID] = 0
    listed = np.setdiff1d(ids, 0)
    truth = replace(content.truth, segments=Segments(listed, listed // 4 - 1), map=ids)
    return replace(content, truth=truth, image=rendered.image)


def _refuse_size(
    what: str,
    array: NDArray[np.generic],
    other: str,
    size: tuple[int, int],
    file: Path | None,
    unit: str,
    remedy: str,
) -> None:
    raise DataError(
        f"the {what} has {array.shape[1]}x{array.shape[0]} pixels (width x height), the {other} {size[0]}x{size[1]}",
        file=file,
        unit=unit,
        remedy=remedy,
    )
