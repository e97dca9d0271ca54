"""Wrapped networks of every role: the contract of `hardlook check`, and answers computed by hand with plain torch."""

import pickle
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pytest
import tiny_sam
from tiny_networks import (
    Attends,
    Centroids,
    Clicked,
    Detector,
    Logits,
    Segmenter,
    picture,
    resize,
    to_input,
    write_onnx,
)
from transformers_folders import network as text_network
from transformers_folders import write_tokenizer

from hardlook.errors import ModelError, OptionError
from hardlook.models.conformance import check_model
from hardlook.models.conformance.contracts import CONTRACTS
from hardlook.models.roles import ROLES, Clicks, Episode, Support
from hardlook.models.wrapping import wrap

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

CLASSES = ["cat", "dog", "sky"]
IMAGES = [picture(24, 32), picture(18, 30, 1), picture(24, 32, 2)]


class Queries(Logits):
    """What MaskFormer answers: a class and a mask per query."""

    def __init__(self):
        super().__init__(classes=6)
        self.classes = torch.nn.Parameter(3 * torch.eye(6, 4))

    def forward(self, images):
        return {
            "class_queries_logits": self.classes[None].repeat(len(images), 1, 1),
            "masks_queries_logits": super().forward(images),
        }


class Half(Logits):
    def forward(self, images):
        return super().forward(images).sigmoid()[:, :1]


def embed_words(texts):
    return np.array([[len(text), text.count("a") + 1, text.count("o"), 1] for text in texts], np.float32)


def average_colours(images):
    return np.concatenate([images.mean(axis=(2, 3)), 1 + images.max(axis=(2, 3))[:, :1]], axis=1)


WRAPPED = {
    "encoder": lambda: wrap(Logits(5), "encoder"),
    "image-text-encoder": lambda: wrap((average_colours, embed_words), "image-text-encoder"),
    "saliency": lambda: wrap(Half(), "saliency"),
    "semantic-segmenter": lambda: wrap(Segmenter(), "semantic-segmenter", classes=CLASSES),
    "instance-segmenter": lambda: wrap(Detector(), "instance-segmenter", classes=["__background__", "cat", "dog"]),
    "panoptic-segmenter": lambda: wrap(Queries(), "panoptic-segmenter", classes=CLASSES, things=["cat", "dog"]),
    "one-shot-segmenter": lambda: wrap(Attends(), "one-shot-segmenter"),
    "few-shot-learner": lambda: wrap(Centroids(), "few-shot-learner", preprocess={"size": 16}),
    "promptable-segmenter": lambda: wrap(Clicked(), "promptable-segmenter", activation="sigmoid"),
}


def failures(model, role):
    return [finding.line() for finding in check_model(model, role) if not finding.passed]


@pytest.mark.parametrize("role", WRAPPED)
def test_the_roles_contract(role):
    assert failures(WRAPPED[role], role) == []


@pytest.mark.parametrize("role", WRAPPED)
def test_a_wrapped_network_travels(role):
    model = WRAPPED[role]()
    for dumps in (pickle.dumps, cloudpickle.dumps):
        again = pickle.loads(dumps(model))
        assert isinstance(again, ROLES[role])
        assert (again.name, again.device, again.libraries) == (model.name, model.device, model.libraries)
    probes = CONTRACTS[role].probes(model)[:2]
    answers = [CONTRACTS[role].call(one, [probe.value for probe in probes]) for one in (model, again)]
    assert not any(CONTRACTS[role].compare(*pair) for pair in zip(*answers, strict=True))
    assert (model.device, model.weights_files) == ("cpu", ())
    assert not hasattr(model, "fingerprint")


def test_libraries_are_those_of_network_and_preprocessing():
    assert WRAPPED["image-text-encoder"]().libraries == ()
    assert WRAPPED["encoder"]().libraries == ("torch",)
    assert WRAPPED["few-shot-learner"]().libraries == ("pillow", "torch")


@pytest.mark.parametrize("role", WRAPPED)
def test_calls_leave_nothing_behind(role):
    model = WRAPPED[role]()
    before = pickle.dumps(model)
    CONTRACTS[role].call(model, [probe.value for probe in CONTRACTS[role].probes(model)[:2]])
    assert pickle.dumps(model) == before


