"""Settings of published predictors: by dataset, without zoom-in, and in words."""

from dataclasses import replace

import pytest

from hardlook.networks.interactive.focus import Focus
from hardlook.networks.interactive.predictor_settings import PUBLISHED, PredictorSettings


def test_settings_of_datasets_and_their_description():
    ritm = PUBLISHED["ritm"]
    assert (ritm.zoom.target, ritm.on("DAVIS").zoom.target, ritm.on("GrabCut")) == (400, 600, ritm)
    assert (ritm.zoom.skip_clicks, ritm.on("TETRIS").zoom.skip_clicks) == (1, -1)
    assert ritm.describe() == (
        "zoom-in from click 2, longest side 400, box x 1.4, at least 200 px, new below IoU 0.5, "
        "logits averaged with the mirror image, last probabilities fed back, threshold 0.49, reading released"
    )
    assert "384 x 384" in PUBLISHED["cdnet"].describe()
    with pytest.raises(ValueError, match="reading is 'paper'"):
        replace(ritm, reading="paper")


def test_without_zoom_a_fixed_size_of_crops_is_that_of_the_picture():
    simple, ritm = PUBLISHED["simpleclick"].without_zoom(), PUBLISHED["ritm"].without_zoom()
    assert (simple.zoom, simple.input_size, simple.on("DAVIS").input_size) == (None, (448, 448), (672, 672))
    assert (ritm.zoom, ritm.input_size, ritm.on("DAVIS")) == (None, None, ritm)
    with pytest.raises(ValueError, match="regions are refined at the network's input_size"):
        PredictorSettings(focus=Focus())
