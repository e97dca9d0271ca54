"""SAN from files: its own, and CLIP's where that one holds only what was trained.

Of CLIP, SAN trains the table of positions of the image tower; all else is OpenAI's, so that a file may leave it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from hardlook.networks.open_vocabulary.checkpoints import TwoFiles, build_seeded, find_size, read_state
from hardlook.networks.open_vocabulary.clip_files import translate
from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES
from hardlook.networks.open_vocabulary.san import SAN, SAN_SIZES

FIRST, LAST, TEXT = "clip_visual_extractor.", "clip_rec_head.", "ov_classifier."
_TRAINED = (f"{FIRST}positional_embedding", f"{TEXT}bg_embed", f"{TEXT}attn_mask")
_LENGTHS = {"side_adapter_network.fusion_layers.layer_0.input_proj.1.weight": 1, f"{TEXT}bg_embed": 1}
_BLOCKS = "visual.transformer.resblocks."


def list_sizes() -> dict[str, tuple[int, int]]:
    """The sizes by name, each with the channels of CLIP's image tower and the length of its vectors."""
    clips = {name: VIT_SIZES[size.clip] for name, size in SAN_SIZES.items()}
    return {name: (clip.width, clip.output) for name, clip in clips.items()}


def load_san(weights: Path, clip: Path | None = None, *, released: bool = False) -> SAN:
    """The network of the file `weights`, with what this lacks of CLIP from `clip`, by any names."""
    state = read_state(weights)
    name = find_size(state, _LENGTHS, list_sizes(), title="SAN", file=weights)
    size = SAN_SIZES[name]
    with torch.device("meta"):  # without the time of random numbers that the files replace
        network = SAN(name, released=released)
    files = TwoFiles(
        "SAN",
        f"OpenAI's {size.clip}",
        weights,
        clip,
        is_clip=lambda key: key.startswith((FIRST, LAST, TEXT)) and key not in _TRAINED,
        rename=lambda given: rename_clip(translate(given), size.extracting),
        constants=_find_constant,
    )
    return files.fill(network, state)


def build_random_san(size: str = "san_vit_b_16", *, seed: int, released: bool = False) -> SAN:
    """The network of that size with random parameters."""
    return build_seeded(lambda name: SAN(name, released=released), size, SAN_SIZES, seed, "SAN")


def rename_clip(clip: Mapping[str, Tensor], extracting: int) -> dict[str, Tensor]:
    """CLIP's tensors under SAN's names: the first `extracting` blocks of the image tower lie apart from the others.

    >>> names = ("visual.conv1.weight", "visual.transformer.resblocks.9.ln_1.bias", "visual.proj", "logit_scale")
    >>> list(rename_clip(dict.fromkeys(names, torch.zeros(())), 9))
    ['clip_visual_extractor.conv1.weight', 'clip_rec_head.resblocks.0.ln_1.bias', 'clip_rec_head.proj', \
'ov_classifier.logit_scale']
    """
    found = {}
    for key, value in clip.items():
        if key.startswith(_BLOCKS):
            number, _, rest = key.removeprefix(_BLOCKS).partition(".")
            later = int(number) - extracting if number.isdecimal() else 0
            part, place = (LAST, str(later)) if later >= 0 and number.isdecimal() else (FIRST, number)
            found[f"{part}resblocks.{place}.{rest}"] = value
        elif key.startswith(("visual.ln_post.", "visual.proj")):
            found[LAST + key.removeprefix("visual.")] = value
        elif key.startswith("visual."):
            found[FIRST + key.removeprefix("visual.")] = value
        else:
            found[TEXT + key] = value
    return found


def _find_constant(key: str, wanted: Tensor) -> Tensor | None:
    """The causal mask, which the text tower makes itself, and the loss's weights of classes."""
    if key == f"{TEXT}attn_mask":
        return torch.full(wanted.shape, -torch.inf).triu(1)
    return torch.ones(wanted.shape) if key == "criterion.empty_weight" else None