def test_names_and_networks():
    network = Segmenter()
    model = wrap(network, "semantic-segmenter", classes=CLASSES)
    assert (model.network, model.name) == (network, "Segmenter")
    assert repr(model) == "<WrappedSemanticSegmenter 'Segmenter' on cpu>"
    assert wrap(network, "semantic-segmenter", classes=CLASSES, name="mine").name == "mine"
    assert WRAPPED["image-text-encoder"]().name == "average_colours and embed_words"
    assert network.training, "a network in training stays in training"


@pytest.mark.parametrize("batch_size", [None, 1, 2, 16])
def test_labels_are_those_of_plain_torch(batch_size):
    network = Segmenter()
    model = wrap(network, "semantic-segmenter", classes=CLASSES, batch_size=batch_size)
    answers = model.segment(IMAGES)
    with torch.no_grad():
        for image, answer in zip(IMAGES, answers, strict=True):
            expected = network.eval()(to_input(image))["out"].argmax(1)[0].numpy()
            assert np.mean(answer == expected) == 1
    assert model.segment([]) == []


def test_answers_of_resized_images_come_back_to_their_size():
    network = Logits().eval()
    settings = {"size": (16, 20), "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4), "interpolation": "nearest"}
    model = wrap(network, "semantic-segmenter", classes=CLASSES, preprocess=settings)
    import PIL.Image

    small = np.asarray(PIL.Image.fromarray(IMAGES[0]).resize((20, 16), PIL.Image.Resampling.NEAREST))
    values = (to_input(small) - torch.tensor([0.5, 0.4, 0.3])[:, None, None]) / torch.tensor([0.2, 0.3, 0.4])[
        :, None, None
    ]
    with torch.no_grad():
        expected = resize(network(values), (24, 32)).argmax(1)[0].numpy()
    assert np.array_equal(model.segment(IMAGES[:1])[0], expected)


def test_classes_come_from_the_network():
    network = Segmenter()
    with pytest.raises(OptionError, match=r"pass classes=\[...\]"):
        wrap(network, "semantic-segmenter")
    network.weights = SimpleNamespace(meta={"categories": ["__background__", "cat", "N/A"]})
    model = wrap(network, "semantic-segmenter")
    assert model.labels == ("background", "cat")
    assert set(np.unique(model.segment(IMAGES)[0])) <= {-1, 0, 1}
    with pytest.raises(ModelError, match="has 3 classes, and `classes` has 4 names"):
        wrap(network, "semantic-segmenter", classes=["a", "b", "c", "d"]).segment(IMAGES)


def test_detections_are_those_of_plain_torch():
    network = Detector()
    network.weights = SimpleNamespace(meta={"categories": ["__background__", "cat", "dog"]})
    model = wrap(network, "instance-segmenter")
    assert model.labels == ("cat", "dog")
    with torch.no_grad():
        for image, found in zip(IMAGES, model.detect(IMAGES), strict=True):
            [expected] = network.eval()(to_input(image))
            order = expected["scores"].argsort(descending=True)
            assert np.array_equal(found.labels, expected["labels"][order] - 1)
            assert np.allclose(found.boxes, expected["boxes"][order])
            assert np.array_equal(found.masks, (expected["masks"][order, 0] > 0.5).numpy())


def test_files_serve_as_their_network(tmp_path):
    network = Logits().eval()
    torch.jit.save(torch.jit.script(network), tmp_path / "tiny.pt")
    model = wrap(tmp_path / "tiny.pt", "semantic-segmenter", classes=CLASSES)
    live = wrap(network, "semantic-segmenter", classes=CLASSES)
    for one, other in zip(model.segment(IMAGES), live.segment(IMAGES), strict=True):
        assert np.array_equal(one, other)
    assert (model.name, model.weights_files, model.network) == ("tiny", (tmp_path / "tiny.pt",), tmp_path / "tiny.pt")
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    weight = np.random.default_rng(0).normal(size=(3, 3))
    path = write_onnx(tmp_path / "tiny.onnx", weight)
    model = wrap(str(path), "semantic-segmenter", classes=CLASSES)
    assert failures(model, "semantic-segmenter") == []
    expected = np.einsum("kc,hwc->khw", weight, IMAGES[0] / 255).argmax(0)
    assert np.mean(model.segment(IMAGES)[0] == expected) > 0.999
    assert model.libraries == ("onnxruntime",)
    fixed = write_onnx(tmp_path / "fixed.onnx", weight, (2, 3, 8, 12))
    with pytest.raises(ModelError, match="takes inputs of 3 x 8 x 12"):
        wrap(fixed, "semantic-segmenter", classes=CLASSES).segment(IMAGES)
    assert wrap(fixed, "encoder", preprocess={"size": (8, 12)}).encode(IMAGES).vectors.shape == (3, 3)
    assert wrap(fixed, "encoder").dimension == 3, "an image of the size that the file fixes"


def test_an_installed_saliency_network(request):
    from hardlook.errors import HardlookError
    from hardlook.models.u2netp import prepare_image
    from hardlook.models.weights.install import locate_weights
    from hardlook.networks.loading import open_onnx

    try:
        path = locate_weights("u2netp")["u2netp.onnx"]
    except HardlookError as error:
        pytest.skip(str(error))
    model = wrap(path, "saliency", preprocess=lambda image: prepare_image(image)[0])
    [answer] = model.saliency([IMAGES[0]])
    session = open_onnx(path, 1, remedy="")
    by_hand = session.run(None, {session.get_inputs()[0].name: prepare_image(IMAGES[0])})[0]
    assert np.allclose(answer, resize(torch.from_numpy(by_hand), (24, 32))[0, 0].numpy(), atol=1e-5)


def test_vectors_and_maps_of_images_of_several_sizes():
    network = Logits(5).eval()
    features = wrap(network, "encoder").encode(IMAGES)
    with torch.no_grad():
        for image, vector, cells in zip(IMAGES, features.vectors, features.maps, strict=True):
            expected = network(to_input(image))[0]
            assert np.allclose(cells, expected.numpy(), atol=1e-6)
            assert np.allclose(vector, expected.mean((1, 2)).numpy(), atol=1e-6)


def test_a_pair_and_its_tokenizer():
    table = torch.nn.EmbeddingBag(50, 4)
    with pytest.raises(OptionError, match="give a pair"):
        wrap(average_colours, "image-text-encoder")
    model = wrap(
        (average_colours, table),
        "image-text-encoder",
        tokenizer=lambda texts: torch.tensor([[len(text) % 50, 1, 2] for text in texts]),
    )
    expected = torch.nn.functional.normalize(table(torch.tensor([[3, 1, 2], [8, 1, 2]])), dim=1).detach().numpy()
    assert np.allclose(model.encode_text(["cat", "elephant"]), expected, atol=1e-6)
    assert model.encode_text([]).shape == (0, 4)


def test_one_shot_masks_are_those_of_plain_torch():
    model = wrap(Attends(), "one-shot-segmenter", preprocess={"size": (12, 16)}, batch_size=4)
    supports = [[Support(image, picture(*image.shape[:2], 9)[..., 0] > 100)] for image in reversed(IMAGES)]
    plain = wrap(Attends(), "one-shot-segmenter")
    for query, [shown], mask in zip(IMAGES, supports, plain.segment_queries(IMAGES, supports), strict=True):
        chosen = torch.from_numpy(shown.mask)[None].float()
        assert np.array_equal(
            mask, Attends()(to_input(query), to_input(shown.image), chosen).argmax(1)[0].bool().numpy()
        )
    assert [mask.shape for mask in model.segment_queries(IMAGES, supports)] == [image.shape[:2] for image in IMAGES]
    with pytest.raises(ModelError, match="takes one"):
        model.segment_queries(IMAGES[:1], [supports[0] * 2])


class Shown(torch.nn.Module):
    """A learner in two steps: it keeps what it was shown, as few-shot libraries do."""

    def process_support_set(self, support, labels):
        self.means = torch.stack([support[labels == label].mean((0, 2, 3)) for label in labels.unique()])

    def forward(self, query):
        return -torch.cdist(query.mean((2, 3)), self.means)


def test_few_shot_learners():
    episode = Episode([IMAGES[0], IMAGES[2]], np.array([1, 0]), IMAGES, ways=2)
    model = wrap(Centroids(), "few-shot-learner", preprocess={"size": 8})
    prepared = [torch.from_numpy(model._preprocess.prepare(image).inputs[""]) for image in IMAGES]
    expected = Centroids()(torch.cat([prepared[0], prepared[2]]), torch.tensor([1, 0]), torch.cat(prepared)).numpy()
    assert np.allclose(model.classify([episode])[0], expected, atol=1e-6)
    shown = wrap(Shown(), "few-shot-learner", preprocess={"size": 8})
    assert np.allclose(shown.classify([episode])[0], expected, atol=1e-6)
    assert "means" not in vars(shown.network), "what it was shown stays out of the network"
    with pytest.raises(ModelError, match=r"inputs of \(3, 24, 32\) and \(3, 18, 30\)"):
        wrap(Centroids(), "few-shot-learner").classify([episode])
    with pytest.raises(ModelError, match=r"scores \(queries, ways\) = \(3, 2\)"):
        wrap(lambda support, labels, query: query, "few-shot-learner", preprocess={"size": 8}).classify([episode])


def nearest(support, labels, query):
    distance = ((query[:, None] - support[None]) ** 2).sum(-1)
    return -np.stack([distance[:, labels == label].min(1) for label in np.unique(labels)], 1)


def test_a_learner_of_features():
    model = wrap(nearest, "few-shot-learner", accepts="features")
    assert failures(model, "few-shot-learner") == []
    with pytest.raises(OptionError, match="no images to preprocess"):
        wrap(nearest, "few-shot-learner", accepts="features", preprocess={"size": 8})
    with pytest.raises(OptionError, match="accepts is 'words'"):
        wrap(nearest, "few-shot-learner", accepts="words")


def test_clicks_are_given_in_the_inputs_pixels_and_the_last_mask_comes_back():
    seen = []

    def watched(image, points, labels, previous):
        seen.append((points.tolist(), labels.tolist(), None if previous is None else previous.copy()))
        return np.full((1, 1, 3, 4), 0.6 if previous is None else 0.4, np.float32)

    model = wrap(watched, "promptable-segmenter", preprocess={"size": (48, 64)})
    session = model.open(IMAGES[0])
    [first] = session.predict([Clicks(np.array([[0, 0]], np.float32), np.array([True]))])
    assert first.mask.shape == (24, 32)
    assert first.mask.all()
    [second] = session.predict([Clicks(np.array([[0, 0], [5, 2]], np.float32), np.array([True, False]), first.state)])
    assert not second.mask.any()
    assert seen[0] == ([[[0.5, 0.5]]], [[1]], None)
    assert seen[1][:2] == ([[[0.5, 0.5], [10.5, 4.5]]], [[1, 0]])
    assert np.array_equal(seen[1][2], np.full((1, 1, 3, 4), 0.6, np.float32))


@pytest.mark.parametrize(
    ("role", "options", "words"),
    [
        ("painter", {}, "there is no role 'painter'"),
        ("click-model", {}, "not wrapped as a click-model"),
        ("encoder", {"classes": CLASSES}, "a encoder has no classes"),
        ("semantic-segmenter", {"classes": CLASSES, "things": ["cat"]}, "has no things"),
        ("panoptic-segmenter", {"classes": CLASSES}, "things and which are stuff"),
        ("saliency", {"batch_size": 0}, "batch_size is 0"),
        ("one-shot-segmenter", {"threshold": 1.0}, "threshold 1.0 is not a probability"),
        ("saliency", {"activation": "relu"}, "activation is 'relu'"),
    ],
)
def test_options_that_do_not_fit(role, options, words):
    with pytest.raises(OptionError, match=words):
        wrap(Half(), role, **options)


# Networks of transformers with random weights


LABELS = {"id2label": dict(enumerate(CLASSES)), "label2id": {name: number for number, name in enumerate(CLASSES)}}
SIZE = {"size": (64, 96)}


def call_by_hand(network, image, size=None):
    with torch.no_grad():
        values = to_input(image) if size is None else to_input(np.asarray(to_pil(image, size)))
        return network.eval()(pixel_values=values)


def to_pil(image, size):
    import PIL.Image

    return PIL.Image.fromarray(image).resize((size[1], size[0]), PIL.Image.Resampling.BILINEAR)


def test_segformer():
    config = transformers.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[3, 3], strides=[2, 2],
        num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, **LABELS,
    )  # fmt: skip
    torch.manual_seed(0)
    network = transformers.SegformerForSemanticSegmentation(config)
    model = wrap(network, "semantic-segmenter")
    assert (model.labels, model.libraries) == (tuple(CLASSES), ("torch", "transformers"))
    for image, answer in zip(IMAGES, model.segment(IMAGES), strict=True):
        expected = resize(call_by_hand(network, image).logits, image.shape[:2]).argmax(1)[0].numpy()
        assert np.array_equal(answer, expected)
    assert failures(wrap(network, "semantic-segmenter", preprocess={"size": 32}), "semantic-segmenter") == []
    processing = pytest.importorskip("transformers.models.segformer.image_processing_pil_segformer")
    processor = processing.SegformerImageProcessorPil(size={"height": 32, "width": 48})
    [answer] = wrap(network, "semantic-segmenter", preprocess=processor).segment(IMAGES[:1])
    with torch.no_grad():
        theirs = network.eval()(**processor(images=IMAGES[0], return_tensors="pt"))
    [expected] = processor.post_process_semantic_segmentation(theirs, target_sizes=[(24, 32)])
    assert np.array_equal(answer, expected.numpy())


