"""A trained semantic projection as a segmenter of free words, and the vectors of the words it chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_sources, hash_value
from hardlook.models.answer_checks import check_answers
from hardlook.models.families.words import Word, read_words
from hardlook.models.feature_cache import CachedEncoder, default_cache_folder
from hardlook.models.identity import sources_of
from hardlook.models.named_model import NamedModel, build_named
from hardlook.models.registry import takes_argument
from hardlook.models.roles import Image, LabelMap
from hardlook.models.torch_inference import exact_inference
from hardlook.open_vocabulary.vocabulary import BACKGROUND
from hardlook.similarity.labels import normalise_name

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.networks.open_vocabulary.projection import SemanticProjection

NEVER = -1e9
"""The score of a label that has no vector."""

_LISTED = 20


@dataclass(frozen=True, eq=False)
class WordTable:
    """Vectors (M, D) float32 of length 1 of names, the label (M,) that each name stands for, and labels without any."""

    vectors: NDArray[np.float32]
    owners: NDArray[np.int64]
    without: tuple[str, ...]


def build_text_encoder(name: str, args: dict[str, Any], device: str = "cpu") -> NamedModel:
    """The text encoder `name`; one that does not know all words says so by a vector of zeros."""
    given = dict(args)
    if takes_argument(name, "text-encoder", "unknown"):
        given.setdefault("unknown", "zero")
    if takes_argument(name, "text-encoder", "device"):
        given.setdefault("device", device)
    return build_named(name, "text-encoder", given)


def encode_words(encoder: Any, words: Sequence[Word], *, synonyms: bool = False) -> WordTable:
    """The vectors of labels: of the first of its names that the encoder knows, or with `synonyms` of all of these."""
    names = [name for word in words for name in word.names]
    owners = np.array([place for place, word in enumerate(words) for _ in word.names], np.int64)
    vectors = np.asarray(encoder.encode_text(names), np.float32)
    check_answers("text-encoder", encoder, vectors, names)
    lengths = np.linalg.norm(vectors, axis=1)
    known = np.flatnonzero(lengths > 0)
    if not synonyms:
        known = known[np.unique(owners[known], return_index=True)[1]]
    missing = sorted(set(range(len(words))) - set(owners[known].tolist()))
    units = vectors[known] / lengths[known, None]
    return WordTable(units, owners[known], tuple(words[place].label for place in missing))


class WordProjection:
    """The semantic projection in a folder of `hardlook train semantic-projection`, with any `labels`.

    `labels` are words, a file, or a label set; *background* is the vector that was learnt for what the training images
    do not name. A label has the vector of the first of its names that has one; with `synonyms` the best of all names
    counts. A label without any is an error, or with `unknown=never` is never predicted and counted in the report.
    `seen_penalty` is taken from the cosines of words that were trained, so that others have a chance. With `cached`
    every image is encoded once and its features are kept on disk.
    """

    def __init__(
        self,
        path: str,
        labels: Sequence[str],
        device: str = "cpu",
        synonyms: bool = False,
        unknown: Literal["error", "never"] = "error",
        seen_penalty: float = 0.0,
        cached: bool = True,
        unfinished: bool = False,
    ) -> None:
        require("torch", extra="torch")
        import torch

        if unknown not in ("error", "never"):
            raise OptionError(f"unknown={unknown}: there is no such rule", remedy="error or never")
        folder = Path(path).expanduser()
        self._network, self.card = load_projection(folder, unfinished=unfinished)
        recipe = self.card["identity"]["recipe"]
        words = read_words(labels)
        self.labels: Sequence[str] = words.labels
        text = build_text_encoder(recipe["text"], recipe["text_args"], device)
        others = [word for word in words.words if not is_background(word)]
        table = encode_words(text.model, others, synonyms=synonyms)
        if table.without and unknown == "error":
            listed = ", ".join(table.without[:_LISTED])
            more = f" and {len(table.without) - _LISTED} more" if len(table.without) > _LISTED else ""
            what = f"{len(table.without)} of {len(words.labels)} labels have no vector of {recipe['text']}: "
            remedy = "write a known word after a comma in a file of labels, or pass --model-arg unknown=never"
            raise OptionError(what + listed + more, remedy=remedy)
        places = np.array([place for place, word in enumerate(words.words) if not is_background(word)], np.int64)
        backgrounds = [place for place, word in enumerate(words.words) if is_background(word)]
        size = (len(backgrounds), text.model.dimension)
        self._words = torch.from_numpy(np.concatenate([table.vectors, np.zeros(size, np.float32)])).to(device)
        owners = np.concatenate([places[table.owners], np.array(backgrounds, np.int64)])
        self._owner_list: list[int] = owners.tolist()
        self._background = torch.arange(len(owners), device=device) >= len(table.owners)
        trained = {normalise_name(name) for name in self.card["trained_words"]}
        seen = [any(normalise_name(name) in trained for name in (word.label, *word.names)) for word in words.words]
        taken = [seen_penalty * seen[owner] for owner in self._owner_list]
        self._penalties = torch.tensor(taken, dtype=torch.float32, device=device)
        inner = build_named(recipe["encoder"], "encoder", add_device(recipe["encoder"], recipe["encoder_args"], device))
        self._encoder: Any = inner.model
        if cached:
            self._encoder = CachedEncoder(inner.model, inner.whole_fingerprint(), default_cache_folder())
        self._network.to(device).eval()
        self._parts = (inner.fingerprint(), text.fingerprint())
        self.device = device
        self.weights_files: tuple[Path, ...] = (*self._list_files(folder), *words.source_files)
        for one in (inner.model, text.model):
            self.weights_files += tuple(Path(file) for file in getattr(one, "weights_files", ()))
        unknown_words = f", {len(table.without)} labels without a vector never predicted" if table.without else ""
        self.conduct = (
            f"{recipe['encoder']} projected to {recipe['text']}, trained with {len(self.card['trained_words'])} words; "
            f"{len(table.owners)} names of {len(words.labels)} labels{unknown_words}"
        )

    def _list_files(self, folder: Path) -> tuple[Path, ...]:
        from hardlook.training.checkpoint import list_weights_files

        return list_weights_files(folder)

    def fingerprint(self) -> str:
        """A hash of this code and the network's, the recipe, and the two encoders."""
        sources = hash_sources(sorted({*sources_of(type(self)), *sources_of(type(self._network))}))
        recipe = self.card["identity"]["recipe"]
        return hash_value([sources, recipe, list(self.card["trained_words"]), *self._parts])

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map of indices into `labels` per image."""
        import torch

        answers: list[LabelMap] = []
        features = self._encoder.encode(images)
        if features.maps is None:
            raise ModelError("the encoder has no maps", remedy="train on an encoder that gives maps")
        for image, features_map in zip(images, features.maps, strict=True):
            with exact_inference():
                given = torch.from_numpy(np.array(features_map)).to(self.device).movedim(0, -1)
                answers.append(self._name_pixels(given, image.shape[0], image.shape[1]))
        return answers

    def _name_pixels(self, features: Tensor, height: int, width: int) -> LabelMap:
        """Scores of the cells (h, w, C), resized; then each pixel has its best label."""
        import torch

        network = self._network
        scale = network.log_scale.exp()
        scores = network.score(features, self._words, self._background) - scale * self._penalties
        best = scores.new_full((*scores.shape[:2], len(self.labels)), NEVER)
        if len(set(self._owner_list)) == len(self._owner_list):
            best[..., self._owner_list] = scores
        else:
            for place, owner in enumerate(self._owner_list):
                best[..., owner] = torch.maximum(best[..., owner], scores[..., place])
        kept = find_possible_labels(best)
        resized = torch.nn.functional.interpolate(
            best[..., kept].movedim(-1, 0)[None].contiguous(), (height, width), mode="bilinear", align_corners=False
        )
        return np.asarray(kept[resized[0].argmax(0)].to(torch.int32).cpu().numpy())


def find_possible_labels(scores: Tensor) -> Tensor:
    """(k,) the labels that may win a pixel when scores (h, w, K) of cells are interpolated, in order.

    A pixel lies between four cells at most. A label that is below one other label in all four of them is below it
    there, too; of a hundred labels that leaves few to resize.
    """
    import torch

    rows, columns = ([slice(0, -1), slice(1, None)] if side > 1 else [slice(None)] for side in scores.shape[:2])
    corners = torch.stack([scores[row, column] for row in rows for column in columns])
    leaders = corners.sum(0).argmax(-1, keepdim=True).expand(*corners.shape[:-1], 1)
    reached = corners >= corners.gather(-1, leaders)
    return reached.flatten(0, 2).any(0).nonzero()[:, 0]


def is_background(word: Word) -> bool:
    """Whether the label is what no other label names."""
    return normalise_name(word.text) == BACKGROUND


def add_device(name: str, args: dict[str, Any], device: str) -> dict[str, Any]:
    """The arguments of an encoder with its device, where it takes one."""
    return {**args, "device": device} if takes_argument(name, "encoder", "device") else dict(args)


def load_projection(folder: Path, *, unfinished: bool = False) -> tuple[SemanticProjection, dict[str, Any]]:
    """The network of a checkpoint folder with its weights, on the CPU, and its card with the words that trained it."""
    from hardlook.networks.open_vocabulary.projection import SemanticProjection
    from hardlook.training.checkpoint import load_weights, read_card, read_weights
    from hardlook.training.projection.trainee import KIND

    card = read_card(folder)
    if card.get("kind") != KIND:
        what = f"the folder holds {card.get('method', card.get('backbone'))}, not a semantic projection"
        raise ModelError(what, file=folder, remedy="a folder of hardlook train semantic-projection")
    if not card.get("finished") and not unfinished:
        what = f"the training is not finished: its best weights are of step {card['selected']['step']}"
        remedy = "give its command again to resume it, or pass --model-arg unfinished=true"
        raise ModelError(what, file=folder, remedy=remedy)
    try:
        recipe = card["identity"]["recipe"]
        network = SemanticProjection(int(card["channels"]), int(card["dimension"]), hidden=int(recipe["hidden"]))
        card["trained_words"] = [str(one) for one in card["identity"]["classes"]]
        dict(recipe["encoder_args"]), dict(recipe["text_args"]), str(recipe["encoder"]), str(recipe["text"])
    except (KeyError, TypeError, ValueError) as error:
        what = f"checkpoint.json describes no semantic projection: {error}"
        raise ModelError(what, file=folder, remedy="copy the folder again") from error
    load_weights(network, read_weights(folder), file=folder)
    return network, card
