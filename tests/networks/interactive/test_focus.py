"""The region of FocalClick's refiner: worked examples in both readings, and what a predictor does with it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hardlook.networks.interactive.focus import Focus, choose_region
from hardlook.networks.interactive.predictor_settings import PUBLISHED, PredictorSettings
from hardlook.networks.interactive.predictors import Course, Predictor

WHOLE = (0, 99, 0, 199)


def paint(*boxes, value=0.9):
    found = np.zeros((100, 200), np.float32)
    for top, bottom, left, right in boxes:
        found[top:bottom, left:right] = value
    return found


def choose(coarse, previous, click, bounds=WHOLE, reading="ours", **settings):
    return choose_region(coarse, previous, click, bounds, Focus(**settings), reading=reading)


def test_at_first_the_region_is_the_object():
    mask = paint((40, 60, 30, 50))
    assert choose(mask, paint(), (50, 40)) == (36, 64, 26, 54)
    # Rows 40 to 59: centre 49.5, 28 rows from 35.5 to 63.5, cut to whole numbers, the last not refined.
    assert choose(mask, paint(), (50, 40), reading="released") == (35, 63, 25, 53)


def test_at_first_all_parts_of_the_object_count():
    mask = paint((40, 60, 30, 50), (40, 60, 70, 90))
    assert choose(mask, paint(), (50, 40), expansion=1) == (40, 60, 30, 90)


def test_the_region_stays_inside_the_crop():
    mask = paint((40, 60, 30, 50))
    assert choose(mask, paint(), (50, 40), bounds=(38, 60, 0, 49)) == (38, 61, 26, 50)
    assert choose(mask, paint(), (50, 40), bounds=(0, 20, 0, 199)) is None


def test_then_it_is_the_connected_change_at_the_click():
    before, after = paint((20, 60, 20, 60)), paint((20, 60, 20, 80), (70, 90, 150, 190))
    # Two changes: columns 60 to 79 beside the object, and the other object.
    assert choose(after, before, (30, 70), small=0.1) == (12, 68, 56, 84)
    assert choose(after, before, (80, 170), small=0.1) == (66, 94, 142, 198)


def test_diagonal_neighbours_are_connected():
    before, after = paint((20, 60, 20, 60)), paint((20, 60, 20, 60), (60, 80, 60, 80))
    # The corner of the new square touches an unchanged pixel only; of two new squares one another.
    assert choose(after, before, (70, 70), small=0) == (56, 84, 56, 84)
    after = paint((20, 60, 20, 60), (60, 80, 60, 80), (80, 90, 80, 90))
    assert choose(after, before, (70, 70), small=0, expansion=1) == (60, 90, 60, 90)


def test_a_small_change_is_seen_in_a_square_around_the_click():
    before, after = paint((20, 70, 20, 120)), paint((20, 70, 20, 125))
    # The object has 50 x 105 pixels, the change 50 x 5. A square of 2 * .2 * 104 + 1 = 42.6, times 1.4 = 59.64, around
    # the middle of the clicked pixel (45.5, 122.5) is 15.68 to 75.32 and 92.68 to 152.32.
    assert choose(after, before, (45, 122)) == (16, 75, 93, 152)
    assert choose(after, before, (45, 122), reading="released") == (15, 74, 92, 151)


def test_a_change_of_just_a_third_is_not_small():
    after = paint((20, 51, 20, 81))
    before = after.copy()
    before[40:51, 60:81] = 0
    assert choose(after, before, (45, 70), expansion=1) == (40, 51, 60, 81)
    before[40] = after[40]
    assert choose(after, before, (45, 70), expansion=1) != (41, 51, 60, 81)


def test_where_nothing_changed_at_the_click_the_readings_differ():
    before, after = paint((20, 60, 20, 60)), paint((20, 60, 20, 80))
    around = choose(after, before, (90, 150))
    assert around[0] > 60
    assert around[2] > 120
    assert choose(after, before, (90, 150), reading="released") == (0, 100, 0, 200)


def test_the_released_threshold_is_one_of_logits():
    coarse = paint((20, 60, 20, 60), value=0.61)
    assert choose(coarse, paint(), (30, 30)) == (12, 68, 12, 68)
    assert choose(coarse, paint(), (30, 30), reading="released") == (0, 100, 0, 200), "no pixel is over .62"
    assert choose(coarse + 0.011, paint(), (30, 30), reading="released") != (0, 100, 0, 200)


def test_few_pixels_are_the_whole_picture_only_as_released():
    few = paint((50, 53, 50, 53))
    assert choose(few, paint(), (50, 50)) == (49, 54, 49, 54)
    assert choose(few, paint(), (50, 50), reading="released") == (0, 100, 0, 200)
    assert choose(paint(), paint(), (50, 50)) == (0, 100, 0, 200)


class Painter:
    """Coarse logits are -2, and 2 near positive clicks; a refined region is all 3."""

    with_prev_mask = True

    def __init__(self):
        self.refined = []

    def __call__(self, inputs, points):
        height, width = inputs.shape[2:]
        rows = torch.arange(height)[:, None] - points[:, : points.shape[1] // 2, 0, None, None]
        columns = torch.arange(width) - points[:, : points.shape[1] // 2, 1, None, None]
        near = ((rows.abs() < 6) & (columns.abs() < 6)).any(1)
        logits = torch.where(near, 2.0, -2.0)[:, None]
        return {"instances": logits, "feature": inputs[:, :1, ::4, ::4]}

    def refine(self, crops, points, features, logits, boxes):
        self.refined.append((crops, points, features, logits, boxes))
        return {"refined": torch.full((len(crops), 1, *crops.shape[2:]), 3.0)}


@pytest.fixture
def opened():
    rows, columns = np.indices((100, 200))
    image = np.stack([rows, columns, 0 * rows], 2).astype(np.uint8)
    settings = replace(PUBLISHED["focalclick"], input_size=(64, 64), reading="ours")
    return Predictor(Painter(), settings, batch=4).open(image)


def test_the_refiner_sees_the_region_its_clicks_and_its_box(opened):
    (state,) = opened.predict([Course([(50, 100, True)])])
    crops, points, features, logits, boxes = opened.predictor.network.refined[0]
    assert crops.shape == (1, 3, 64, 64)
    assert features.shape == (1, 1, 16, 16)
    assert logits.shape == (1, 1, 64, 64)
    refined = (state.probabilities > 0.94).nonzero()
    (top, left), (bottom, right) = refined.amin(0).tolist(), (refined.amax(0) + 1).tolist()
    assert len(refined) == (bottom - top) * (right - left)
    assert (crops[0, :, 0, 0] * 255).tolist() == pytest.approx([top, left, 0])
    assert (crops[0, :, -1, -1] * 255).tolist() == pytest.approx([bottom - 1, right - 1, 0])
    assert boxes[0].tolist() == pytest.approx([left * 0.32, top * 0.64, right * 0.32, bottom * 0.64])
    scale = [63 / (bottom - top - 1), 63 / (right - left - 1)]
    assert points[0, 0, :2].tolist() == pytest.approx([(50 - top) * scale[0], (100 - left) * scale[1]])
    assert (state.probabilities[:top] < 0.2).all()


def test_the_refiner_sees_all_clicks_whatever_the_limit(opened):
    settings = replace(opened.settings, clicks_limit=1)
    limited = Predictor(Painter(), settings).open(np.zeros((100, 200, 3), np.uint8))
    clicks = [(50, 100, True), (52, 104, True), (10, 10, False)]
    limited.predict([Course(clicks)])
    points = limited.predictor.network.refined[0][1]
    assert points[0, :, 2].tolist() == [0, 1, 2, -1]


def test_regions_of_several_courses_go_together_and_late_ones_keep_the_rest(opened):
    early, late = [(50, 100, True)], [(20, 30, True)] * 11
    first = opened.predict([Course(early), Course(late[:10])])
    assert len(opened.predictor.network.refined) == 1
    before = first[1]
    kept = replace(before, probabilities=torch.full((100, 200), 0.3))
    (after,) = opened.predict([Course(late, kept)])
    assert after.probabilities.unique().tolist() == pytest.approx([0.3, float(torch.tensor(3.0).sigmoid())])
    (tenth,) = opened.predict([Course(late[:10], kept)])
    assert 0.3 not in tenth.probabilities.unique(), "at the tenth click all is new"
    assert (kept.probabilities == 0.3).all(), "a course's earlier state is not written to"


def test_the_description_says_so_and_an_input_size_is_needed():
    assert "the region that the last click changed refined" in PUBLISHED["focalclick"].describe()
    with pytest.raises(ValueError, match="input_size"):
        PredictorSettings(focus=Focus())
