"""DeepLabv3's answers to real VOC images against a coarse copy of themselves, from files to the page."""

import json

import cv2
import numpy as np
import pytest
from small_runs import small_run

from hardlook.data.images import read_image
from hardlook.errors import HardlookError
from hardlook.models.registry import build
from hardlook.report.compare.comparison import compare_runs, read_runs
from hardlook.report.compare.document import write_comparison

pytestmark = pytest.mark.real

IMAGES, BLOCK = 12, 40


def coarse(labels):
    """One label a block: that of its middle pixel."""
    rows, columns = (np.minimum(np.arange(n) // BLOCK * BLOCK + BLOCK // 2, n - 1) for n in labels.shape)
    return labels[np.ix_(rows, columns)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, shared_data):
    try:
        model = build("deeplabv3-voc", role="semantic-segmenter")
    except HardlookError as error:
        pytest.skip(f"DeepLabv3 is not here: {error}")
    real = shared_data / "data" / "VOCdevkit" / "VOC2012"
    root = tmp_path_factory.mktemp("voc")
    for folder in ("truth", "fine", "coarse"):
        (root / folder).mkdir()
    for mask in sorted((real / "SegmentationClass").glob("*.png"))[::45][:IMAGES]:
        (root / "truth" / mask.name).symlink_to(mask)
        (answer,) = model.segment([read_image(real / "JPEGImages" / f"{mask.stem}.jpg")])
        for folder, labels in (("fine", answer), ("coarse", coarse(answer))):
            cv2.imwrite(str(root / folder / mask.name), labels.astype(np.uint8))
    (root / "labels.txt").write_text("\n".join(model.labels))
    folders = []
    for name in ("fine", "coarse"):
        given = {"gt": root / "truth", "pred": root / name, "labels": str(root / "labels.txt"), "resamples": 100}
        small_run(root / "runs" / name, model=None, given=given)
        folders.append(root / "runs" / name)
    return folders


def test_coarse_answers_are_worse_and_the_page_shows_both(runs, tmp_path):
    read = read_runs(runs)
    found = compare_runs(read)
    (one,) = found.headline
    assert (one.first, one.second, one.verdict) == ("fine", "coarse", "better")
    assert one.clusters == IMAGES and one.exact
    # Published with the weights: .641 on 300 val images; these are few, and train images.
    assert 0.4 < one.second_value < one.first_value < 0.9
    # With so few images no more than 2 of 4,096 swaps can be as extreme as all of them.
    assert 2 / 2**IMAGES <= one.p_value < 0.05
    document = write_comparison(found, read, tmp_path / "comparison.html", examples=2)
    assert document["units"]["same"]
    page = (tmp_path / "comparison.html").read_text()
    assert "prediction (fine)" in page and "prediction (coarse)" in page
    assert json.loads((tmp_path / "comparison.json").read_text()) == document
    assert len(page) < 3_000_000
