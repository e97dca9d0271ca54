"""U2-Net(p) finds the objects that people cut out of photographs."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from hardlook.errors import ModelError
from hardlook.models.u2netp import U2NetP
from hardlook.models.weights.install import get_weights_status

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def model() -> U2NetP:
    if get_weights_status("u2netp") != "installed":
        pytest.skip("u2netp is not installed; hardlook weights install u2netp")
    return U2NetP()


@pytest.mark.real
def test_saliency_covers_the_objects_of_grabcut(model, shared_data) -> None:
    folder = shared_data / "data" / "GrabCut"
    overlaps = {}
    for photo in sorted((folder / "data_GT").glob("*.jpg")):
        truth = np.asarray(Image.open(folder / "boundary_GT" / f"{photo.stem}.bmp").convert("L"))
        (saliency,) = model.saliency([np.asarray(Image.open(photo).convert("RGB"))])
        assert saliency.shape == truth.shape and saliency.dtype == np.float32
        judged = truth != 128  # the band along the border that nobody drew
        found, wanted = (saliency > 0.5) & judged, (truth > 128) & judged
        overlaps[photo.stem] = (found & wanted).sum() / (found | wanted).sum()
    assert len(overlaps) == 7
    # Measured .859; the thin cross alone is missed, the six others are at .96 and above.
    assert np.mean(list(overlaps.values())) > 0.84
    assert sorted(overlaps.values())[1] > 0.94


@pytest.mark.real
def test_answers_keep_size_range_and_order(model) -> None:
    generator = np.random.default_rng(0)
    images = [generator.integers(0, 256, shape, dtype=np.uint8) for shape in ((40, 70, 3), (333, 21, 3))]
    images.append(np.zeros((9, 9, 3), np.uint8))
    copies = [image.copy() for image in images]
    together = model.saliency(images)
    for image, copy, answer in zip(images, copies, together, strict=True):
        assert np.array_equal(image, copy)
        assert answer.shape == image.shape[:2] and answer.min() >= 0 and answer.max() <= 1
        assert np.array_equal(model.saliency([image])[0], answer)
    assert model.saliency([]) == []


@pytest.mark.real
def test_the_weights_that_were_read_are_named(model) -> None:
    assert [path.name for path in model.weights_files] == ["u2netp.onnx"]


def test_another_file_is_refused_by_name(tmp_path) -> None:
    (tmp_path / "own.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"own\.onnx"):
        U2NetP(weights=tmp_path / "own.onnx")
