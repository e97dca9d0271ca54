"""The pictures and the page of `hardlook clicks show`: heat maps, clicking groups in ordered colours, and samples."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError
from hardlook.harness.rounding import format_percent
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.sections import Example, Gallery, Picture, Section, Table
from hardlook.metrics.regions import crop_around, find_innermost_pixel
from hardlook.models.named_model import NamedModel
from hardlook.models.roles import Image
from hardlook.randomness import generator
from hardlook.rclicks.click_evaluation.report import CLICKED_REGIONS, model_table
from hardlook.rclicks.click_maps.colours import draw_heat_map, draw_labels, label_colours
from hardlook.rclicks.click_maps.region import ClickRegion
from hardlook.rclicks.click_models.distribution import ClickDistribution, click_distribution
from hardlook.rclicks.clicks.courses import GroupRule, make_clicking_groups
from hardlook.rclicks.clicks.groups import compute_pixel_probabilities, sort_values
from hardlook.report.formatting import format_count
from hardlook.report.json_values import dump_json

if TYPE_CHECKING:
    from hardlook.report.galleries import Pictures

KEY = "colours of the groups"
SWATCH = (26, 34)  # width and height in pixels of a group's colour in the key


def write_maps(
    region: ClickRegion, models: Mapping[str, NamedModel], out: Path, given: dict[str, Any]
) -> dict[str, Any]:
    """Write the pictures and the page of every model on the region; return what was drawn."""
    import hardlook
    from hardlook.report.page import render_study

    how = {"groups": given["groups"], "rule": given["group_rule"], "samples": given["samples"], "seed": given["seed"]}
    shown = [show_model(name, one, region, **how) for name, one in models.items()]
    files = {}  # pictures at the image's own size
    for one in shown:
        stem = re.sub(r"[^\w.-]+", "-", one.name)
        files[f"{stem}-heat.png"] = one.heat_map
        files[f"{stem}-groups.png"] = one.group_map
        files[f"{stem}-samples.png"] = _draw_dots(region.image, one.drawn, region.positive)
    document = {
        "schema": "hardlook.clicks-shown/1",
        "hardlook": hardlook.__version__,
        **given,
        "pixels": int(region.error.sum()),
        "models": [
            {
                "model": one.name,
                "identity": asdict(models[one.name].identity),
                "groups": [asdict(part) for part in one.parts],
                "samples": one.drawn.tolist(),
            }
            for one in shown
        ],
        "files": list(files),
    }
    page = render_study(
        build_sections(region, shown, given["group_rule"], models),
        title=f"Where {region.name} is clicked",
        summary="Click models on one region: their maps, their clicking groups, and clicks drawn from them.",
        provenance={"schema": document["schema"], "hardlook": document["hardlook"], **given},
        pictures=draw_examples(region, shown),
    )
    for name, picture in files.items():
        write_atomically(out / name, _encode_png(picture))
    write_atomically(out / "shown.json", dump_json(document))
    write_atomically(out / "page.html", page)
    return document


@dataclass(frozen=True)
class GroupPart:
    """What a group may click: how many pixels, and their share of the region's area in [0, 1]."""

    name: str
    pixels: int
    share: float


def group_numbers(values: NDArray[np.float64], count: int, rule: GroupRule) -> NDArray[np.int64]:
    """(n,) the group of each value (n,), from 0; -1 where the value is 0 and no group ever clicks.

    A pixel is in the group of the middle of its share of the mass, counted from the least probable pixel. By
    `threshold` equal values are treated alike, so their shares are taken together. Groups may have pixels in common, so
    this is for pictures only.

    >>> group_numbers(np.array([3.0, 1.0, 4.0, 2.0]), 10, "threshold").tolist()
    [4, 0, 8, 2]
    >>> [group_numbers(np.array([1.0, 1.0]), 2, rule).tolist() for rule in ("threshold", "exact")]
    [[1, 1], [0, 1]]
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    mass = np.cumsum(ascending)
    if not len(mass) or not mass[-1] > 0:
        return np.full(len(values), -1)
    if rule == "threshold":
        first = np.searchsorted(ascending, ascending, side="left")
        last = np.searchsorted(ascending, ascending, side="right") - 1
    else:
        first = last = np.arange(len(values))
    middle = (mass[first] - ascending[first] + mass[last]) / 2
    numbers = np.empty(len(values), np.int64)
    numbers[order] = np.minimum((middle / mass[-1] * count).astype(np.int64), count - 1)
    return np.where(values > 0, numbers, -1)


def group_parts(values: NDArray[np.float64], count: int, rule: GroupRule) -> tuple[GroupPart, ...]:
    """Every group's pixels of a region with these values (n,).

    >>> [part.pixels for part in group_parts(np.array([1.0, 2.0, 3.0, 4.0]), 10, "threshold")]
    [2, 2, 2, 2, 1, 2, 2, 1, 1, 1]
    """
    ordered = sort_values(values)
    parts = []
    for group in make_clicking_groups(count):
        assert group.low is not None and group.high is not None
        pixels = int(np.count_nonzero(compute_pixel_probabilities(ordered, group.low, group.high, rule)))
        parts.append(GroupPart(group.name, pixels, pixels / len(values)))
    return tuple(parts)


@dataclass(frozen=True)
class ShownModel:
    """A model on a region: its distribution, clicks (n, 2) drawn from it, its groups, and pictures (H, W, 3)."""

    name: str
    distribution: ClickDistribution = field(repr=False)
    drawn: NDArray[np.int64] = field(repr=False)
    parts: tuple[GroupPart, ...]
    heat_map: Image = field(repr=False)
    group_map: Image = field(repr=False)


def show_model(
    name: str, one: NamedModel, region: ClickRegion, *, groups: int, rule: GroupRule, samples: int, seed: int
) -> ShownModel:
    """The model's distribution, samples and groups; all models draw with the same random numbers."""
    try:
        values = one.model.click_map(region.image, region.target, region.error, region.positive)
        distribution = click_distribution(values, region.error)
    except HardlookError as error:
        raise error.at(unit=f"{name} on {region.name}") from error
    chances = distribution.chances[region.error]
    numbers = np.full(region.error.shape, -1)
    numbers[region.error] = group_numbers(chances, groups, rule)
    drawn = distribution.draw(generator(seed, "clicks show", region.name), samples)
    heat_map = draw_heat_map(region.image, distribution.chances)
    group_map = draw_labels(region.image, numbers, groups)
    return ShownModel(name, distribution, drawn, group_parts(chances, groups, rule), heat_map, group_map)


