"""Networks of SAM's families with a square of 64 pixels and random weights, and pictures to click on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hardlook.models.roles import Clicks

SIDE = 64

CHANNELS = 32

BACKBONE = {
    "model_type": "sam2_hiera_det_model",
    "hidden_size": 8,
    "image_size": [SIDE, SIDE],
    "blocks_per_stage": [1, 1, 2, 1],
    "embed_dim_per_stage": [8, 16, 32, 64],
    "num_attention_heads_per_stage": [1, 1, 2, 2],
    "window_size_per_stage": [4, 4, 4, 2],
    "global_attention_blocks": [3],
    "window_positional_embedding_background_size": [4, 4],
}


def configuration(family: str) -> dict[str, Any]:
    """The three parts of a configuration of sam, sam_hq, sam2 or sam2_video."""
    decoder = {"hidden_size": CHANNELS, "mlp_dim": 48}
    if family.startswith("sam2"):
        vision = {
            "backbone_config": BACKBONE,
            "backbone_channel_list": [64, 32, 16, 8],
            "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
            "fpn_hidden_size": CHANNELS,
        }
    else:
        vision = {
            "hidden_size": 24,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "image_size": SIDE,
            "patch_size": 16,
            "output_channels": CHANNELS,
            "mlp_dim": 40,
            "window_size": 3,
            "global_attn_indexes": [2],
            "num_pos_feats": CHANNELS // 2,
        }
    return {
        "vision_config": vision,
        "prompt_encoder_config": {"hidden_size": CHANNELS, "image_size": SIDE, "patch_size": 16},
        "mask_decoder_config": decoder | ({"vit_dim": 24} if family == "sam_hq" else {}),
    }


def network(family: str, seed: int = 0) -> Any:
    """A network whose answers follow the clicks; with transformers' own first weights all logits are near nought."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.set_num_threads(1)
    name = {"sam": "Sam", "sam_hq": "SamHQ", "sam2": "Sam2", "sam2_video": "Sam2Video"}[family]
    config = getattr(transformers, f"{name}Config")(**configuration(family))
    made = getattr(transformers, f"{name}Model")(config).eval()
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in made.state_dict().items():
            drawn = torch.randn(value.shape, generator=random)
            if "norm" in name:
                value.copy_(1 + drawn / 10 if name.endswith("weight") else drawn / 10)
            elif any(word in name for word in ("embed.", "token", "positional_embedding")):
                value.copy_(drawn)
            else:
                value.copy_(1.3 * drawn / value[0].numel() ** 0.5 if value.ndim > 1 else drawn / 10)
    return made


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def prompt(*clicks: tuple[float, float, bool], state: Any = None) -> Clicks:
    points = np.array([click[:2] for click in clicks], np.float32).reshape(-1, 2)
    return Clicks(points, np.array([click[2] for click in clicks], bool), state)


def prompts(height: int, width: int, clicks: int, count: int, seed: int = 1) -> list[Clicks]:
    """Prompts of as many random clicks each, positive and negative."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 1, (count, clicks, 2)) * (width - 1, height - 1)
    return [Clicks(place.astype(np.float32), rng.random(clicks) < 0.6) for place in places]
