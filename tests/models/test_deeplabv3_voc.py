"""DeepLabv3 labels VOC images about as well as measured on the whole set."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from hardlook.errors import ModelError
from hardlook.models.deeplabv3_voc import VOC_LABELS, DeepLabV3VOC
from hardlook.models.weights.install import get_weights_status

pytest.importorskip("ai_edge_litert")

MEASURED = 0.563

"""Mean IoU of every 13th of the 537 images (42 images); all of them give .654."""


@pytest.fixture(scope="module")
def model() -> DeepLabV3VOC:
    if get_weights_status("deeplabv3-voc") != "installed":
        pytest.skip("deeplabv3-voc is not installed; hardlook weights install deeplabv3-voc")
    return DeepLabV3VOC()


def test_labels_are_those_of_voc_in_its_order() -> None:
    assert len(VOC_LABELS) == 21
    assert (VOC_LABELS[0], VOC_LABELS[1], VOC_LABELS[15], VOC_LABELS[20]) == (
        "background",
        "aeroplane",
        "person",
        "tvmonitor",
    )


@pytest.mark.real
def test_mean_iou_on_voc_images(model, shared_data) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    folder = shared_data / "data" / "VOCdevkit" / "VOC2012"
    names = (folder / "ImageSets" / "Segmentation" / "train.txt").read_text().split()[::13]
    truths, answers = [], []
    for name in names:
        truth = np.asarray(Image.open(folder / "SegmentationClass" / f"{name}.png"))
        (answer,) = model.segment([np.asarray(Image.open(folder / "JPEGImages" / f"{name}.jpg").convert("RGB"))])
        assert answer.shape == truth.shape and answer.dtype == np.int32
        truths.append(truth[truth != 255])
        answers.append(answer[truth != 255])
    counts = sklearn.confusion_matrix(np.concatenate(truths), np.concatenate(answers), labels=range(21))
    iou = np.diag(counts) / (counts.sum(0) + counts.sum(1) - np.diag(counts))
    assert abs(iou.mean() - MEASURED) < 0.02


@pytest.mark.real
def test_answers_keep_size_and_order(model) -> None:
    generator = np.random.default_rng(0)
    images = [generator.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 70, 3), (333, 21, 3), (1, 1, 3))]
    for image, answer in zip(images, model.segment(images), strict=True):
        assert answer.shape == image.shape[:2] and 0 <= answer.min() <= answer.max() <= 20
        assert np.array_equal(model.segment([image])[0], answer)
    assert [path.name for path in model.weights_files] == ["deeplabv3.tflite"]


def test_another_file_is_refused_by_name(tmp_path) -> None:
    (tmp_path / "own.tflite").write_bytes(b"no model at all")
    with pytest.raises(ModelError, match=r"own\.tflite"):
        DeepLabV3VOC(weights=tmp_path / "own.tflite")
