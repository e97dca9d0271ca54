"""What happens around an interactive network at a click: zoom-in, resizing, mirroring, feeding the last answer back.

`PUBLISHED` has the settings of each family. An image is opened once; a course of clicks on it is a `CourseState` that
comes back with every answer, so courses may be interleaved. Those of one call go through the network together
wherever their inputs have one size, or can be padded to one (`OpenedImage.predict`).

Readings: the released code errs in four places, `reading="ours"` in none of them.

| place | released | ours |
|---|---|---|
| the last mask is empty: the whole picture is shown | its answer is squeezed into an earlier crop | it stays whole |
| a positive click on the last row or column of the crop | counts as outside, so the crop is renewed | is inside |
| sides of a new crop | one pixel more than asked | as asked |
| clicks in a resized picture | scaled by sizes, pixels by sizes less one | both alike |

>>> PUBLISHED["simpleclick"].on("DAVIS").zoom.target
(672, 672)
>>> expand_box((10, 19, 0, 99), (120, 160), ZoomIn(min_crop=20))
(4, 24, 0, 120)
>>> expand_box((10, 19, 0, 99), (120, 160), ZoomIn(min_crop=20), reading="ours")
(5, 24, 0, 119)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from hardlook.networks.interactive.click_maps import Click, flip_clicks, pack_clicks
from hardlook.networks.interactive.focus import Focus, Region, choose_region

Box = tuple[int, int, int, int]
"""First and last row, first and last column, all inside."""

Size = tuple[int, int]
Reading = Literal["released", "ours"]

READINGS: tuple[Reading, ...] = ("released", "ours")


@dataclass(frozen=True)
class ZoomIn:
    """How the picture is cropped around the object.

    The crop is the box of the last probabilities over `threshold` and of the positive clicks, its sides times
    `expansion` and at least `min_crop` pixels. It is kept until a positive click falls outside of it or its overlap
    with a new one is under `recompute_below`; with `every_click` it is always renewed. The first `skip_clicks` clicks
    see the whole picture in its own size; with -1 the whole picture counts as a crop while there is no mask. A crop is
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
    over `threshold`. With `focus` the network's `refine` looks again at what the last click changed. `davis_target`
    replaces the zoom's target on DAVIS, `tetris_skip` its `skip_clicks` on TETRIS.
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


class InteractiveNetwork(Protocol):
    """A network (B, C, H, W) in 0..1 (R, G, B and with `with_prev_mask` the last probabilities), points -> logits.

    Logits (B, 1, h, w) are resized to (H, W) where they are smaller. With `takes_sizes` it may be called with `sizes`
    (B, 2), the heights and widths of pictures in the top left corner of a padded batch, and answers as for each alone.
    """

    with_prev_mask: bool

    def __call__(self, inputs: Tensor, points: Tensor) -> Any:
        """Logits of inputs and points (B, 2n, 3)."""


@dataclass(frozen=True)
class CourseState:
    """A course after its last click: probabilities (H, W) of the whole picture and the stored crop."""

    probabilities: Tensor = field(repr=False)
    crop: Box | None = None
    clicks: int = 0
    renewed: bool = False


@dataclass(frozen=True)
class Course:
    """A course to be continued: all its clicks in pixels of the picture, and the state after the earlier ones."""

    clicks: Sequence[Click]
    state: CourseState | None = None


@dataclass(frozen=True)
class Answer:
    """Logits (h, w) of a network's input, and the `feature` (C, ., .) that the network has beside them, if any."""

    logits: Tensor
    feature: Tensor | None = None


@dataclass(frozen=True)
class View:
    """What the network is shown of a course: `shown` of the picture (None: all), resized to `sizes` one after another.

    `crop` is stored for the next click and `pasted` is where the answer goes (None: everywhere).
    """

    shown: Box | None
    crop: Box | None
    pasted: Box | None
    renewed: bool
    sizes: tuple[Size, ...]
    clicks: tuple[Click, ...]


