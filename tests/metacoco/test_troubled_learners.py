"""Learners and encoders that do not do what their role asks: the unit, what came and a remedy are named."""

import numpy as np
import polars as pl
import pytest

from hardlook.errors import ModelError, OptionError, RunError
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.metacoco.benchmark import METACOCO
from hardlook.metacoco.options import MetaCocoOptions

pytestmark = pytest.mark.usefixtures("own_cache")

SMALL = {"tasks": 5, "resamples": 0, "modes": "iid,ood", "queries": 2}


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("metacoco", SMALL)


@pytest.mark.parametrize(
    ("learner", "came"),
    [
        ("WrongShape", r"WrongShape: scores: expected shape \(queries, ways\) = \(10, 5\), got \(10, 4\)"),
        ("NotFinite", r"NotFinite: scores: expected finite values, got nan at index \(1, 2\)"),
        ("NoArray", "NoArray: scores: expected a numpy array, got str"),
        ("TooFew", "TooFew: expected 1 answers for 1 episodes, got 0"),
        ("AcceptsSound", "accepts 'sound'"),
    ],
)
def test_an_answer_that_does_not_fit_is_named(rehearsal, learner, came):
    with pytest.raises(RunError, match=came) as caught:
        rehearsal.records(f"troubled_few_shot:{learner}")
    assert "5way-1shot-" in str(caught.value)


def test_a_task_without_answer_costs_itself_and_its_pair(tmp_path):
    """The key names classes and supports, so both modes of the task are refused here."""
    done = launch(
        "metacoco", out=tmp_path, model="troubled_few_shot:ShyOfTask", model_args={"key": "5way-1shot-3"}, given=SMALL,
        settings=RunSettings(max_failures=0.5),
    )  # fmt: skip
    failures = pl.read_parquet(RunFolder(tmp_path).failures_path)
    assert sorted(failures["unit"]) == ["5way-1shot-iid-00003", "5way-1shot-ood-00003"]
    assert "not this one" in failures["error"][0]
    card = done.scored.scorecard
    assert (card.get("iid").n, card.get("ood").n, card.get("gap").n) == (4, 4, 4)
    assert (card.units.planned, card.units.scored, card.units.failed) == (10, 8, 2)


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
        found[context] = InMemoryRun("metacoco", given).score("nearest-centroid")
    assert found[0].get("swapped-gap").value == 0
    assert found[1].get("swapped").value < found[0].get("swapped").value
    assert found[1].get("swapped-gap").interval.low > 0


def test_without_a_learner_there_is_a_remedy(rehearsal):
    with pytest.raises(ModelError, match="needs a learner"):
        METACOCO.evaluate(rehearsal.prepared[0].units, None)


class Watches:
    """Keeps the episodes, answers the first class."""

    accepts = "images"

    def __init__(self):
        self.seen = []

    def classify(self, episodes):
        self.seen.extend(episodes)
        return [np.zeros((len(episode.query), episode.ways), np.float32) for episode in episodes]


def test_images_reach_a_learner_with_labels_of_the_supports(rehearsal):
    watches = Watches()
    METACOCO.evaluate(rehearsal.prepared[0].units, watches)
    assert len(watches.seen) == len(rehearsal.prepared[0].units)
    for episode in watches.seen:
        assert (len(episode.support), len(episode.query), episode.ways) == (5, 10, 5)
        assert episode.support_labels.tolist() == [0, 1, 2, 3, 4]
        assert all(image.dtype == np.uint8 and image.ndim == 3 for image in episode.support)


@pytest.mark.parametrize("asked", [{"encoder": "planted-encoder"}, {"encoder_args": "context=1"}], ids=str)
def test_an_encoder_that_the_learner_would_not_use_is_refused(tmp_path, asked):
    with pytest.raises(OptionError, match="works on images") as caught:
        launch("metacoco", out=tmp_path / "run", model="planted-learner", given={**SMALL, **asked})
    assert "--model-arg encoder=" in str(caught.value)
    assert not (tmp_path / "run").exists()
    with pytest.raises(RunError, match="works on images"):
        InMemoryRun("metacoco", {**SMALL, **asked}).records("planted-learner")


def test_the_identity_of_the_encoder_is_part_of_the_answers():
    def identity(**given):
        return METACOCO.sources(MetaCocoOptions(**given))["encoder model"]

    assert identity(encoder_args="context=.5") != identity(encoder_args="context=1")
    assert identity() != METACOCO.sources(MetaCocoOptions(encoder="troubled_few_shot:VectorsOnly"))["encoder model"]
    with pytest.raises(ModelError, match="no-such-encoder"):
        identity(encoder="no-such-encoder")


def test_the_usual_encoder_need_not_be_installed_for_a_learner_on_images(monkeypatch, world):
    options = MetaCocoOptions(data={"root": world})
    before = METACOCO.sources(options)
    monkeypatch.setenv("HARDLOOK_WEIGHTS", str(world / "no weights here"))
    monkeypatch.setattr("hardlook.models.weights.install._locate", lambda package: [])
    assert METACOCO.sources(options) == before
