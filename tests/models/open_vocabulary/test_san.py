"""SAN as a model: the network's scores at the image's size, synonyms by reading, and files of CLIP."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_fc_clip import TINY, write_tokenizer  # noqa: E402

from hardlook.errors import ModelError  # noqa: E402
from hardlook.models.open_vocabulary.san import San  # noqa: E402
from hardlook.networks.open_vocabulary.san import resize_masks  # noqa: E402
from hardlook.networks.open_vocabulary.san_checkpoints import build_random_san  # noqa: E402

SMALL = {"weights": "random:3", "size": TINY, "shorter": 64, "longer": 120}


@pytest.fixture(autouse=True)
def own_cache(one_thread, tmp_path, monkeypatch):
    """One thread, and a cache of its own."""
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (40, 90, 3), dtype=np.uint8)


def test_labels_are_those_of_the_networks_scores_at_the_images_size(image):
    model = San(("cat", "dog", "sky"), **SMALL)
    seen = model._stack([image])
    assert seen.shape == (1, 3, 53, 120), "the longer side is at its limit"
    with torch.inference_mode():
        expected = model._network.segment(seen.float(), model.text, (40, 90)).argmax(1)
    [answer] = model.segment([image])
    assert answer.dtype == np.int32 and (answer == expected[0].numpy()).mean() > 0.999


def test_the_best_synonym_counts_and_the_released_code_makes_one_text_of_all(tmp_path, image):
    path = tmp_path / "words.txt"
    path.write_text("feline, cat, kitten\nlamp post\n")
    ours, released = (San((str(path),), **SMALL, reading=reading) for reading in ("ours", "released"))
    assert ours._words.names == ("feline", "cat", "kitten", "lamp post") and len(ours.text) == 4
    assert released._words.names == ("feline, cat, kitten", "lamp post") and len(released.text) == 2
    assert released._network.side_adapter_network.released and "released" in released.conduct
    with torch.inference_mode():
        pixels = ours._stack([image]).float()
        _, classes = ours._network.predict(pixels, ours.text, ours._words.counts)
        ((_, logits),) = ours._network(torch.nn.functional.pad(_normalise(pixels), (0, 8, 0, 11)), ours.text)
    best = torch.stack((logits[..., :3].amax(2), logits[..., 3], logits[..., 4]), 2)
    torch.testing.assert_close(classes, best.softmax(2)[..., :2], atol=1e-5, rtol=1e-4)


def test_without_padding_the_masks_fill_the_image():
    masks = torch.arange(12.0).reshape(1, 1, 3, 4)
    kept = resize_masks(masks, (48, 64), (40, 50), (40, 50))
    large = torch.nn.functional.interpolate(masks, (48, 64), mode="bilinear", align_corners=False)
    assert torch.equal(kept, large[..., :40, :50])
    assert resize_masks(masks, (48, 64), (40, 50), (7, 9)).shape == (1, 1, 7, 9)


def test_a_folder_of_transformers_is_weights_and_tokenizer_of_clip(tmp_path, image):
    transformers = pytest.importorskip("transformers")
    state = build_random_san(TINY, seed=3).state_dict()
    keep = ("side_adapter", "criterion", "clip_visual_extractor.positional", "ov_classifier.bg_embed")
    torch.save({key: value for key, value in state.items() if key.startswith(keep)}, tmp_path / "san.pth")
    towers = {"hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 1, "projection_dim": 24}
    config = transformers.CLIPConfig(
        text_config={**towers, "num_hidden_layers": 1, "vocab_size": 49408},
        vision_config={**towers, "num_hidden_layers": 4, "image_size": 64, "patch_size": 16},
        projection_dim=24,
    )
    torch.manual_seed(0)
    clip = transformers.CLIPModel(config).eval()
    clip.save_pretrained(tmp_path / "clip")
    write_tokenizer(tmp_path / "clip")
    sizes = {"shorter": 64, "longer": 120}
    model = San(("dog", "bus"), str(tmp_path / "san.pth"), clip=tmp_path / "clip", templates=("a {label}",), **sizes)
    assert {path.name for path in model.weights_files} >= {"san.pth", "model.safetensors", "vocab.json"}
    tokens = torch.tensor([model_tokens for model_tokens in ([49406, 320, 67, 78, 326, 49407],)])
    with torch.inference_mode():
        expected = clip.get_text_features(input_ids=tokens)
        expected = getattr(expected, "pooler_output", expected)
    torch.testing.assert_close(model.text[:1], torch.nn.functional.normalize(expected, dim=1), atol=1e-4, rtol=1e-4)
    assert model.segment([image])[0].shape == (40, 90)
    settings = json.loads((tmp_path / "clip" / "config.json").read_text())
    for tower in ("vision_config", "text_config"):
        settings[tower]["hidden_act"] = "gelu"
    (tmp_path / "clip" / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="exact GELU") as caught:
        San(("dog", "bus"), str(tmp_path / "san.pth"), clip=tmp_path / "clip", **sizes)
    assert "config.json" in str(caught.value)


def _normalise(pixels):
    from hardlook.networks.open_vocabulary.clip_vit import normalise

    return normalise(pixels)
