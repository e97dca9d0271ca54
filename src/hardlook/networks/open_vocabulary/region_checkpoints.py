"""The regions of OVSeg and SimSeg from files: a CLIP, and the mask prompt of OVSeg's file, in one file or in two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from hardlook.errors import ModelError, OptionError
from hardlook.networks.loading import check_keys, check_types
from hardlook.networks.open_vocabulary.clip_files import INNER, find_image_size, find_text_size, read_clip
from hardlook.networks.open_vocabulary.clip_text import CLIP, TEXT_SIZES
from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES
from hardlook.networks.open_vocabulary.regions import RegionClassifier

PROMPT = "visual.mask_embedding"
_OTHER, _SCALE = "non_object_embedding", "logit_scale"


def load_regions(
    weights: Path | None, clip: Sequence[Path] = (), *, prompted: bool, quick: bool = True
) -> tuple[RegionClassifier, CLIP]:
    """The classifier of regions and CLIP's text tower.

    `weights` is the file of OVSeg or SimSeg, `clip` a file of CLIP or its parts; either may hold all. What both have
    is taken from `weights`, whose tower may be trained further. `prompted` asks for OVSeg's mask prompt, `quick` for
    the GELU of OpenAI's weights.
    """
    if weights is None and not clip:
        raise OptionError("there are no weights", remedy="--model-arg clip=FILE-OR-FOLDER of a CLIP, or weights=FILE")
    own = read_clip([weights]) if weights is not None else {}
    given = read_clip(clip) if clip else {}
    state = {**given, **own}
    if weights is not None:
        _check_towers(own, given, weights)

    def find_file(key: str) -> Path:
        return weights if weights is not None and (key in own or not clip) else clip[0]

    for key, part in (("visual.conv1.weight", "image"), ("token_embedding.weight", "text")):
        if key not in state:
            missing = "--model-arg clip=FILE-OR-FOLDER: the weights of CLIP"
            raise ModelError(
                f"the weights hold no {part} tower of CLIP ({key})",
                file=find_file(key),
                remedy=missing if not clip else "give a whole CLIP on a vision transformer as clip=FILE-OR-FOLDER",
            )
    if prompted and (PROMPT not in state or state[PROMPT].ndim != 3):
        raise ModelError(
            f"the weights hold no mask prompt ({PROMPT})",
            file=find_file(PROMPT),
            remedy="--model-arg weights=FILE of OVSeg, beside clip; or prompt=none for a CLIP without",
        )
    image = find_image_size(state, find_file("visual.conv1.weight"), quick=quick)
    text = find_text_size(state, find_file("token_embedding.weight"), quick=quick)
    if image.output != text.output:
        raise ModelError(
            f"images have {image.output} dimensions and texts {text.output}: towers of two CLIPs",
            file=find_file("token_embedding.weight"),
            remedy="give both towers of one CLIP",
        )
    depth = len(state[PROMPT]) if prompted else 0
    with torch.device("meta"):  # without the time of random numbers that the files replace
        network, tower = RegionClassifier(image, prompts=depth), CLIP(text=text)
    wanted = {f"{INNER}{key}": value for key, value in state.items() if key.startswith("visual.")}
    if not prompted:
        wanted.pop(f"{INNER}{PROMPT}", None)
    # The vector of no object is left out of the probabilities of words.
    wanted[f"clip_adapter.{_OTHER}"] = state.get(_OTHER, torch.zeros(1, image.output))
    _fill(network, wanted, find_file("visual.conv1.weight"))
    words = {key: value for key, value in state.items() if not key.startswith("visual.") and key != _OTHER}
    words.setdefault(_SCALE, torch.tensor(0.0))  # never read here
    _fill(tower, words, find_file("token_embedding.weight"))
    return network.eval().requires_grad_(False), tower.eval().requires_grad_(False)


def build_random_regions(size: str, *, seed: int, prompted: bool) -> tuple[RegionClassifier, CLIP]:
    """The classifier of regions and the text tower of the CLIP of that name, with random parameters."""
    known = [name for name in VIT_SIZES if name in TEXT_SIZES]
    if size not in known:
        raise OptionError(f"there is no CLIP {size!r} for regions", remedy=f"one of {', '.join(known)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        tower = CLIP(text=TEXT_SIZES[size])  # drawn first: texts are the same with a mask prompt and without
        network = RegionClassifier(size, prompts=3 if prompted else 0)
    return network.eval().requires_grad_(False), tower.eval().requires_grad_(False)


def _check_towers(own: Mapping[str, Tensor], given: Mapping[str, Tensor], file: Path) -> None:
    """Raise an error for a file with a part of a tower, the rest of which would be that of another CLIP."""
    for part, of_images in (("image", True), ("text", False)):
        tower, whole = (
            {key for key in keys if key.startswith("visual.") == of_images and key not in (PROMPT, _OTHER, _SCALE)}
            for keys in (own, given)
        )
        if tower and (missing := sorted(whole - tower)):
            raise ModelError(
                f"the file lacks {len(missing)} weights of its {part} tower of CLIP, such as {missing[0]}",
                file=file,
                remedy="give a file with all of the tower, or with none of it",
            )


def _fill(network: nn.Module, state: Mapping[str, Tensor], file: Path) -> None:
    if differences := check_keys(network, state):
        raise ModelError(
            f"the weights do not fit a CLIP on a vision transformer: {differences}",
            file=file,
            remedy="give a file of OpenAI's or open_clip's names, or a folder of transformers",
        )
    check_types(network, state, file=file)
    network.load_state_dict(dict(state), assign=True)
