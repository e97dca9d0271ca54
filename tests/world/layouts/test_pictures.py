from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from hardlook.errors import DataError
from hardlook.world.layouts.pictures import save_image, save_labels, voc_palette


def test_indexed_png_keeps_indices_and_carries_vocs_colours(tmp_path: Path) -> None:
    labels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    save_labels(tmp_path / "a.png", labels, colours=True)
    stored = PIL.Image.open(tmp_path / "a.png")
    assert stored.mode == "P"
    assert np.array_equal(np.asarray(stored), labels)
    # Hand-computed from the devkit's rule: 1 is aeroplane, 15 person, 255 the border.
    colours = np.asarray(stored.convert("RGB")).reshape(256, 3)
    assert colours[[0, 1, 8, 15, 20, 255]].tolist() == [
        [0, 0, 0], [128, 0, 0], [64, 0, 0], [192, 128, 128], [0, 64, 128], [224, 224, 192],
    ]  # fmt: skip


@pytest.mark.real
def test_palette_equals_the_devkits(shared_data: Path) -> None:
    path = next((shared_data / "data" / "VOCdevkit" / "VOC2012" / "SegmentationClass").glob("*.png"))
    assert PIL.Image.open(path).getpalette() == voc_palette()


def test_a_picture_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="could not be written"):
        save_image(tmp_path / "no such folder" / "a.png", np.zeros((4, 4, 3), np.uint8))
