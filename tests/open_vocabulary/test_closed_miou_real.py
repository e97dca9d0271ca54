"""DeepLabv3 with its real weights on real VOC images, from the command's function to the report."""

import numpy as np
import pytest
from small_runs import small_run

from hardlook.errors import HardlookError
from hardlook.models.registry import build
from hardlook.report.run_report import write_report

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def voc(tmp_path_factory, shared_data):
    """A devkit of every ninth image (60 in all), linked to the real files."""
    try:
        build("deeplabv3-voc", role="semantic-segmenter")
    except HardlookError as error:
        pytest.skip(f"DeepLabv3 is not here: {error}")
    real = shared_data / "data" / "VOCdevkit" / "VOC2012"
    root = tmp_path_factory.mktemp("voc")
    for folder in ("JPEGImages", "SegmentationClass"):
        (root / folder).symlink_to(real / folder)
    names = sorted(path.stem for path in (real / "SegmentationClass").glob("*.png"))[::9]
    lists = root / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("\n".join(names))
    return root


def test_deeplab_on_voc(tmp_path, voc):
    done = small_run(tmp_path, model="deeplabv3-voc", args={}, given={"data": {"voc": voc}})
    card = done.scored.scorecard
    # Published with the weights: .641 on 300 val images; these are train images, and few.
    assert 0.55 < card.get("miou").value < 0.85
    assert card.get("iou", **{"class": "background"}).value > 0.85
    assert card.units.scored == 60
    assert list(done.scored.manifest["model"]["weights"]) == ["deeplabv3.tflite"]
    write_report(done.scored)
    page = (tmp_path / "report.html").read_text()
    assert page.count("data:image/jpeg") >= 12
    assert len(page) < 3_000_000


def test_the_worst_images_have_fewer_right_pixels_than_typical_ones(tmp_path, voc):
    scored = small_run(tmp_path, model="deeplabv3-voc", args={}, given={"data": {"voc": voc}}).scored
    order = np.argsort(scored.benchmark.qualities(scored.records, scored.options)["image-miou"].to_numpy())
    shares = [float(scored.benchmark.caption(row).split()[0]) for row in scored.records.iter_rows(named=True)]
    worst, typical = (np.mean([shares[row] for row in rows]) for rows in (order[:6], order[27:33]))
    assert worst < typical - 5
