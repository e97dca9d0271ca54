"""Segmenters and detectors of transformers against the library's own forward passes and post-processing."""

from __future__ import annotations

import json
import shutil

import numpy as np
import PIL.Image
import pytest
from tiny_hub_models import CLASSES

from hardlook.errors import ModelError, OptionError
from hardlook.models.conformance import check_model
from hardlook.models.registry import build, find

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SEMANTIC = ("segformer", "upernet", "dpt")
UNIVERSAL = ("maskformer", "mask2former", "oneformer")
# The three read their answers by the same code; one role each takes a third of the time.
CHECKED = {
    "maskformer": ("semantic-segmenter",),
    "mask2former": ("panoptic-segmenter",),
    "oneformer": ("instance-segmenter",),
}


def load(folder, architecture):
    network = getattr(transformers, architecture).from_pretrained(folder).eval()
    if "oneformer" in network.config.model_type:
        processor = transformers.OneFormerImageProcessorPil(
            size={"shortest_edge": 64, "longest_edge": 128}, num_labels=3, metadata={}, class_info_file=None
        )
    else:
        processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return network, processor


def run(network, processor, image, **more):
    inputs = processor(images=PIL.Image.fromarray(image), return_tensors="pt", **more.pop("options", {}))
    with torch.inference_mode():
        return network(**{name: inputs[name] for name in ("pixel_values", "pixel_mask") if name in inputs}, **more)


def rename_classes(folder, *names):
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {str(number): name for number, name in enumerate(names)}
    config["label2id"] = {name: number for number, name in enumerate(names)}
    (folder / "config.json").write_text(json.dumps(config))


ARCHITECTURES = {
    "segformer": "SegformerForSemanticSegmentation",
    "upernet": "UperNetForSemanticSegmentation",
    "dpt": "DPTForSemanticSegmentation",
    "maskformer": "MaskFormerForInstanceSegmentation",
    "mask2former": "Mask2FormerForUniversalSegmentation",
    "detr": "DetrForSegmentation",
    "deformable_detr": "DeformableDetrForObjectDetection",
}


@pytest.mark.parametrize("family", [*SEMANTIC, *UNIVERSAL, "detr", "deformable_detr"])
def test_models_keep_the_contract_of_their_roles(family, hub_folder):
    name = f"hf:{hub_folder(family)}"
    roles = find(name).card.roles
    model = build(name, roles[0], {} if family in (*SEMANTIC, "deformable_detr") else {"things": "cat,dog"})
    assert tuple(model.labels) == tuple(CLASSES.values())
    for role in CHECKED.get(family, roles):
        assert [finding.line() for finding in check_model(model, role) if not finding.passed] == []


@pytest.mark.parametrize("family", SEMANTIC)
def test_label_maps_are_those_of_the_library(family, hub_folder, pictures):
    folder = hub_folder(family)
    network, processor = load(folder, ARCHITECTURES[family])
    model = build(f"hf:{folder}", "semantic-segmenter")
    for image, labels in zip(pictures, model.segment(pictures), strict=True):
        [expected] = processor.post_process_semantic_segmentation(run(network, processor, image), [image.shape[:2]])
        assert np.array_equal(labels, expected.numpy())
    assert len(np.unique(np.concatenate([labels.ravel() for labels in model.segment(pictures)]))) > 1


@pytest.mark.parametrize("family", ["maskformer", "mask2former"])
def test_queries_become_the_librarys_label_maps(family, hub_folder, pictures):
    folder = hub_folder(family)
    network, processor = load(folder, ARCHITECTURES[family])
    model = build(f"hf:{folder}", "semantic-segmenter")
    for image, labels in zip(pictures, model.segment(pictures), strict=True):
        raw = run(network, processor, image)
        [expected] = processor.post_process_semantic_segmentation(raw, [image.shape[:2]])
        assert (labels == expected.numpy()).mean() > 0.999


def test_oneformer_is_told_the_task_of_the_role(hub_folder, pictures):
    folder = hub_folder("oneformer")
    network, processor = load(folder, "OneFormerForUniversalSegmentation")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = build(f"hf:{folder}", "panoptic-segmenter", {"things": "cat"})
    image = pictures[1]
    raws = {}
    for task in ("semantic", "instance", "panoptic"):
        tokens = tokenizer([f"the task is {task}"], padding="max_length", max_length=77, return_tensors="pt").input_ids
        raws[task] = run(network, processor, image, options={"task_inputs": [task]}, task_inputs=tokens)
    [semantic] = processor.post_process_semantic_segmentation(raws["semantic"], [image.shape[:2]])
    assert (model.segment([image])[0] == semantic.numpy()).mean() > 0.99
    [found] = model.detect([image])
    best = raws["instance"].class_queries_logits.softmax(-1)[0, :, 0].max().item()
    assert len(found.scores) == 0 or found.scores.max() <= best
    assert set(found.labels.tolist()) <= {0}  # the only thing
    # The words of this small tokenizer do not differ by task, but tokens do reach the network: without, it fails.
    with pytest.raises((TypeError, ValueError, AttributeError)):
        run(network, processor, image, options={"task_inputs": ["semantic"]})


