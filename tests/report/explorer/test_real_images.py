"""Photographs at full size, and what the explorer shows of a run on real data."""

import shutil

import cv2
import numpy as np
import pytest
from explorer_requests import Asking

from hardlook.harness.runs.launch import launch


@pytest.mark.real
def test_photographs_are_shown_pixel_by_pixel(shared_data, tmp_path):
    from hardlook.data.voc import VOC_CLASSES
    from hardlook.report.explorer.app import make_app

    voc = shared_data / "data" / "VOCdevkit" / "VOC2012"
    ids = (voc / "ImageSets" / "Segmentation" / "train.txt").read_text().split()[:3]
    masks = tmp_path / "masks"
    masks.mkdir()
    for name in ids:
        shutil.copy(voc / "SegmentationClass" / f"{name}.png", masks)
    (tmp_path / "labels.txt").write_text("\n".join(["background", *VOC_CLASSES]))
    given = {"data": {"images": voc / "JPEGImages"}, "gt": masks, "pred": masks, "labels": str(tmp_path / "labels.txt")}
    launch("closed-miou", out=tmp_path / "runs" / "truth", given={**given, "resamples": 10})
    ask = Asking(make_app(tmp_path / "runs"))
    (run,) = ask("/").links("/run/")
    for name in ids:
        photograph = cv2.imread(str(voc / "JPEGImages" / f"{name}.jpg"))
        shown = ask(f"{run}/picture?id={name}&number=0").content
        assert np.array_equal(cv2.imdecode(np.frombuffer(shown, np.uint8), cv2.IMREAD_COLOR), photograph)
        page = ask(f"{run}/unit?id={name}")
        assert f'width="{photograph.shape[1]}" height="{photograph.shape[0]}"' in page.text
        assert "100.0 %" in page.words
