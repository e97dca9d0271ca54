"""torchvision's networks in their roles, against torchvision's own forward, weights' transforms and categories."""

import json

import numpy as np
import PIL.Image
import pytest

import hardlook as hl
from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.models.registry import build

pytestmark = pytest.mark.families
torchvision = pytest.importorskip(
    "torchvision", reason="torchvision is not installed here; `make test` runs this file in .venv-families"
)
torch = pytest.importorskip("torch")

SEGMENTER, CLASSIFIER = "lraspp_mobilenet_v3_large", "shufflenet_v2_x0_5"
DETECTOR, MASKS = "ssdlite320_mobilenet_v3_large", "maskrcnn_resnet50_fpn"


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    """No weights of this machine, and no network."""
    monkeypatch.setenv("HARDLOOK_OFFLINE", "1")
    before = torch.hub.get_dir()
    torch.hub.set_dir(str(tmp_path / "torch"))
    yield tmp_path / "torch" / "checkpoints"
    torch.hub.set_dir(before)


def make_images():
    random = np.random.default_rng(0)
    return [random.integers(0, 256, size, dtype=np.uint8) for size in ((60, 90, 3), (80, 50, 3))]


def make_network(name, seed=0, **options):
    torch.manual_seed(seed)
    return torchvision.models.get_model(name, weights=None, **options).eval()


def prepare(name, image):
    return torchvision.models.get_model_weights(name).DEFAULT.transforms()(PIL.Image.fromarray(image))


def segment(network, name, image):
    """Labels at the image's size: the bilinear logits' largest."""
    with torch.inference_mode():
        logits = network(prepare(name, image)[None])["out"]
        fitted = torch.nn.functional.interpolate(logits, image.shape[:2], mode="bilinear", align_corners=False)
    return fitted[0].argmax(0).numpy()


def make_segmenter(seed=0, classes=21):
    """A network whose labels differ between pixels; without training all pixels would have one label."""
    network = make_network(SEGMENTER, seed, num_classes=classes, weights_backbone=None)
    for part in network.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(part.running_mean, std=0.1)
            torch.nn.init.constant_(part.running_var, 0.05)
    torch.nn.init.normal_(network.classifier.low_classifier.weight)
    return network


def test_a_segmenter_answers_as_torchvision_with_the_weights_categories(tmp_path):
    network, path, images = make_segmenter(), tmp_path / "net.pth", make_images()
    torch.save(network.state_dict(), path)
    model = build(f"torchvision:{SEGMENTER}", "semantic-segmenter", {"weights": str(path)})
    categories = torchvision.models.get_model_weights(SEGMENTER).DEFAULT.meta["categories"]
    assert model.labels == ("background", *categories[1:])
    for image, answer in zip(images, model.segment(images), strict=True):
        assert len(np.unique(answer)) > 3
        assert np.array_equal(answer, segment(network, SEGMENTER, image))
    assert {"torch", "torchvision"} <= set(model.libraries)


def test_a_segmenters_input_may_have_another_size(tmp_path):
    network, path, [image, _] = make_segmenter(), tmp_path / "net.pth", make_images()
    torch.save(network.state_dict(), path)
    given = {"weights": str(path), "size": "64"}
    [answer] = build(f"torchvision:{SEGMENTER}", "semantic-segmenter", given).segment([image])
    short = torchvision.transforms.functional.resize(PIL.Image.fromarray(image), [64])
    transform = torchvision.models.get_model_weights(SEGMENTER).DEFAULT.transforms(resize_size=None)
    with torch.inference_mode():
        logits = network(transform(short)[None])["out"]
        fitted = torch.nn.functional.interpolate(logits, image.shape[:2], mode="bilinear", align_corners=False)
    assert len(np.unique(answer)) > 1 and np.array_equal(answer, fitted[0].argmax(0).numpy())
    with pytest.raises(OptionError, match="size=0"):
        build(f"torchvision:{SEGMENTER}", "semantic-segmenter", {"random": "0", "size": "0"})


def test_a_segmenter_with_weights_and_classes_of_ones_own(tmp_path, hardlook):
    network = make_segmenter(seed=2, classes=3)
    path, names = tmp_path / "mine.pth", tmp_path / "names.txt"
    torch.save(network.state_dict(), path)
    names.write_text("sky\nroad\ncar\n")
    model = build(f"torchvision:{SEGMENTER}", "semantic-segmenter", {"weights": str(path), "classes": str(names)})
    [image, _] = make_images()
    assert model.labels == ("sky", "road", "car") and model.weights_files == (path,)
    assert np.array_equal(model.segment([image])[0], segment(network, SEGMENTER, image))
    assert len(np.unique(model.segment([image])[0])) > 1
    with pytest.raises(HardlookError, match="do not fit") as caught:
        build(f"torchvision:{SEGMENTER}", "semantic-segmenter", {"weights": str(path), "classes": "sky,road"})
    assert caught.value.file == str(path)
    answer = hardlook(
        "check", "semantic-segmenter", f"torchvision:{SEGMENTER}", "--model-arg", f"weights={path}",
        "--model-arg", "classes=sky,road,car", "--model-arg", "size=32",
    )  # fmt: skip
    assert answer.code == 0, answer.out