class Predictor:
    """A network with a predictor's settings; at most `batch` courses go through it together.

    With `pad`, inputs of different sizes are padded to one where the network can tell the picture from the padding:
    the answers are the same, and a GPU is used better; on a CPU it takes longer.
    """

    def __init__(self, network: Any, settings: PredictorSettings, *, batch: int = 16, pad: bool = False) -> None:
        self.network, self.settings, self.batch = network, settings, batch
        self.pad = pad and bool(getattr(network, "takes_sizes", False))

    def open(self, image: NDArray[np.uint8] | Tensor, *, device: Any = None, dtype: Any = None) -> OpenedImage:
        """A picture (H, W, 3) uint8, or (3, H, W) floating in 0..1, on the network's device."""
        if isinstance(image, Tensor):
            picture = image
        else:
            picture = torch.from_numpy(np.ascontiguousarray(image)).to(device).permute(2, 0, 1).to(torch.float32) / 255
        return OpenedImage(self, picture.to(device=device, dtype=dtype or picture.dtype).contiguous())

    def finish(self, logits: Tensor, inputs: Tensor, points: Tensor) -> Tensor:
        """Logits (B, 1, h, w) after mirroring, as they go into the sigmoid; a network may have a `finish_logits`."""
        finish = getattr(self.network, "finish_logits", None)
        return logits if finish is None else finish(logits, inputs, points)


