"""Image processors without torchvision: the library's own on Pillow, or read by their settings."""

from __future__ import annotations

import json

import numpy as np
import PIL.Image
import pytest
from tiny_hub_models import COLOURS, PROCESSORS

from hardlook.errors import DataError, ModelError
from hardlook.models.families.hub_models import load_image_processor, prepare_image

transformers = pytest.importorskip("transformers")


def write_settings(folder, settings, model_type="vit", file="preprocessor_config.json"):
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    (folder / file).write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("family", [name for name in PROCESSORS if name not in ("dinov3_vit", "oneformer")])
@pytest.mark.parametrize("suffix", ["", "Fast"])
def test_pixels_are_those_of_the_library(family, suffix, tmp_path, pictures):
    kind, settings = PROCESSORS[family]
    processor, files = load_image_processor(
        write_settings(tmp_path, {"image_processor_type": kind + suffix, **settings}, family)
    )
    theirs = getattr(transformers, f"{kind}Pil")(**settings)
    for image in pictures:
        expected = theirs(images=PIL.Image.fromarray(image), return_tensors="np")
        made = prepare_image(processor, image)
        assert set(made) == set(expected)
        assert all(np.array_equal(made[name], expected[name]) for name in made)
    assert files == (tmp_path / "preprocessor_config.json",)


def test_settings_of_a_class_that_needs_torchvision_are_followed(tmp_path, pictures):
    kind, settings = PROCESSORS["dinov3_vit"]
    processor, _ = load_image_processor(write_settings(tmp_path, {"image_processor_type": kind, **settings}))
    image = pictures[0]
    resized = np.asarray(PIL.Image.fromarray(image).resize((32, 32), PIL.Image.Resampling.BILINEAR), np.float32) / 255
    expected = (resized - np.array(COLOURS["image_mean"])) / np.array(COLOURS["image_std"])
    assert np.allclose(prepare_image(processor, image)["pixel_values"][0], expected.transpose(2, 0, 1), atol=1e-5)
    write_settings(tmp_path, {"image_processor_type": kind, "size": {"height": 32, "width": 32}})
    with pytest.raises(ModelError, match="lack image_mean, and its class needs torchvision"):
        load_image_processor(tmp_path)


def test_the_type_of_the_model_names_the_class_where_the_settings_do_not(tmp_path):
    processor, _ = load_image_processor(write_settings(tmp_path, {"size": {"height": 8, "width": 8}}, "segformer"))
    assert type(processor).__name__ == "SegformerImageProcessorPil"


def test_settings_may_be_part_of_a_processors(tmp_path, pictures):
    kind, settings = PROCESSORS["siglip"]
    inner = {"image_processor": {"image_processor_type": kind, **settings}}
    processor, files = load_image_processor(write_settings(tmp_path, inner, file="processor_config.json"))
    assert prepare_image(processor, pictures[0])["pixel_values"].shape == (1, 3, 32, 32)
    assert files == (tmp_path / "processor_config.json",)


@pytest.mark.parametrize("rows", [1, 3])
def test_images_of_few_rows_keep_their_colours_apart(rows, tmp_path):
    kind, settings = PROCESSORS["vit"]
    processor, _ = load_image_processor(write_settings(tmp_path, {"image_processor_type": kind, **settings}))
    red = np.zeros((rows, 40, 3), np.uint8)
    red[..., 0] = 255
    pixels = prepare_image(processor, red)["pixel_values"]
    assert pixels.shape == (1, 3, 32, 32)
    assert np.allclose(pixels[0, 0], 1) and np.allclose(pixels[0, 1:], -1)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [("[]", DataError), ("{", DataError), ('{"image_processor_type": "NoSuchThing"}', ModelError)],
)
def test_damaged_settings(settings, kind, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "vit"}')
    (tmp_path / "preprocessor_config.json").write_text(settings)
    with pytest.raises(kind):
        load_image_processor(tmp_path)


def test_code_of_a_repository_is_refused(tmp_path):
    settings = {"auto_map": {"AutoImageProcessor": "mine.Mine"}}
    with pytest.raises(ModelError, match="trust_remote_code stays off"):
        load_image_processor(write_settings(tmp_path, settings, "mine"))
