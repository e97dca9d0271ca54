"""Published interactive networks from their checkpoint files: RITM, SimpleClick and their kin.

A checkpoint tells the architecture; the family sets what happens around the network (zoom-in, mirroring, feeding the
last mask back), as its authors evaluated it. Clicks enter these networks before their first layers, so no encoding of
the image can be shared between clicks: the whole network runs at every click, for all courses of a call together.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources
from hardlook.models.identity import sources_of
from hardlook.models.interactive.sam_session import check_device_and_batch
from hardlook.models.registry import is_checkpoint_folder
from hardlook.models.roles import Clicks, Image, Prompted
from hardlook.models.torch_inference import Precision, exact_inference
from hardlook.reading import reading as guard_reading

if TYPE_CHECKING:
    from hardlook.networks.interactive.click_maps import Click
    from hardlook.networks.interactive.predictor_settings import PredictorSettings
    from hardlook.networks.interactive.predictors import CourseState, OpenedImage, Predictor

GPU_BATCH = 32
RANDOM = "random:"


class NetworkSegmenter:
    """A network of the class's `family`, from `weights`: a published checkpoint or a `.safetensors` of its tensors.

    `weights=random:SEED` makes random parameters, of `size` (such as hrnet18s), for tries without a checkpoint.
    `reading` is released, with the released predictor's errors, or ours, without. `zoom` and `flip` switch zoom-in and
    the mirrored picture off; `threshold` is the probability from which a pixel is in the mask (default: the family's).
    The first `repeated_clicks` clicks are answered `repeats` times more, with the answer fed back (default: 1 for
    CFR-ICL, 0 for others), or until at most `repeat_until` pixels change.
    `dataset` gives all images the published settings of that dataset, where DAVIS and TETRIS have some of their own; a
    run of RClicks names each image's dataset itself. At most `batch` courses go through the network together (default:
    1 on the CPU, where more are no faster and one has the same bits in any company; 32 on a GPU).

    RITM's `weights` may be a folder of `hardlook train ritm`: whatever is shown, its longest side is then that of the
    training's crops. `unfinished` takes the best weights of a training that has not ended.
    """

    family: ClassVar[str]

    def __init__(
        self,
        weights: str,
        size: str = "",
        device: str = "cpu",
        precision: Precision = "float32",
        batch: int | None = None,
        reading: Literal["released", "ours"] = "released",
        zoom: bool = True,
        flip: bool = True,
        threshold: float | None = None,
        dataset: str = "",
        repeats: int | None = None,
        repeated_clicks: int = 1,
        repeat_until: int | None = None,
        unfinished: bool = False,
    ) -> None:
        require("torch", extra="torch")
        from hardlook.networks.interactive.predictor_settings import PUBLISHED, READINGS, Cascade

        check_device_and_batch(device, 1 if batch is None else batch, precision)
        if reading not in READINGS:
            raise OptionError(f"reading is {reading!r}", remedy=f"one of {', '.join(READINGS)}")
        if threshold is not None and not 0 <= threshold < 1:
            raise OptionError(f"threshold {threshold} is no probability", remedy="give .49 or so")
        if (repeats or 0) < 0 or repeated_clicks < 0 or (repeat_until or 0) < 0:
            raise OptionError("repeats, repeated_clicks and repeat_until are counts", remedy="give 0 or more")
        self.weights_files: tuple[Path, ...] = ()
        self.trained_size, self._unfinished = 0, unfinished
        self._network, self._source = self._make_network(str(weights), size)
        self._network.to(device)
        if hasattr(self._network, "reading"):  # AdaptiveClick's own code errs, too
            self._network.reading = reading
        settings = replace(PUBLISHED[self.family], reading=reading)
        settings = settings.at_size(self.trained_size) if self.trained_size else settings
        if repeats is None:
            repeats = settings.cascade.passes if settings.cascade is not None else 0
        settings = replace(settings, cascade=Cascade(repeated_clicks, repeats, repeat_until) if repeats else None)
        settings = settings if zoom else settings.without_zoom()
        settings = settings if flip else replace(settings, flip=False)
        self._settings: PredictorSettings = settings if threshold is None else replace(settings, threshold=threshold)
        self._batch = batch or (1 if device == "cpu" else GPU_BATCH)
        self.device, self._precision = device, precision
        self._dataset = dataset

    def _make_network(self, weights: str, size: str) -> tuple[Any, str]:
        """The network, and what it was made of."""
        from hardlook.networks.interactive.checkpoints import build_network, build_random, read_checkpoint

        if weights.startswith(RANDOM):
            seed = weights.removeprefix(RANDOM)
            if not seed.isdecimal():
                raise OptionError(f"weights={weights} has no seed", remedy=f"write weights={RANDOM}1")
            return build_random(self.family, size or None, seed=int(seed)), f"random parameters of seed {int(seed)}"
        if size:
            raise OptionError("a checkpoint tells its size", remedy=f"leave size out, or give weights={RANDOM}1")
        path = Path(weights).expanduser()
        if is_checkpoint_folder(weights):
            return self._load_trained(path), f"the training in {path.name}"
        checkpoint = read_checkpoint(path)
        self.weights_files = (path,)
        return build_network(checkpoint, self.family), path.name

    def _load_trained(self, folder: Path) -> Any:
        """The network of a folder of `hardlook train`."""
        from hardlook.training.checkpoint import list_weights_files, load_weights, read_card, read_weights
        from hardlook.training.interactive.recipes import InteractiveRecipe
        from hardlook.training.interactive.trainee import build_interactive
        from hardlook.training.recipes import StageRecipe

        card = read_card(folder)
        if card.get("kind") != "interactive" or card["method"] != self.family:
            what = f"the folder holds {card.get('method') or card.get('backbone')}, not {self.family}"
            raise ModelError(what, file=folder, remedy=f"a folder of hardlook train {self.family}")
        if not card.get("finished") and not self._unfinished:
            raise ModelError(
                f"the training is not finished: its best weights are of step {card['selected']['step']}",
                file=folder,
                remedy="give its command again to resume it, or pass --model-arg unfinished=true",
            )
        with guard_reading(folder, "checkpoint.json describes no network", remedy="copy it again", kind=ModelError):
            kept = {key: value for key, value in card["identity"]["recipe"].items() if key not in ("stage", "changed")}
            recipe = InteractiveRecipe(**kept, stage=StageRecipe())
            network = build_interactive(recipe, seed=0)
        self.weights_files, self.trained_size = list_weights_files(folder), recipe.size
        load_weights(network, read_weights(folder), file=folder)
        return network.eval().requires_grad_(False)

    @property
    def settings(self) -> PredictorSettings:
        """What happens around the network, on the dataset at hand."""
        return self._settings.on(self._dataset)

    @property
    def conduct(self) -> str:
        """How it is driven, for records and reports."""
        rounded = "" if self._precision == "float32" else f"; computed in {self._precision}"
        return (
            f"{self.family} with {self._source}: {self.settings.describe()}; the whole network at every click, no "
            f"encoding shared{rounded}"
        )

    def for_dataset(self, dataset: str) -> Self:
        """The model with the published settings of a dataset, unless the option `dataset` has chosen one for all."""
        if self._dataset:
            return self
        other = copy.copy(self)
        other._dataset = dataset
        return other

    def fingerprint(self) -> str:
        """A hash of this code and the network's."""
        return hash_sources(sorted({*sources_of(type(self)), *sources_of(type(self._network))}))

    def open(self, image: Image) -> NetworkSession:
        """The image on the device; nothing is computed before the first click."""
        return NetworkSession(self.make_predictor().open(image, device=self.device), self._precision)

    def make_predictor(self) -> Predictor:
        """The network with its settings; on a GPU crops of different sizes are padded to go through it together."""
        from hardlook.networks.interactive.predictors import Predictor

        return Predictor(self._network, self.settings, batch=self._batch, pad=self.device.startswith("cuda"))


