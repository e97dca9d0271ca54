"""The pictures and the page of `hardlook clicks show`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.click_distribution import ClickDistribution
from hardlook.clicks.rules import GroupRule
from hardlook.commands.clicks.evaluation_page import model_table
from hardlook.commands.clicks.evaluation_pictures import ASKED
from hardlook.commands.clicks.group_map import GroupPart, group_numbers, group_parts
from hardlook.commands.clicks.judging import NamedClickModel
from hardlook.commands.clicks.map_colours import heat, painted, ramp
from hardlook.commands.clicks.shown_region import ShownRegion
from hardlook.contract.sections import Example, Gallery, Picture, Section, Table
from hardlook.models.roles import Image
from hardlook.randomness import generator
from hardlook.regions.close_ups import CloseUp, close_up
from hardlook.regions.distances import innermost
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.report.galleries import Pictures

KEY = "colours of the groups"
SWATCH = (26, 34)  # width and height in pixels of a group's colour in the key


@dataclass(frozen=True)
class ShownModel:
    """A model on a region: its distribution, clicks drawn from it (n, 2), and its groups painted (H, W)."""

    name: str
    chances: ClickDistribution = field(repr=False)
    drawn: NDArray[np.int64] = field(repr=False)
    numbers: NDArray[np.int64] = field(repr=False)
    parts: tuple[GroupPart, ...]


def show_model(
    name: str, chances: ClickDistribution, region: ShownRegion, *, groups: int, rule: GroupRule, samples: int, seed: int
) -> ShownModel:
    """Draw samples and find the groups; all models draw with the same random numbers."""
    values = chances.chances[region.error]
    numbers = np.full(region.error.shape, -1)
    numbers[region.error] = group_numbers(values, groups, rule)
    drawn = chances.draw(generator(seed, "clicks show", region.name), samples)
    return ShownModel(name, chances, drawn, numbers, group_parts(values, groups, rule))


def full_pictures(region: ShownRegion, shown: ShownModel) -> dict[str, Image]:
    """The pictures of a model at the image's own size, by file name."""
    stem = re.sub(r"[^\w.-]+", "-", shown.name)
    heated = heat(region.image, shown.chances.chances)
    return {
        f"{stem}-heat.png": heated,
        f"{stem}-groups.png": painted(region.image, shown.numbers, len(shown.parts)),
        f"{stem}-samples.png": _dotted(region.image, shown.drawn, region.positive),
    }


def show_sections(
    region: ShownRegion, models: Sequence[ShownModel], rule: GroupRule, named: Mapping[str, NamedClickModel]
) -> list[Section]:
    """The region, every model's pictures, and what its groups hold."""
    asked = ASKED[region.click_type]
    pixels = int(np.count_nonzero(region.error))
    text = (
        f"Clicks are asked for on {asked}: {pixels:,} pixels, {100 * pixels / region.error.size:.1f} % of the image. "
        "The centre is the innermost pixel, where the usual benchmark clicks."
    )
    fallen = [one.name for one in models if one.chances.fell_back]
    if fallen:
        text += f" The map of {', '.join(fallen)} is 0 all over the region, and every pixel gets the same chance."
    first = Gallery(
        "What is to be clicked", "", [Example(region.name, f"The region and its centre, at {_centre(region)}.")]
    )
    maps = Gallery(
        "Maps, groups and samples",
        "Left: the map, brighter is likelier. Middle: clicking groups, from the least probable clicks (violet, G1) to "
        "the most probable (yellow). Right: clicks drawn from the map.",
        [*(Example(one.name, _said(one)) for one in models), Example(KEY, "")],
    )
    table = Table(
        "What each group may click",
        f"By the rule `{rule}`. The same share of the probability makes a group; neighbours may have pixels in common.",
        ("model", "group", "pixels", "share of the region"),
        [(one.name, part.name, part.pixels, part.share) for one in models for part in one.parts],
    )
    return [Section("The region", text, (first,)), Section("Click models", "", (maps, table, model_table(named)))]


def show_pictures(region: ShownRegion, models: Sequence[ShownModel]) -> Pictures:
    """The pictures of the page, around the region."""
    close = close_up(region.error)
    centre = innermost(region.error)
    assert centre is not None
    at = [(*point, region.positive) for point in close.moved([(centre[1], centre[0])])]
    whole = Picture("the image", region.image)
    part = Picture("the region and its centre", close.cut(region.image), mask=close.cut(region.error), points=at)
    found: dict[str, Sequence[Picture] | str] = {region.name: [whole, part]}
    for one in models:
        found[one.name] = _pictures(region, one, close)
    found[KEY] = [Picture("", _key(models[0].parts))]
    return found


def distributions(region: ShownRegion, models: Mapping[str, NamedClickModel]) -> dict[str, ClickDistribution]:
    """Each model's distribution over the region."""
    from hardlook.clicks.click_distribution import click_distribution
    from hardlook.errors import HardlookError

    found = {}
    for name, one in models.items():
        try:
            values = one.model.click_map(region.image, region.target, region.error, region.positive)
            found[name] = click_distribution(values, region.error)
        except HardlookError as error:
            raise error.at(unit=f"{name} on {region.name}") from error
    return found


def _pictures(region: ShownRegion, one: ShownModel, close: CloseUp) -> list[Picture]:
    points = [(*point, region.positive) for point in close.moved(one.drawn)]
    groups = close.cut(painted(region.image, one.numbers, len(one.parts)))
    return [
        Picture(f"{one.name}: the map", close.cut(heat(region.image, one.chances.chances))),
        Picture(counted(len(one.parts), "group"), groups),
        Picture(counted(len(one.drawn), "sample"), close.cut(region.image), points=points, ordered=False),
    ]


def _key(parts: Sequence[GroupPart]) -> Image:
    """A row of swatches with the groups' names, at most ten in a row."""
    across, (width, height) = min(len(parts), 10), SWATCH
    drawn = np.full((height * -(-len(parts) // across), width * across, 3), 255, np.uint8)
    for place, (part, colour) in enumerate(zip(parts, ramp(len(parts)), strict=True)):
        top, left = place // across * height, place % across * width
        drawn[top : top + height, left : left + width] = colour
        ink = (0, 0, 0) if int(colour.sum()) > 330 else (255, 255, 255)
        at = (left + (2 if len(part.name) > 2 else 5), top + height // 2 + 4)
        cv2.putText(drawn, part.name, at, cv2.FONT_HERSHEY_SIMPLEX, 0.34, ink, 1, cv2.LINE_AA)
    return drawn


def _dotted(image: Image, points: NDArray[np.int64], positive: bool) -> Image:
    drawn: Any = image.copy()
    radius = max(2, round(max(image.shape) / 200))
    for x, y in points.tolist():
        cv2.circle(drawn, (x, y), radius + 1, (255, 255, 255), -1, cv2.LINE_AA)
        cv2.circle(drawn, (x, y), radius, (0, 119, 90) if positive else (179, 38, 30), -1, cv2.LINE_AA)
    return np.asarray(drawn, np.uint8)


def _said(one: ShownModel) -> str:
    first, last = one.parts[0], one.parts[-1]
    if first.pixels == last.pixels == len(one.chances.chances[one.numbers >= 0]):
        return "All pixels that may be clicked are alike, so every group has all of them; painted is the middle group."
    return f"{first.name} may click {100 * first.share:.0f} % of the region, {last.name} {100 * last.share:.0f} %."


def _centre(region: ShownRegion) -> str:
    centre = innermost(region.error)
    assert centre is not None
    return f"x {centre[1]}, y {centre[0]}"
