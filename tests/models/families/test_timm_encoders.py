"""timm's networks as encoders, against timm's own forward and transform."""

import json
import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import hardlook as hl
from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.models.families.timm_encoders import TimmFeatures
from hardlook.models.identity import identify
from hardlook.models.registry import build

pytestmark = pytest.mark.families
timm = pytest.importorskip("timm", reason="timm is not installed here; `make test` runs this file in .venv-families")
torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

VIT, CONV = "test_vit", "test_resnet"
TAGGED = "test_vit.r160_in1k"


@pytest.fixture(autouse=True)
def empty_caches(monkeypatch, tmp_path):
    """No weights of this machine, and no network."""
    monkeypatch.setenv("HARDLOOK_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def make_images():
    random = np.random.default_rng(0)
    return [random.integers(0, 256, size, dtype=np.uint8) for size in ((70, 110, 3), (64, 64, 3), (200, 120, 3))]


def make_network(name, seed=0, **options):
    torch.manual_seed(seed)
    return timm.create_model(name, **options).eval()


def prepare(network, image):
    """The input as timm makes it."""
    config = timm.data.resolve_data_config({}, model=network)
    return timm.data.create_transform(**config)(PIL.Image.fromarray(image))[None]


@pytest.mark.parametrize("name", [VIT, CONV, "test_efficientnet", "test_convnext", "test_nfnet", "test_mambaout"])
def test_vectors_and_maps_are_those_of_timm(name):
    network, images = make_network(name), make_images()
    features = build(f"timm:{name}", "encoder", {"random": "0"}).encode(images)
    for image, vector, spatial in zip(images, features.vectors, features.maps, strict=True):
        with torch.inference_mode():
            seen = network.forward_features(prepare(network, image))
            expected = network.forward_head(seen, pre_logits=True)[0].numpy()
        assert np.array_equal(vector, expected)
        if seen.ndim == 4:
            last = seen[0] if seen.shape[1] == network.num_features else seen[0].permute(2, 0, 1)
            assert np.array_equal(spatial, last.numpy())


def test_tokens_of_a_transformer_are_a_map_in_the_images_order():
    network, [image, *_] = make_network(VIT), make_images()
    [spatial] = build(f"timm:{VIT}", "encoder", {"random": "0"}).encode([image]).maps
    with torch.inference_mode():
        tokens = network.forward_features(prepare(network, image))[0, network.num_prefix_tokens :].numpy()
    assert spatial.shape == (64, 10, 10)
    for row, column in ((0, 0), (0, 9), (9, 0), (3, 7)):
        assert np.array_equal(spatial[:, row, column], tokens[row * 10 + column])


class Tokens(torch.nn.Module):
    """Features of `count` tokens, as of networks of timm that do not say how many come before the patches."""

    feature_info = ({"reduction": 16},)
    num_features = 2

    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward_features(self, images):
        return torch.arange(len(images) * self.count * 2.0).reshape(len(images), self.count, 2)

    def forward_head(self, features, pre_logits=False):
        return features[:, 0]


@pytest.mark.parametrize("before", [0, 1, 2])
def test_tokens_before_the_patches_are_no_part_of_the_map(before):
    found = TimmFeatures(Tokens(6 + before), None)(torch.zeros(1, 3, 32, 48))
    expected = torch.arange(before * 2.0, before * 2 + 12).reshape(2, 3, 2).permute(2, 0, 1)
    assert torch.equal(found["last_hidden_state"][0], expected)


@pytest.mark.parametrize("count", [5, 9, 12])
def test_tokens_that_form_no_grid_give_no_map(count):
    assert set(TimmFeatures(Tokens(count), None)(torch.zeros(1, 3, 32, 48))) == {"pooler_output"}


@pytest.mark.parametrize(("name", "layer"), [(VIT, 0), (VIT, -2), (CONV, 1), (CONV, 4), ("test_mambaout", 2)])
def test_a_layer_is_that_of_features_only(name, layer):
    network, [image, *_] = make_network(name, features_only=True, out_indices=(layer,)), make_images()
    features = build(f"timm:{name}", "encoder", {"random": "0", "layer": str(layer)}).encode([image])
    with torch.inference_mode():
        [expected] = network(prepare(network, image))
    expected = expected[0].numpy()
    if getattr(network.output_fmt, "value", network.output_fmt) == "NHWC":
        expected = expected.transpose(2, 0, 1)
    assert np.array_equal(features.maps[0], expected)
    np.testing.assert_allclose(features.vectors[0], expected.mean(axis=(1, 2)), rtol=1e-5, atol=1e-6)


def test_another_size_of_the_input():
    [spatial] = build(f"timm:{VIT}", "encoder", {"random": "0", "size": "96"}).encode(make_images()[:1]).maps
    assert spatial.shape == (64, 6, 6)
    [spatial] = build(f"timm:{CONV}", "encoder", {"random": "0", "size": "96"}).encode(make_images()[:1]).maps
    assert spatial.shape[1:] == (3, 3)
    with pytest.raises(OptionError, match="size=0"):
        build(f"timm:{VIT}", "encoder", {"random": "0", "size": "0"})


def test_weights_of_a_file_with_another_classifier(tmp_path):
    network = make_network(CONV, seed=3, num_classes=7)
    path = tmp_path / "mine.pth"
    torch.save({"state_dict": {f"module.{key}": value for key, value in network.state_dict().items()}}, path)
    model = build(f"timm:{CONV}", "encoder", {"weights": str(path)})
    [image, *_] = make_images()
    with torch.inference_mode():
        seen = network.forward_features(prepare(network, image))
        expected = network.forward_head(seen, pre_logits=True).numpy()
    assert np.array_equal(model.encode([image]).vectors, expected)
    assert model.weights_files == (path,) and "random" not in model.name


def test_weights_of_another_network_or_with_a_gap_are_an_error(tmp_path):
    path = tmp_path / "mine.safetensors"
    state = make_network(CONV).state_dict()
    for wrong in (make_network(VIT).state_dict(), dict(list(state.items())[3:])):
        safetensors.save_file(wrong, path)
        with pytest.raises(HardlookError, match="timm cannot make test_resnet") as caught:
            build(f"timm:{CONV}", "encoder", {"weights": str(path)})
        assert caught.value.file == str(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(HardlookError, match="not a readable safetensors file"):
        build(f"timm:{CONV}", "encoder", {"weights": str(path)})


def test_pretrained_weights_are_read_where_the_error_says_they_go():
    with pytest.raises(ModelError, match=r"model\.safetensors of timm/test_vit\.r160_in1k is not on this") as caught:
        build(f"timm:{TAGGED}", "encoder")
    path = Path(re.search(r"put it at (\S+);", caught.value.remedy)[1])
    path.parent.mkdir(parents=True)
    network = make_network(VIT, seed=4)
    safetensors.save_file(network.state_dict(), path)
    model = build(f"timm:{TAGGED}", "encoder")
    [image, *_] = make_images()
    with torch.inference_mode():
        seen = network.forward_features(prepare(network, image))
        expected = network.forward_head(seen, pre_logits=True).numpy()
    assert np.array_equal(model.encode([image]).vectors, expected)
    assert model.weights_files == (path,)


def test_random_weights_are_never_the_default_and_are_named():
    for given in ({"pretrained": "false"}, {"random": "0", "weights": "x.pth"}):
        with pytest.raises(OptionError):
            build(f"timm:{VIT}", "encoder", given)
    model = build(f"timm:{VIT}", "encoder", {"random": "2", "pretrained": "false"})
    assert model.name == f"timm:{VIT} (random weights, seed 2)" and model.weights_files == ()


def test_other_seeds_layers_and_versions_are_other_models():
    def fingerprint(**given):
        model = build(f"timm:{VIT}", "encoder", given)
        assert {"timm", "torch", "torchvision", "pillow"} <= set(model.libraries)
        identity = identify(model, name=f"timm:{VIT}", role="encoder", args=given)
        assert identity.args["random"] is not None
        return identity.fingerprint()

    assert len({fingerprint(random=0), fingerprint(random=1), fingerprint(random=0, layer=1)}) == 3
    assert fingerprint(random=0) == fingerprint(random="0", device="cpu")


def test_names_that_timm_does_not_have():
    for name in ("test_vitt", "test_vit.nothing", "hub/owner"):
        with pytest.raises(ModelError, match="timm has no model"):
            build(f"timm:{name}", "encoder", {"random": "0"})
    with pytest.raises(ModelError, match=r"out_indices=\(99,\)"):
        build(f"timm:{CONV}", "encoder", {"random": "0", "layer": "99"})
    without = next(name for name in timm.list_models() if not timm.models.is_model_pretrained(name))
    with pytest.raises(ModelError, match="has no weights"):
        build(f"timm:{without}", "encoder")
    with pytest.raises(ModelError, match="does not have the role semantic-segmenter"):
        build(f"timm:{VIT}", "semantic-segmenter")


def test_the_family_lists_timms_names(hardlook):
    listed = [card.name for card in hl.models("test_*", family="timm")]
    expected = {*timm.list_models("test_*"), *timm.list_pretrained("test_*")}
    assert {f"timm:{name}" for name in expected} == set(listed) and f"timm:{TAGGED}" in listed
    assert hl.models("timm:test_vit", family="timm")[0].roles == ("encoder",)
    assert not hl.models("test_*", family="timm", role="saliency")
    printed = hardlook("models", "--family", "timm", "test_vit*").out
    assert printed.splitlines()[:1] == [f"timm:{VIT}"]


def test_the_contract_of_an_encoder_holds():
    result = hl.check(f"timm:{VIT}", "encoder", model_args={"random": 0})
    assert result.passed, result
    result = hl.check(f"timm:{CONV}", "encoder", model_args={"random": 0, "layer": 2})
    assert result.passed, result


def test_a_few_shot_run_on_its_features_says_that_weights_are_random(tmp_path):
    run = hl.run(
        "metacoco", model="nearest-centroid", encoder=f"timm:{VIT}", encoder_args="random=1", tasks=2, resamples=100,
        out=tmp_path / "run", progress=False,
    )  # fmt: skip
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert "random=1" in json.dumps(manifest["options"])
    assert run.scores
    assert "random=1" in (tmp_path / "run" / "report.html").read_text()