class Ritm(NetworkSegmenter):
    """RITM: HRNet-18s, -18 and -32, with and without the previous mask."""

    family = "ritm"


class SimpleClick(NetworkSegmenter):
    """SimpleClick: ViT-XT, -B, -L and -H."""

    family = "simpleclick"


class CfrIcl(NetworkSegmenter):
    """CFR-ICL: SimpleClick's networks, the first click answered again with its own answer fed back."""

    family = "cfr-icl"


class FocalClick(NetworkSegmenter):
    """FocalClick: HRNet-18s and -32, SegFormer-B0 and -B3."""

    family = "focalclick"


class CDNet(NetworkSegmenter):
    """CDNet: ResNet-34."""

    family = "cdnet"


class Gpcis(NetworkSegmenter):
    """GPCIS: ResNet-50."""

    family = "gpcis"


class AdaptiveClick(NetworkSegmenter):
    """AdaptiveClick: ViT-B and -H."""

    family = "adaptiveclick"


@dataclass(frozen=True)
class ClickMemory:
    """A course after `clicks`: its last probabilities and its crop."""

    clicks: tuple[Click, ...]
    course: CourseState = field(repr=False)


@dataclass(frozen=True)
class NetworkSession:
    """An opened image; an answer's state is a `ClickMemory` whose probabilities lie on the device."""

    opened: OpenedImage
    precision: Precision = "float32"

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt; a prompt without a state is played from its first click, one without clicks is empty."""
        with exact_inference(self.precision):
            clicks = [_list_clicks(prompt, self.opened.size) for prompt in prompts]
            memories = [_recall(prompt, given) for prompt, given in zip(prompts, clicks, strict=True)]
            self._play(clicks, memories)
            return [self._answer(given, memory) for given, memory in zip(clicks, memories, strict=True)]

    def _play(self, clicks: Sequence[tuple[Click, ...]], memories: list[ClickMemory | None]) -> None:
        """Bring all memories to the last click, all courses together click by click."""
        from hardlook.networks.interactive.predictors import Course

        while True:
            done = [0 if memory is None else len(memory.clicks) for memory in memories]
            places = [place for place, given in enumerate(clicks) if done[place] < len(given)]
            if not places:
                return
            seen = {place: clicks[place][: done[place] + 1] for place in places}
            states = {place: memory.course for place, memory in enumerate(memories) if memory is not None}
            after = self.opened.predict([Course(seen[place], states.get(place)) for place in places])
            for place, state in zip(places, after, strict=True):
                memories[place] = ClickMemory(seen[place], state)

    def _answer(self, clicks: tuple[Click, ...], memory: ClickMemory | None) -> Prompted:
        if memory is None or not clicks:
            return Prompted(np.zeros(self.opened.size, bool))
        return Prompted(self.opened.mask(memory.course).cpu().numpy(), memory)


def _list_clicks(prompt: Clicks, size: tuple[int, int]) -> tuple[Click, ...]:
    """Whole pixels (row, column, positive) inside of the image, as the published evaluations click."""
    pixels = zip(*prompt.pixels(size), np.asarray(prompt.positive, bool).reshape(-1), strict=True)
    return tuple((int(row), int(column), bool(positive)) for row, column, positive in pixels)


def _recall(prompt: Clicks, clicks: tuple[Click, ...]) -> ClickMemory | None:
    memory = prompt.state if isinstance(prompt.state, ClickMemory) else None
    if memory is not None and (len(memory.clicks) >= len(clicks) or memory.clicks != clicks[: len(memory.clicks)]):
        raise ModelError(
            f"expected the state of a prompt's earlier clicks, got that of {len(memory.clicks)} others for "
            f"{len(clicks)} clicks",
            remedy="give back the state of the click before, or None",
        )
    return memory
