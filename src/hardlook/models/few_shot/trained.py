"""A checkpoint folder of `hardlook train` as a few-shot learner, and as an encoder for other learners.

A method that classifies by a rule on features has each image encoded once and takes features or maps; so does one whose
rule is a registered learner (`learner`). A method that adapts its encoder takes images. Tasks of one shape are scored
together. A class with fewer supports than another repeats its own in turn, since methods need as many of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.caching import ArrayCache
from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.fingerprints import hash_array, hash_sources, hash_value
from hardlook.models.identity import sources_of
from hardlook.models.registry import build
from hardlook.models.roles import Episode, Features, Image
from hardlook.models.torch_inference import exact_inference
from hardlook.reading import reading

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.models.few_shot.table_episodes import TableEpisodes

MAX_TASKS, MAX_BYTES = 64, 1 << 28
CACHE_BYTES = 1 << 28


class TrainedModel:
    """A trained network in evaluation mode.

    `path` is the folder; `device` where it runs. A training that is not finished is an error unless `unfinished`.
    """

    def __init__(self, path: str, device: str = "cpu", unfinished: bool = False) -> None:
        require("torch", extra="torch")
        from hardlook.training.checkpoint import CARD, list_weights_files, load_weights, read_card, read_weights

        self.folder, self.device = Path(path).expanduser(), device
        self.card = read_card(self.folder)
        if not self.card.get("finished") and not unfinished:
            raise ModelError(
                f"the training is not finished: its best weights are of step {self.card['selected']['step']}",
                file=self.folder,
                remedy="give its command again to resume it, or pass --model-arg unfinished=true",
            )
        self.weights_files = list_weights_files(self.folder)
        again = "copy the folder again"
        with reading(self.folder / CARD, "checkpoint.json describes no network", remedy=again, kind=ModelError):
            network = build_network(self.card)
            self.size, self.stored = int(self.card["image_size"]), int(self.card["stored_size"])
        load_weights(network, read_weights(self.folder), file=self.folder)
        # Parameters may be differentiated: some methods do so when they adapt to supports.
        self.network: Any = network.to(device).eval()
        self.inputs = str(getattr(self.network, "inputs", "vectors"))
        self._prepared = ArrayCache(CACHE_BYTES)
        self._dimension = 0

    @property
    def backbone(self) -> Any:
        """The encoder of the method, or the network itself where only a backbone was imported."""
        return getattr(self.network, "emb_func", self.network)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        if not self._dimension:
            self._dimension = int(self.encode([np.zeros((8, 8, 3), np.uint8)]).vectors.shape[1])
        return self._dimension

    def resize(self, image: Image) -> Image:
        """The image squashed to the size that crops are cut from; to encode it gives the same features."""
        if image.shape[:2] == (self.stored, self.stored):
            return image
        whole = PIL.Image.fromarray(np.ascontiguousarray(image))
        return np.array(whole.resize((self.stored, self.stored), PIL.Image.Resampling.BILINEAR), np.uint8)

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, D) of the images' centres; maps and tokens are averaged, and maps are given too."""
        with exact_inference():
            found = self.backbone(self.prepare(images)).float()
            if found.ndim == 2:
                return Features(found.cpu().numpy())
            vectors = found.mean((2, 3)) if found.ndim == 4 else found[:, 1:].mean(1)
            maps = [one.cpu().numpy() for one in found] if found.ndim == 4 else None
            return Features(vectors.cpu().numpy(), maps)

    def prepare(self, images: Sequence[Image]) -> Tensor:
        """(N, 3, size, size) float32 on the device, cut out of the centre and scaled as in training."""
        import torch

        from hardlook.training.images.colours import scale_colours

        margin = (self.stored - self.size) // 2
        inside = slice(margin, margin + self.size)
        cut = np.stack([self._resize_once(image)[inside, inside] for image in images])
        return scale_colours(torch.from_numpy(cut).to(self.device).movedim(-1, 1).float())

    def _resize_once(self, image: Image) -> Image:
        # An image is in twenty tasks or so, and each time another copy of it may come.
        return self._prepared.get_or_create(hash_array(image), partial(self.resize, image))

    def fingerprint(self) -> str:
        """A hash of the code of this model and of its network."""
        files = {*sources_of(type(self)), *sources_of(type(self.network))}
        return hash_value(
            [hash_sources(files), self.card["method"] if "method" in self.card else self.card["backbone"]]
        )


