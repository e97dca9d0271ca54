"""Files of CLIP on a vision transformer in one form: OpenAI's names, and the sizes that the tensors tell.

OpenAI's and open_clip's files have these names; those of transformers are translated; OVSeg and SimSeg have a CLIP
within a larger network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from hardlook.errors import ModelError
from hardlook.networks.open_vocabulary.checkpoints import NOT_WEIGHTS, read_state
from hardlook.networks.open_vocabulary.clip_text import CONTEXT, VOCABULARY, TextSize
from hardlook.networks.open_vocabulary.clip_vit import ViTSize

INNER = "clip_adapter.clip_model."
"""Where files of OVSeg and SimSeg have their CLIP."""
_FILE_REMEDY = (
    "give a CLIP on a vision transformer: a file of OpenAI's or open_clip's names, or a folder of transformers"
)

# Of transformers' names the part before a layer's number, and what is within a layer.
_TOWERS = {"vision_model.": "visual.", "text_model.": ""}
_PLACES = {
    "vision_model.embeddings.class_embedding": "visual.class_embedding",
    "vision_model.embeddings.patch_embedding.weight": "visual.conv1.weight",
    "vision_model.embeddings.position_embedding.weight": "visual.positional_embedding",
    "vision_model.pre_layrnorm.weight": "visual.ln_pre.weight",
    "vision_model.pre_layrnorm.bias": "visual.ln_pre.bias",
    "vision_model.post_layernorm.weight": "visual.ln_post.weight",
    "vision_model.post_layernorm.bias": "visual.ln_post.bias",
    "text_model.embeddings.token_embedding.weight": "token_embedding.weight",
    "text_model.embeddings.position_embedding.weight": "positional_embedding",
    "text_model.final_layer_norm.weight": "ln_final.weight",
    "text_model.final_layer_norm.bias": "ln_final.bias",
    "logit_scale": "logit_scale",
}
_TRANSPOSED = {"visual_projection.weight": "visual.proj", "text_projection.weight": "text_projection"}
_WITHIN = {
    "layer_norm1": "ln_1",
    "layer_norm2": "ln_2",
    "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
    "self_attn.out_proj": "attn.out_proj",
}


def read_clip(paths: Iterable[Path]) -> dict[str, Tensor]:
    """The tensors of a CLIP in float32 by OpenAI's names, from one file or from the parts of one.

    Of a file of OVSeg or SimSeg its CLIP is taken, and `non_object_embedding`; what else it holds is left out.
    """
    state: dict[str, Tensor] = {}
    for path in paths:
        state |= read_state(path)
    state = {key.removeprefix("module."): value for key, value in state.items()}
    if any(key.startswith(INNER) for key in state):
        outer = {key.removeprefix("clip_adapter."): value for key, value in state.items()}
        state = {key.removeprefix(INNER): value for key, value in state.items() if key.startswith(INNER)}
        state |= {key: outer[key] for key in ("non_object_embedding",) if key in outer}
    elif any(key.startswith(tuple(_TOWERS)) for key in state):
        state = translate(state)
    kept = {key: value for key, value in state.items() if key not in NOT_WEIGHTS}
    return {key: value.float() if value.is_floating_point() else value for key, value in kept.items()}


def translate(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Transformers' names of a CLIP as OpenAI's; queries, keys and values become one tensor.

    >>> part = {f"text_model.encoder.layers.0.self_attn.{one}_proj.bias": torch.ones(2) for one in "kqv"}
    >>> {name: tuple(value.shape) for name, value in translate(part).items()}
    {'transformer.resblocks.0.attn.in_proj_bias': (6,)}
    """
    found: dict[str, Tensor] = {}
    for key, value in state.items():
        if key.endswith("position_ids"):
            continue
        if key in _TRANSPOSED:
            found[_TRANSPOSED[key]] = value.T.contiguous()
        elif layer := re.fullmatch(r"(vision_model\.|text_model\.)encoder\.layers\.(\d+)\.(.+)\.(weight|bias)", key):
            tower, number, part, kind = layer.groups()
            start = f"{_TOWERS[tower]}transformer.resblocks.{number}."
            if part == "self_attn.q_proj":
                parts = [state.get(key.replace("q_proj", f"{one}_proj")) for one in "qkv"]
                # One that is missing shows in the shape.
                found[f"{start}attn.in_proj_{kind}"] = torch.cat([one for one in parts if one is not None])
            elif not part.startswith("self_attn.") or part in _WITHIN:
                found[f"{start}{_WITHIN.get(part, part)}.{kind}"] = value
        else:
            found[_PLACES.get(key, key)] = value
    return found


def find_image_size(state: Mapping[str, Tensor], file: Path, *, quick: bool = True) -> ViTSize:
    """The size of the image tower, by the shapes of its tensors; `file` is for the error."""
    patches, places, projection = (
        _get(state, f"visual.{name}", dimensions, file)
        for name, dimensions in (("conv1.weight", 4), ("positional_embedding", 2), ("proj", 2))
    )
    width, grid = patches.shape[0], round((len(places) - 1) ** 0.5)
    if grid**2 + 1 != len(places) or not grid:
        raise ModelError(f"{len(places)} positions are no square and one more", file=file, remedy=_FILE_REMEDY)
    _check_width(width, file)
    layers = _count_layers(state, "visual.transformer.resblocks.")
    return ViTSize(patches.shape[-1], width, layers, grid, projection.shape[1], quick)


def find_text_size(state: Mapping[str, Tensor], file: Path, *, quick: bool = True) -> TextSize:
    """The size of the text tower, by the shapes of its tensors; `file` is for the error."""
    words, places, projection = (
        _get(state, name, 2, file) for name in ("token_embedding.weight", "positional_embedding", "text_projection")
    )
    _check_width(words.shape[1], file)
    if (len(words), len(places)) != (VOCABULARY, CONTEXT):
        raise ModelError(
            f"{len(words)} tokens and texts of {len(places)}, with CLIP there are {VOCABULARY} and {CONTEXT}",
            file=file,
            remedy=_FILE_REMEDY,
        )
    layers = _count_layers(state, "transformer.resblocks.")
    return TextSize(words.shape[1], layers, projection.shape[1], quick)


def _get(state: Mapping[str, Tensor], name: str, dimensions: int, file: Path) -> Tensor:
    if name not in state or state[name].ndim != dimensions:
        raise ModelError(f"the file has no {name} of a CLIP", file=file, remedy=_FILE_REMEDY)
    return state[name]


def _check_width(width: int, file: Path) -> None:
    if not width or width % 64:
        raise ModelError(
            f"a tower of CLIP has {width} channels, which are no heads of 64", file=file, remedy=_FILE_REMEDY
        )


def _count_layers(state: Mapping[str, Tensor], start: str) -> int:
    numbers = {key.removeprefix(start).partition(".")[0] for key in state if key.startswith(start)}
    return len(numbers)