@dataclass(frozen=True)
class OpenedImage:
    """A picture (3, H, W) in 0..1 on which courses are continued."""

    predictor: Predictor
    picture: Tensor = field(repr=False)

    @property
    def size(self) -> Size:
        """Height and width."""
        return self.picture.shape[1], self.picture.shape[2]

    @property
    def settings(self) -> PredictorSettings:
        """Those of the predictor."""
        return self.predictor.settings

    @torch.no_grad()
    def predict(self, courses: Sequence[Course]) -> list[CourseState]:
        """The state of each course after its last click, in order."""
        states = self._answer(courses, [course.state for course in courses])
        cascade = self.settings.cascade
        if cascade is None:
            return states
        open_places = [place for place, course in enumerate(courses) if len(course.clicks) <= cascade.clicks]
        for _ in range(cascade.passes):
            if not open_places:
                break
            again = self._answer([courses[place] for place in open_places], [states[place] for place in open_places])
            still = []
            for place, state in zip(open_places, again, strict=True):
                if cascade.adaptive is not None:
                    before, after = (one.probabilities > self.settings.threshold for one in (states[place], state))
                    if int((before != after).sum()) > cascade.adaptive:
                        still.append(place)
                states[place] = state
            open_places = open_places if cascade.adaptive is None else still
        return states

    def mask(self, state: CourseState) -> Tensor:
        """(H, W) bool: where the probability is over the threshold."""
        return state.probabilities > self.settings.threshold

    def _answer(self, courses: Sequence[Course], states: Sequence[CourseState | None]) -> list[CourseState]:
        """One prediction per course; a second at once where a first crop would be much smaller than the picture."""
        previous = [None if state is None else state.probabilities for state in states]
        answers = self._pass(courses, previous, previous, [None if state is None else state.crop for state in states])
        zoom = self.settings.zoom
        if zoom is None or zoom.skip_clicks > 0:
            return answers
        without = [place for place, answer in enumerate(answers) if answer.crop is None]
        boxes = find_boxes([answers[place].probabilities for place in without], zoom.threshold)
        whole = (0, self.size[0] - 1, 0, self.size[1] - 1)
        repeated = [
            place
            for place, box in zip(without, boxes, strict=True)
            if box is not None
            and box_overlap(expand_box(box, self.size, zoom, self.settings.reading), whole) < SECOND_PASS_BELOW
        ]
        again = self._pass(
            [courses[place] for place in repeated],
            [previous[place] for place in repeated],
            [answers[place].probabilities for place in repeated],
            [None] * len(repeated),
        )
        for place, answer in zip(repeated, again, strict=True):
            answers[place] = answer
        return answers

    def _pass(
        self,
        courses: Sequence[Course],
        fed_back: Sequence[Tensor | None],
        cropped_by: Sequence[Tensor | None],
        crops: Sequence[Box | None],
    ) -> list[CourseState]:
        """One pass: `fed_back` to the network, `cropped_by` says where the object was, `crops` are stored."""
        views = self._choose_views(courses, cropped_by, crops)
        answers = self._run([self._make_input(view, last) for view, last in zip(views, fed_back, strict=True)], views)
        maps = [self._paste(answer.logits.sigmoid(), view) for answer, view in zip(answers, views, strict=True)]
        if self.settings.focus is not None:
            maps = self._refine(self.settings.focus, courses, fed_back, views, answers, maps)
        return [
            CourseState(map_, view.crop, len(course.clicks), view.renewed)
            for map_, view, course in zip(maps, views, courses, strict=True)
        ]

    def _choose_views(
        self, courses: Sequence[Course], last: Sequence[Tensor | None], crops: Sequence[Box | None]
    ) -> list[View]:
        zoom = self.settings.zoom
        if zoom is None:
            return [self._view(course.clicks, None, None, None, False) for course in courses]
        maps = {
            place: map_
            for place, map_ in enumerate(last)
            if map_ is not None and len(courses[place].clicks) > zoom.skip_clicks
        }
        boxes = dict(zip(maps, find_boxes(list(maps.values()), zoom.threshold), strict=True))
        return [
            self._choose_view(zoom, course.clicks, boxes.get(place), crops[place])
            for place, course in enumerate(courses)
        ]

    def _choose_view(self, zoom: ZoomIn, clicks: Sequence[Click], box: Box | None, stored: Box | None) -> View:
        released = self.settings.reading == "released"
        if len(clicks) <= zoom.skip_clicks or (box is None and zoom.skip_clicks >= 0):
            # Released: the answer for the whole picture goes where the crop of an earlier click was.
            return self._view(clicks, None, stored if released else None, stored if released else None, False)
        if box is None:
            fresh = (0, self.size[0] - 1, 0, self.size[1] - 1)
        else:
            fresh = expand_box(include_clicks(box, clicks), self.size, zoom, self.settings.reading)
        renewed = (
            stored is None
            or zoom.every_click
            or not holds_clicks(stored, clicks, self.settings.reading)
            or box_overlap(fresh, stored) < zoom.recompute_below
        )
        crop = fresh if renewed or stored is None else stored
        return self._view(clicks, crop, crop, crop, renewed)

    def _view(
        self, clicks: Sequence[Click], shown: Box | None, crop: Box | None, pasted: Box | None, renewed: bool
    ) -> View:
        settings = self.settings
        moved = list(clicks)
        size, sizes = self.size, []
        if shown is not None:
            size = (shown[1] - shown[0] + 1, shown[3] - shown[2] + 1)
            moved = [(row - shown[0], column - shown[2], sign) for row, column, sign in moved]
            if settings.zoom is not None and settings.zoom.target is not None:
                sizes.append(fit_size(size, settings.zoom.target))
        if settings.longest_side is not None and max(sizes[-1] if sizes else size) > settings.longest_side:
            sizes.append(fit_size(sizes[-1] if sizes else size, settings.longest_side))
        if settings.input_size is not None:
            sizes.append(settings.input_size)
        for new in sizes:
            moved, size = scale_clicks(moved, size, new, settings.reading), new
        return View(shown, crop, pasted, renewed, tuple(sizes), tuple(moved))

    def _make_input(self, view: View, last: Tensor | None) -> Tensor:
        """(C, h, w) of the picture, and with `with_prev_mask` of the last probabilities, zeros at first."""
        channels = self.picture
        if getattr(self.predictor.network, "with_prev_mask", True):
            fed = last if last is not None and self.settings.feed_back else self.picture.new_zeros(self.size)
            channels = torch.cat([channels, fed[None].to(channels.dtype)])
        if view.shown is not None:
            first, final, left, right = view.shown
            channels = channels[:, first : final + 1, left : right + 1]
        for size in view.sizes:
            channels = resize(channels[None], size)[0]
        return channels

    def _run(self, inputs: Sequence[Tensor], views: Sequence[View]) -> list[Answer]:
        """Answers at each input's size, of those with one size (or padded to one) at a time."""
        found: dict[int, Answer] = {}
        for places in self._group([(one.shape[1], one.shape[2]) for one in inputs]):
            sizes = [(inputs[place].shape[1], inputs[place].shape[2]) for place in places]
            clicks = [list(views[place].clicks) for place in places]
            pictures = [inputs[place] for place in places]
            limit, device = self.settings.clicks_limit, self.picture.device
            points = pack_clicks(clicks, limit=limit, device=device)
            if self.settings.flip:
                mirrored = [flip_clicks(one, size[1]) for one, size in zip(clicks, sizes, strict=True)]
                points = torch.cat([points, pack_clicks(mirrored, limit=limit, device=device)])
                pictures = pictures + [one.flip(2) for one in pictures]
                sizes = sizes * 2
            found |= zip(places, self._forward(pictures, points, sizes, len(places)), strict=True)
        return [found[place] for place in range(len(inputs))]

    def _forward(
        self, pictures: Sequence[Tensor], points: Tensor, sizes: Sequence[Size], count: int
    ) -> Iterable[Answer]:
        """Answers of `count` courses; with mirroring there are twice as many pictures."""
        batch, padded = stack_padded(pictures)
        network = self.predictor.network
        if padded:
            answer = network(batch, points, sizes=torch.tensor(sizes, device=batch.device))
            logits = _logits_of(answer)
        else:
            answer = network(batch, points)
            logits = _logits_of(answer)
            if logits.shape[2:] != batch.shape[2:]:
                logits = resize(logits, (batch.shape[2], batch.shape[3]))
        logits = logits.to(self.picture.dtype)
        if not self.settings.flip:
            merged = [logits[place, :, :height, :width] for place, (height, width) in enumerate(sizes)]
        else:
            merged = [
                (logits[place, :, :height, :width] + logits[place + count, :, :height, :width].flip(2)) / 2
                for place, (height, width) in enumerate(sizes[:count])
            ]
        for place, one in enumerate(merged):
            picture = pictures[place][None]
            finished = self.predictor.finish(one[None], picture, points[place : place + 1])[0, 0]
            yield Answer(finished, answer["feature"][place] if self.settings.focus is not None else None)

    def _refine(
        self,
        focus: Focus,
        courses: Sequence[Course],
        last: Sequence[Tensor | None],
        views: Sequence[View],
        answers: Sequence[Answer],
        maps: Sequence[Tensor],
    ) -> list[Tensor]:
        """Probabilities (H, W) where the region that each last click changed is refined; `maps` are before that."""
        found: list[Tensor] = list(maps)
        regions: dict[int, Region] = {}
        for place, (course, before, view) in enumerate(zip(courses, last, views, strict=True)):
            previous = self.picture.new_zeros(self.size) if before is None else before
            region = choose_region(
                maps[place].cpu().numpy(),
                previous.cpu().numpy(),
                (int(course.clicks[-1][0]), int(course.clicks[-1][1])),
                self._bounds(view),
                focus,
                reading=self.settings.reading,
            )
            if len(course.clicks) > focus.late_clicks:
                found[place] = previous
            if region is not None:
                regions[place] = region
        for start in range(0, len(regions), self.predictor.batch):
            places = list(regions)[start : start + self.predictor.batch]
            refined = self._refine_regions(
                [courses[place].clicks for place in places],
                [regions[place] for place in places],
                [views[place] for place in places],
                [answers[place] for place in places],
            )
            for place, logits in zip(places, refined, strict=True):
                top, bottom, left, right = regions[place]
                found[place] = found[place].clone()
                inside = resize(logits[None], (bottom - top, right - left))[0, 0].to(found[place].dtype)
                found[place][top:bottom, left:right] = inside.sigmoid()
        return found

    def _refine_regions(
        self,
        courses: Sequence[Sequence[Click]],
        regions: Sequence[Region],
        views: Sequence[View],
        answers: Sequence[Answer],
    ) -> Tensor:
        """Logits (B, 1, h, w) of regions, at the network's input size."""
        size = self.settings.input_size
        assert size is not None
        crops, clicks, boxes = [], [], []
        for course, (top, bottom, left, right), view in zip(courses, regions, views, strict=True):
            crops.append(resize(self.picture[None, :, top:bottom, left:right], size)[0])
            moved = [(row - top, column - left, sign) for row, column, sign in course]
            clicks.append(scale_clicks(moved, (bottom - top, right - left), size, self.settings.reading))
            first, final, start, end = self._bounds(view)
            down, across = size[0] / (final - first + 1), size[1] / (end - start + 1)
            boxes.append(
                ((left - start) * across, (top - first) * down, (right - start) * across, (bottom - first) * down)
            )
        features = [answer.feature for answer in answers if answer.feature is not None]
        refined: Tensor = self.predictor.network.refine(
            torch.stack(crops),
            pack_clicks(clicks, limit=self.settings.clicks_limit, device=self.picture.device),
            torch.stack(features),
            torch.stack([answer.logits[None] for answer in answers]),
            torch.tensor(boxes, device=self.picture.device),
        )["refined"]
        return refined

    def _bounds(self, view: View) -> Box:
        """Where the answer of a view goes."""
        return (0, self.size[0] - 1, 0, self.size[1] - 1) if view.pasted is None else view.pasted

    def _group(self, sizes: Sequence[Size]) -> list[list[int]]:
        """Places of inputs that go through the network together, at most `batch` of them."""
        groups: dict[Any, list[int]] = {}
        for place, (height, width) in enumerate(sizes):
            # Upright with upright: padding both kinds to a square would nearly double the work.
            groups.setdefault(height > width if self.predictor.pad else (height, width), []).append(place)
        step = self.predictor.batch
        return [places[start : start + step] for places in groups.values() for start in range(0, len(places), step)]

    def _paste(self, probabilities: Tensor, view: View) -> Tensor:
        """(H, W): the probabilities resized back step by step, zero outside of the crop."""
        shown = (
            self.size if view.shown is None else (view.shown[1] - view.shown[0] + 1, view.shown[3] - view.shown[2] + 1)
        )
        map_ = probabilities[None, None]
        for size in reversed((shown, *view.sizes[:-1])):
            map_ = resize(map_, size)
        if view.pasted is None:
            return map_[0, 0]
        first, final, left, right = view.pasted
        whole = self.picture.new_zeros(self.size)
        whole[first : final + 1, left : right + 1] = resize(map_, (final - first + 1, right - left + 1))[0, 0]
        return whole


