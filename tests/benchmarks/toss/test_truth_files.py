"""The truth from label maps, from binary masks beside a devkit, and from folders with names of classes."""

import cv2
import numpy as np
import pytest
from one_shot_folders import FIXED, write_one_shot_folder
from PIL import Image

from hardlook.runs.in_memory import Rehearsal

COUNTED = ["unit", "class", "query", "intersection", "predicted", "truth", "pixels"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_one_shot_folder(tmp_path_factory.mktemp("maps"), folds=(0,))


@pytest.fixture(scope="module")
def from_maps(folder):
    return counted(folder.data)


def counted(data, **given):
    rehearsal = Rehearsal("toss", {"data": data, "fixed": True, "folds": "0", "resamples": 0, **given})
    return rehearsal.records("planted-one-shot", {"saliency": 0.5}).select(COUNTED)


def write_binary(folder, out):
    """One binary mask for each token of the list."""
    out.mkdir()
    for token in {token for row in folder.listed(FIXED / "split0_test.txt") for token in row}:
        number, _, image = token.partition("_")
        with Image.open(folder.mask(image)) as picture:  # OpenCV would paint the palette; the index is what counts
            labels = np.asarray(picture)
        cv2.imwrite(str(out / f"{token}.png"), np.where(labels == int(number), 255, 0).astype(np.uint8))
    return out


def test_binary_masks_give_the_same_records(folder, from_maps, tmp_path):
    binary = write_binary(folder, tmp_path / "binary")
    images = tmp_path / "voc" / "JPEGImages"
    images.parent.mkdir()
    images.symlink_to(folder.voc / "JPEGImages")
    (tmp_path / "voc" / "classes.txt").write_text((folder.voc / "classes.txt").read_text())
    found = counted({"voc": tmp_path / "voc", "binary": binary, "pairs": folder.pairs})
    assert found.equals(from_maps)
    labels = str(folder.voc / "classes.txt")
    assert counted({"images": images, "binary": binary, "pairs": folder.pairs}, labels=labels).equals(from_maps)


def test_plain_folders_with_a_list_of_classes_give_the_same_records(folder, from_maps):
    data = {
        "images": folder.voc / "JPEGImages", "masks": folder.voc / "SegmentationClass", "pairs": folder.pairs,
    }  # fmt: skip
    assert counted(data, labels=str(folder.voc / "classes.txt")).equals(from_maps)
