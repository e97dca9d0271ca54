"""Files of CLIP: transformers' networks give the same numbers under OpenAI's names."""

from pathlib import Path

import pytest
import torch
from tiny_clip import IMAGE, TEXT, make_ovseg_state, make_state, make_transformers_network

from hardlook.errors import ModelError
from hardlook.networks.open_vocabulary.clip_files import find_image_size, find_text_size, read_clip, translate
from hardlook.networks.open_vocabulary.clip_text import CLIP
from hardlook.networks.open_vocabulary.clip_vit import CLIPViT


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
def test_a_translated_network_is_that_of_transformers(activation):
    pytest.importorskip("transformers")
    network = make_transformers_network(activation=activation)
    state = translate(network.state_dict())
    image, text = (
        find(state, Path("x"), quick=activation == "quick_gelu") for find in (find_image_size, find_text_size)
    )
    own = CLIP(CLIPViT(image), text).eval().requires_grad_(False)
    own.load_state_dict(state)
    pixels = torch.randn(2, 3, 32, 32)
    seen = network.visual_projection(network.vision_model(pixel_values=pixels).pooler_output)
    torch.testing.assert_close(own.visual(pixels), seen)
    tokens = torch.tensor([[49406, 320, 5, 49407], [49406, 7, 49407, 0]])
    read = network.text_projection(network.text_model(input_ids=tokens).pooler_output)
    torch.testing.assert_close(own.encode_tokens(tokens), read)


def test_sizes_are_those_of_the_tensors():
    state = make_state()
    assert find_image_size(state, Path("x")) == IMAGE and find_text_size(state, Path("x")) == TEXT
    assert not find_image_size(state, Path("x"), quick=False).quick


def test_files_of_all_names_are_read_alike(tmp_path):
    state = make_state(prompts=2)
    half = {key: value.half() if value.is_floating_point() else value for key, value in state.items()}
    written = {
        "openai.pt": {**half, "input_resolution": torch.tensor(32), "context_length": torch.tensor(77)},
        "open_clip.bin": {f"module.{key}": value for key, value in state.items()},
        "ovseg.pth": {"model": make_ovseg_state(), "iteration": 7},
    }
    for name, content in written.items():
        torch.save(content, tmp_path / name)
        found = read_clip([tmp_path / name])
        assert found.keys() - {"non_object_embedding"} == state.keys(), name
        tolerance = {"atol": 1e-3, "rtol": 1e-3} if name == "openai.pt" else {"atol": 0, "rtol": 0}
        for key, value in state.items():
            torch.testing.assert_close(found[key], value, **tolerance)
    assert "non_object_embedding" in found
    parts = [tmp_path / "one.pt", tmp_path / "two.pt"]
    keys = list(state)
    for path, some in zip(parts, (keys[:5], keys[5:]), strict=True):
        torch.save({key: state[key] for key in some}, path)
    assert read_clip(parts).keys() == state.keys()


@pytest.mark.parametrize(
    "key, value, words",
    [
        ("visual.proj", None, "no visual.proj"),
        ("visual.conv1.weight", torch.zeros(64), "no visual.conv1.weight"),
        ("visual.positional_embedding", torch.zeros(18, 64), "no square"),
        ("visual.positional_embedding", torch.zeros(1, 64), "no square"),
        ("visual.conv1.weight", torch.zeros(48, 3, 8, 8), "heads of 64"),
        ("token_embedding.weight", torch.zeros(100, 64), "49408"),
        ("positional_embedding", torch.zeros(24, 64), "77"),
    ],
)
def test_what_is_no_clip_is_refused_with_its_file(key, value, words):
    state = make_state()
    if value is None:
        del state[key]
    else:
        state[key] = value
    with pytest.raises(ModelError, match=words) as caught:
        find_image_size(state, Path("some.pt"))
        find_text_size(state, Path("some.pt"))
    assert "some.pt" in str(caught.value)
