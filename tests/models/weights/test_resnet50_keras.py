"""Keras's ResNet50 as tensors: names, layout, and what it sees in photographs."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hardlook.errors import DataError, ModelError
from hardlook.models.weights.install import get_weights_status, locate_weights
from hardlook.models.weights.resnet50_keras import NAME, read_resnet50, read_shards, rename

torch = pytest.importorskip("torch")

from hardlook.networks.one_shot.backbones import build_backbone  # noqa: E402
from hardlook.networks.one_shot.hsnet import HSNet  # noqa: E402
from hardlook.networks.one_shot.pfenet import PFENet, compute_prior  # noqa: E402

# Number of a VOC class, and the ImageNet classes that it comprises.
COUNTERPARTS = {"aeroplane": (1, {404, 895, 908}), "dog": (12, set(range(151, 269)))}
STRAWBERRY = 949
MEAN, STD = (torch.tensor(one).view(3, 1, 1) for one in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


def write_model(folder, weights, shards=2):
    """A TensorFlow.js model of these arrays, cut into shards."""
    content = b"".join(values.astype("<f4").tobytes() for values in weights.values())
    size = -(-len(content) // shards)
    paths = [f"group1-shard{number + 1}of{shards}.bin" for number in range(shards)]
    for number, path in enumerate(paths):
        (folder / path).write_bytes(content[number * size : (number + 1) * size])
    listed = [{"name": name, "shape": list(values.shape), "dtype": "float32"} for name, values in weights.items()]
    description = folder / "model.json"
    description.write_text(json.dumps({"weightsManifest": [{"paths": paths, "weights": listed}]}), encoding="utf-8")
    return description


def test_arrays_are_read_across_shards(tmp_path):
    weights = {"a/kernel": np.arange(6.0).reshape(2, 3), "b/bias": np.array([7.0, 8.0, 9.0])}
    found = read_shards(write_model(tmp_path, weights))
    assert list(found) == list(weights)
    for name, values in weights.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_short_shard_is_an_error_that_names_the_remedy(tmp_path):
    description = write_model(tmp_path, {"a/kernel": np.zeros(6)})
    (tmp_path / "group1-shard2of2.bin").write_bytes(b"1234")
    with pytest.raises(DataError, match="hardlook weights install resnet50-imagenet"):
        read_shards(description)
    with pytest.raises(DataError, match="res9x"):
        rename("res9x_branch2/kernel")


def test_without_the_weights_the_error_says_how_to_install_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_WEIGHTS", str(tmp_path))
    with pytest.raises(ModelError, match="hardlook weights install resnet50-imagenet"):
        read_resnet50()


@pytest.fixture(scope="module")
def weights():
    if get_weights_status(NAME) != "installed":
        pytest.skip(f"no weights {NAME}; hardlook weights install {NAME}")
    return read_resnet50()


@pytest.mark.real
def test_the_names_are_those_of_the_backbone(weights):
    backbone = build_backbone("resnet50-keras", classes=1000)
    names = [name for name in backbone.state_dict() if not name.endswith("num_batches_tracked")]
    assert list(weights) == names
    assert sum(value.numel() for value in weights.values()) == 25_636_712  # all that the package holds
    backbone.load_state_dict(weights)
    assert weights["fc.weight"].shape == (1000, 2048) and weights["conv1.weight"].shape == (64, 3, 7, 7)


@pytest.mark.real
def test_strides_and_epsilon_are_those_of_the_description(weights):
    layers = json.loads(locate_weights(NAME)["model.json"].read_text())["modelTopology"]["model_config"]["config"][
        "layers"
    ]
    given = {layer["config"]["name"]: layer["config"] for layer in layers}
    backbone = build_backbone("resnet50-keras", classes=1000)
    modules = dict(backbone.named_modules())
    for name, settings in given.items():
        if "epsilon" in settings:
            assert modules[rename(f"{name}/gamma").removesuffix(".weight")].eps == settings["epsilon"]
        elif "kernel_size" in settings:
            layer = modules[rename(f"{name}/kernel").removesuffix(".weight")]
            assert (list(layer.stride), list(layer.kernel_size)) == (settings["strides"], settings["kernel_size"])
            assert (layer.bias is not None) == settings["use_bias"]


def read_photograph(path):
    """The middle 224 pixels (3, 224, 224) at a shorter side of 256, from 0 to 1."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BILINEAR)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    return torch.from_numpy(np.array(image.crop((left, top, left + 224, top + 224)))).permute(2, 0, 1) / 255


