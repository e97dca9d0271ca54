"""`hl.gate` and `hardlook gate`: a run that is worse fails, one that is not passes, and thin data cannot tell."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import hardlook as hl
from hardlook.api.gating import judge
from hardlook.errors import OptionError
from hardlook.harness.stats.intervals import Interval
from hardlook.report.compare.differences import Difference

UNITS = {f"unit-{number:03}": number for number in range(200)}


@hl.benchmark("own-gate", role="saliency", units=UNITS, scores={"hit": "higher", "cost": "lower"})
def evaluate(number, model):
    """Numbers that a model gives itself."""
    hit, cost = model.saliency([np.full((1, 1, 3), number, np.uint8)])[0]
    return {"hit": float(hit), "cost": float(cost)}


class Scores:
    """A model with a mean of its own, and the same noise per unit as all others."""

    def __init__(self, hit, cost=1.0):
        self.hit, self.cost = hit, cost

    def saliency(self, images):
        noise = [np.random.default_rng(int(image.flat[0])).normal() / 10 for image in images]
        own = [np.random.default_rng(1000 + int(image.flat[0]) + int(1e4 * self.hit)).normal() / 50 for image in images]
        return [(self.hit + a + b, self.cost + a + b) for a, b in zip(noise, own, strict=True)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("gate")
    models = {"main": Scores(0.5), "same": Scores(0.5), "worse": Scores(0.45), "dear": Scores(0.5, 1.2)}
    for name, model in models.items():
        hl.run(evaluate, model=model, out=root / name, progress=False, report=False)
    return root


def test_a_drop_fails_and_equal_runs_pass(folders):
    assert hl.gate(folders / "same", folders / "main").passed
    worse = hl.gate(folders / "worse", folders / "main", metrics=["hit"])
    assert not worse.passed and worse.scores[0].outcome == "failed"
    assert worse.scores[0].drop == pytest.approx(0.05, abs=0.01)
    assert worse.scores[0].low < worse.scores[0].drop < worse.scores[0].high
    assert hl.gate(folders / "worse", folders / "main", metrics=["hit"], max_drop=0.1).passed
    assert hl.gate(folders / "main", folders / "worse", metrics=["hit"]).passed


def test_a_score_that_is_neither_good_nor_bad_fails_no_run(tmp_path):
    hit, cost = evaluate.card.scores
    card = replace(evaluate.card, name="own-undirected", scores=(hit, replace(cost, ranked=False)))
    undirected = replace(evaluate, card=card)
    folders = [tmp_path / name for name in ("low", "high")]
    for folder, cost_of_all in zip(folders, (0.5, 1.5), strict=True):
        hl.run(undirected, model=Scores(0.5, cost_of_all), out=folder, progress=False, report=False)
    for pair in (folders, folders[::-1]):
        found = hl.gate(*pair)
        assert found.passed and [score.name for score in found.scores] == ["hit"]
    with pytest.raises(OptionError, match="--metric cost: neither more nor less of it is better"):
        hl.gate(*folders, metrics=["cost"])


def test_lower_is_better_where_the_score_says_so(folders):
    dear = hl.gate(folders / "dear", folders / "main", metrics=["cost"])
    assert not dear.passed and dear.scores[0].drop == pytest.approx(0.2, abs=0.01)
    assert hl.gate(folders / "main", folders / "dear", metrics=["cost"]).passed


def test_between_is_undecided(folders):
    at_limit = hl.gate(folders / "worse", folders / "main", metrics=["hit"], max_drop=0.05)
    assert at_limit.scores[0].outcome == "undecided" and at_limit.passed
    assert not hl.gate(folders / "worse", folders / "main", metrics=["hit"], max_drop=0.05, undecided="fail").passed


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_run_at_the_limit_fails_with_a_chance_of_alpha(higher_is_better):
    """The rule on simulated differences, with Student's interval of level 1 - 2 alpha."""
    rng, outcomes, sign = np.random.default_rng(0), [], -1 if higher_is_better else 1
    for _ in range(4000):
        values = sign * rng.normal(0.05, 0.1, 100)
        mean, error = values.mean(), values.std(ddof=1) / math.sqrt(len(values))
        interval = Interval(mean - 1.660 * error, mean + 1.660 * error, 0.9, "t", 100, "unit")
        found = Difference("a", {}, "run", "baseline", mean, interval, 0.5, 0.5, "headline scores", 100, 0, "worse")
        outcomes.append(judge(found, higher_is_better, 0.05).outcome)
    assert outcomes.count("failed") / len(outcomes) == pytest.approx(0.05, abs=0.012)
    assert outcomes.count("passed") / len(outcomes) == pytest.approx(0.05, abs=0.012)


def test_the_command_exits_with_5_and_writes_junit(folders, hardlook, tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    words = ("gate", folders / "worse", folders / "main", "--metric", "hit")
    answer = hardlook(*words, "--junit", tmp_path / "gate.xml")
    assert answer.code == 5 and "failed: hit 0.4" in answer.out
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite.find("testcase/failure").get("message").startswith("hit 0.4")
    assert hardlook("gate", folders / "same", folders / "main", "--junit", tmp_path / "gate.xml").code == 0
    assert ElementTree.parse(tmp_path / "gate.xml").getroot().get("failures") == "0"
    document = json.loads(hardlook(*words, "--json").out)
    assert document["passed"] is False and document["scores"][0]["outcome"] == "failed"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert hardlook(*words).out.startswith("::error title=hardlook gate hit::hit 0.4")
    assert hardlook(*words, "--no-github").out.startswith("failed: hit")


def test_bad_arguments(folders):
    for more, words in (
        ({"metrics": ["lca"]}, "they have: cost, hit"),
        ({"max_drop": -1}, "from 0"),
        ({"alpha": 0.6}, "between 0 and .5"),
        ({"undecided": "maybe"}, "pass or fail"),
    ):
        with pytest.raises(OptionError, match=words):
            hl.gate(folders / "same", folders / "main", **more)


def test_thin_data_has_no_verdict(tmp_path):
    one = hl.benchmark(
        "own-single", role="saliency", units=[1], scores=("hit",), evaluate=lambda unit, model: {"hit": model.hit}
    )
    for name, hit in (("a", 0.5), ("b", 0.9)):
        hl.run(one, model=Scores(hit), out=tmp_path / name, progress=False, report=False)
    with pytest.raises(OptionError, match="has no interval"):
        hl.gate(tmp_path / "a", tmp_path / "b")
