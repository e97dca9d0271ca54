"""Concept and context from masks, against a loop over pixels, and the folders they make."""

import csv
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from hardlook.data.concept_context import list_images
from hardlook.errors import DataError
from hardlook.metacoco.contexts.voc_contexts import (
    ALONE,
    find_concept_and_context,
    list_cooccurrences,
    write_cooccurrences,
)
from hardlook.world.layouts import write_world

CLASSES = ("cat", "dog", "bus", "cup")

masks = arrays.arrays(np.uint8, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.sampled_from([0, 1, 2, 3, 4, 255]))  # fmt: skip  # noqa: E501


@given(masks, st.sampled_from([0.0, 0.2, 0.5]))
def test_against_a_loop(mask, smallest):
    pixels = Counter(int(value) for value in mask.ravel() if 0 < value < 255)
    ranked = sorted((-n, value) for value, n in pixels.items() if n >= smallest * mask.size)
    names = [CLASSES[value - 1] for _, value in ranked]
    expected = (names[0], names[1] if len(names) > 1 else ALONE) if names else None
    assert find_concept_and_context(mask.astype(np.int32), CLASSES, smallest) == expected


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world") / "voc"
    return write_world(folder, layout="voc", seed=0, count=24, size=(96, 72))


def test_rows_and_folders_of_a_devkit(world, tmp_path):
    rows, without = list_cooccurrences(world)
    names = (world / "classes.txt").read_text().split("\n")
    assert len(rows) + len(without) == 24
    for row in rows:
        mask = np.array(Image.open(world / "SegmentationClass" / f"{row.image}.png"))
        area = Counter(int(value) for value in mask.ravel() if 0 < value < 255)
        assert area[names.index(row.concept) + 1] == max(area.values())
        assert (row.context == ALONE) == (len(area) == 1)
    assert write_cooccurrences(rows, tmp_path / "copies") == len(rows)
    assert write_cooccurrences(rows, tmp_path / "copies") == 0
    assert write_cooccurrences(rows, tmp_path / "links", "link") == len(rows)
    for folder in ("copies", "links"):
        read = list_images(tmp_path / folder)
        assert [(row.concept, row.context) for row in read] == [(row.concept, row.context) for row in rows]
        assert [row.path.read_bytes() for row in read] == [row.path.read_bytes() for row in rows]
        assert all(row.path.is_symlink() == (folder == "links") for row in read)
    with (tmp_path / "copies" / "manifest.csv").open() as stream:
        assert [row["image"] for row in csv.DictReader(stream)] == [row.image for row in rows]


def test_lists_and_refusals(world, tmp_path):
    split = (world / "ImageSets" / "Segmentation" / "train.txt").read_text().split()
    rows, without = list_cooccurrences(world, split="train")
    assert {row.image for row in rows} | set(without) == set(split)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match=r"something else: letter\.txt"):
        write_cooccurrences(rows, tmp_path / "mine")
    with pytest.raises(DataError, match="no image has a class"):
        list_cooccurrences(world, smallest=1.0)


@pytest.mark.real
def test_real_photographs(shared_data):
    devkit = shared_data / "data" / "VOCdevkit"
    rows, without = list_cooccurrences(devkit)
    listed = (devkit / "VOC2012" / "ImageSets" / "Segmentation" / "train.txt").read_text().split()
    assert len(rows) + len(without) == len(listed)
    pairs = Counter((row.concept, row.context) for row in rows)
    assert pairs["horse", "person"] > pairs["horse", "sofa"] and pairs["aeroplane", ALONE] > pairs["aeroplane", "cat"]
