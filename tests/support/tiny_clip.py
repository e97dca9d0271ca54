"""A CLIP on a vision transformer of two blocks on 4 x 4 patches of 8 pixels, and its files in all layouts."""

import json

import torch

from hardlook.networks.open_vocabulary.clip_text import CLIP, TextSize
from hardlook.networks.open_vocabulary.clip_vit import CLIPViT, ViTSize
from hardlook.networks.open_vocabulary.regions import RegionClassifier

IMAGE, TEXT = ViTSize(8, 64, 2, 4, 24), TextSize(64, 1, 24, quick=True)


def make_state(seed=0, *, prompts=0):
    """Tensors by OpenAI's names; with the mask prompt of OVSeg for some layers."""
    torch.manual_seed(seed)
    state = CLIP(CLIPViT(IMAGE), TEXT).state_dict()
    # Random vectors of images lie close together; these words are told apart.
    state["visual.proj"] = torch.randn(64, 24)
    if prompts:
        state["visual.mask_embedding"] = torch.randn(prompts, IMAGE.grid**2, IMAGE.width)
    return {key: value.clone() for key, value in state.items()}


def make_ovseg_state(seed=0, *, prompts=2):
    """The same within a larger network, as files of OVSeg have it."""
    inner = {f"clip_adapter.clip_model.{key}": value for key, value in make_state(seed, prompts=prompts).items()}
    return {**inner, "clip_adapter.non_object_embedding": torch.ones(1, 24), "backbone.conv1.weight": torch.zeros(3, 3)}


def make_networks(state, *, prompts=0):
    """The classifier of regions and the text tower with these tensors."""
    regions, tower = RegionClassifier(IMAGE, prompts=prompts), CLIP(text=TEXT)
    inner = {f"clip_adapter.clip_model.{key}": value for key, value in state.items() if key.startswith("visual.")}
    regions.load_state_dict({**inner, "clip_adapter.non_object_embedding": torch.zeros(1, 24)})
    tower.load_state_dict({key: value for key, value in state.items() if not key.startswith("visual.")})
    return regions.eval().requires_grad_(False), tower.eval().requires_grad_(False)


def make_transformers_network(*, activation="quick_gelu"):
    """A CLIP of the same sizes by transformers."""
    import transformers

    layers = {"hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 1, "hidden_act": activation}
    text = {"vocab_size": 49408, "max_position_embeddings": 77, "num_hidden_layers": 1, "eos_token_id": 49407, **layers}
    text |= {"bos_token_id": 49406, "pad_token_id": 49407}
    sight = {"image_size": 32, "patch_size": 8, "num_hidden_layers": 2, **layers}
    torch.manual_seed(0)
    config = transformers.CLIPConfig(text_config=text, vision_config=sight, projection_dim=24)
    return transformers.CLIPModel(config).eval().requires_grad_(False)


def write_settings(folder, **changes):
    """Change settings of both towers in a folder's config.json."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for kind in ("text_config", "vision_config"):
        config[kind] |= changes
    path.write_text(json.dumps(config))