def list_photographs(voc: Path, number, wanted):
    """The first photographs that show this class and no other."""
    found = []
    for path in sorted((voc / "SegmentationClass").glob("*.png")):
        with Image.open(path) as opened:
            classes = set(np.unique(np.asarray(opened)).tolist()) - {0, 255}
        if classes == {number}:
            found.append(voc / "JPEGImages" / f"{path.stem}.jpg")
        if len(found) == wanted:
            break
    return found


@pytest.mark.real
def test_photographs_are_recognised(weights, shared_data):
    """Top-1 of photographs; strawberries are none with red and blue exchanged."""
    backbone = build_backbone("resnet50-keras", classes=1000).eval()
    backbone.load_state_dict(weights)

    def recognise(images):
        with torch.no_grad():
            return backbone.classify((images - MEAN) / STD).argmax(1).tolist()

    right = []
    for number, counterparts in COUNTERPARTS.values():
        paths = list_photographs(shared_data / "data" / "VOCdevkit" / "VOC2012", number, 4)
        right += [top in counterparts for top in recognise(torch.stack([read_photograph(path) for path in paths]))]
    assert len(right) == 8 and sum(right) >= 7, f"{sum(right)} of 8"
    paths = sorted((shared_data / "data" / "caltech101" / "strawberry").iterdir())[:4]
    images = torch.stack([read_photograph(path) for path in paths])
    assert recognise(images) == [STRAWBERRY] * 4
    assert STRAWBERRY not in recognise(images.flip(1))


@pytest.mark.real
@pytest.mark.parametrize("kind", [PFENet, HSNet])
def test_networks_begin_with_these_weights(kind, weights):
    network = kind.build("resnet50-keras").eval()
    network.load_backbone(weights)
    stored = network.state_dict()
    prefix = "backbone." if kind is HSNet else ""
    torch.testing.assert_close(stored[f"{prefix}layer4.2.conv3.weight"], weights["layer4.2.conv3.weight"])
    first = "backbone.conv1.weight" if kind is HSNet else "layer0.1.weight"
    torch.testing.assert_close(stored[first], weights["conv1.weight"])


@pytest.mark.real
def test_the_prior_finds_the_same_class_in_another_photograph(weights, shared_data):
    """Before any training, PFENet's prior is higher on the query's class than off it."""
    voc = shared_data / "data" / "VOCdevkit" / "VOC2012"
    paths = list_photographs(voc, 1, 4)
    images, masks = [], []
    for path in paths:
        with Image.open(path) as photograph, Image.open(voc / "SegmentationClass" / f"{path.stem}.png") as labelled:
            images.append(
                torch.from_numpy(np.array(photograph.convert("RGB").resize((161, 161)))).permute(2, 0, 1) / 255
            )
            masks.append(torch.from_numpy(np.array(labelled.resize((161, 161), Image.Resampling.NEAREST))))
    images, masks = (torch.stack(images) - MEAN) / STD, torch.stack(masks)
    network = PFENet.build("resnet50-keras", bins=(6, 4, 3, 2)).eval()
    network.load_backbone(weights)
    with torch.no_grad():
        features = network.encode(images)
        deep = network.describe(tuple(one.roll(1, 0) for one in features), masks.roll(1, 0))[1]
        prior = torch.nn.functional.interpolate(compute_prior(features[2], deep[:, None]), (161, 161), mode="bilinear")
    for one, mask in zip(prior[:, 0], masks, strict=True):
        assert one[mask == 1].mean() > one[mask == 0].mean() + 0.1
