"""One-shot segmentation networks as models: from a published checkpoint, or from a folder of `hardlook train`.

An image goes through the backbone once, however many pairs it is in, and a support with its mask is described once;
both are kept, up to `memory` bytes, by their content.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hardlook.caching import GIBIBYTE, LRUCache
from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources, hash_value
from hardlook.models.content_keys import ContentKeys, Key
from hardlook.models.feature_cache import FeatureFiles, default_cache_folder
from hardlook.models.identity import sources_of
from hardlook.models.roles import Image, Mask, Support, check_supports
from hardlook.models.torch_inference import Precision, exact_inference

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.networks.one_shot.evaluation import InputRule
    from hardlook.networks.one_shot.network import Features, OneShotNetwork
    from hardlook.training.frozen_features import FrozenFeatures

RANDOM = "random"
STORED = "frozen-backbones"
"""The folder of the cache for features of frozen backbones."""


class NetworkSegmenter:
    """A one-shot network, by the way its publication evaluates it.

    `weights` is the file of a published checkpoint, a folder of `hardlook train`, or `random:SEED`. `backbone` is that
    of a file, `options` are what else a file does not tell of its network, such as "bins=1.0 0.5 0.25 0.125", with
    commas between several. `size` is the side of the network's input (that of the publication, or of the training).
    `reading` is `sound`, or `released` for what the released code does where that differs, whatever the reading of a
    training.
    `pairs` are matched at a time; on a processor one, so that the numbers do not depend on what else is asked. `disk`
    keeps the features of a frozen backbone in the cache folder too, where other runs and trainings with the same
    backbone find them. A pixel is of the class where its probability exceeds `threshold`. Where no support shows a
    pixel the mask is empty; with `null_masks` it is what the network makes of such supports, for ablations.
    """

    network: ClassVar[str] = ""

    def __init__(
        self,
        weights: str = "",
        backbone: str = "resnet50",
        size: int = 0,
        reading: Literal["sound", "released"] = "sound",
        device: str = "cpu",
        precision: Precision = "float32",
        pairs: int = 0,
        memory: int = 2 * GIBIBYTE,
        unfinished: bool = False,
        disk: bool = False,
        threshold: float = 0.5,
        null_masks: bool = False,
        options: str = "",
    ) -> None:
        require("torch", extra="torch")
        if not 0 < threshold < 1:
            raise OptionError(f"threshold={threshold}: not a probability", remedy="between 0 and 1, such as 0.5")
        self._margin, self._null_masks = math.log(threshold / (1 - threshold)), null_masks
        if reading not in ("sound", "released"):
            raise OptionError(f"reading={reading}: there is no such reading", remedy="sound or released")
        if not weights:
            name = self.network
            remedy = (
                f"--model-arg weights=FILE of a published checkpoint; or hardlook train {name} --data voc=DIR --out DIR"
            )
            raise ModelError(f"the network {name} has no weights", remedy=remedy)
        self.device, self.precision, self.reading = device, precision, reading
        self.pairs = pairs or (8 if device.startswith("cuda") else 1)
        self.weights_files: tuple[Path, ...] = ()
        self.card: dict[str, Any] = {}
        self.encoded = 0
        network, found_size = self._load(weights, backbone, unfinished, parse_options(options))
        network.fix_draws()
        self.net: OneShotNetwork = network.to(device).eval()
        self.rule: InputRule = self._choose_rule(size or found_size)
        self._keys, self._memory = ContentKeys(), memory
        self._frozen = self._open_store() if disk and self.net.frozen else None
        self.forget()

    def forget(self) -> None:
        """Drop what is kept of images and supports."""
        self._features: LRUCache[Features] = LRUCache(self._memory, _count_bytes)

    def _open_store(self) -> FrozenFeatures:
        from hardlook.training.frozen_features import FrozenFeatures

        return FrozenFeatures(self.net, FeatureFiles(default_cache_folder(), STORED))

    def _load(
        self, weights: str, backbone: str, unfinished: bool, options: dict[str, Any]
    ) -> tuple[OneShotNetwork, int]:
        from hardlook.training.checkpoint import is_checkpoint

        if weights.partition(":")[0] == RANDOM:
            if options:
                raise OptionError(f"options={','.join(options)}: only for files", remedy="leave them out")
            return self._build_random(backbone, weights.partition(":")[2] or "0"), 0
        path = Path(weights).expanduser()
        if is_checkpoint(path):
            return self._load_folder(path, unfinished, options)
        return self._load_file(path, backbone, options), 0

    def _build_random(self, backbone: str, seed: str) -> OneShotNetwork:
        from hardlook.training.one_shot import build_one_shot
        from hardlook.training.one_shot_recipes import find_one_shot_recipe

        if not seed.isdigit():
            raise OptionError(f"weights=random:{seed}: not a seed", remedy="a whole number, such as random:0")
        reading = "released" if self.reading == "released" else "paper"
        recipe = find_one_shot_recipe(self.network, backbone, reading=reading)
        return build_one_shot(recipe, classes=15, seed=int(seed))

    def _load_folder(self, path: Path, unfinished: bool, options: dict[str, Any]) -> tuple[OneShotNetwork, int]:
        from hardlook.training.checkpoint import list_weights_files, load_weights, read_card, read_weights
        from hardlook.training.one_shot import build_one_shot
        from hardlook.training.one_shot_recipes import OneShotRecipe
        from hardlook.training.recipes import StageRecipe

        self.card = read_card(path)
        if self.card.get("kind") != "one-shot" or (self.network and self.card["method"] != self.network):
            what = f"the folder holds {self.card.get('method', self.card.get('backbone'))}, not {self.network}"
            raise ModelError(what, file=path, remedy=f"a folder of hardlook train {self.network}")
        if not self.card.get("finished") and not unfinished:
            raise ModelError(
                f"the training is not finished: its best weights are of step {self.card['selected']['step']}",
                file=path,
                remedy="give its command again to resume it, or pass --model-arg unfinished=true",
            )
        if options and "imported" not in self.card:
            what = f"options={','.join(options)}: a folder of hardlook train has its own"
            raise OptionError(what, remedy="train the network with option.NAME")
        self.weights_files = list_weights_files(path)
        try:
            identity = self.card["identity"]
            kept = {key: value for key, value in identity["recipe"].items() if key not in ("stage", "changed")}
            # The training's own reading is that of its recipe; the one asked for here is of the answers.
            kept["reading"] = "released" if self.reading == "released" else "paper"
            kept["options"] = {**kept.get("options", {}), **options}
            recipe = OneShotRecipe(**kept, stage=StageRecipe())
            network = build_one_shot(recipe, classes=len(identity["classes"]), seed=0)
        except (KeyError, TypeError) as error:
            what = f"checkpoint.json describes no network: {error}"
            raise ModelError(what, file=path, remedy="copy the folder again") from error
        load_weights(network, read_weights(path), file=path)
        return network, recipe.size

    def _load_file(self, path: Path, backbone: str, options: dict[str, Any]) -> OneShotNetwork:
        from hardlook.networks.one_shot.checkpoints import load_published

        released = self.reading == "released"
        network, loaded = load_published(path, self.network, backbone, released=released, options=options)
        self.weights_files = (loaded.path,)
        return network

    def _choose_rule(self, size: int) -> InputRule:
        from hardlook.networks.one_shot.catalogue import find_network
        from hardlook.networks.one_shot.evaluation import INPUT_RULES, InputRule

        name = self.card.get("method", self.network)
        entry = find_network(name)
        rule = INPUT_RULES.get(name) or InputRule(entry.size, padded=entry.fit == "letterbox", nearest="pillow")
        if size and size < 33:
            raise OptionError(f"size={size}: too small for the network", remedy="at least 33 pixels")
        if size and rule.padded and size % 8 != 1:
            near = size // 8 * 8 + 1
            raise OptionError(f"size={size}: its features would lie elsewhere", remedy=f"8 k + 1, such as {near}")
        if name == "hsnet" and self.reading == "released":
            rule = replace(rule, direct=True)  # supports vote at the image's own size
        return replace(rule, size=size) if size else rule

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask (H, W) per query."""
        check_supports(queries, supports)
        key = self._keys.key_function()
        answers: list[Mask | None] = [None] * len(queries)
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, shown in enumerate(supports):
            if self._null_masks or any(one.mask.any() for one in shown):
                size = queries[place].shape[:2] if self.rule.direct else ()
                groups.setdefault((len(shown), *size), []).append(place)
            else:
                answers[place] = np.zeros(queries[place].shape[:2], bool)  # nothing is shown, so nothing is found
        with exact_inference(self.precision):
            for places in groups.values():
                for start in range(0, len(places), self.pairs):
                    part = places[start : start + self.pairs]
                    masks = self._match([queries[one] for one in part], [supports[one] for one in part], key)
                    for place, mask in zip(part, masks, strict=True):
                        answers[place] = mask
        return [one for one in answers if one is not None]

    def _match(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]], key: Key) -> list[Mask]:
        import torch

        own = _join([self._encode(query, key) for query in queries])
        shown = _join([_stack([self._describe(one, key) for one in each]) for each in supports])
        height, width = queries[0].shape[:2]
        size = (height, width) if self.rule.direct else (self.rule.size, self.rule.size)
        ignored = torch.stack([self._mark_padding(query) for query in queries])
        logits = self.net.match(own, shown, size, ignored)
        masks = []
        for query, found in zip(queries, logits, strict=True):
            if not self.rule.direct:
                released = self.reading == "released"
                found = self.rule.restore(found[None], *query.shape[:2], released=released)[0]
            masks.append((found[1] - found[0] > self._margin).cpu().numpy())
        return masks

    def _encode(self, image: Image, key: Key) -> Features:
        """The backbone's features of an image, from the cache if they are there."""

        def create() -> Features:
            prepared = self.rule.prepare(self._to_tensor(image))[None]
            if self._frozen is not None:
                before = self._frozen.computed
                features = self._frozen.find(prepared)
                self.encoded += self._frozen.computed - before
                return self.net.encode_features(features)
            self.encoded += 1
            return self.net.encode(prepared)

        return self._features.get_or_create(("image", key(image)), create)

    def _describe(self, support: Support, key: Key) -> Features:
        if support.mask.shape != support.image.shape[:2]:
            what = f"a support's mask is {support.mask.shape}, its image {support.image.shape[:2]}"
            raise ModelError(what, remedy="masks have their image's size")

        def create() -> Features:
            mask = self.rule.prepare_mask(self._to_tensor(support.mask.astype(np.uint8)))
            return self.net.describe(self._encode(support.image, key), mask[None])

        return self._features.get_or_create(("support", key(support.image), key(support.mask)), create)

    def _mark_padding(self, query: Image) -> Tensor:
        return self.rule.prepare_mask(self._to_tensor(np.zeros(query.shape[:2], np.uint8)))

    def _to_tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        import torch

        tensor = torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
        return tensor.movedim(-1, 0) if tensor.ndim == 3 else tensor

    def code_fingerprint(self) -> str:
        """A hash of the sources that the answers depend on: this class and the network's."""
        return hash_value([hash_sources({*sources_of(type(self)), *sources_of(type(self.net))}), self.reading])


