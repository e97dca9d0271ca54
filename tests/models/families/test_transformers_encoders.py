"""Encoders of transformers against the library's own forward passes."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
from tiny_hub_models import COLOURS

from hardlook.errors import ModelError
from hardlook.models.conformance import check_model
from hardlook.models.registry import build, find

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PAIRED = ("clip", "siglip", "siglip2")
BACKBONES = ("dinov2", "dinov3_vit", "vit", "resnet", "convnext")


def load_processor(folder):
    return transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")


def prepare(processor, image, **options):
    return processor(images=PIL.Image.fromarray(image), return_tensors="pt", **options)


@pytest.mark.parametrize("family", [*PAIRED, *BACKBONES])
def test_models_keep_the_contract_of_their_roles(family, hub_folder):
    name = f"hf:{hub_folder(family)}"
    roles = find(name).card.roles
    assert roles == (("image-text-encoder", "encoder") if family in PAIRED else ("encoder",))
    model = build(name, roles[0])
    for role in roles:
        assert [finding.line() for finding in check_model(model, role) if not finding.passed] == []
    assert {"torch", "transformers"} <= set(model.libraries)
    assert {path.name for path in model.weights_files} >= {
        "config.json",
        "model.safetensors",
        "preprocessor_config.json",
    }


@pytest.mark.parametrize("family", PAIRED)
def test_images_and_texts_are_those_of_the_whole_network(family, hub_folder, pictures):
    folder = hub_folder(family)
    processor, tokenizer = load_processor(folder), transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    texts = ["a photo of a cat", "dog"]
    made = tokenizer(texts, padding="max_length", max_length=24, return_tensors="pt")
    tokens = {name: made[name] for name in (["input_ids", "attention_mask"] if family == "clip" else ["input_ids"])}
    model = build(f"hf:{folder}", "image-text-encoder")
    assert np.isclose(model.logit_scale, network.logit_scale.exp().item())
    assert np.allclose(model.encode(pictures).vectors, model.encode_images(pictures), atol=1e-6)
    for image, vector in zip(pictures, model.encode_images(pictures), strict=True):
        with torch.inference_mode():
            answer = network(**prepare(processor, image), **tokens)
        assert np.allclose(vector, answer.image_embeds[0].numpy(), atol=1e-5)
        assert np.allclose(model.encode_text(texts), answer.text_embeds.numpy(), atol=1e-5)


def test_clip_of_the_family_is_the_built_in_clip(hub_folder, pictures):
    folder = hub_folder("clip")
    ours, theirs = build(f"hf:{folder}", "image-text-encoder"), build("clip", "image-text-encoder", {"path": folder})
    assert np.allclose(ours.encode_images(pictures), theirs.encode_images(pictures), atol=1e-5)
    assert np.allclose(ours.encode_text(["cat"]), theirs.encode_text(["cat"]), atol=1e-5)


@pytest.mark.parametrize("size", [0, 48])
def test_patches_of_clip_see_themselves_alone_in_the_last_layer(size, hub_folder, pictures):
    # The last layer of the library's own network with a mask that leaves each token to itself.
    folder = hub_folder("clip")
    network = transformers.CLIPModel.from_pretrained(folder, attn_implementation="eager").eval()
    side = size or 32
    pixels = prepare(
        load_processor(folder), pictures[0], size={"height": side, "width": side}, do_center_crop=False
    ).pixel_values
    vision, states = network.vision_model, []
    hook = vision.encoder.layers[-1].register_forward_pre_hook(
        lambda module, args, kwargs: states.append((args, kwargs)), with_kwargs=True
    )
    with torch.inference_mode():
        vision(pixels, interpolate_pos_encoding=True)
        hook.remove()
        args, kwargs = states[0]
        hidden = args[0] if args else kwargs["hidden_states"]
        alone = torch.full((1, 1, hidden.shape[1], hidden.shape[1]), -torch.inf)
        alone.diagonal(dim1=2, dim2=3).fill_(0)
        answer = vision.encoder.layers[-1](hidden, alone)
        answer = answer[0] if isinstance(answer, tuple) else answer
        expected = network.visual_projection(vision.post_layernorm(answer[:, 1:]))[0]
    expected = torch.nn.functional.normalize(expected, dim=1).numpy()
    (cells,) = build(f"hf:{folder}", "image-text-encoder").encode_patches(pictures[:1], size)
    assert cells.shape == (12, side // 8, side // 8)
    assert np.allclose(cells.reshape(12, -1).T, expected, atol=1e-5)


@pytest.mark.parametrize("family", ["siglip", "siglip2"])
def test_patches_of_siglip_are_pooled_alone(family, hub_folder, pictures):
    folder = hub_folder(family)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    wide = np.concatenate([pictures[0], pictures[0]], axis=1)
    inputs = prepare(load_processor(folder), wide)
    with torch.inference_mode():
        hidden = network.vision_model(**inputs).last_hidden_state[0]
        pooled = torch.cat([network.vision_model.head(token[None, None]) for token in hidden])
    expected = torch.nn.functional.normalize(pooled, dim=1).numpy()
    (cells,) = build(f"hf:{folder}", "image-text-encoder").encode_patches([wide])
    count = cells.shape[1] * cells.shape[2]
    assert np.allclose(cells.reshape(16, -1).T, expected[:count], atol=1e-5)
    if family == "siglip2":
        assert cells.shape[1:] == tuple(inputs.spatial_shapes[0].tolist())
        assert cells.shape[1] < cells.shape[2]  # the image is wider than high


@pytest.mark.parametrize("family", BACKBONES)
def test_vectors_are_the_pooled_ones_and_maps_the_last_layer(family, hub_folder, pictures):
    folder = hub_folder(family)
    network = transformers.AutoModel.from_pretrained(
        folder, **({"add_pooling_layer": False} if family == "vit" else {})
    )
    if family == "dinov3_vit":  # no processor of the library without torchvision
        processor = transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}, resample=2, **COLOURS)
    else:
        processor = load_processor(folder)
    features = build(f"hf:{folder}", "encoder").encode(pictures)
    for place, image in enumerate(pictures):
        pixels = torch.as_tensor(np.asarray(prepare(processor, image).pixel_values))
        with torch.inference_mode():
            answer = network.eval()(pixels)
        tokens = answer.last_hidden_state
        pooled = tokens[:, 0] if family == "vit" else answer.pooler_output.reshape(1, -1)
        assert np.allclose(features.vectors[place], pooled[0].numpy(), atol=1e-5)
        if tokens.ndim == 3:
            cells = tokens[0, -16:].T.reshape(16, 4, 4)
            assert np.allclose(features.maps[place], cells.numpy(), atol=1e-5)


def test_a_batch_changes_nothing(hub_folder, pictures):
    name = f"hf:{hub_folder('clip')}"
    alone, together = (build(name, "encoder", {"batch": batch}).encode(pictures).vectors for batch in (1, 3))
    assert np.allclose(alone, together, atol=1e-5)


def test_a_text_model_is_refused(tmp_path):
    from transformers_folders import write_folder

    folder = write_folder(tmp_path, "bert")
    (folder / "preprocessor_config.json").write_text('{"image_processor_type": "ViTImageProcessor"}')
    with pytest.raises(ModelError, match="reads no images"):
        build(f"hf:{folder}", "encoder")
