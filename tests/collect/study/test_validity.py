"""Clicks inside and near a region, against scipy's exact distances."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage

from hardlook.collect.study.folder import make_study
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.validity import ClickValidator, ClickValidity, classify_points
from hardlook.errors import DataError

MASKS = arrays(np.bool_, st.tuples(st.integers(1, 20), st.integers(1, 20)))


@given(MASKS.filter(lambda mask: mask.any()), st.sampled_from([0, 0.5, 1, 1.5, 2, 3, 5, 5.5, 40]), st.data())
def test_as_the_distance_transform_says(mask, radius, data):
    height, width = mask.shape
    points = data.draw(arrays(np.float64, (6, 2), elements=st.floats(0, 0.999)))
    points = points * [width, height]
    inside, near = classify_points(mask, points, radius)
    rows, columns = points[:, 1].astype(int), points[:, 0].astype(int)
    distances = ndimage.distance_transform_edt(~mask)[rows, columns]
    assert np.array_equal(inside, mask[rows, columns])
    # Roots of whole numbers: none of them lies this close to a radius of halves without being equal to it.
    assert np.array_equal(near, distances <= radius + 1e-9)


@given(MASKS, arrays(np.float64, (8, 2), elements=st.floats(-50, 70)), st.floats(0, 30), st.floats(0, 30))
def test_laws(mask, points, one, other):
    small, large = sorted((one, other))
    inside, near = classify_points(mask, points, small)
    _, nearer = classify_points(mask, points, large)
    assert (inside <= near).all() and (near <= nearer).all()
    assert np.array_equal(classify_points(mask, points, 0.0)[1], inside)
    # The same clicks, one by one and in another frame.
    assert [bool(classify_points(mask, point[None], small)[1][0]) for point in points] == near.tolist()
    wider = classify_points(np.pad(mask, 3), np.floor(points) + 3, small)
    assert np.array_equal(wider[0], inside) and np.array_equal(wider[1], near)


def test_beyond_the_frame_by_hand():
    mask = np.zeros((4, 4), bool)
    mask[0, 0] = True
    inside, near = classify_points(
        mask, np.array([[-0.5, 0.5], [-3.0, -4.0], [-4.0, -4.0], [4.0, 0.0], [9.0, 9.0]]), 5.0
    )
    assert inside.tolist() == [False] * 5
    assert near.tolist() == [True, True, False, True, False]


@pytest.mark.parametrize(
    ("mask", "points", "radius"),
    [
        (np.ones((2, 2, 2), bool), np.zeros((1, 2)), 1.0),
        (np.ones((2, 2), bool), np.zeros(2), 1.0),
        (np.ones((2, 2), bool), np.array([[np.nan, 0]]), 1.0),
        (np.ones((2, 2), bool), np.zeros((1, 2)), -1.0),
        (np.ones((2, 2), bool), np.zeros((1, 2)), np.inf),
    ],
)
def test_what_cannot_be_judged(mask, points, radius):
    with pytest.raises(DataError):
        classify_points(mask, points, radius)


@pytest.fixture
def study(tmp_path):
    """Five tasks; the mask of the i-th is column i alone, and that of `training-0` column 9."""
    tasks = []
    for name, column in [*((f"t{i}", i) for i in range(5)), ("training-0", 9)]:
        mask = np.zeros((8, 12), bool)
        mask[:, column] = True
        image = write_picture(tmp_path, "images", np.zeros((8, 12, 3), np.uint8))
        stored = write_picture(tmp_path, "masks", mask)
        tasks.append(ClickTask(name, name, "d", name, "", name, image, stored, 12, 8, training=name[1] == "r"))
    settings = StudySettings(kind="clicks", title="Columns", click_radius=1.0)
    return make_study(tmp_path, settings, tasks, made={})


def test_every_task_can_be_validated(study):
    validator = ClickValidator(study)
    assert validator.validate("t3", 3.99, 0.0) == ClickValidity(True, True)
    assert validator.validate("t3", 4.0, 7.9) == ClickValidity(False, True)
    assert validator.validate("t3", 5.0, 7.9) == ClickValidity(False, False)
    assert validator.validate("training-0", 9.5, 1.0).inside
    with pytest.raises(DataError, match="no click task"):
        validator.validate("t77", 0, 0)


def test_kept_masks_are_bounded_and_threads_agree(study):
    validator = ClickValidator(study, cache_bytes=2 * 8 * 12)
    clicks = [(f"t{i % 5}", float(x) + 0.5) for i in range(100) for x in range(3)]
    with ThreadPoolExecutor(4) as pool:
        inside = list(pool.map(lambda one: validator.validate(one[0], one[1], 2.0).inside, clicks))
    assert inside == [int(x) == int(task[1:]) for task, x in clicks]
    assert 0 < validator._masks.size <= 2 * 8 * 12 and len(validator._masks) <= 2
    with pytest.raises(ValueError, match="read-only"):
        validator.mask("t0")[0, 0] = True


def test_a_mask_of_another_size_and_a_missing_one(study):
    (study.path / study.by_id["t1"].mask).unlink()
    with pytest.raises(DataError, match="does not exist"):
        ClickValidator(study).validate("t1", 0, 0)
    other = write_picture(study.path, "masks", np.ones((3, 3), bool))
    (study.path / other).replace(study.path / study.by_id["t2"].mask)
    with pytest.raises(DataError, match="the mask is 3x3, its image 12x8"):
        ClickValidator(study).validate("t2", 0, 0)
