"""What published predictors do around their networks at a click, as settings by family.

`PUBLISHED` has those of each family; the module `predictors` does what they say. Readings: the released code errs in
four places, `reading="ours"` in none of them.

| place | released | ours |
|---|---|---|
| the last mask is empty: the whole picture is shown | its answer is squeezed into an earlier crop | it stays whole |
| a positive click on the last row or column of the crop | counts as outside, so the crop is renewed | is inside |
| sides of a new crop | one pixel more than asked | as asked |
| clicks in a resized picture | scaled by sizes, pixels by sizes less one | both alike |

>>> PUBLISHED["simpleclick"].on("DAVIS").zoom.target
(672, 672)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from hardlook.networks.interactive.focus import Focus

Size = tuple[int, int]
"""Height and width."""

Reading = Literal["released", "ours"]

READINGS: tuple[Reading, ...] = ("released", "ours")


@dataclass(frozen=True)
class ZoomIn:
    """How the picture is cropped around the object.

    The crop is the box of the last probabilities over `threshold` and of the positive clicks, its sides times
    `expansion` and at least `min_crop` pixels. It is kept until a positive click falls outside of it or its overlap
    with a new one is under `recompute_below`; with `every_click` it is always renewed. The first `skip_clicks` clicks
    see the whole picture in its own size; with -1 the whole picture counts as a crop while there is no mask; with 0
    the first answer is at once made again on its crop if that is small, unless crops are renewed anyway. A crop is
    resized so that its longest side is `target`, or to `target` (height, width), or not at all (None).
    """

    target: int | Size | None = 400
    skip_clicks: int = 1
    expansion: float = 1.4
    min_crop: int = 200
    recompute_below: float = 0.5
    threshold: float = 0.5
    every_click: bool = False


@dataclass(frozen=True)
class Cascade:
    """The first `clicks` clicks are answered `passes` times more, each with the answer before fed back.

    With `adaptive`, until at most so many pixels of the mask change.
    """

    clicks: int = 1
    passes: int = 1
    adaptive: int | None = None


@dataclass(frozen=True)
class PredictorSettings:
    """What a published predictor does around its network.

    After `zoom` (None: the whole picture) comes `longest_side`, the most pixels of a side, then `input_size`, to which
    everything is resized. `flip`: logits are averaged with those of the mirrored picture. `feed_back`: the last
    probabilities are the input's fourth channel. `clicks_limit`: only so many clicks are shown. A pixel is in the mask
    over `threshold`. With `focus` the network's `refine`, which is shown all clicks, looks again at what the last one
    changed. `davis_target` replaces the zoom's target on DAVIS, `tetris_skip` its `skip_clicks` on TETRIS.
    """

    zoom: ZoomIn | None = field(default_factory=ZoomIn)
    longest_side: int | None = None
    input_size: Size | None = None
    flip: bool = True
    feed_back: bool = True
    threshold: float = 0.49
    clicks_limit: int | None = None
    cascade: Cascade | None = None
    focus: Focus | None = None
    davis_target: int | Size | None = None
    tetris_skip: int | None = None
    reading: Reading = "released"

    def __post_init__(self) -> None:
        if self.reading not in READINGS:
            raise ValueError(f"reading is {self.reading!r}, not one of {', '.join(READINGS)}")
        if self.focus is not None and self.input_size is None:
            raise ValueError("regions are refined at the network's input_size, which is not given")

    def on(self, dataset: str) -> PredictorSettings:
        """The settings for a dataset by RClicks' name: DAVIS and TETRIS may differ from the others."""
        if self.zoom is None:
            if dataset.upper() == "DAVIS" and isinstance(self.davis_target, tuple):
                return replace(self, input_size=self.davis_target)
            return self
        zoom = self.zoom
        if dataset.upper() == "DAVIS" and self.davis_target is not None:
            zoom = replace(zoom, target=self.davis_target)
        if dataset.upper() == "TETRIS" and self.tetris_skip is not None:
            zoom = replace(zoom, skip_clicks=self.tetris_skip)
        return replace(self, zoom=zoom)

    def without_zoom(self) -> PredictorSettings:
        """The whole picture at every click, in its own size, or resized where crops had a fixed height and width."""
        target = None if self.zoom is None else self.zoom.target
        return replace(self, zoom=None, input_size=target if isinstance(target, tuple) else self.input_size)

    def at_size(self, side: int) -> PredictorSettings:
        """Every picture or crop with its longest side at most `side` pixels, on all datasets; crops have just that."""
        zoom = None if self.zoom is None else replace(self.zoom, target=side)
        return replace(self, zoom=zoom, longest_side=side, davis_target=None)

    def describe(self) -> str:
        """What is done, in one sentence without a full stop."""
        parts = [_describe_zoom(self.zoom)]
        if self.longest_side is not None:
            parts.append(f"longest side at most {self.longest_side}")
        if self.input_size is not None:
            parts.append(f"network at {self.input_size[0]} x {self.input_size[1]}")
        parts.append("logits averaged with the mirror image" if self.flip else "no mirror image")
        parts.append("last probabilities fed back" if self.feed_back else "last probabilities not fed back")
        if self.cascade is not None:
            until = "" if self.cascade.adaptive is None else f" or until at most {self.cascade.adaptive} pixels change"
            parts.append(f"first {self.cascade.clicks} click(s) answered {self.cascade.passes} times more{until}")
        if self.focus is not None:
            parts.append(
                f"the region that the last click changed refined (box x {self.focus.expansion:g}), after "
                f"{self.focus.late_clicks} clicks nothing else renewed"
            )
        if self.clicks_limit is not None:
            parts.append(f"first {self.clicks_limit} clicks shown")
        return ", ".join([*parts, f"threshold {self.threshold:g}", f"reading {self.reading}"])


def _describe_zoom(zoom: ZoomIn | None) -> str:
    if zoom is None:
        return "no zoom-in"
    target = "not resized" if zoom.target is None else f"longest side {zoom.target}"
    if isinstance(zoom.target, tuple):
        target = f"{zoom.target[0]} x {zoom.target[1]}"
    kept = "renewed at each click" if zoom.every_click else f"new below IoU {zoom.recompute_below:g}"
    first = max(1, zoom.skip_clicks + 1)
    return f"zoom-in from click {first}, {target}, box x {zoom.expansion:g}, at least {zoom.min_crop} px, {kept}"


_FOCAL_ZOOM = ZoomIn(target=None, min_crop=10, threshold=0.49, every_click=True)
_SIMPLE = PredictorSettings(ZoomIn((448, 448), skip_clicks=-1), davis_target=(672, 672))

PUBLISHED: Mapping[str, PredictorSettings] = {
    "ritm": PredictorSettings(davis_target=600, tetris_skip=-1),
    "simpleclick": _SIMPLE,
    "adaptiveclick": _SIMPLE,
    "cfr-icl": replace(_SIMPLE, cascade=Cascade()),
    "focalclick": PredictorSettings(_FOCAL_ZOOM, input_size=(256, 256), flip=False, focus=Focus(), threshold=0.5),
    "cdnet": PredictorSettings(_FOCAL_ZOOM, input_size=(384, 384), feed_back=False),
    "gpcis": PredictorSettings(_FOCAL_ZOOM, input_size=(384, 384), flip=False),
}
"""The settings by family, as the released evaluations set them.

RClicks has .49 as threshold of CDNet and GPCIS, too, whose own scripts have .5.
"""
