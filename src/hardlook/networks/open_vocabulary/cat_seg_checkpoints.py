"""CAT-Seg from files: its own, and CLIP's where that one holds only what was trained.

CAT-Seg trains the queries and values of both towers of CLIP, which its file must hold; the rest of CLIP is OpenAI's, so
that a file may leave it out.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from hardlook.networks.open_vocabulary.cat_seg import CAT_SEG_SIZES, GRID, WINDOW, CATSeg, build_window_mask
from hardlook.networks.open_vocabulary.checkpoints import TwoFiles, build_seeded, find_size, read_state
from hardlook.networks.open_vocabulary.clip_files import translate
from hardlook.networks.open_vocabulary.clip_vit import VIT_SIZES, split_projections

CLIP_PREFIX = "sem_seg_head.predictor.clip_model."
_TRAINED = ("q_proj_weight", "v_proj_weight")
_LENGTHS = {"upsample1.weight": 0, "sem_seg_head.predictor.transformer.text_guidance_projection.0.weight": 1}


def list_sizes() -> dict[str, tuple[int, int]]:
    """The sizes by name, each with the channels of CLIP's image tower and the length of its vectors."""
    clips = {name: VIT_SIZES[size.clip] for name, size in CAT_SEG_SIZES.items()}
    return {name: (clip.width, clip.output) for name, clip in clips.items()}


def load_cat_seg(weights: Path, clip: Path | None = None, *, released: bool = False) -> CATSeg:
    """The network of the file `weights`, with what this lacks of CLIP from `clip`, by any names."""
    state = read_state(weights)
    name = find_size(state, _LENGTHS, list_sizes(), title="CAT-Seg", file=weights)
    with torch.device("meta"):  # without the time of random numbers that the files replace
        network = CATSeg(name, released=released)
    files = TwoFiles(
        "CAT-Seg",
        f"OpenAI's {CAT_SEG_SIZES[name].clip}",
        weights,
        clip,
        is_clip=lambda key: key.startswith(CLIP_PREFIX) and not key.endswith(_TRAINED),
        rename=lambda given: {CLIP_PREFIX + key: value for key, value in split_projections(translate(given)).items()},
        constants=_find_constant,
    )
    return files.fill(network, state)


def build_random_cat_seg(size: str = "catseg_vit_b_16", *, seed: int, released: bool = False) -> CATSeg:
    """The network of that size with random parameters."""
    return build_seeded(lambda name: CATSeg(name, released=released), size, CAT_SEG_SIZES, seed, "CAT-Seg")


def _find_constant(key: str, wanted: Tensor) -> Tensor | None:
    """The masks of shifted windows."""
    return build_window_mask(GRID, WINDOW // 2) if key.endswith("swin_block.block_2.attn_mask") else None
