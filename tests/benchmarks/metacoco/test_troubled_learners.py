"""Learners and encoders that do not do what their role asks: the unit, what came and a remedy are named."""

import numpy as np
import polars as pl
import pytest

from hardlook.benchmarks.metacoco.benchmark import METACOCO
from hardlook.errors import ModelError, RunError
from hardlook.runs.execute import Conduct
from hardlook.runs.folder import RunFolder
from hardlook.runs.in_memory import Rehearsal
from hardlook.runs.launch import launch

pytestmark = pytest.mark.usefixtures("own_cache")
SMALL = {"tasks": 5, "resamples": 0, "modes": "iid,ood", "queries": 2}


@pytest.fixture(scope="module")
def rehearsal():
    return Rehearsal("metacoco", SMALL)


@pytest.mark.parametrize(
    ("learner", "came"),
    [
        ("WrongShape", r"shape \(10, 4\) where \(10, 5\)"),
        ("NotFinite", "1 of 50 scores of the learner are not finite"),
        ("NoArray", r"list where \(10, 5\)"),
        ("TooFew", "0 of 1 episodes"),
        ("AcceptsSound", "accepts 'sound'"),
    ],
)
def test_an_answer_that_does_not_fit_is_named(rehearsal, learner, came):
    with pytest.raises(RunError, match=came) as caught:
        rehearsal.records(f"troubled_few_shot:{learner}")
    assert "5way-1shot-" in str(caught.value)


def test_a_task_without_answer_costs_itself_and_its_pair(tmp_path):
    done = launch(
        "metacoco", out=tmp_path, model="troubled_few_shot:ShyOfTask", given=SMALL, conduct=Conduct(max_failures=0.5)
    )
    failures = pl.read_parquet(RunFolder(tmp_path).failures_path)
    assert failures["unit"].to_list() == ["5way-1shot-ood-00003"]
    assert "not this one" in failures["error"][0]
    card = done.scored.scorecard
    assert (card.get("iid").n, card.get("ood").n, card.get("gap").n) == (5, 4, 4)
    assert (card.units.planned, card.units.scored, card.units.failed) == (10, 9, 1)


def test_equal_scores_are_the_first_class(rehearsal):
    records = rehearsal.records("troubled_few_shot:ShyOfTask", {"key": "none"})
    assert set(records["predicted"].explode()) == {0}
    assert set(records["correct"]) == {2}


def test_an_encoder_without_maps_cannot_serve_a_learner_on_maps(tmp_path):
    given = {**SMALL, "encoder": "troubled_few_shot:VectorsOnly"}
    with pytest.raises(ModelError, match="gives no feature maps") as caught:
        launch("metacoco", out=tmp_path, model="dn4", given=given)
    assert "choose an encoder with feature maps" in str(caught.value)
    done = launch("metacoco", out=tmp_path / "vectors", model="nearest-centroid", given=given)
    assert done.scored.scorecard.get("iid").n == 5


def test_an_encoder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelError, match="no-such-encoder"):
        launch("metacoco", out=tmp_path, model="nearest-centroid", given={**SMALL, "encoder": "no-such-encoder"})


def test_features_follow_the_encoders_dial():
    """Vectors of contexts instead of concepts: what is known at home is lost abroad."""
    found = {}
    for context in (0, 1):
        given = {**SMALL, "modes": "iid,swapped", "encoder": "planted-encoder", "encoder_args": f"context={context}"}
        found[context] = Rehearsal("metacoco", given).score("nearest-centroid")
    assert found[0].get("swapped-gap").value == 0
    assert found[1].get("swapped").value < found[0].get("swapped").value
    assert found[1].get("swapped-gap").interval.low > 0


def test_without_a_learner_there_is_a_remedy(rehearsal):
    with pytest.raises(ModelError, match="needs a learner"):
        METACOCO.evaluate(rehearsal.prepared[0].units, None)


def test_images_reach_a_learner_class_by_class(rehearsal):
    seen = []

    class Watches:
        accepts = "images"

        def classify(self, episodes):
            seen.extend(episodes)
            return [np.zeros((len(episode.query), episode.ways), np.float32) for episode in episodes]

    METACOCO.evaluate(rehearsal.prepared[0].units, Watches())
    assert len(seen) == len(rehearsal.prepared[0].units)
    assert len({episode.key for episode in seen}) == len(seen)
    for episode in seen:
        assert (len(episode.support), len(episode.query), episode.ways) == (5, 10, 5)
        assert episode.support_labels.tolist() == [0, 1, 2, 3, 4]
        assert all(image.dtype == np.uint8 and image.ndim == 3 for image in episode.support)
