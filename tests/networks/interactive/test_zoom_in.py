"""Zoom-in: boxes, when a crop is kept, clicks in resized pictures, and what is shown."""

from dataclasses import replace

import pytest
import torch

from hardlook.networks.interactive.predictor_settings import PredictorSettings, ZoomIn
from hardlook.networks.interactive.zoom_in import (
    View,
    box_overlap,
    choose_view,
    expand_box,
    find_boxes,
    fit_size,
    holds_clicks,
    include_clicks,
    scale_clicks,
)


def test_boxes_of_maps_are_tight_and_of_an_empty_one_there_is_none():
    maps = [torch.zeros(5, 7) for _ in range(4)]
    maps[0][1:3, 4] = 0.8
    maps[0][4, 5] = 0.50001
    maps[0][0, 0] = 0.5  # is not over the threshold
    maps[2][:] = 1
    maps[3][4, 6] = torch.inf
    assert find_boxes(maps, 0.5) == [(1, 4, 4, 5), None, (0, 4, 0, 6), (4, 4, 6, 6)]
    assert find_boxes([one.T for one in maps], 0.5) == [(4, 5, 1, 4), None, (0, 6, 0, 4), (6, 6, 4, 4)]
    assert find_boxes([], 0.5) == []


def test_crops_grow_around_the_mask_and_positive_clicks_only():
    zoom = ZoomIn(min_crop=20)
    clicks = [(50, 5, True), (119, 159, False)]
    assert include_clicks((10, 19, 30, 39), clicks) == (10, 50, 5, 39)
    # Sides 10 x 1.4 = 14, so 20: the centre 14.5 -+ 10, half to even; released gives 21 pixels, ours 20.
    assert expand_box((10, 19, 30, 39), (120, 160), zoom) == (4, 24, 24, 44)
    assert expand_box((10, 19, 30, 39), (120, 160), zoom, "ours") == (5, 24, 25, 44)
    assert expand_box((0, 119, 0, 159), (120, 160), zoom) == (0, 119, 0, 159), "kept inside of the picture"


def test_the_last_row_of_a_crop_is_outside_of_it_in_the_released_reading():
    crop = (10, 20, 30, 40)
    assert holds_clicks(crop, [(19, 39, True), (0, 0, False)], "released")
    for click in ((20, 35, True), (15, 40, True)):
        assert not holds_clicks(crop, [click], "released")
        assert holds_clicks(crop, [click], "ours")
    assert not holds_clicks(crop, [(21, 35, True)], "ours")


def test_clicks_stay_on_their_pixel_in_our_reading():
    # The last pixel of a side stays the last.
    assert scale_clicks([(9, 19, True)], (10, 20), (100, 40), "ours") == [(99, 39, True)]
    assert scale_clicks([(9, 19, True)], (10, 20), (100, 40), "released") == [(90, 38, True)]


def test_overlap_is_the_product_of_two_interval_ious():
    assert box_overlap((0, 9, 0, 9), (5, 14, 0, 9)) == pytest.approx(5 / 15)
    assert box_overlap((0, 9, 0, 9), (0, 9, 0, 4)) == pytest.approx(0.5)
    assert box_overlap((0, 9, 0, 9), (20, 29, 0, 9)) == 0
    assert fit_size((30, 60), 400) == (200, 400)
    assert fit_size((30, 60), (448, 448)) == (448, 448)
    assert fit_size((2500, 2), 400) == (400, 1), "a thin picture keeps one pixel"


def test_what_is_shown_with_a_mask_a_stored_crop_and_neither():
    settings = PredictorSettings(ZoomIn((40, 60), min_crop=20))
    clicks, box, size = [(15, 35, True), (16, 30, False)], (10, 19, 30, 39), (120, 160)
    whole = View(None, None, None, False, (), tuple(clicks))
    assert choose_view(replace(settings, zoom=None), size, clicks, box, (0, 9, 0, 9)) == whole
    assert choose_view(settings, size, clicks, None, None) == whole, "no mask yet"
    crop = (4, 24, 24, 44)
    shown = View(
        crop, crop, crop, True, ((40, 60),), ((11 * 40 / 21, 11 * 60 / 21, True), (12 * 40 / 21, 6 * 60 / 21, False))
    )
    assert choose_view(settings, size, clicks, box, None) == shown
    near = (3, 23, 24, 45)
    kept = choose_view(settings, size, clicks, box, near)
    assert (kept.shown, kept.crop, kept.pasted, kept.renewed) == (near, near, near, False)
    every = replace(settings, zoom=replace(settings.zoom, every_click=True))
    assert choose_view(every, size, clicks, box, near).renewed
    # The mask is gone: the whole picture is shown, and released code pastes it into the crop that it had.
    assert choose_view(settings, size, clicks, None, near) == replace(whole, crop=near, pasted=near)
    assert choose_view(replace(settings, reading="ours"), size, clicks, None, near) == whole


def test_sizes_one_after_another():
    settings = PredictorSettings(ZoomIn(400, min_crop=20, skip_clicks=-1), longest_side=100, input_size=(64, 64))
    view = choose_view(settings, (120, 160), [(60, 80, True)], None, None)
    assert view.shown == (0, 119, 0, 159) and view.sizes == ((300, 400), (75, 100), (64, 64))
    assert view.clicks == ((32.0, 32.0, True),)