def test_detections_are_torchvisions(one_thread):
    model = build(f"torchvision:{DETECTOR}", "instance-segmenter", {"random": "1"})
    categories = torchvision.models.get_model_weights(DETECTOR).DEFAULT.meta["categories"]
    assert list(model.labels) == [name for name in categories if name not in ("__background__", "N/A")]
    network = make_network(DETECTOR, seed=1, num_classes=91, weights_backbone=None)
    _answer_alike(model, network, categories, masks=False)


def test_masks_are_torchvisions(one_thread):
    model = build(f"torchvision:{MASKS}", "instance-segmenter", {"random": "1"})
    categories = torchvision.models.get_model_weights(MASKS).DEFAULT.meta["categories"]
    network = make_network(MASKS, seed=1, num_classes=91, weights_backbone=None)
    for one in (model.network, network):  # few and small, so that Python's operators are quick enough
        one.transform.min_size, one.transform.max_size = (64,), 96
        one.rpn._pre_nms_top_n = one.rpn._post_nms_top_n = {"training": 8, "testing": 8}
        one.roi_heads.detections_per_img, one.roi_heads.score_thresh = 4, 0.0
    assert _answer_alike(model, network, categories, masks=True)


def _answer_alike(model, network, categories, *, masks):
    [image, _] = make_images()
    [answer] = model.detect([image])
    with torch.inference_mode():
        [expected] = network([prepare(DETECTOR, image)])
    known = [number for number, name in enumerate(categories) if name not in ("__background__", "N/A")]
    kept = np.array([int(label) in known for label in expected["labels"]], bool)
    pairs = zip(answer.labels, answer.scores, strict=True)
    shown = {(model.labels[label], round(float(score), 5)) for label, score in pairs}
    wanted = {
        (categories[label], round(float(score), 5))
        for label, score, keep in zip(expected["labels"].tolist(), expected["scores"], kept, strict=True)
        if keep
    }
    assert shown <= wanted and len(shown) > 0
    for place in range(len(answer.scores)):
        same = np.isclose(expected["scores"].numpy(), answer.scores[place], atol=1e-6) & kept
        boxes = expected["boxes"].numpy()[same]
        assert any(np.allclose(answer.boxes[place], box, atol=1e-4) for box in boxes)
        if masks:
            soft = expected["masks"][:, 0].numpy()[same]
            assert any(np.array_equal(answer.masks[place], one > 0.5) for one in soft)
    return len(shown)


@pytest.mark.parametrize("name", [
    CLASSIFIER, "resnet18", "mobilenet_v3_small", "squeezenet1_1", "regnet_y_400mf", "mnasnet0_5", "googlenet",
])  # fmt: skip
def test_an_encoders_vector_is_what_the_classifier_is_given(name, one_thread):
    model = build(f"torchvision:{name}", "encoder", {"random": "0"})
    more = {"init_weights": True, "transform_input": True, "aux_logits": False} if name == "googlenet" else {}
    network = make_network(name, num_classes=1000, **more)
    [image, _] = make_images()
    features = model.encode([image])
    with torch.inference_mode():
        logits = network(prepare(name, image)[None])[0]
    if name == "squeezenet1_1":
        assert np.allclose(features.vectors[0], features.maps[0].mean(axis=(1, 2)), atol=1e-5)
        with torch.inference_mode():
            assert np.array_equal(features.maps[0], network.features(prepare(name, image)[None])[0].numpy())
        return
    head = [part for part in network.modules() if isinstance(part, torch.nn.Linear)][-1]
    with torch.inference_mode():
        assert torch.allclose(head(torch.from_numpy(features.vectors))[0], logits, atol=1e-5)
    assert features.maps[0].ndim == 3 and min(features.maps[0].shape[1:]) > 1


@pytest.mark.parametrize("name", ["swin_t", "vit_b_32"])
def test_maps_of_transformers_have_channels_first(name, one_thread):
    model = build(f"torchvision:{name}", "encoder", {"random": "0"})
    features = model.encode(make_images()[:1])
    assert features.maps[0].shape == (768, 7, 7) and features.vectors.shape == (1, 768)
    if name == "swin_t":  # it averages its map
        assert np.allclose(features.vectors[0], features.maps[0].mean(axis=(1, 2)), atol=1e-5)
        return
    seen, network = [], make_network(name)
    network.encoder.register_forward_hook(lambda part, given, answer: seen.append(answer))
    with torch.inference_mode():
        network(prepare(name, make_images()[0])[None])
    patches = seen[0][0, 1:].numpy()  # after the token of the class
    assert np.array_equal(features.maps[0], patches.reshape(7, 7, 768).transpose(2, 0, 1))


def test_a_part_of_an_encoder_is_chosen_by_its_name():
    model = build("torchvision:resnet18", "encoder", {"random": "0", "layer": "layer2"})
    network, [image, _] = make_network("resnet18"), make_images()
    with torch.inference_mode():
        seen = prepare("resnet18", image)[None]
        for part in ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2"):
            seen = getattr(network, part)(seen)
    assert np.array_equal(model.encode([image]).maps[0], seen[0].numpy())
    with pytest.raises(OptionError, match="has no part 'layer9'") as caught:
        build("torchvision:resnet18", "encoder", {"random": "0", "layer": "layer9"})
    assert "layer4" in caught.value.remedy


