"""What happens around an interactive network at a click: zoom-in, resizing, mirroring, feeding the last answer back.

An image is opened once; a course of clicks on it is a `CourseState` that comes back with every answer, so courses may
be interleaved. Those of one call go through the network together wherever their inputs have one size, or can be padded
to one (`OpenedImage.predict`). `predictor_settings` has the settings of each family, `zoom_in` the crops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from hardlook.networks.gpu import is_observed
from hardlook.networks.interactive.click_maps import Click, flip_clicks, pack_clicks
from hardlook.networks.interactive.focus import Focus, Region, choose_region
from hardlook.networks.interactive.gpu.inference import GpuNetwork, GpuOptions, prepare
from hardlook.networks.interactive.predictor_settings import PredictorSettings, Size
from hardlook.networks.interactive.zoom_in import (
    SECOND_PASS_BELOW,
    Box,
    View,
    box_overlap,
    choose_view,
    expand_box,
    find_boxes,
    scale_clicks,
)


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


class Predictor:
    """A network with a predictor's settings; at most `batch` courses go through it together.

    With `pad`, inputs of different sizes are padded to one where the network can tell the picture from the padding:
    the answers are the same, and a GPU is used better; on a CPU it takes longer. `gpu` says what is done for speed
    there (`gpu.inference`), with the parameters that the network has at each prediction; with
    `GpuOptions(enabled=False)` the network runs as it is.
    """

    def __init__(
        self,
        network: Any,
        settings: PredictorSettings,
        *,
        batch: int = 16,
        pad: bool = False,
        gpu: GpuOptions | None = None,
    ) -> None:
        self.network, self.settings, self.batch, self.gpu = network, settings, batch, gpu
        self.pad = pad and bool(getattr(network, "takes_sizes", False))

    def open(self, image: NDArray[np.uint8] | Tensor, *, device: Any = None, dtype: Any = None) -> OpenedImage:
        """A picture (H, W, 3) uint8, or (3, H, W) floating in 0..1, on the network's device."""
        if isinstance(image, Tensor):
            picture = image
        else:
            picture = torch.from_numpy(np.ascontiguousarray(image)).to(device).permute(2, 0, 1).to(torch.float32) / 255
        picture = picture.to(device=device, dtype=dtype or picture.dtype).contiguous()
        self.find_form(picture)  # made now, not while the first click waits
        return OpenedImage(self, picture)

    def find_form(self, picture: Tensor) -> GpuNetwork | None:
        """The network's form for a GPU, as the network is now; None elsewhere and where it has none."""
        return prepare(self.network, self.gpu) if picture.is_cuda else None

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
        if zoom is None or zoom.skip_clicks > 0 or zoom.every_click:  # predictors that always renew never look twice
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
        maps = {
            place: map_
            for place, map_ in enumerate(last)
            if zoom is not None and map_ is not None and len(courses[place].clicks) > zoom.skip_clicks
        }
        threshold = 0.0 if zoom is None else zoom.threshold
        boxes = dict(zip(maps, find_boxes(list(maps.values()), threshold), strict=True))
        return [
            choose_view(self.settings, self.size, course.clicks, boxes.get(place), crops[place])
            for place, course in enumerate(courses)
        ]

    def _make_input(self, view: View, last: Tensor | None) -> Tensor:
        """(C, h, w) of the picture, and with `with_prev_mask` of the last probabilities, zeros at first."""
        shown = (slice(None), slice(None))
        if view.shown is not None:
            first, final, left, right = view.shown
            shown = (slice(first, final + 1), slice(left, right + 1))
        channels = self.picture[:, *shown]
        if getattr(self.predictor.network, "with_prev_mask", True):
            fed = last if last is not None and self.settings.feed_back else self.picture.new_zeros(self.size)
            channels = torch.cat([channels, fed[None, *shown].to(channels.dtype)])
        for size in view.sizes:
            channels = resize(channels[None], size)[0]
        return channels

    def _run(self, inputs: Sequence[Tensor], views: Sequence[View]) -> list[Answer]:
        """Answers at each input's size, of those with one size (or padded to one) at a time."""
        found: dict[int, Answer] = {}
        form = self._choose_form(inputs[0]) if inputs else None
        for places in self._group([(one.shape[1], one.shape[2]) for one in inputs]):
            sizes = [(inputs[place].shape[1], inputs[place].shape[2]) for place in places]
            clicks = [list(views[place].clicks) for place in places]
            pictures = [inputs[place] for place in places]
            limit, device = self.settings.clicks_limit, self.picture.device
            points = pack_clicks(clicks, limit=limit, device="cpu")
            if self.settings.flip:
                mirrored = [flip_clicks(one, size[1]) for one, size in zip(clicks, sizes, strict=True)]
                points = torch.cat([points, pack_clicks(mirrored, limit=limit, device="cpu")])
                pictures = pictures + [one.flip(2) for one in pictures]
                sizes = sizes * 2
            points = send(points, device)
            found |= zip(places, self._forward(pictures, points, sizes, len(places), form), strict=True)
        return [found[place] for place in range(len(inputs))]

    def _forward(
        self,
        pictures: Sequence[Tensor],
        points: Tensor,
        sizes: Sequence[Size],
        count: int,
        form: GpuNetwork | None,
    ) -> Iterable[Answer]:
        """Answers of `count` courses; with mirroring there are twice as many pictures."""
        network = self.predictor.network
        # A graph is for one size: few sizes are many replays.
        batch, padded = stack_padded(pictures, 16 if form is not None and self.predictor.pad else 1)
        answer: Any = None
        if form is not None:
            given = send(torch.tensor(sizes, device="cpu"), batch.device) if form.takes_sizes else None
            logits = form(batch, points, given)
        elif padded:
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

    def _choose_form(self, picture: Tensor) -> GpuNetwork | None:
        """The network's form for a GPU, where logits of float32 are all that is asked and no mode watches torch."""
        plain = self.settings.focus is not None or picture.dtype != torch.float32 or is_observed()
        return None if plain else self.predictor.find_form(picture)

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
            pack_clicks(clicks, device=self.picture.device),  # all of them, as released: the limit is the network's
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


def resize(maps: Tensor, size: Size) -> Tensor:
    """(B, C, h, w) of another size, bilinear with the corners' centres kept."""
    if maps.shape[2:] == size:
        return maps
    return functional.interpolate(maps, size=size, mode="bilinear", align_corners=True)


def send(values: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; one of a processor without waiting for what a GPU still has to do."""
    if device.type != "cuda" or values.device.type != "cpu":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def stack_padded(pictures: Sequence[Tensor], multiple: int = 1) -> tuple[Tensor, bool]:
    """(B, C, h, w) of pictures (C, ., .), filled with zeros to the largest height and width, and whether any was.

    With `multiple` height and width are rounded up to a multiple of it.
    """
    height, width = (-(-max(picture.shape[axis] for picture in pictures) // multiple) * multiple for axis in (1, 2))
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
