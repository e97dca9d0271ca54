"""Any predictor with RITM's interface as a promptable segmenter: RITM, SimpleClick, CFR-ICL and similar methods.

The interface: `set_input_image(image)`, `get_prediction(clicker)`, which gives a probability map (H, W), and optionally
`get_states()` and `set_states(states)`. Such a predictor keeps its last map, its zoom-in crop and the like between
clicks. Here all of it is set before each prompt to what it was after the prompt's earlier clicks, and copied into the
answer's state afterwards. So an answer depends on the image, the clicks and the state that came with them, and
trajectories may be interleaved in any order. A predictor without states is given all clicks again from the first.

>>> import sys, types
>>> class Nearest:
...     def set_input_image(self, image): self.shape = image.shape[:2]
...     def get_prediction(self, clicker, prev_mask=None):
...         rows, columns = np.indices(self.shape)
...         row, column = clicker.get_clicks()[-1].coords
...         return 1 / (1 + abs(rows - row) + abs(columns - column))
>>> sys.modules["my_factory"] = types.SimpleNamespace(nearest=Nearest)
>>> model = RitmStyle(predictor="my_factory:nearest")
>>> click = Clicks(np.array([[1, 0]], np.float32), np.array([True]))
>>> model.open(np.zeros((1, 4, 3), np.uint8)).predict([click])[0].mask.tolist()
[[True, True, True, False]]
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.fingerprints import hash_sources, hash_value
from hardlook.models.arguments import convert_arguments, parse_arguments
from hardlook.models.identity import sources_of
from hardlook.models.registry import import_dotted
from hardlook.models.roles import Clicks, Image, Prompted


class RitmStyle:
    """A predictor of another repository, made by a factory of yours.

    `predictor`: the factory as package.module:factory; `predictor_args`: its arguments as key=value with commas
    between, or as a JSON object; `family`: one of RClicks' families, which gives `threshold` (.49) and
    `first_click_twice` where they are not given; `colours`: the order of the channels that the predictor expects;
    `replay`: show all clicks from the first even if the predictor has states.
    """

    def __init__(
        self,
        predictor: str,
        predictor_args: str = "",
        family: str = "ritm",
        threshold: float | None = None,
        first_click_twice: bool | None = None,
        colours: Literal["rgb", "bgr"] = "rgb",
        replay: bool = False,
    ) -> None:
        settings = find_settings(family)
        self.threshold = settings.threshold if threshold is None else threshold
        if not 0 <= self.threshold < 1:
            raise OptionError(f"threshold {self.threshold} is no probability", remedy="give .49 or so")
        if colours not in ("rgb", "bgr"):
            raise OptionError(f"there is no order of colours {colours!r}", remedy="colours is rgb or bgr")
        twice = settings.first_click_twice if first_click_twice is None else first_click_twice
        made, self._sources, self.weights_files = make_predictor(predictor, predictor_args)
        self._predictor = Predictor(made, predictor, twice=twice, replay=replay)
        self._flipped = colours == "bgr"
        self.device = str(getattr(made, "device", ""))
        memory = "its own states given back" if self._predictor.keeps_states else "all clicks replayed from the first"
        self.conduct = (
            f"{predictor}, a predictor with RITM's interface: the whole network at every click, no encoding shared; "
            f"threshold {self.threshold:g}; first click predicted {'twice' if twice else 'once'}; {memory}; "
            f"RClicks drives {family} with {FAMILIES[family].describe()}"
        )

    def fingerprint(self) -> str:
        """A hash of this code, the factory's and the predictor's."""
        return hash_value([hash_sources(sources_of(type(self))), hash_sources(self._sources)])

    def open(self, image: Image) -> RitmSession:
        """The image as the predictor wants it; nothing is computed before the first click."""
        # A copy of its own: the predictor may keep it, and torch wants arrays that could be written.
        shown = np.array(image[..., ::-1] if self._flipped else image, order="C")
        return RitmSession(self._predictor, shown, self.threshold)


@dataclass(frozen=True)
class RitmSession:
    """An image that the predictor is shown again whenever another was in between."""

    predictor: Predictor
    image: Image
    threshold: float

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt, one after the other; an empty prompt has an empty mask."""
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Clicks) -> Prompted:
        shape = (self.image.shape[0], self.image.shape[1])
        clicks = predictor_clicks(prompt, shape)
        if not clicks:
            return Prompted(np.zeros(shape, bool))
        memory = prompt.state if isinstance(prompt.state, Memory) else None
        chance, after = self.predictor.predict_after(self.image, clicks, memory)
        return Prompted(np.asarray(chance > self.threshold), after)