def test_an_encoder_with_weights_of_ones_own_may_have_any_classes(tmp_path):
    network = make_network(CLASSIFIER, seed=5, num_classes=4)
    path = tmp_path / "mine.pth"
    torch.save(network.state_dict(), path)
    model = build(f"torchvision:{CLASSIFIER}", "encoder", {"weights": str(path)})
    [image, _] = make_images()
    with torch.inference_mode():
        logits = network(prepare(CLASSIFIER, image)[None])[0]
        assert torch.allclose(network.fc(torch.from_numpy(model.encode([image]).vectors))[0], logits, atol=1e-5)


def test_pretrained_weights_are_read_where_the_error_says_they_go(empty_cache):
    weights = torchvision.models.get_model_weights(CLASSIFIER).DEFAULT
    with pytest.raises(ModelError, match="downloads are forbidden") as caught:
        build(f"torchvision:{CLASSIFIER}", "encoder")
    path = empty_cache / weights.url.rpartition("/")[2]
    assert f"put it at {path}" in caught.value.remedy and weights.url in caught.value.remedy
    path.parent.mkdir(parents=True)
    network = make_network(CLASSIFIER, seed=6)
    torch.save(network.state_dict(), path)
    for name in (CLASSIFIER, f"{CLASSIFIER}.{weights.name}"):
        model = build(f"torchvision:{name}", "encoder")
        [image, _] = make_images()
        with torch.inference_mode():
            logits = network(prepare(CLASSIFIER, image)[None])[0]
            assert torch.allclose(network.fc(torch.from_numpy(model.encode([image]).vectors))[0], logits, atol=1e-5)
        assert model.weights_files == (path,)


def test_every_name_has_the_role_of_its_kind():
    listed = {card.name: card.roles for card in hl.models(family="torchvision")}
    assert listed["torchvision:deeplabv3_resnet50"] == ("semantic-segmenter",)
    assert listed["torchvision:maskrcnn_resnet50_fpn.COCO_V1"] == ("instance-segmenter",)
    assert listed["torchvision:resnet50.IMAGENET1K_V2"] == ("encoder",)
    kinds = {name: torchvision.models.get_model_builder(name).__module__ for name in torchvision.models.list_models()}
    without = ("quantization", "video", "optical_flow")
    fit = {f"torchvision:{name}" for name, kind in kinds.items() if not any(one in kind for one in without)}
    assert {name for name in listed if "." not in name} == fit and len(fit) > 90
    segmenters = hl.models(family="torchvision", role="semantic-segmenter")
    assert {card.name.partition(".")[0] for card in segmenters} == {
        f"torchvision:{name}" for name, kind in kinds.items() if ".segmentation." in kind
    }


@pytest.mark.parametrize(("name", "given", "message"), [
    ("resnet5", {}, "has no model"),
    ("resnet50.IMAGENET1K_V7", {}, "has no model"),
    ("r3d_18", {"random": "0"}, "there is no role"),
    ("resnet18", {"pretrained": "false"}, "would answer at random"),
    ("resnet18", {"random": "0", "classes": "a,b"}, "is an encoder"),
    (SEGMENTER, {"classes": "a,b"}, "has the classes of"),
    (SEGMENTER, {"random": "0", "layer": "x"}, "is a semantic-segmenter"),
])  # fmt: skip
def test_what_does_not_go_together_is_an_error(name, given, message):
    with pytest.raises(HardlookError, match=message):
        build(f"torchvision:{name}", "semantic-segmenter" if name == SEGMENTER else "encoder", given)


def test_a_run_knows_its_libraries_and_says_that_weights_are_random(tmp_path):
    run = hl.run(
        "open-miou", model=f"torchvision:{SEGMENTER}", model_args={"random": 3, "size": 64}, scenes=2, resamples=100,
        out=tmp_path / "run", progress=False, offline=True,
    )  # fmt: skip
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    parts = manifest["answers"]["parts"]
    assert parts["library torchvision"] == torchvision.__version__.partition("+")[0]
    assert parts["model args"]["random"] == 3 and manifest["model"]["args"]["random"] == 3
    assert "random=3" in (tmp_path / "run" / "report.html").read_text()
    assert run.scores


def test_a_detector_proposes_masks_that_clip_names():
    given = {"proposals": f"torchvision:{MASKS}", "proposal_args": "random=1", "labels": "cat,dog,gnu"}
    model = build("ovseg", "semantic-segmenter", {**given, "weights": "random:1", "size": "tiny"})
    detector = build(f"torchvision:{MASKS}", "instance-segmenter", {"random": "1"})
    [found] = detector.detect(make_images()[:1])
    [answer] = model.segment(make_images()[:1])
    assert np.array_equal(answer >= 0, found.masks[found.scores > 0].any(0))
    assert "2 of 80 of which are words" in model.conduct, "cat and dog are labels of COCO"