SECOND_PASS_BELOW = 0.5
"""Overlap of a first crop with the whole picture under which a prediction is repeated at once."""


def resize(maps: Tensor, size: Size) -> Tensor:
    """(B, C, h, w) of another size, bilinear with the corners' centres kept."""
    if maps.shape[2:] == size:
        return maps
    return functional.interpolate(maps, size=size, mode="bilinear", align_corners=True)


def fit_size(size: Size, target: int | Size) -> Size:
    """The target (height, width), or the size whose longest side is `target`."""
    if not isinstance(target, int):
        return target
    scale = target / max(size)
    return round(size[0] * scale), round(size[1] * scale)


def scale_clicks(clicks: Sequence[Click], old: Size, new: Size, reading: Reading) -> list[Click]:
    """Clicks in a resized picture."""
    if reading == "released":
        return [(new[0] * row / old[0], new[1] * column / old[1], sign) for row, column, sign in clicks]
    along = [(after - 1) / max(before - 1, 1) for before, after in zip(old, new, strict=True)]
    return [(row * along[0], column * along[1], sign) for row, column, sign in clicks]


def find_boxes(maps: Sequence[Tensor], threshold: float) -> list[Box | None]:
    """The tight box of each map (H, W) over the threshold, None where there is nothing; one copy from the device."""
    if not maps:
        return []
    masks = [map_ > threshold for map_ in maps]
    rows = torch.stack([mask.any(1) for mask in masks]).cpu().numpy()
    columns = torch.stack([mask.any(0) for mask in masks]).cpu().numpy()
    boxes: list[Box | None] = []
    for in_row, in_column in zip(rows, columns, strict=True):
        down, across = np.flatnonzero(in_row), np.flatnonzero(in_column)
        boxes.append((int(down[0]), int(down[-1]), int(across[0]), int(across[-1])) if len(down) else None)
    return boxes