@dataclass(frozen=True)
class PredictorClick:
    """One click: `coords` (row, column) in pixels, `indx` its place in the order of clicking, from 0.

    >>> PredictorClick(True, (3, 4), 0).copy(coords=(1.5, 2.0)).coords_and_indx
    (1.5, 2.0, 0)
    """

    is_positive: bool
    coords: tuple[float, float]
    indx: int

    @property
    def coords_and_indx(self) -> tuple[float, float, int]:
        """Row, column and number, as the network's input has them."""
        return (*self.coords, self.indx)

    def copy(self, **changed: Any) -> PredictorClick:
        """The same click with other fields."""
        return replace(self, **changed)


@dataclass(frozen=True)
class ClickList:
    """The clicks of one trajectory up to now, as RITM's predictors read them.

    A predictor calls `get_clicks()` and reads `is_positive`, `coords` (row, column) and `indx` of each click; its
    transforms call `click.copy(coords=...)`, and its network reads `coords_and_indx`.
    """

    clicks_list: tuple[PredictorClick, ...]
    click_indx_offset: int = 0

    def get_clicks(self, clicks_limit: int | None = None) -> list[PredictorClick]:
        """The first `clicks_limit` clicks, all by default."""
        return list(self.clicks_list[:clicks_limit])

    def __len__(self) -> int:
        return len(self.clicks_list)


def predictor_clicks(prompt: Clicks, shape: tuple[int, int]) -> tuple[PredictorClick, ...]:
    """A prompt's clicks as whole pixels (row, column) inside a frame (H, W).

    >>> prompt = Clicks(np.array([[4.4, 9]], np.float32), np.array([True]))
    >>> predictor_clicks(prompt, (8, 8))
    (PredictorClick(is_positive=True, coords=(7, 4), indx=0),)
    """
    pixels = zip(*prompt.pixels(shape), np.asarray(prompt.positive, bool), strict=True)
    return tuple(
        PredictorClick(bool(positive), (int(row), int(column)), number)
        for number, (row, column, positive) in enumerate(pixels)
    )


@dataclass(frozen=True)
class Memory:
    """What a predictor remembers after `clicks`: its own states, and its last map, which some states leave out."""

    clicks: tuple[PredictorClick, ...]
    states_and_map: tuple[Any, Any] = field(repr=False)


class Predictor:
    """A predictor with RITM's interface behind one pure method.

    `twice`: the first click is predicted twice, the second time with the first answer as previous map. `keeps_states`
    says whether its states are used; else every prompt replays its clicks.
    """

    def __init__(self, predictor: Any, name: str, *, twice: bool = False, replay: bool = False) -> None:
        if lacking := [method for method in ("set_input_image", "get_prediction") if not hasattr(predictor, method)]:
            what = f"{name!r} made a {type(predictor).__qualname__} without {' and '.join(lacking)}"
            remedy = "give a factory that makes a predictor as RITM's isegm.inference.predictors has them"
            raise ModelError(what, remedy=remedy)
        self._predictor, self._name, self._twice = predictor, name, twice
        self.keeps_states = not replay and hasattr(predictor, "get_states") and hasattr(predictor, "set_states")
        self._shown: Image | None = None

    def predict_after(
        self, image: Image, clicks: tuple[PredictorClick, ...], memory: Memory | None
    ) -> tuple[NDArray[Any], Memory | None]:
        """The probability map (H, W) after all `clicks`, and its memory; `memory` is that of the first ones."""
        with _without_gradients():
            done = self._recall(image, clicks, memory if self.keeps_states else None)
            chance = np.zeros(image.shape[:2])
            for count in range(done + 1, len(clicks) + 1):
                chance = self._predict(ClickList(clicks[:count]), image)
            if not self.keeps_states:
                return chance, None
            kept = self._predictor.get_states(), getattr(self._predictor, "prev_prediction", None)
            return chance, Memory(clicks, copy.deepcopy(kept))

    def _recall(self, image: Image, clicks: tuple[PredictorClick, ...], memory: Memory | None) -> int:
        if memory is None:
            self._show(image)
            return 0
        done = len(memory.clicks)
        if done >= len(clicks) or memory.clicks != clicks[:done]:
            raise ModelError(
                f"expected the state of a prompt's earlier clicks, got that of {done} others for {len(clicks)} clicks",
                remedy="give back the state of the click before, or None",
            )
        if self._shown is not image:
            self._show(image)
        # A copy, since some predictors write into what they are given; one of both, since they may share an array.
        states, last_map = copy.deepcopy(memory.states_and_map)
        self._predictor.set_states(states)
        if hasattr(self._predictor, "prev_prediction"):
            self._predictor.prev_prediction = last_map
        return done

    def _show(self, image: Image) -> None:
        # A copy, since a predictor may write into it; setting an image also makes it forget what it knew.
        self._predictor.set_input_image(image.copy())
        self._shown = image

    def _predict(self, clicker: ClickList, image: Image) -> NDArray[Any]:
        chance = np.asarray(self._predictor.get_prediction(clicker))
        if self._twice and len(clicker) == 1:
            chance = np.asarray(self._predictor.get_prediction(clicker))
        if chance.shape != image.shape[:2]:
            raise ModelError(f"{self._name!r}: expected a map {image.shape[:2]}, got one of shape {chance.shape}")
        return chance