@pytest.fixture(scope="module")
def maskformer():
    stages = ["stage1", "stage2", "stage3", "stage4"]
    swin = transformers.SwinConfig(
        image_size=32, embed_dim=8, depths=[1] * 4, num_heads=[1] * 4, window_size=4, out_features=stages
    )
    parts = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    decoder = transformers.DetrConfig(d_model=16, encoder_ffn_dim=16, decoder_ffn_dim=16, num_queries=12, **parts)
    config = transformers.MaskFormerConfig(
        backbone_config=swin, fpn_feature_size=32, mask_feature_size=32, decoder_config=decoder, **LABELS
    )
    torch.manual_seed(0)
    network = transformers.MaskFormerForInstanceSegmentation(config)
    with torch.no_grad():  # answers that differ between queries, as those of trained weights
        network.class_predictor.weight.mul_(40)
        network.model.transformer_module.queries_embedder.weight.mul_(30)
    return network


def test_maskformer_in_three_roles(maskformer):
    processing = pytest.importorskip("transformers.models.maskformer.image_processing_pil_maskformer")
    processor = processing.MaskFormerImageProcessorPil()
    image, target = IMAGES[0], [(24, 32)]
    theirs = call_by_hand(maskformer, image, (64, 96))
    semantic = wrap(maskformer, "semantic-segmenter", preprocess=SIZE)
    [expected] = processor.post_process_semantic_segmentation(theirs, target_sizes=target)
    assert np.mean(semantic.segment([image])[0] == expected.numpy()) > 0.99
    assert failures(semantic, "semantic-segmenter") == []
    instances = wrap(maskformer, "instance-segmenter", preprocess=SIZE)
    [found] = instances.detect([image])
    assert 0 < len(found.scores) <= 12
    assert failures(instances, "instance-segmenter") == []
    panoptic = wrap(maskformer, "panoptic-segmenter", preprocess=SIZE, things=["cat"], threshold=0.4)
    assert failures(panoptic, "panoptic-segmenter") == []


