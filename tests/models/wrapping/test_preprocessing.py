"""Preprocessing, pixel for pixel; batches of equal inputs; the way back to the image's size."""

import numpy as np
import PIL.Image
import pytest
from tiny_networks import Logits, picture, to_input, write_onnx

from hardlook.errors import ModelError, OptionError
from hardlook.models.wrapping.network_calls import NetworkCalls
from hardlook.models.wrapping.preprocessing import (
    Prepared,
    Preprocess,
    resize_mask,
    run_in_batches,
    scale_points,
)

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_without_preprocessing_pixels_are_divided_by_255():
    image = picture(5, 7)
    made = Preprocess().prepare(image[:, ::-1])
    assert np.array_equal(made.inputs[""], to_input(image[:, ::-1].copy()).numpy())
    assert made.image_size == made.input_size == made.content_size == (5, 7)


@pytest.mark.parametrize("size", [(20, 12), 16])
@pytest.mark.parametrize("how", ["bilinear", "bicubic", "nearest"])
def test_a_dict_resizes_by_pillow_and_normalises_in_float32(size, how):
    image = picture(33, 41)
    made = Preprocess({"size": size, "mean": MEAN, "std": STD, "interpolation": how}).prepare(image)
    height, width = size if isinstance(size, tuple) else (size, size)
    resized = np.asarray(PIL.Image.fromarray(image).resize((width, height), getattr(PIL.Image.Resampling, how.upper())))
    by_hand = (to_input(resized) - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    assert np.array_equal(made.inputs[""], by_hand.numpy())
    assert (made.image_size, made.input_size) == ((33, 41), (height, width))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"crop": 3}, "no setting 'crop'"),
        ({"size": "big"}, "size is 'big'"),
        ({"size": (0, 4)}, "size is"),
        ({"interpolation": "magic"}, "no interpolation 'magic'"),
        ({"std": (1, 0, 1)}, "std is"),
        ({"mean": (1, 2)}, "mean is"),
        (3, "preprocess is a int"),
    ],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(OptionError, match=words):
        Preprocess(settings)


def test_a_function_is_given_an_array_of_its_own():
    image = picture(4, 6)

    def prepare(pixels):
        assert isinstance(pixels, np.ndarray)
        pixels[:] = 0  # the image that came in stays as it is
        return torch.ones(3, 8, 6, dtype=torch.float64)

    made = Preprocess(prepare).prepare(image[::-1])
    assert image.any()
    assert (made.inputs[""].shape, made.inputs[""].dtype, made.input_size) == ((1, 3, 8, 6), np.float32, (8, 6))
    bytes_made = Preprocess(lambda pixels: pixels.transpose(2, 0, 1)).prepare(image)
    assert bytes_made.inputs[""].dtype == np.uint8, "whole numbers stay so: some networks take bytes"
    assert Preprocess(lambda pixels: pixels[None] / 255).prepare(image).input_size == (4, 6), "channels last"


@pytest.mark.parametrize("value", [np.zeros((4, 6)), np.zeros((2, 3, 4, 6)), np.array("text")])
def test_an_output_that_is_no_image_is_named(value):
    with pytest.raises(ModelError, match="expected \\(C, h, w\\)"):
        Preprocess(lambda pixels: value).prepare(picture(4, 6))
    with pytest.raises(ModelError, match="no 'pixel_values'"):
        Preprocess(lambda pixels: {"images": np.zeros((3, 4, 6))}).prepare(picture(4, 6))


