"""FC-CLIP from files: the published ones hold no CLIP, whose weights come from a file of open_clip."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from hardlook.networks.open_vocabulary.checkpoints import TwoFiles, build_seeded, find_size, read_state
from hardlook.networks.open_vocabulary.clip_convnext import CONVNEXT_SIZES
from hardlook.networks.open_vocabulary.clip_resnet import RESNET_SIZES
from hardlook.networks.open_vocabulary.clip_text import TEXT_SIZES
from hardlook.networks.open_vocabulary.fc_clip import FCCLIP

CLIP_PREFIX = "backbone.clip_model."
_LENGTHS = {"sem_seg_head.pixel_decoder.input_proj.0.0.weight": 1, "void_embedding.weight": 1}


def list_sizes() -> dict[str, tuple[int, int]]:
    """The CLIPs by name, each with the channels of its last map and the length of its vectors, which no two share."""
    found = {name: (size.widths[-1], size.output) for name, size in CONVNEXT_SIZES.items()}
    found |= {name: (32 * size.width, size.output) for name, size in RESNET_SIZES.items()}
    return {name: lengths for name, lengths in found.items() if name in TEXT_SIZES}


def load_fc_clip(weights: Path, clip: Path | None = None, *, released: bool = False) -> FCCLIP:
    """The network of the file `weights`, with CLIP from the same file or from `clip`, in open_clip's names.

    The loss's weights of classes and counts of batches, which inference never reads, may be missing.
    """
    state = read_state(weights)
    name = find_size(state, _LENGTHS, list_sizes(), title="FC-CLIP", file=weights)
    with torch.device("meta"):  # without the time of random numbers that the files replace
        network = FCCLIP.build(name, released=released)
    files = TwoFiles(
        "FC-CLIP",
        f"open_clip's {name}",
        weights,
        clip,
        is_clip=lambda key: key.startswith(CLIP_PREFIX),
        rename=_rename,
        constants=_find_constant,
        note=", as FC-CLIP's published ones",
    )
    return files.fill(network, state)


def build_random(size: str = "RN50", *, seed: int, released: bool = False) -> FCCLIP:
    """The network on the CLIP of that name with random parameters."""
    return build_seeded(lambda name: FCCLIP.build(name, released=released), size, list_sizes(), seed, "FC-CLIP")


def _rename(clip: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {CLIP_PREFIX + key: value for key, value in clip.items()}


def _find_constant(key: str, wanted: Tensor) -> Tensor | None:
    """What inference never reads."""
    if key.endswith("num_batches_tracked"):
        return torch.zeros((), dtype=torch.int64)
    return torch.ones(wanted.shape) if key == "criterion.empty_weight" else None
