"""FC-CLIP from files: the published ones hold no CLIP, whose weights come from a file of open_clip."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from hardlook.errors import ModelError, OptionError
from hardlook.networks.loading import KeyDifferences, check_keys, load_state_dict
from hardlook.networks.open_vocabulary.clip_convnext import CONVNEXT_SIZES
from hardlook.networks.open_vocabulary.clip_resnet import RESNET_SIZES
from hardlook.networks.open_vocabulary.clip_text import TEXT_SIZES
from hardlook.networks.open_vocabulary.fc_clip import FCCLIP

CLIP_PREFIX = "backbone.clip_model."
_WIDTH_KEY, _OUTPUT_KEY = "sem_seg_head.pixel_decoder.input_proj.0.0.weight", "void_embedding.weight"
_NOT_WEIGHTS = ("input_resolution", "context_length", "vocab_size")
"""What OpenAI's files hold beside weights."""


def list_sizes() -> dict[str, tuple[int, int]]:
    """The CLIPs by name, each with the channels of its last map and the length of its vectors, which no two share."""
    found = {name: (size.widths[-1], size.output) for name, size in CONVNEXT_SIZES.items()}
    return found | {name: (32 * size.width, size.output) for name, size in RESNET_SIZES.items()}


def load_fc_clip(weights: Path, clip: Path | None = None, *, released: bool = False) -> FCCLIP:
    """The network of the file `weights`, with CLIP from the same file or from `clip`, in open_clip's names.

    The loss's weights of classes and counts of batches, which inference never reads, may be missing.
    """
    state = dict(load_state_dict(weights).state)
    name = _find_size(state, weights)
    if not any(key.startswith(CLIP_PREFIX) for key in state):
        if clip is None:
            raise ModelError(
                "the file holds no weights of CLIP, as FC-CLIP's published ones",
                file=weights,
                remedy=f"--model-arg clip=FILE: the weights of open_clip's {name}, .safetensors or .bin",
            )
        given = load_state_dict(clip).state
        state |= {CLIP_PREFIX + key: value for key, value in given.items() if key not in _NOT_WEIGHTS}
    with torch.device("meta"):  # without the time of random numbers that the files replace
        network = FCCLIP.build(name, released=released)
    _complete(network, state)
    if found := check_keys(network, state):
        for file, part in ((clip or weights, True), (weights, False)):
            if differences := _select(found, clip=part):
                raise ModelError(
                    f"the weights are none of {f'the CLIP {name}' if part else 'FC-CLIP'}: {differences}",
                    file=file,
                    remedy=f"give a file of {f'open_clip: {name}' if part else 'the authors of FC-CLIP'}",
                )
    full = {key: value.float() if value.is_floating_point() else value for key, value in state.items()}
    network.load_state_dict(full, assign=True)
    return network.eval().requires_grad_(False)


def build_random(size: str = "RN50", *, seed: int, released: bool = False) -> FCCLIP:
    """The network on the CLIP of that name with random parameters."""
    if size not in list_sizes():
        raise OptionError(f"there is no CLIP {size!r} for FC-CLIP", remedy=f"one of {', '.join(list_sizes())}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return FCCLIP.build(size, released=released).eval().requires_grad_(False)


def _find_size(state: Mapping[str, Tensor], path: Path) -> str:
    missing = [key for key in (_WIDTH_KEY, _OUTPUT_KEY) if key not in state or state[key].ndim < 2]
    if missing:
        raise ModelError(
            f"the file has no {missing[0]}: not one of FC-CLIP", file=path, remedy="give clip=FILE for weights of CLIP"
        )
    shape = state[_WIDTH_KEY].shape[1], state[_OUTPUT_KEY].shape[1]
    name = next((name for name, own in list_sizes().items() if own == shape and name in TEXT_SIZES), None)
    if name is None:
        raise ModelError(f"no CLIP has {shape[0]} channels and vectors of {shape[1]}", file=path)
    return name


def _complete(network: FCCLIP, state: dict[str, Tensor]) -> None:
    """Put in what inference never reads, where it is missing."""
    for key, value in network.state_dict().items():
        if key.endswith("num_batches_tracked"):
            state.setdefault(key, torch.zeros((), dtype=torch.int64))
        elif key == "criterion.empty_weight" and (key not in state or state[key].shape != value.shape):
            state[key] = torch.ones(value.shape)


def _select(found: KeyDifferences, *, clip: bool) -> KeyDifferences:
    groups = (found.missing, found.unexpected, found.misshapen)
    return KeyDifferences(*(tuple(key for key in keys if key.startswith(CLIP_PREFIX) == clip) for keys in groups))
