"""CLIP from a local folder: against transformers' own forward pass and preparation of images."""

from __future__ import annotations

import functools

import numpy as np
import PIL.Image
import pytest
from transformers_folders import network, write_folder

from hardlook.errors import ModelError
from hardlook.models.conformance import check_model
from hardlook.models.encoders.clip import Clip, ClipText, clip_pixels
from hardlook.models.registry import build

torch = pytest.importorskip("torch")

transformers = pytest.importorskip("transformers")

PROMPT = [2, 8, 9, 10, 8, 4, 3]

"""The tokens of "a photo of a cat" between its marks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("clip"), "clip")


def pictures(count=4):
    rng = np.random.default_rng(3)
    sizes = [(40, 64), (97, 33), (32, 32), (20, 21)][:count]
    return [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes]


@pytest.mark.parametrize("shape", [(40, 64), (97, 33), (32, 32), (20, 21), (300, 201), (1, 9)])
def test_pixels_are_those_of_transformers(shape):
    processing = pytest.importorskip("transformers.models.clip.image_processing_pil_clip")
    theirs = processing.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    expected = theirs(PIL.Image.fromarray(image), return_tensors="np")["pixel_values"][0]
    assert np.allclose(clip_pixels(image, 32), expected, atol=1e-5)


def test_vectors_are_those_of_the_whole_network(folder):
    images = pictures()
    pixels = torch.from_numpy(np.stack([clip_pixels(image, 32) for image in images]))
    with torch.inference_mode():
        answer = network("clip").eval()(input_ids=torch.tensor([PROMPT]), pixel_values=pixels)
    encoder = Clip(folder, batch=3)
    assert np.allclose(encoder.encode_images(images), answer.image_embeds.numpy(), atol=1e-5)
    assert np.allclose(encoder.encode_text(["a photo of a cat"]), answer.text_embeds.numpy(), atol=1e-5)


@pytest.mark.parametrize(("model", "role"), [(Clip, "image-text-encoder"), (ClipText, "text-encoder")])
def test_the_roles_contract(folder, model, role):
    findings = check_model(functools.partial(model, folder), role)
    assert [finding.line() for finding in findings if not finding.passed] == []


def test_labels_go_into_a_template(folder):
    texts = Clip(folder).encode_text(["a photo of a cat", "cat"])
    assert np.allclose(ClipText(folder).encode_text(["cat"]), texts[:1], atol=1e-5)
    assert np.allclose(ClipText(folder, template="{label}").encode_text(["cat"]), texts[1:], atol=1e-5)
    assert not np.allclose(texts[0], texts[1], atol=1e-2)
    with pytest.raises(ModelError, match="no place for the label"):
        ClipText(folder, template="a photo")


def test_batches_change_nothing(folder):
    images = pictures()
    encoder = Clip(folder, batch=2)
    alone = np.concatenate([encoder.encode_images([image]) for image in images])
    assert np.allclose(encoder.encode_images(images), alone, atol=1e-4)
    assert np.array_equal(encoder.encode_images(images), Clip(folder, batch=2).encode_images(images))


def test_the_folders_own_colours_count(folder, tmp_path):
    import shutil

    shutil.copytree(folder, tmp_path / "other")
    said = '{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}'
    (tmp_path / "other" / "preprocessor_config.json").write_text(said)
    other = build("clip", "image-text-encoder", {"path": str(tmp_path / "other")})
    assert not np.allclose(other.encode_images(pictures(1)), Clip(folder).encode_images(pictures(1)), atol=1e-3)
    assert other.weights_files[-1].name == "preprocessor_config.json"