def include_clicks(box: Box, clicks: Sequence[Click]) -> Box:
    """The box grown to hold the pixels of all positive clicks."""
    rows = [int(row) for row, _, positive in clicks if positive]
    columns = [int(column) for _, column, positive in clicks if positive]
    return min([box[0], *rows]), max([box[1], *rows]), min([box[2], *columns]), max([box[3], *columns])


def expand_box(box: Box, size: Size, zoom: ZoomIn, reading: Reading = "released") -> Box:
    """A crop of the expanded box, inside a picture (height, width)."""
    ends = []
    for first, last, length in ((*box[:2], size[0]), (*box[2:], size[1])):
        centre, side = (first + last) / 2, max(zoom.expansion * (last - first + 1), zoom.min_crop)
        half = side / 2 if reading == "released" else (side - 1) / 2
        ends += [max(0, round(centre - half)), min(length - 1, round(centre + half))]
    return ends[0], ends[1], ends[2], ends[3]


def holds_clicks(crop: Box, clicks: Sequence[Click], reading: Reading) -> bool:
    """Whether all positive clicks are inside; in the released reading the last row and column are outside."""
    more = 0 if reading == "released" else 1
    return all(
        crop[0] <= row < crop[1] + more and crop[2] <= column < crop[3] + more
        for row, column, positive in clicks
        if positive
    )


def box_overlap(one: Box, other: Box) -> float:
    """IoU of the rows times IoU of the columns."""
    product = 1.0
    for axis in (0, 2):
        (a, b), (c, d) = one[axis : axis + 2], other[axis : axis + 2]
        product *= max(0, min(b, d) - max(a, c) + 1) / max(1e-6, max(b, d) - min(a, c) + 1)
    return product


def stack_padded(pictures: Sequence[Tensor]) -> tuple[Tensor, bool]:
    """(B, C, h, w) of pictures (C, ., .), filled with zeros to the largest height and width, and whether any was."""
    height, width = (max(picture.shape[axis] for picture in pictures) for axis in (1, 2))
    if all(picture.shape[1:] == (height, width) for picture in pictures):
        return torch.stack(list(pictures)), False
    batch = pictures[0].new_zeros(len(pictures), pictures[0].shape[0], height, width)
    for place, picture in enumerate(pictures):
        batch[place, :, : picture.shape[1], : picture.shape[2]] = picture
    return batch, True


def _logits_of(answer: Any) -> Tensor:
    """The logits of a network that answers with a mapping, by its key `instances`, or with them alone."""
    found: Tensor = answer["instances"] if isinstance(answer, Mapping) else answer
    return found