def test_detr():
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1] * 4, layer_type="basic", out_features=["stage4"]
    )
    parts = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = transformers.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, d_model=16,
        encoder_ffn_dim=16, decoder_ffn_dim=16, num_queries=5, **parts, **LABELS,
    )  # fmt: skip
    torch.manual_seed(0)
    network = transformers.DetrForObjectDetection(config)
    processing = pytest.importorskip("transformers.models.detr.image_processing_pil_detr")
    processor = processing.DetrImageProcessorPil(size={"height": 64, "width": 96}, pad_size={"height": 96, "width": 96})
    model = wrap(network, "instance-segmenter", preprocess=processor)
    [found] = model.detect(IMAGES[:1])
    with torch.no_grad():
        theirs = network.eval()(**processor(images=IMAGES[0], return_tensors="pt"))
    [expected] = processor.post_process_object_detection(theirs, threshold=0.0, target_sizes=[(24, 32)])
    order = expected["scores"].argsort(descending=True)
    limits = torch.tensor([32.0, 24.0, 32.0, 24.0])
    assert np.allclose(found.scores, expected["scores"][order].numpy(), atol=1e-5)
    assert np.array_equal(found.labels, expected["labels"][order].numpy())
    assert np.allclose(found.boxes, expected["boxes"][order].clamp(min=0).minimum(limits).numpy(), atol=1e-3)
    assert failures(model, "instance-segmenter") == []


