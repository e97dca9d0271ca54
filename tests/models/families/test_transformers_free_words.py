"""CLIPSeg, OWL and Grounding DINO asked for free words, against the library's own forward passes."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest

from hardlook.errors import ModelError, OptionError
from hardlook.models.conformance import check_model
from hardlook.models.registry import build, find

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ["cat", "red dog", "barn"]
ROLES = {
    "clipseg": "semantic-segmenter",
    "owlvit": "instance-segmenter",
    "owlv2": "instance-segmenter",
    "grounding-dino": "instance-segmenter",
}


def load(folder, architecture):
    network = getattr(transformers, architecture).from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return network, processor, transformers.AutoTokenizer.from_pretrained(folder)


def prepare(processor, image):
    return processor(images=PIL.Image.fromarray(image), return_tensors="pt")


def tokenize(tokenizer, texts):
    made = tokenizer(texts, padding="max_length", max_length=24, return_tensors="pt")
    return {name: made[name] for name in ("input_ids", "attention_mask")}


@pytest.mark.parametrize("family", list(ROLES))
def test_models_keep_the_contract_of_their_roles(family, hub_folder):
    name = f"hf:{hub_folder(family)}"
    assert find(name).card.roles == (ROLES[family],)
    model = build(name, ROLES[family], {"labels": "cat,dog"})
    assert model.labels == ("cat", "dog")
    assert [finding.line() for finding in check_model(model, ROLES[family]) if not finding.passed] == []


def test_clipseg_chooses_the_highest_map(hub_folder, pictures):
    folder = hub_folder("clipseg")
    network, processor, tokenizer = load(folder, "CLIPSegForImageSegmentation")
    model = build(f"hf:{folder}", "semantic-segmenter", {"labels": WORDS})
    sure = build(f"hf:{folder}", "semantic-segmenter", {"labels": WORDS, "threshold": 0.5})
    image = pictures[0]
    tokens = tokenize(tokenizer, [f"a photo of a {word}" for word in WORDS])
    pixels = prepare(processor, image).pixel_values.repeat(3, 1, 1, 1)
    with torch.inference_mode():
        logits = network(pixel_values=pixels, **tokens).logits[:, None]
        maps = torch.nn.functional.interpolate(logits, size=image.shape[:2], mode="bilinear", align_corners=False)[:, 0]
    best, labels = maps.max(0)
    assert np.array_equal(model.segment([image])[0], labels.numpy())
    expected = np.where(best.numpy() >= 0, labels.numpy(), -1)
    assert (sure.segment([image])[0] == expected).mean() > 0.999


@pytest.mark.parametrize("family", ["owlvit", "owlv2"])
def test_boxes_of_owl_are_those_of_the_library(family, hub_folder, pictures):
    folder = hub_folder(family)
    architecture = {"owlvit": "OwlViTForObjectDetection", "owlv2": "Owlv2ForObjectDetection"}[family]
    network, processor, tokenizer = load(folder, architecture)
    model = build(f"hf:{folder}", "instance-segmenter", {"labels": WORDS, "templates": "a photo of a {label}"})
    for image, found in zip(pictures, model.detect(pictures), strict=True):
        with torch.inference_mode():
            raw = network(
                pixel_values=prepare(processor, image).pixel_values,
                **tokenize(tokenizer, [f"a photo of a {word}" for word in WORDS]),
            )
        [expected] = processor.post_process_object_detection(
            raw, threshold=0.0, target_sizes=torch.tensor([image.shape[:2]])
        )
        height, width = image.shape[:2]
        boxes = np.clip(expected["boxes"].numpy(), 0, [width, height, width, height])
        inside = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
        order = np.argsort(-expected["scores"].numpy()[inside], kind="stable")
        assert len(found.scores) == inside.sum() > 5
        assert np.allclose(found.scores, expected["scores"].numpy()[inside][order], atol=1e-5)
        assert np.allclose(found.boxes, boxes[inside][order], atol=1e-2)
        assert found.labels.tolist() == expected["labels"].numpy()[inside][order].tolist()


def test_prompts_are_averaged(hub_folder, pictures):
    name = f"hf:{hub_folder('owlvit')}"
    templates = ["a photo of a {label}", "the red {label}"]
    one, other, both = (
        build(name, "instance-segmenter", {"labels": WORDS, "templates": given})
        for given in (templates[:1], templates[1:], templates)
    )
    mean = (one._queries + other._queries) / 2
    assert torch.allclose(both._queries, mean, atol=1e-6)
    assert not torch.allclose(one._queries, other._queries, atol=1e-3)


def test_grounding_dino_scores_labels_by_their_tokens(hub_folder, pictures):
    folder = hub_folder("grounding-dino")
    network, processor, tokenizer = load(folder, "GroundingDinoForObjectDetection")
    model = build(f"hf:{folder}", "instance-segmenter", {"labels": "cat,red dog", "detections": 5})
    tokens = tokenizer("cat. red dog.", return_tensors="pt")
    assert tokens.input_ids.tolist() == [[101, 7, 1012, 9, 8, 1012, 102]]
    image = pictures[0]
    inputs = prepare(processor, image)
    with torch.inference_mode():
        raw = network(**inputs, input_ids=tokens.input_ids, attention_mask=tokens.attention_mask)
    chances = raw.logits[0].sigmoid().numpy()
    scores = np.stack([chances[:, 1], (chances[:, 3] + chances[:, 4]) / 2], axis=1)
    best = np.sort(scores.ravel())[::-1][:5]
    [found] = model.detect([image])
    assert np.allclose(found.scores, best, atol=1e-5)
    assert np.allclose(
        [scores[:, label].max() for label in set(found.labels.tolist())],
        [found.scores[found.labels == label].max() for label in set(found.labels.tolist())],
        atol=1e-5,
    )


def test_more_words_than_a_text_holds_are_asked_in_several(hub_folder, pictures):
    name = f"hf:{hub_folder('grounding-dino')}"
    words = ["cat", "dog", "red cat", "red dog", "dog cat", "cat dog", "red", "red red"]
    many = build(name, "instance-segmenter", {"labels": words, "detections": 1000})
    assert len(many._texts) > 1
    [found] = many.detect(pictures[:1])
    assert set(found.labels.tolist()) == set(range(len(words)))
    with pytest.raises(ModelError, match="a text at most"):
        build(name, "instance-segmenter", {"labels": ["cat " * 20]})


def test_errors_name_what_to_give(hub_folder):
    with pytest.raises(OptionError, match="needs the words") as caught:
        build(f"hf:{hub_folder('clipseg')}", "semantic-segmenter")
    assert "labels=" in caught.value.remedy
    with pytest.raises(OptionError, match=r"no \{label\}"):
        build(f"hf:{hub_folder('clipseg')}", "semantic-segmenter", {"labels": "cat", "templates": "a cat"})
    with pytest.raises(OptionError, match="one template"):
        name = f"hf:{hub_folder('grounding-dino')}"
        build(name, "instance-segmenter", {"labels": "cat", "templates": "{label},red {label}"})