def _without_gradients() -> contextlib.AbstractContextManager[Any]:
    # A predictor that runs on torch has imported it. Not inference mode: predictors that refine at each click
    # switch gradients on again inside.
    torch = sys.modules.get("torch")
    return torch.no_grad() if torch is not None else contextlib.nullcontext()


@dataclass(frozen=True)
class FamilySettings:
    """How RClicks ran a family of predictors: what a factory must set to compare with it.

    `size` in pixels of what the network is shown, `davis_size` on DAVIS: the longest side, or a `square`'s side;
    `zoom` as text; `threshold` on the probability; `first_click_twice`: whether the first click is predicted twice,
    the second time with the first answer given back.
    """

    family: str
    size: int
    davis_size: int
    square: bool = False
    zoom: str = ""
    first_click_twice: bool = False
    threshold: float = 0.49

    def describe(self) -> str:
        """The settings in one sentence, without a full stop.

        >>> find_settings("cfr-icl").describe()
        '448 px square (DAVIS 672), first click predicted twice, threshold .49'
        """
        size = f"{self.size} px square" if self.square else f"longest side {self.size}"
        twice = "first click predicted twice" if self.first_click_twice else ""
        threshold = f"threshold {self.threshold:g}".replace(" 0.", " .")
        return ", ".join(part for part in (f"{size} (DAVIS {self.davis_size})", self.zoom, twice, threshold) if part)


_RITM_ZOOM = (
    "zoom-in from click 2 (TETRIS: 1), box x 1.4, at least 200 px, new below IoU .5, averaged with the mirror image"
)

_CROP_ZOOM = "box x 1.4, network at 384 px"

FAMILIES = {
    settings.family: settings
    for settings in (
        FamilySettings("ritm", 400, 600, zoom=_RITM_ZOOM),
        FamilySettings("simpleclick", 448, 672, square=True),
        FamilySettings("adaptiveclick", 448, 672, square=True),
        FamilySettings("cfr-icl", 448, 672, square=True, first_click_twice=True),
        FamilySettings("cdnet", 400, 600, zoom=_CROP_ZOOM),
        FamilySettings("gpcis", 400, 600, zoom=_CROP_ZOOM),
    )
}


def find_settings(family: str) -> FamilySettings:
    """The settings of a family by its name in lower case; an `OptionError` that lists them when there is none."""
    if family not in FAMILIES:
        raise OptionError(f"there is no family {family!r}", remedy=f"the families are {', '.join(FAMILIES)}")
    return FAMILIES[family]


def make_predictor(name: str, text: str) -> tuple[Any, tuple[Path, ...], tuple[Path, ...]]:
    """The predictor of the factory package.module:factory with arguments in `text`, its source and weights files."""
    if ":" not in name:
        raise OptionError(
            f"{name!r} names no factory of a predictor",
            remedy="write predictor=package.module:factory; RClicks sets, by family: "
            + "; ".join(f"{family}: {settings.describe()}" for family, settings in FAMILIES.items()),
        )
    factory = import_dotted(name)
    arguments = convert_arguments(name, factory, parse_predictor_arguments(text))
    try:
        predictor = factory(**arguments)
    except HardlookError:
        raise
    except (Exception, SystemExit) as error:  # outside code may raise anything
        remedy = "call it in a Python shell with the same arguments"
        raise ModelError(f"the factory {name!r} failed: {type(error).__name__}: {error}", remedy=remedy) from error
    sources = set(sources_of(type(predictor)))
    written = inspect.getsourcefile(factory) if inspect.isfunction(factory) else None
    if written:
        sources.add(Path(written))
    given = (Path(value) for value in arguments.values() if isinstance(value, str | Path) and str(value))
    named = (Path(path) for path in getattr(predictor, "weights_files", ()))
    return predictor, tuple(sorted(sources)), tuple(sorted({*named, *(path for path in given if path.is_file())}))


def parse_predictor_arguments(text: str) -> dict[str, Any]:
    """The arguments in `text`: a JSON object, or key=value with commas between.

    >>> parse_predictor_arguments('{"size": 4, "zoom": {"skip_clicks": -1}}')
    {'size': 4, 'zoom': {'skip_clicks': -1}}
    """
    if not text.lstrip().startswith("{"):
        return dict(parse_arguments(text))
    try:
        return dict(json.loads(text))
    except json.JSONDecodeError as error:
        raise OptionError(f"{text!r} is no JSON object: {error}", remedy='write {"key": value} or key=value') from error