class TrainedLearner(TrainedModel):
    """A trained few-shot method; see the module."""

    def __init__(self, path: str, device: str = "cpu", unfinished: bool = False) -> None:
        super().__init__(path, device, unfinished)
        if self.card["kind"] != "few-shot":
            what = f"the folder holds a {self.card['kind']} alone, which has no rule to classify by"
            raise ModelError(what, file=self.folder, remedy="give it as --encoder, with a learner as --model")
        self.learner: Any = None
        name = self.network.learner
        if name is not None:
            self.learner = build(name, "few-shot-learner")
        self.accepts = self._choose_input()
        self.transductive = bool(self.network.transductive)
        self.flags = read_flags(self.card["method"], self.network)

    @property
    def own_encoder(self) -> str:
        """The model whose features it takes: its own network."""
        return str(self.folder)

    @property
    def own_encoder_args(self) -> str:
        """The arguments of that model."""
        return ",".join([f"device={self.device}", *(() if self.card.get("finished") else ("unfinished=true",))])

    def _choose_input(self) -> str:
        from hardlook.training.few_shot import scores_features

        if self.learner is not None:
            return str(self.learner.accepts)
        if not scores_features(self.network):
            return "images"
        # Asked of the network itself: a method may put layers of its own behind a backbone of maps.
        with exact_inference():
            axes = self.backbone(self.prepare([np.zeros((8, 8, 3), np.uint8)])).ndim
        return {2: "features", 4: "maps"}.get(axes, "images")

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) scores per episode."""
        if self.learner is not None:
            return self._classify_by_learner(episodes)
        from hardlook.models.few_shot.table_episodes import TableEpisodes

        if isinstance(episodes, TableEpisodes):
            self._check_ways(episodes.ways)
            return list(self._score_table(episodes))
        groups: dict[tuple[int, int, int], list[int]] = {}
        for place, episode in enumerate(episodes):
            most = int(np.bincount(episode.support_labels, minlength=episode.ways).max())
            groups.setdefault((episode.ways, most, len(episode.query)), []).append(place)
        answers: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(episodes)
        for (ways, shots, queries), places in groups.items():
            self._check_ways(ways)
            first = episodes[places[0]]
            size = self._count_tasks(first, shots, queries)
            for start in range(0, len(places), size):
                part = places[start : start + size]
                scores = self._score([episodes[place] for place in part])
                for place, score in zip(part, scores, strict=True):
                    answers[place] = score
        return answers

    def _check_ways(self, ways: int) -> None:
        """An error where the network's layers are made for tasks of another number of classes."""
        trained = int(self.card["identity"]["recipe"]["ways"])
        if self.network.fixed_ways and ways != trained:
            what = (
                f"{self.card['method']} was trained on tasks of {trained} ways and answers no others; asked for {ways}"
            )
            raise ModelError(
                what, file=self.folder, remedy=f"pass --ways {trained}, or train it with --set ways={ways}"
            )

    def _classify_by_learner(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """The learner's answers; a method may publish its inverse penalty by the number of shots."""
        learner = self.learner
        if hasattr(self.network, "penalty") and len(episodes):
            shots = int(np.bincount(episodes[0].support_labels).max())
            learner = build(self.network.learner, "few-shot-learner", {"c": self.network.penalty(shots)})
        found: list[NDArray[np.float32]] = learner.classify(episodes)
        return found

    def _count_tasks(self, episode: Episode, shots: int, queries: int) -> int:
        """How many tasks of this shape are scored together."""
        one = 12 * self.size**2 if self.accepts == "images" else np.asarray(episode.query[0]).nbytes
        return max(1, min(MAX_TASKS, MAX_BYTES // max(1, one * (shots * episode.ways + queries))))

    def _score(self, episodes: Sequence[Episode]) -> NDArray[np.float32]:
        """(T, queries, ways) of episodes of one shape."""
        import torch

        orders = [repeat_supports(one.support_labels, one.ways) for one in episodes]
        if self.accepts == "images":
            support = torch.stack(
                [
                    self.prepare([one.support[row] for row in order.ravel().tolist()])
                    for one, order in zip(episodes, orders, strict=True)
                ]
            )
            query = torch.stack([self.prepare(list(one.query)) for one in episodes])
        else:
            support, query = (
                torch.from_numpy(np.stack(rows)).to(self.device)
                for rows in (
                    [np.asarray(one.support)[order.ravel()] for one, order in zip(episodes, orders, strict=True)],
                    [np.asarray(one.query) for one in episodes],
                )
            )
        return self._answer(
            support.view(len(episodes), *orders[0].shape, *support.shape[2:]), query, [one.key for one in episodes]
        )

    def _score_table(self, episodes: TableEpisodes) -> Iterator[NDArray[np.float32]]:
        """Scores of tasks whose images are rows of one table."""
        import torch

        order = repeat_supports(episodes.labels, episodes.ways)
        size = max(
            1, min(MAX_TASKS, MAX_BYTES // max(1, episodes.table[0].nbytes * (order.size + episodes.query.shape[1])))
        )
        for start in range(0, len(episodes), size):
            part = slice(start, start + size)
            support, query = (
                torch.from_numpy(np.asarray(episodes.table[rows])).to(self.device)
                for rows in (episodes.support[part][:, order.ravel()], episodes.query[part])
            )
            yield from self._answer(
                support.view(len(support), *order.shape, *support.shape[2:]), query, episodes.keys[part]
            )

    def _answer(self, support: Tensor, query: Tensor, keys: Sequence[str]) -> NDArray[np.float32]:
        from hardlook.networks.few_shot.method import Episodes

        given = Episodes(support, query, keys=tuple(keys))
        with exact_inference(inner_gradients=True):
            found = self.network.classify(given) if self.accepts == "images" else self.network.score(given)
        scores: NDArray[np.float32] = found.float().cpu().numpy()
        return scores


def repeat_supports(labels: NDArray[np.int64], ways: int) -> NDArray[np.int64]:
    """(ways, shots) places of supports, class by class; a class with fewer than another repeats its own in turn.

    >>> repeat_supports(np.array([1, 0, 0, 0, 1]), 2).tolist()
    [[1, 2, 3], [0, 4, 0]]
    """
    places = [np.flatnonzero(labels == one) for one in range(ways)]
    most = max(map(len, places))
    return np.stack([np.resize(one, most) for one in places])


def build_network(card: Mapping[str, Any]) -> Any:
    """The network that a card describes, with random weights."""
    from hardlook.training.imported_weights import build_from_card

    if card["kind"] == "backbone":
        return build_from_card(card)
    from hardlook.training.few_shot import build_method
    from hardlook.training.recipes import Recipe, StageRecipe

    identity = card["identity"]
    kept = {key: value for key, value in identity["recipe"].items() if key not in ("stages", "changed")}
    # Stages say how it was trained and not what it is.
    recipe = Recipe(**kept, stages=(StageRecipe(),))
    return build_method(recipe, classes=len(identity["classes"]), size=int(card["image_size"]), seed=0)


def read_flags(method: str, network: Any) -> tuple[str, ...]:
    """GL where it was trained on classes, LL where on tasks, TT where it adapts to the supports of a test."""
    from hardlook.models.registry import find
    from hardlook.networks.few_shot.catalogue import find_method

    entry = find_method(method)
    learner = network.learner if network is not None else entry.learner
    adapts = learner is not None and not entry.adapts and "TT" in find(learner).card.marks
    return (*entry.flags, "TT") if adapts else entry.flags
