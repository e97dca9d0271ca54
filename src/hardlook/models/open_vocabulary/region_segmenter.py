"""OVSeg and SimSeg as segmenters of free words: masks of any segmenter of the registry, named by CLIP.

Liang et al., Open-Vocabulary Semantic Segmentation with Mask-adapted CLIP, CVPR 2023; Xu et al., A Simple Baseline for
Open-Vocabulary Semantic Segmentation with Pre-trained Vision-Language Model, ECCV 2022. The released methods have a
MaskFormer of their own for masks and their first scores; here these are another model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.fingerprints import hash_value
from hardlook.models.families.words import normalise_name, read_words
from hardlook.models.open_vocabulary.clip_segmenter import (
    RANDOM,
    ClipSegmenter,
    Parameters,
    check_options,
    read_clip_folder,
    resize_image,
)
from hardlook.models.open_vocabulary.free_words import VILD_TEMPLATES, read_free_words
from hardlook.models.open_vocabulary.proposals import PROMPTABLE, Proposals, build_proposer, propose
from hardlook.models.open_vocabulary.text_features import TOKENIZER_FILES
from hardlook.models.roles import Image, LabelMap
from hardlook.models.torch_inference import Precision, exact_inference

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.networks.open_vocabulary.clip_text import CLIP
    from hardlook.networks.open_vocabulary.regions import RegionClassifier

PROPOSED = "proposals"
"""What `trained` says for the words that the proposing model has a label for."""
_AT_ONCE = 1 << 26  # scores of pixels in memory at a time
_PIXELS = 1 << 22  # of images whose masks are in memory together


class RegionSegmenter(ClipSegmenter):
    """OVSeg's way: a semantic segmenter whose `labels` are any words, a file with synonyms, or a label set.

    `proposals` names a panoptic, instance or promptable segmenter (clicked at `points` x `points` places),
    `proposal_args` its arguments, key=value with commas between. Each mask is cut out, on CLIP's mean colour, and CLIP
    names it; the score of a word is the geometric mean of CLIP's probability, with the exponent `share`, and the
    proposal's: its score, of which the part `trust` goes to the word that its own label is, or to the words that the
    proposing model does not know, and the rest to all words alike. A pixel has the word of the largest sum over its
    masks; without a mask it has the label `uncovered`, by default none. Words of `background` compete, and have no
    label.
    `clip` is a file of CLIP or a folder of transformers, `weights` the file of OVSeg, which may hold both;
    `weights=random:SEED` makes random parameters of `size`. `prompt` is learnt (OVSeg's tokens in place of patches
    outside of a mask) or none. `gelu` is that of the file's CLIP: quick (OpenAI) or exact (most of open_clip).
    `trained` are words, a file or a label set in which the shares are exchanged, as SimSeg does; `proposals` for those
    that the proposing model has labels for, unless `trust` is 0.
    `reading` is ours, or released: image and masks are resized first (`shorter`, `longer`), regions without a filter;
    a pixel without a mask has the first word; synonyms are one text; trained words must be written alike.
    """

    def __init__(
        self,
        labels: Sequence[str],
        proposals: str,
        clip: Path | None = None,
        weights: str = "",
        tokenizer: Path | None = None,
        proposal_args: str = "",
        templates: Sequence[str] = (),
        background: Sequence[str] = (),
        uncovered: str = "",
        prompt: Literal["learnt", "none"] = "learnt",
        share: float = 0.7,
        trust: float = 0.9,
        trained: Sequence[str] = (),
        threshold: float = 0.4,
        shorter: int = 640,
        longer: int = 2560,
        points: int = 16,
        size: str = "",
        gelu: Literal["quick", "exact"] = "quick",
        reading: Literal["ours", "released"] = "ours",
        device: str = "cpu",
        precision: Precision = "float32",
        batch: int = 32,
    ) -> None:
        check_options(reading, (shorter, longer), device, batch, precision, (640, 2560))
        _check_choices(prompt, gelu)
        _check_numbers(share, trust, threshold, points)
        import torch

        self._released = reading == "released"
        words = read_free_words(
            labels, templates, background, default=VILD_TEMPLATES, synonyms="joined" if self._released else "all"
        )
        self._uncovered = _find_uncovered(words.labels, uncovered, released=self._released)
        self._trust, self._points = trust, points
        given = _Given(str(weights), clip, tokenizer, size, prompted=prompt == "learnt", quick=gelu == "quick")
        network, tower, parameters = given.load()
        network.weight, network.threshold, network.smooth = share, threshold, not self._released
        super().__init__(
            network,
            tower.to(device),
            words,
            parameters,
            sides=(shorter, longer),
            device=device,
            precision=precision,
            batch=batch,
        )
        self._proposer = build_proposer(proposals, proposal_args, device=device)
        names = () if self._proposer.identity.role == PROMPTABLE else self._proposer.model.labels
        self._places = find_places(names, words.groups)
        known, trained_files = self._find_trained(tuple(trained))
        self._trained = torch.tensor(known, device=device) if any(known) else None
        proposing = [Path(path) for path in getattr(self._proposer.model, "weights_files", ())]
        self.weights_files = (*trained_files, *self.weights_files, *proposing)
        self.libraries = tuple(sorted({"torch", "pillow", *getattr(self._proposer.model, "libraries", ())}))
        self.conduct = (
            f"masks of {proposals} named by CLIP of {parameters.describe()}, mask prompt {prompt}, {reading}: "
            f"CLIP's share {share:g}, exchanged in {sum(known)} words; trust {trust:g} in labels of proposals, "
            f"{int((self._places >= 0).sum())} of {len(names)} of which are words; {words.describe()}"
        )

    def fingerprint(self) -> str:
        """A hash of this code, the network's, and all of the proposing model."""
        return hash_value([super().fingerprint(), self._proposer.whole_fingerprint()])

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map per image: indices into `labels`, -1 for pixels without a mask and the background."""
        maps: list[LabelMap] = []
        while len(maps) < len(images):
            some = _take_images(images[len(maps) :])
            found = propose(self._proposer, some, self._points)
            maps += [self._segment(image, one) for image, one in zip(some, found, strict=True)]
        return maps

    def _segment(self, image: Image, found: Proposals) -> LabelMap:
        import torch

        found = found.select(found.scores > 0)  # a share of 1 would give others the exponent 0, and so a part
        if not len(found.scores):
            return np.full(image.shape[:2], self._uncovered, np.int32)
        proposed = spread_scores(found, self._places, len(self._words.groups), self._trust)
        pixels = resize_image(image, self._shorter, self._longer) if self._released else np.array(image)
        with exact_inference(self._precision):
            masks = torch.from_numpy(found.masks).to(self.device)
            if self._released:
                masks = torch.nn.functional.interpolate(masks[:, None].float(), pixels.shape[:2], mode="bilinear")[:, 0]
            scores = self._network.score(
                torch.from_numpy(pixels).to(self.device).movedim(2, 0).float(),
                masks,
                torch.from_numpy(proposed).to(self.device),
                self.text,
                self._trained,
                self._words.counts,
                self._batch,
            )
            if self._released:
                classes = choose_resized(scores, masks, (image.shape[0], image.shape[1]))
                return self._words.drop_background(classes.cpu().numpy())
            best, classes = choose_classes(scores, masks)
        chosen = self._words.drop_background(classes.cpu().numpy())
        return np.where((best > 0).cpu().numpy(), chosen, np.int32(self._uncovered))

    def _find_trained(self, given: tuple[str, ...]) -> tuple[list[bool], tuple[Path, ...]]:
        """Which classes exchange the shares, and the file that says so."""
        groups = self._words.groups
        if not given:
            return [False] * len(groups), ()
        if given == (PROPOSED,):
            # Without a list of its own the released code takes no class as trained.
            if self._released or not self._trust:
                return [False] * len(groups), ()
            places = set(self._places.tolist())
            return [number in places for number in range(len(groups))], ()
        words = read_words(given)
        same = (lambda name: name) if self._released else normalise_name
        taken = {same(name) for word in words.words for name in word.names}
        return [any(same(name) in taken for name in group) for group in groups], words.source_files


class SimSeg(RegionSegmenter):
    """SimSeg's way: no mask prompt, and CLIP has less say in the words that the proposing model was trained on.

    `trained` are these words, a file or a label set; by default those that the proposing model has labels for.
    `weights` is the file of SimSeg, in place of `clip`. The other arguments are those of `RegionSegmenter`.
    """

    def __init__(
        self,
        labels: Sequence[str],
        proposals: str,
        clip: Path | None = None,
        weights: str = "",
        tokenizer: Path | None = None,
        proposal_args: str = "",
        templates: Sequence[str] = (),
        background: Sequence[str] = (),
        uncovered: str = "",
        share: float = 0.8,
        trust: float = 0.9,
        trained: Sequence[str] = (PROPOSED,),
        threshold: float = 0.4,
        shorter: int = 512,
        longer: int = 2048,
        points: int = 16,
        size: str = "",
        gelu: Literal["quick", "exact"] = "quick",
        reading: Literal["ours", "released"] = "ours",
        device: str = "cpu",
        precision: Precision = "float32",
        batch: int = 32,
    ) -> None:
        given = (labels, proposals, clip, weights, tokenizer, proposal_args, templates, background, uncovered)
        numbers = (share, trust, trained, threshold, shorter, longer, points)
        super().__init__(*given, "none", *numbers, size, gelu, reading, device, precision, batch)


@dataclass(frozen=True)
class _Given:
    """The arguments that say where parameters come from."""

    weights: str
    clip: Path | None
    tokenizer: Path | None
    size: str
    prompted: bool
    quick: bool

    def load(self) -> tuple[RegionClassifier, CLIP, Parameters]:
        """The classifier of regions, the text tower, and the files; a folder's tokenizer goes with its CLIP."""
        from hardlook.networks.open_vocabulary.region_checkpoints import build_random_regions, load_regions

        clip = self.clip if self.weights.startswith(RANDOM) else None  # of files it may be a folder in parts
        parsed = Parameters.parse(self.weights, clip, self.tokenizer, self.size)
        if parsed.seed is not None:
            parsed = replace(parsed, size=self.size or "ViT-B-16")
            network, tower = build_random_regions(parsed.size, seed=parsed.seed or 0, prompted=self.prompted)
            return network, tower, parsed
        own = Path(self.weights).expanduser() if self.weights else None
        parts, config, quick, tokenizer = self._find_clip()
        network, tower = load_regions(own, parts, prompted=self.prompted, quick=quick)
        files = (*((own,) if own else ()), *config, *parts)
        # Vectors of texts are kept by files and size; the GELU changes them as well.
        return network, tower, Parameters(files, tokenizer, size="" if quick else "exact GELU")

    def _find_clip(self) -> tuple[tuple[Path, ...], tuple[Path, ...], bool, Path | None]:
        """The files of weights, the settings, whether the GELU is the quick one, and the tokenizer's folder."""
        if self.clip is None:
            return (), (), self.quick, self.tokenizer
        path = Path(self.clip).expanduser()
        if not path.is_dir():
            return (path,), (), self.quick, self.tokenizer
        config, quick, parts = read_clip_folder(path)
        beside = path if all((path / name).is_file() for name in TOKENIZER_FILES) else None
        return parts, (config,), quick, self.tokenizer or beside