class Compose:
    """What a composition of transforms looks like."""

    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class Halve:
    def __call__(self, image):
        assert isinstance(image, PIL.Image.Image)
        return image.resize((image.width // 2, image.height // 2))


class CenterCrop(Halve):
    pass


class ToTensor:
    def __call__(self, image):
        return to_input(np.asarray(image))[0]


def test_transforms_are_given_pillows_image():
    image = picture(10, 12)
    halved = to_input(np.asarray(PIL.Image.fromarray(image).resize((6, 5)))).numpy()
    assert np.array_equal(Preprocess(Compose(Halve(), ToTensor())).prepare(image).inputs[""], halved)
    assert np.array_equal(Preprocess(Compose(Halve())).prepare(image).inputs[""], halved), "an image is converted"


def test_cut_images_cannot_be_brought_back():
    cutting = Compose(CenterCrop(), ToTensor())
    assert Preprocess(cutting).prepare(picture(8, 8)).input_size == (4, 4)
    with pytest.raises(OptionError, match=r"cuts the image \(CenterCrop\)"):
        Preprocess(cutting, whole=True)


def test_presets_are_known_by_their_package():
    class Preset:
        """What the transforms of published weights look like."""

        __module__ = "torchvision.transforms._presets"
        crop_size = 4

        def __call__(self, image):
            return ToTensor()(image.crop((0, 0, 4, 4)))

    assert Preprocess(Preset()).prepare(picture(8, 8)).input_size == (4, 4)
    with pytest.raises(OptionError, match="crop_size"):
        Preprocess(Preset(), whole=True)


@pytest.fixture(scope="module")
def processors():
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    clip = pytest.importorskip("transformers.models.clip.image_processing_pil_clip")
    detr = pytest.importorskip("transformers.models.detr.image_processing_pil_detr")
    size = {"height": 16, "width": 16}
    return (
        clip.CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size=size),
        detr.DetrImageProcessorPil(size={"height": 20, "width": 30}, pad_size={"height": 32, "width": 32}),
    )


def test_image_processors_of_transformers(processors):
    clip, detr = processors
    image = picture(3, 40)  # three rows: an array of this shape could be read as channels first
    made = Preprocess(clip).prepare(image)
    theirs = clip(images=PIL.Image.fromarray(image), return_tensors="np")["pixel_values"]
    assert np.array_equal(made.inputs["pixel_values"], theirs)
    with pytest.raises(OptionError, match="do_center_crop"):
        Preprocess(clip, whole=True)
    padded = Preprocess(detr, whole=True).prepare(picture(40, 60))
    assert set(padded.inputs) == {"pixel_values", "pixel_mask"}
    assert (padded.input_size, padded.content_size) == ((32, 32), (20, 30))
    assert "transformers" in Preprocess(detr).libraries


def answer(calls, images, batch_size, preprocess=None):
    prepared = [Preprocess(preprocess).prepare(image) for image in images]
    found = {}
    for places, inputs, raw in run_in_batches(calls, prepared, batch_size):
        assert len(inputs) == len(raw) >= len(places)
        found.update(zip(places, raw, strict=False))
    return [np.asarray(found[place]) for place in range(len(images))]


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_batches_have_images_of_one_size_and_change_nothing(batch_size):
    images = [picture(8, 12), picture(6, 6), picture(8, 12, 1), picture(8, 12, 2)]
    network = Logits().eval()
    seen = []

    def watched(images):
        seen.append(tuple(images.shape[:1]))
        return network(images)

    got = answer(NetworkCalls(watched), images, batch_size)
    for image, one in zip(images, got, strict=True):
        assert np.allclose(one, network(to_input(image))[0].detach().numpy(), atol=1e-6)
    assert seen == {1: [(1,)] * 4, 2: [(2,), (1,), (1,)], 8: [(3,), (1,)]}[batch_size]


def test_a_file_with_a_fixed_batch_is_filled_up(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    weight = np.eye(3, dtype=np.float32)
    calls = NetworkCalls(write_onnx(tmp_path / "net.onnx", weight, (2, 3, 4, 6), ("a", "b")))
    images = [picture(4, 6, seed) for seed in range(3)]
    prepared = [Preprocess().prepare(image) for image in images]
    batches = [(places, len(inputs)) for places, inputs, _ in run_in_batches(calls, prepared, 1)]
    assert batches == [([0, 1], 2), ([2], 2)]
    with pytest.raises(ModelError, match="takes inputs of 3 x 4 x 6, and preprocessing gives 3 x 5 x 6") as caught:
        list(run_in_batches(calls, [Preprocess().prepare(picture(5, 6))], 1))
    assert "'size': (4, 6)" in str(caught.value)


def test_points_and_masks_follow_the_pixels():
    made = Prepared({}, (10, 20), (40, 64), (20, 60))
    # The centre of the image's first pixel is 1 pixel from the edge of a picture twice as high and three times as wide.
    assert scale_points(np.array([[0, 0], [19, 9]], np.float32), made).tolist() == [[1.0, 0.5], [58.0, 18.5]]
    mask = np.zeros((10, 20), bool)
    mask[2:4, 5] = True
    resized = resize_mask(mask, made)
    expected = torch.nn.functional.interpolate(torch.from_numpy(mask)[None, None].float(), size=(20, 60))[0, 0]
    assert np.array_equal(resized[:20, :60], expected.numpy())
    assert resized.sum() == 4 * 3
    assert resized.shape == (40, 64)
