import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage
from scipy.stats import spearmanr
from sklearn.metrics import jaccard_score

from hardlook.metrics.mask_attributes import area_ratio, blob_count, distractor_weight, mask_iou, offset_ratio


def rectangle(left, top, right, bottom, shape=(512, 512)):
    mask = np.zeros(shape, bool)
    mask[top : bottom + 1, left : right + 1] = True
    return mask


def test_box_by_hand():
    mask = rectangle(100, 50, 299, 149)
    assert area_ratio(mask) == 199 * 99 / 512**2
    # The centre (199.5, 99.5) is cut to (199, 99).
    assert offset_ratio(mask) == 1 - math.sqrt(57**2 + 157**2) / 256


def test_the_box_is_that_of_all_pieces():
    pieces = rectangle(10, 20, 12, 22) | rectangle(400, 300, 410, 310)
    assert area_ratio(pieces) == area_ratio(rectangle(10, 20, 410, 310))
    assert offset_ratio(pieces) == offset_ratio(rectangle(10, 20, 410, 310))
    assert blob_count(pieces) == 3


def test_whole_images_have_the_published_extremes():
    # The published columns end at 261121 / 512**2 and there have a distance of sqrt(2).
    whole = np.ones((375, 500), bool)
    assert area_ratio(whole) * 512**2 == 261121
    assert offset_ratio(whole) == 1 - math.sqrt(2) / 256
    assert blob_count(whole) == 2


def test_empty_masks():
    empty = np.zeros((30, 40), np.uint8)
    assert (area_ratio(empty), offset_ratio(empty), blob_count(empty)) == (0.0, -1.0, 1)
    # One pixel has no area and still a place.
    assert area_ratio(rectangle(9, 9, 9, 9)) == 0
    assert offset_ratio(rectangle(256, 256, 256, 256)) == 1


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_any_size_counts_as_512(seed, factor):
    small = np.random.default_rng(seed).random((512 // 2**factor, 512 // 2**factor)) < 0.002
    large = np.kron(small, np.ones((2**factor, 2**factor), bool))
    for attribute in (area_ratio, offset_ratio, blob_count):
        assert attribute(small) == attribute(large)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.6))
def test_blobs_are_those_of_scipy(seed, density):
    mask = np.kron(np.random.default_rng(seed).random((32, 32)) < density, np.ones((16, 16), bool))
    assert blob_count(mask) == 1 + ndimage.label(mask, structure=np.ones((3, 3)))[1]


@given(st.integers(0, 2**32 - 1))
def test_distractors_are_the_literal_share(seed):
    labels = np.random.default_rng(seed).choice([0, 1, 2, 3, 255], (6, 7))
    labels[0, 0] = 2
    pixels = [label for label in labels.ravel().tolist() if label not in (0, 255)]
    assert distractor_weight(labels, 2) == sum(label != 2 for label in pixels) / len(pixels)


def test_distractors_without_void_and_without_classes():
    assert distractor_weight(np.array([[7, 255]]), 7, void=None) == 0.5
    assert distractor_weight(np.array([[7, 9]]), 7, void=9) == 0
    assert math.isnan(distractor_weight(np.array([[0, 255]]), 7))


@given(st.integers(0, 2**32 - 1))
def test_mask_iou_equals_scikit_learn(seed):
    a, b = np.random.default_rng(seed).integers(0, 2, (2, 5, 8))
    a[0, 0] = 1
    assert mask_iou(a, b) == pytest.approx(jaccard_score(a.ravel(), b.ravel()))
    assert mask_iou(a, b) == mask_iou(b.astype(bool), a * 255)


def test_two_empty_masks_have_no_iou():
    assert math.isnan(mask_iou(np.zeros((2, 2)), np.zeros((2, 2))))


def test_wrong_shapes_say_what_was_expected():
    with pytest.raises(ValueError, match=r"masks of one shape, got \(2, 2\) and \(2, 3\)"):
        mask_iou(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"mask: expected shape \(H, W\) with pixels, got \(2, 2, 3\)"):
        area_ratio(np.zeros((2, 2, 3)))


@pytest.fixture(scope="module")
def published(shared_data):
    """Rows of the published table whose VOC masks are here, with our values beside (`our_...`)."""
    folder = shared_data / "data" / "VOCdevkit" / "VOC2012" / "SegmentationClass"
    table = pl.read_csv(shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv")
    rows = []
    for row in table.iter_rows(named=True):
        label, image = row["filename"].split("_", 1)
        path = folder / f"{image}.png"
        if path.is_file():
            labels = _palette_indices(path)
            mask = labels == int(label)
            row |= {"image": image, "our_area": area_ratio(mask), "our_offset": offset_ratio(mask)}
            row |= {"our_blobs": blob_count(mask), "our_distractors": distractor_weight(labels, int(label))}
            rows.append(row)
    return pl.DataFrame(rows)


def _palette_indices(path):
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture)


@pytest.mark.real
def test_blobs_and_distractors_equal_the_published_rows(published):
    """All 739 rows: blob_count exact, distractor_weight within 1e-6 (the file's own precision)."""
    assert len(published) == 739
    assert (published["our_blobs"] == published["blob_count"]).all()
    assert np.abs(published["our_distractors"] - published["distractor_weight"]).max() < 1e-6


@pytest.mark.real
def test_published_boxes_are_one_an_image_and_follow_salience(published, shared_data):
    """The published area and offset are not the class mask's: exact share 0 and 8 of 739 rows.

    All 3,016 images with several classes repeat one value, and the degenerate rows are those whose saliency
    overlap is 0. Where the class is what stands out (saliou > .75: 148 rows) our box agrees in rank, and where it
    does not (saliou < .25: 322 rows) it says nothing: the published box behaves as that of a saliency mask.
    """
    table = pl.read_csv(shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv")
    image = pl.col("filename").str.replace(r"^\d+_", "")
    several = (
        table.group_by(image)
        .agg(pl.len(), boxes=pl.struct("area_ratio", "offset_ratio").n_unique())
        .filter(pl.col("len") > 1)
    )
    assert len(several) == 3016 and (several["boxes"] == 1).all()
    assert (table.filter(pl.col("offset_ratio") == -1)["saliou"] == 0).all()

    exact_area = np.abs(published["our_area"] - published["area_ratio"]) < 1e-9
    exact_offset = np.abs(published["our_offset"] - published["offset_ratio"]) < 1e-9
    assert exact_area.mean() < 0.02 and exact_offset.mean() < 0.02

    stands_out, hidden = published.filter(pl.col("saliou") > 0.75), published.filter(pl.col("saliou") < 0.25)
    assert (len(stands_out), len(hidden)) == (148, 322)
    for ours, theirs in (("our_area", "area_ratio"), ("our_offset", "offset_ratio")):
        assert spearmanr(stands_out[ours], stands_out[theirs]).statistic > 0.75
        assert abs(spearmanr(hidden[ours], hidden[theirs]).statistic) < 0.2


@pytest.mark.real
def test_published_boxes_have_our_form(shared_data):
    """Whole numbers over 512**2, and whole squared distances from (256, 256): boxes cut to pixels, as ours."""
    table = pl.read_csv(shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv")
    area = table["area_ratio"].to_numpy() * 512**2
    distance = table.filter(pl.col("offset_ratio") > -1)["offset_ratio"].to_numpy()
    squared = (256 * (1 - distance)) ** 2
    assert np.abs(area - area.round()).max() < 1e-6 and area.max() == 511**2
    assert np.abs(squared - squared.round()).max() < 1e-6
    assert squared[area[table["offset_ratio"].to_numpy() > -1] == 511**2] == pytest.approx(2)