def build_sections(
    region: ClickRegion, models: Sequence[ShownModel], rule: GroupRule, named: Mapping[str, NamedModel]
) -> list[Section]:
    """The region, every model's pictures, and what its groups hold."""
    column, row = _centre(region)
    pixels = int(np.count_nonzero(region.error))
    text = (
        f"Clicks go on {CLICKED_REGIONS[region.click_type]}: {pixels:,} pixels, "
        f"{format_percent(pixels / region.error.size, 1)} of the image. "
        "The centre is the innermost pixel, where the usual benchmark clicks."
    )
    if fallen := [one.name for one in models if one.distribution.fell_back]:
        text += f" The map of {', '.join(fallen)} is 0 all over the region, and every pixel gets the same chance."
    example = Example(region.name, f"The region and its centre, at x {column}, y {row}.")
    first = Gallery("What is to be clicked", "", [example])
    maps = Gallery(
        "Maps, groups and samples",
        "Left: the map, brighter is likelier. Middle: clicking groups, from the least probable clicks (violet, G1) to "
        "the most probable (yellow). Right: clicks drawn from the map.",
        [*(Example(one.name, _describe_groups(one)) for one in models), Example(KEY, "")],
    )
    table = Table(
        "What each group may click",
        f"By the rule `{rule}`. The same share of the probability makes a group; neighbours may have pixels in common.",
        ("model", "group", "pixels", "share of the region"),
        [(one.name, part.name, part.pixels, part.share) for one in models for part in one.parts],
    )
    return [Section("The region", text, (first,)), Section("Click models", "", (maps, table, model_table(named)))]


def _describe_groups(one: ShownModel) -> str:
    first, last = one.parts[0], one.parts[-1]
    if first.pixels == last.pixels == np.count_nonzero(one.distribution.chances):
        return "All pixels that may be clicked are alike, so every group has all of them; painted is the middle group."
    return (
        f"{first.name} may click {format_percent(first.share)} of the region, {last.name} {format_percent(last.share)}."
    )


def draw_examples(region: ClickRegion, models: Sequence[ShownModel]) -> Pictures:
    """The pictures of the page, around the region."""
    close = crop_around(region.error)
    at = [(*point, region.positive) for point in close.moved([_centre(region)])]
    whole = Picture("the image", region.image)
    part = Picture("the region and its centre", close.cut(region.image), mask=close.cut(region.error), points=at)
    found: dict[str, Sequence[Picture] | str] = {region.name: [whole, part]}
    image = close.cut(region.image)
    for one in models:
        points = [(*point, region.positive) for point in close.moved(one.drawn)]
        found[one.name] = [
            Picture(f"{one.name}: the map", close.cut(one.heat_map)),
            Picture(format_count(len(one.parts), "group"), close.cut(one.group_map)),
            Picture(format_count(len(one.drawn), "sample"), image, points=points, ordered=False),
        ]
    found[KEY] = [Picture("", _draw_key(models[0].parts))]
    return found


def _centre(region: ClickRegion) -> tuple[int, int]:
    """Column and row."""
    centre = find_innermost_pixel(region.error)
    assert centre is not None
    return centre[1], centre[0]


def _draw_key(parts: Sequence[GroupPart]) -> Image:
    """A row of swatches with the groups' names, at most ten in a row."""
    across, (width, height) = min(len(parts), 10), SWATCH
    drawn = np.full((height * -(-len(parts) // across), width * across, 3), 255, np.uint8)
    for place, (part, colour) in enumerate(zip(parts, label_colours(len(parts)), strict=True)):
        top, left = place // across * height, place % across * width
        drawn[top : top + height, left : left + width] = colour
        ink = (0, 0, 0) if int(colour.sum()) > 330 else (255, 255, 255)
        at = (left + (2 if len(part.name) > 2 else 5), top + height // 2 + 4)
        cv2.putText(drawn, part.name, at, cv2.FONT_HERSHEY_SIMPLEX, 0.34, ink, 1, cv2.LINE_AA)
    return drawn


def _draw_dots(image: Image, points: NDArray[np.int64], positive: bool) -> Image:
    drawn: Any = image.copy()
    radius = max(2, round(max(image.shape) / 200))
    for x, y in points.tolist():
        cv2.circle(drawn, (x, y), radius + 1, (255, 255, 255), -1, cv2.LINE_AA)
        cv2.circle(drawn, (x, y), radius, (0, 119, 90) if positive else (179, 38, 30), -1, cv2.LINE_AA)
    return np.asarray(drawn, np.uint8)


def _encode_png(picture: Image) -> bytes:
    from PIL import Image as PillowImage

    buffer = io.BytesIO()
    PillowImage.fromarray(picture).save(buffer, format="PNG")
    return buffer.getvalue()