def test_panoptic_segments_are_those_of_the_library(hub_folder, pictures):
    folder = hub_folder("mask2former")
    network, processor = load(folder, ARCHITECTURES["mask2former"])
    model = build(f"hf:{folder}", "panoptic-segmenter", {"things": "cat", "threshold": 0.3})
    compared = 0
    for image, segments in zip(pictures, model.segment_panoptic(pictures), strict=True):
        raw = run(network, processor, image)
        [expected] = processor.post_process_panoptic_segmentation(
            raw, threshold=0.3, mask_threshold=0.3, label_ids_to_fuse={1, 2}, target_sizes=[image.shape[:2]]
        )
        # The library also gives a segment the pixels that it wins below the threshold; the authors' code does not. So
        # what is labelled here has the same label there, and not the other way round.
        theirs = np.full(image.shape[:2], -1)
        for info in expected["segments_info"]:
            theirs[expected["segmentation"].numpy() == info["id"]] = info["label_id"]
        drawn = segments.map > 0
        ours = np.array([-1, *(segments.labels.get(number, -1) for number in range(1, segments.map.max() + 1))])
        assert (ours[segments.map][drawn] == theirs[drawn]).sum() >= 0.99 * drawn.sum()
        compared += np.count_nonzero(drawn)
    assert compared > 500


def test_boxes_are_those_of_the_library(hub_folder, pictures):
    for family in ("detr", "deformable_detr"):
        folder = hub_folder(family)
        network, processor = load(folder, ARCHITECTURES[family])
        for image, found in zip(pictures, build(f"hf:{folder}", "instance-segmenter").detect(pictures), strict=True):
            raw = run(network, processor, image)
            options = {} if family == "detr" else {"top_k": 18}
            [expected] = processor.post_process_object_detection(
                raw, threshold=0.0, target_sizes=torch.tensor([image.shape[:2]]), **options
            )
            order = np.argsort(-expected["scores"].numpy(), kind="stable")
            scores, labels = expected["scores"].numpy()[order], expected["labels"].numpy()[order]
            height, width = image.shape[:2]
            boxes = np.clip(expected["boxes"].numpy()[order], 0, [width, height, width, height])
            if family == "detr":  # queries without a mask are left out
                kept = [row for row, score in enumerate(scores) if np.isclose(score, found.scores, atol=1e-5).any()]
                scores, labels, boxes = scores[kept], labels[kept], boxes[kept]
            assert np.allclose(found.scores, scores, atol=1e-5)
            assert found.labels.tolist() == labels.tolist()
            assert np.allclose(found.boxes, boxes, atol=1e-3)


def test_things_come_from_the_label_set_that_has_all_labels(hub_folder, tmp_path):
    folder = shutil.copytree(hub_folder("mask2former"), tmp_path / "copy")
    rename_classes(folder, "person", "sky-other-merged", "rug-merged")
    assert build(f"hf:{folder}", "panoptic-segmenter").things == (True, False, False)


def test_things_that_are_not_known_must_be_given(hub_folder, tmp_path, pictures):
    folder = shutil.copytree(hub_folder("mask2former"), tmp_path / "copy")
    rename_classes(folder, "cat", "glorp", "sky")
    with pytest.raises(OptionError, match="which labels of the model are countable"):
        build(f"hf:{folder}", "panoptic-segmenter")
    with pytest.raises(OptionError, match="'ape' is not a label of the model"):
        build(f"hf:{folder}", "semantic-segmenter", {"things": "ape"})
    found = build(f"hf:{folder}", "instance-segmenter").detect(pictures)
    assert 1 in {label for one in found for label in one.labels.tolist()}


def test_names_that_transformers_made_up_are_refused(hub_folder, tmp_path):
    folder = shutil.copytree(hub_folder("segformer"), tmp_path / "copy")
    rename_classes(folder, "LABEL_0", "LABEL_1", "LABEL_2")
    with pytest.raises(ModelError, match="does not name the classes"):
        build(f"hf:{folder}", "semantic-segmenter")


def test_a_processor_that_cuts_the_image_is_refused(hub_folder, tmp_path):
    folder = shutil.copytree(hub_folder("segformer"), tmp_path / "copy")
    cutting = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 32}, "do_center_crop": True}
    (folder / "preprocessor_config.json").write_text(json.dumps(cutting))
    with pytest.raises(OptionError, match="cuts the image"):
        build(f"hf:{folder}", "semantic-segmenter")