def spread_scores(found: Proposals, places: NDArray[np.int32], classes: int, trust: float) -> NDArray[np.float32]:
    """What proposals say of the words: (n, classes) float32, in sum a proposal's score.

    `places` (L,) are the classes of the proposing model's labels, -1 for labels that are no word; `trust` is the part
    of a score that goes to the label's word, or to the words of no label where it is no word. The rest goes to all.

    >>> found = Proposals(np.ones((2, 1, 1), bool), np.array([1, 0.5], np.float32), np.array([0, 1], np.int32))
    >>> spread_scores(found, np.array([2, -1]), 4, 0.8).astype(float).round(3).tolist()
    [[0.05, 0.05, 0.85, 0.05], [0.158, 0.158, 0.025, 0.158]]
    """
    new = np.ones(classes, bool)
    new[[place for place in places.tolist() if place >= 0]] = False
    unnamed = (new if new.any() else np.ones(classes, bool)).astype(np.float32)
    own = np.tile(unnamed / unnamed.sum(), (len(found.scores), 1))
    for row, label in enumerate(found.labels.tolist()):
        if label < 0:
            own[row] = 1 / classes
        elif (place := int(places[label])) >= 0:
            own[row] = np.arange(classes) == place
    return np.asarray((trust * own + (1 - trust) / classes) * found.scores[:, None], np.float32)


