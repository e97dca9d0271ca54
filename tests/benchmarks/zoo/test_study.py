import shutil

import numpy as np
import pytest

from hardlook.errors import DataError
from zoo.study import Study, _predict, read_pixels, write_pixels


def test_images_come_back_from_several_parts(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (7, 5, 6, 3), dtype=np.uint8)
    names = write_pixels(tmp_path, "some", images, part_bytes=3 * images[0].nbytes)
    assert len(names) == 3 and np.array_equal(read_pixels(tmp_path, names), images)


@pytest.mark.parametrize(
    ("left", "above", "corner", "predicted"),
    [(10, 20, 5, 20), (10, 20, 25, 10), (10, 20, 14, 16), (20, 10, 5, 20), (7, 7, 7, 7)],
)
def test_the_prediction_takes_the_middle_one(left, above, corner, predicted):
    """An edge above or on the left is followed, a slope is continued."""
    assert _predict(*(np.array(value, np.int16) for value in (left, above, corner))) == predicted


def test_smooth_images_take_few_bytes(tmp_path):
    ramp = np.linspace(0, 120, 96)
    noise = np.random.default_rng(0).integers(0, 3, (4, 96, 96, 3))
    images = (ramp[:, None, None] + ramp[:, None] + noise).astype(np.uint8)
    [name] = write_pixels(tmp_path, "smooth", images)
    assert (tmp_path / name).stat().st_size < 0.45 * images.nbytes


def test_a_missing_or_damaged_part_is_named(study, tmp_path):
    copied = tmp_path / "copied"
    shutil.copytree(study, copied, ignore=shutil.ignore_patterns("planted-*"))
    Study(copied).check_files()
    part = copied / "pixels-train-0.9-1.npz"
    whole = part.read_bytes()
    part.write_bytes(whole[:-100] + bytes(100))
    with pytest.raises(DataError, match="damaged") as raised:
        Study(copied).check_files()
    assert str(part) in str(raised.value)
    with pytest.raises(DataError, match=r"not a readable \.npz"):
        Study(copied).read_pixels("train-0.9")
    part.unlink()
    with pytest.raises(DataError, match="missing"):
        Study(copied).check_files()


def test_a_folder_without_a_study(tmp_path):
    with pytest.raises(DataError, match="no study here"):
        Study(tmp_path)
    (tmp_path / "study.json").write_text('{"schema": "other"}')
    with pytest.raises(DataError, match="another kind"):
        Study(tmp_path)
