"""segmentation-models-pytorch's networks as segmenters, against their own forward on images padded by torch."""

import json

import numpy as np
import pytest

import hardlook as hl
from hardlook.errors import HardlookError, OptionError
from hardlook.models.registry import build

pytestmark = pytest.mark.families
smp = pytest.importorskip(
    "segmentation_models_pytorch",
    reason="segmentation-models-pytorch is not installed here; `make test` runs this file in .venv-families",
)
torch = pytest.importorskip("torch")

NAME = "unet-resnet18"


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("HARDLOOK_OFFLINE", "1")


def make_images():
    random = np.random.default_rng(0)
    return [random.integers(0, 256, size, dtype=np.uint8) for size in ((50, 70, 3), (64, 32, 3), (33, 65, 3))]


def make_network(decoder="unet", encoder="resnet18", classes=3, seed=0):
    torch.manual_seed(seed)
    return smp.create_model(decoder, encoder, encoder_weights=None, classes=classes).eval()


def compute_logits(network, image):
    """The logits of an image that torch normalises, and pads to multiples of 32 where the network demands it."""
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    pixels = ((torch.from_numpy(image) / 255 - mean) / std).permute(2, 0, 1)[None]
    height, width = image.shape[:2]
    if network.requires_divisible_input_shape:
        pixels = torch.nn.functional.pad(pixels, (0, -width % 32, 0, -height % 32))
    with torch.inference_mode():
        return network(pixels)[0, :, :height, :width].numpy()


@pytest.mark.parametrize(
    ("decoder", "encoder"), [("unet", "resnet18"), ("fpn", "mobilenet_v2"), ("linknet", "resnet18")]
)
def test_labels_are_the_networks(decoder, encoder):
    model = build(f"smp:{decoder}-{encoder}", "semantic-segmenter", {"random": "0", "classes": "sky,road,car"})
    network, images = make_network(decoder, encoder), make_images()
    assert model.labels == ("sky", "road", "car")
    for image, answer in zip(images, model.segment(images), strict=True):
        logits = compute_logits(network, image)
        assert len(np.unique(logits.argmax(axis=0))) > 1
        sure = np.diff(np.sort(logits, axis=0), axis=0)[-1] > 1e-4
        assert answer.shape == image.shape[:2] and sure.mean() > 0.9
        assert np.array_equal(answer[sure], logits.argmax(axis=0)[sure])


def test_weights_and_classes_of_files(tmp_path):
    network = make_network(seed=3)
    path, names = tmp_path / "best.ckpt", tmp_path / "classes.txt"
    torch.save({"state_dict": {f"model.{key}": value for key, value in network.state_dict().items()}}, path)
    names.write_text("sky\nroad\ncar\n")
    model = build(f"smp:{NAME}", "semantic-segmenter", {"weights": str(path), "classes": str(names)})
    [image, *_] = make_images()
    assert np.mean(model.segment([image])[0] == compute_logits(network, image).argmax(axis=0)) > 0.999
    assert model.weights_files == (path,) and "random" not in model.name
    assert {"segmentation_models_pytorch", "timm", "torch", "torchvision"} <= set(model.libraries)


def test_a_network_of_one_channel_has_a_background(tmp_path):
    network = make_network(classes=1, seed=4)
    path = tmp_path / "road.pth"
    torch.save(network.state_dict(), path)
    given = {"weights": str(path), "classes": "background,road"}
    [image, *_] = make_images()
    probabilities = 1 / (1 + np.exp(-compute_logits(network, image)[0]))
    for threshold in (0.5, float(np.median(probabilities))):
        model = build(f"smp:{NAME}", "semantic-segmenter", {**given, "threshold": str(threshold)})
        sure = np.abs(probabilities - threshold) > 1e-4
        assert np.array_equal(model.segment([image])[0][sure], (probabilities > threshold)[sure].astype(int))


def test_images_are_resized_where_a_size_is_given():
    model = build(f"smp:{NAME}", "semantic-segmenter", {"random": "0", "classes": "a,b", "size": "64,96"})
    images = make_images()
    assert [answer.shape for answer in model.segment(images)] == [image.shape[:2] for image in images]
    plain = build(f"smp:{NAME}", "semantic-segmenter", {"random": "0", "classes": "a,b"})
    exact = [np.random.default_rng(1).integers(0, 256, (64, 96, 3), dtype=np.uint8)]
    assert np.array_equal(model.segment(exact)[0], plain.segment(exact)[0])


@pytest.mark.parametrize(("name", "given", "message"), [
    (NAME, {"classes": "a,b"}, "has no weights of its own"),
    (NAME, {"random": "0"}, "needs a value for 'classes'"),
    ("unet-resnet0", {"classes": "a,b", "random": "0"}, "smp has no model"),
    ("net", {"classes": "a,b", "random": "0"}, "smp has no model"),
    (NAME, {"classes": "a,b", "random": "0", "mean": "0,0"}, "mean is"),
    (NAME, {"classes": "a,b", "random": "0", "std": "1,0,1"}, "std is"),
    (NAME, {"classes": "a,b", "random": "0", "size": "0,5"}, "size is"),
])  # fmt: skip
def test_what_cannot_be_built_is_an_error(name, given, message):
    with pytest.raises(HardlookError, match=message):
        build(f"smp:{name}", "semantic-segmenter", given)


def test_weights_of_other_classes_or_networks_are_errors(tmp_path):
    path = tmp_path / "net.pth"
    torch.save(make_network(classes=3).state_dict(), path)
    with pytest.raises(OptionError, match="have 3 classes, and `classes` has 2 names"):
        build(f"smp:{NAME}", "semantic-segmenter", {"weights": str(path), "classes": "a,b"})
    with pytest.raises(HardlookError, match="do not fit Linknet"):
        build("smp:linknet-resnet18", "semantic-segmenter", {"weights": str(path), "classes": "a,b,c"})


def test_names_are_decoder_and_encoder():
    listed = {card.name for card in hl.models("unet-*", family="smp")}
    assert listed == {f"smp:unet-{encoder}" for encoder in smp.encoders.get_encoder_names()}


def test_the_contract_of_a_segmenter_holds():
    result = hl.check(f"smp:{NAME}", "semantic-segmenter", model_args={"random": 0, "classes": "a,b"})
    assert result.passed, result


def test_a_run_knows_its_libraries_and_resumes(tmp_path):
    options = {"model": f"smp:{NAME}", "model_args": {"random": 1, "classes": "cat,dog,chair"}, "scenes": 2,
               "resamples": 100, "progress": False, "report": False, "out": tmp_path / "run"}  # fmt: skip
    first, second = hl.run("open-miou", **options), hl.run("open-miou", **options)
    assert {name: score.value for name, score in first.scores.items()} == {
        name: score.value for name, score in second.scores.items()
    }
    parts = json.loads((tmp_path / "run" / "run.json").read_text())["answers"]["parts"]
    assert parts["library segmentation_models_pytorch"] == smp.__version__
    with pytest.raises(HardlookError, match="model args"):
        hl.run("open-miou", **{**options, "model_args": {"random": 2, "classes": "cat,dog,chair"}})