def find_places(names: Sequence[str], groups: Sequence[Sequence[str]]) -> NDArray[np.int32]:
    """The class (L,) that each name is, -1 for none; case, blanks, _ and - do not count.

    >>> find_places(["Dining_Table", "cat"], [["sofa"], ["table", "dining table"]]).tolist()
    [1, -1]
    """
    known = {normalise_name(name): number for number, group in reversed(list(enumerate(groups))) for name in group}
    return np.array([known.get(normalise_name(name), -1) for name in names], np.int32)


def choose_classes(scores: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
    """The largest score of each pixel (H, W) and its class: scores (Q, C) are summed over the masks (Q, H, W) bool.

    The first of equal classes counts. Rows of pixels are worked on a few at a time, so that memory stays bounded.
    """
    import torch

    height, width = masks.shape[1:]
    rows = max(1, _AT_ONCE // (width * (scores.shape[1] + len(masks))))
    parts = [
        torch.einsum("qc,qhw->chw", scores, masks[:, top : top + rows].to(scores.dtype)).max(0)
        for top in range(0, height, rows)
    ]
    return torch.cat([part.values for part in parts]), torch.cat([part.indices for part in parts])


def choose_resized(scores: Tensor, masks: Tensor, size: tuple[int, int]) -> Tensor:
    """The class of each pixel (H, W) of an image of `size`, from masks (Q, h, w) of another: sums are resized."""
    import torch

    best: Tensor | None = None
    classes = torch.zeros(size, dtype=torch.int64, device=scores.device)
    several = max(1, _AT_ONCE // (size[0] * size[1]))
    for first in range(0, scores.shape[1], several):
        part = torch.einsum("qc,qhw->chw", scores[:, first : first + several], masks)
        large = torch.nn.functional.interpolate(part[None], size, mode="bilinear")[0].max(0)
        if best is None:
            best, classes = large.values, large.indices
        else:
            better = large.values > best
            best = torch.where(better, large.values, best)
            classes = torch.where(better, large.indices + first, classes)
    return classes


def _take_images(images: Sequence[Image]) -> Sequence[Image]:
    """The first image and as many more as a hundred masks of each fit into memory with."""
    pixels = np.cumsum([image.shape[0] * image.shape[1] for image in images])
    return images[: max(1, int((pixels <= _PIXELS).sum()))]


def _find_uncovered(labels: Sequence[str], name: str, *, released: bool) -> int:
    if released:
        if name:
            raise OptionError("the released code has the first word for uncovered pixels", remedy="leave uncovered out")
        return 0
    if not name:
        return -1
    places = {normalise_name(label): place for place, label in enumerate(labels)}
    if normalise_name(name) not in places:
        remedy = "name one of the labels, or leave it out: such pixels have no label then"
        raise OptionError(f"uncovered={name} is no label of the model", remedy=remedy)
    return places[normalise_name(name)]


def _check_choices(prompt: str, gelu: str) -> None:
    for name, value, known in (("prompt", prompt, ("learnt", "none")), ("gelu", gelu, ("quick", "exact"))):
        if value not in known:
            raise OptionError(f"{name} is {value!r}", remedy=" or ".join(known))


def _check_numbers(share: float, trust: float, threshold: float, points: int) -> None:
    if not 0 <= share <= 1:
        raise OptionError(f"share is {share}", remedy="CLIP's share, from 0 to 1")
    if not 0 <= trust < 1:
        raise OptionError(f"trust is {trust}", remedy="a part of the score, from 0 to below 1")
    if not 0 < threshold < 1:
        raise OptionError(f"threshold is {threshold}", remedy="a probability above 0 and below 1")
    if points < 1:
        raise OptionError(f"points is {points}", remedy="at least 1")