def test_dinov2():
    config = transformers.Dinov2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, patch_size=8, image_size=32
    )
    torch.manual_seed(0)
    network = transformers.Dinov2Model(config)
    model = wrap(network, "encoder", preprocess={"size": (24, 40)})
    assert model.dimension == 16
    features = model.encode(IMAGES[:1])
    theirs = call_by_hand(network, IMAGES[0], (24, 40))
    assert np.allclose(features.vectors, theirs.pooler_output.numpy(), atol=1e-5)
    patches = theirs.last_hidden_state[0, 1:].reshape(3, 5, 16).permute(2, 0, 1)
    assert np.allclose(features.maps[0], patches.numpy(), atol=1e-5)
    assert failures(model, "encoder") == []


def test_clip(tmp_path):
    write_tokenizer(tmp_path, start="[START]", end="[END]")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    network = text_network("clip")
    model = wrap(network, "image-text-encoder", preprocess={"size": 32}, tokenizer=tokenizer)
    tokens = tokenizer(["a photo of a cat"], return_tensors="pt")
    with torch.no_grad():
        values = to_input(np.asarray(to_pil(IMAGES[0], (32, 32))))
        theirs = network.eval()(input_ids=tokens.input_ids, pixel_values=values)
    assert np.allclose(model.encode_images(IMAGES[:1]), theirs.image_embeds.numpy(), atol=1e-5)
    assert np.allclose(model.encode_text(["a photo of a cat"]), theirs.text_embeds.numpy(), atol=1e-5)
    assert failures(model, "image-text-encoder") == []
    assert wrap(network, "encoder", preprocess={"size": 32}).dimension == 12
    with pytest.raises(OptionError, match="need a tokenizer"):
        wrap(network, "image-text-encoder", preprocess={"size": 32}).encode_text(["cat"])


def test_sam():
    network = tiny_sam.network("sam")
    model = wrap(network, "promptable-segmenter")
    assert model.takes_boxes
    assert failures(model, "promptable-segmenter") == []
    from hardlook.models.interactive.prompts import PromptPolicy
    from hardlook.models.interactive.transformers_sam import SamNetwork

    click = Clicks(np.array([[20, 10]], np.float32), np.array([True]))
    image = picture(48, 64)
    [theirs] = SamNetwork(tiny_sam.network("sam").eval()).open(image, PromptPolicy()).predict([click])
    [ours] = model.open(image).predict([click])
    assert np.array_equal(ours.mask, theirs.mask)
    with pytest.raises(OptionError, match="prepares its images itself"):
        wrap(network, "promptable-segmenter", preprocess={"size": 64})


def test_a_model_that_lacks_an_attribute_is_told_which():
    class Unnamed:
        def segment(self, images):
            return [np.zeros(image.shape[:2], np.int32) for image in images]

    with pytest.raises(ModelError, match="Unnamed has segment, but lacks labels") as refused:
        wrap(Unnamed(), "semantic-segmenter")
    assert "model-roles.md" in refused.value.remedy