class TrainedSegmenter(NetworkSegmenter):
    """The network of a folder of `hardlook train`, whichever it is."""

    def __init__(
        self,
        path: str,
        device: str = "cpu",
        precision: Precision = "float32",
        pairs: int = 0,
        memory: int = 2 * GIBIBYTE,
        unfinished: bool = False,
    ) -> None:
        super().__init__(path, device=device, precision=precision, pairs=pairs, memory=memory, unfinished=unfinished)


class SimPropNet(NetworkSegmenter):
    """The Baseline of TOSS, as far as texts tell."""

    network = "simpropnet"


class PFENet(NetworkSegmenter):
    """Prior guided feature enrichment."""

    network = "pfenet"


class RPMM(NetworkSegmenter):
    """Residual prototype mixtures."""

    network = "rpmm"


class PMM(NetworkSegmenter):
    """Prototype mixtures."""

    network = "pmm"


class HSNet(NetworkSegmenter):
    """Hypercorrelation squeeze."""

    network = "hsnet"


class RePRI(NetworkSegmenter):
    """Transductive inference per pair."""

    network = "repri"


class PANet(NetworkSegmenter):
    """Prototypes with alignment."""

    network = "panet"


def parse_options(text: str) -> dict[str, Any]:
    """Names and values of a text such as `steps=20, update=10 15`.

    >>> parse_options("steps=20, update=10 15")
    {'steps': 20, 'update': '10 15'}
    """
    from hardlook.training.recipes import parse_value

    found: dict[str, Any] = {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = one.partition("=")
        if not equals:
            raise OptionError(f"options={text}: {one!r} is no NAME=VALUE", remedy="such as options='bins=60 30 15 8'")
        found[name.strip()] = parse_value(value.strip())
    return found


def _count_bytes(features: Features) -> int:
    return sum(one.numel() * one.element_size() for one in features)


def _stack(supports: Sequence[Features]) -> Features:
    """(1, K, ...) of the K supports of a query."""
    import torch

    return tuple(torch.stack(parts, 1) for parts in zip(*supports, strict=True))


def _join(each: Sequence[Features]) -> Features:
    """(B, ...) of features of one image or query each."""
    import torch

    return tuple(torch.cat(parts) for parts in zip(*each, strict=True))
