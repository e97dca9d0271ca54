"""`--preprocessing paper`: learners and encoders get images of 84 x 84, and features of the two ways are kept apart."""

import json

import numpy as np
import pytest

from hardlook.data.images import read_image
from hardlook.errors import ChangedRun
from hardlook.harness.runs.launch import launch
from hardlook.metacoco.evaluation import load_features
from hardlook.metacoco.options import MetaCocoOptions, get_readings
from hardlook.metacoco.units import list_units, load_images
from hardlook.models.preprocessing import preprocess_image

pytestmark = pytest.mark.usefixtures("own_cache")

SMALL = {"shots": "1", "queries": 1, "tasks": 4, "repeats": 1, "resamples": 0, "modes": "iid,ood"}
ENCODER = "pixel_encoder:PixelEncoder"


def test_features_are_those_of_the_cropped_images_and_have_tables_of_their_own(written):
    def load(preprocessing):
        options = MetaCocoOptions(data={"root": written}, encoder=ENCODER, preprocessing=preprocessing, tasks=1,
                                  shots=(1,), queries=1)  # fmt: skip
        settings = list_units(options)[0].payload.settings
        return load_images(settings.source), load_features(settings, "features")

    images, cropped = load("paper")
    assert (cropped[:, :2] == 84).all()
    wanted = preprocess_image(read_image(images.files[3]), "paper").reshape(2, 42, 2, 42, 3).mean((1, 3))
    assert np.abs(cropped[3, 2:] - wanted.reshape(-1)).max() <= 0.51
    _, whole = load("encoder")
    assert (whole[:, :2] == 64).all() and not np.array_equal(whole[:, 2:], cropped[:, 2:])
    assert (load("paper")[1] == cropped).all()


def test_the_report_names_it_and_a_run_of_the_other_way_is_not_resumed(written, tmp_path):
    given = {**SMALL, "data": {"root": written}}
    done = launch("metacoco", out=tmp_path / "run", model="pixel_encoder:ImageLearner",
                  given={**given, "preprocessing": "paper"})  # fmt: skip
    assert done.scored.scorecard.units.failed == 0
    readings = {one.name: one.value for one in done.scored.scorecard.readings}
    assert readings["preprocessing"] == "paper"
    with pytest.raises(ChangedRun, match="preprocessing"):
        launch("metacoco", out=tmp_path / "run", model="pixel_encoder:ImageLearner", given=given)
    assert "preprocessing" not in {one.name for one in get_readings(MetaCocoOptions())}


def test_spuriousness_is_measured_on_the_same_features(hardlook, written, tmp_path):
    words = ("data", "spuriousness", "--data", written, "--encoder", ENCODER, "--json", "--quiet")
    answer = hardlook(*words, "--preprocessing", "paper", "--out", tmp_path / "paper")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document["preprocessing"] == "paper"
    refused = hardlook(*words, "--preprocessing", "84", "--out", tmp_path / "no")
    assert refused.code != 0 and "encoder, paper" in refused.err
