import json
from dataclasses import asdict

import numpy as np
import pytest

import hardlook as hl
from hardlook.errors import OptionError


class Constant:
    """A saliency model that finds nothing."""

    def saliency(self, images):
        return [np.zeros(image.shape[:2], np.float32) for image in images]


class Drifting(Constant):
    """A model that does not give the same answer twice."""

    calls = 0

    def saliency(self, images):
        type(self).calls += 1
        return [np.full(image.shape[:2], 1 / self.calls, np.float32) for image in images]


def test_checks_of_names_objects_and_classes():
    assert hl.check("planted-saliency", "saliency").passed
    assert hl.check(Constant(), "saliency").passed and hl.check(Constant, "saliency").passed
    drifting = hl.check(Drifting(), "saliency")
    assert not drifting.passed and "same again" in {finding.check for finding in drifting.wrong}
    assert "WRONG same again" in repr(drifting) and "WRONG" in drifting._repr_html_()
    assert len(drifting) == len(list(drifting)) and drifting[0].check == "members"
    with pytest.raises(OptionError, match="no such role"):
        hl.check(Constant(), "painter")


def test_the_command_prints_the_findings_of_the_function(hardlook):
    for role, name, code in (
        ("saliency", "planted-saliency", 0),
        ("few-shot-learner", "troubled_few_shot:WrongShape", 1),
    ):
        answer = hardlook("check", role, name, "--json")
        result = hl.check(name, role)
        assert answer.code == code and json.loads(answer.out) == [asdict(finding) for finding in result]
    assert "there is no such role" in hardlook("check", "painter", "planted-saliency").err


def test_listings():
    names = [card.name for card in hl.benchmarks()]
    assert {"toss", "metacoco", "rclicks", "open-miou", "open-ap", "open-pq", "closed-miou"} <= set(names)
    assert "<td" in hl.benchmarks()._repr_html_()
    encoders = hl.models(role="encoder")
    assert encoders and all("encoder" in card.roles for card in encoders) and "<td>" in encoders._repr_html_()
    with pytest.raises(OptionError, match="no such role"):
        hl.models(role="painter")


def test_similarity_takes_sets_senses_and_names():
    assert hl.similarity("coco80").matrix.shape == (80, 80)
    pets = hl.similarity({"cat": "cat.n.01", "dog": "dog.n.01"}, "path")
    assert pets.names == ("cat", "dog") and pets.matrix[0, 1] == pytest.approx(0.2)  # nltk: cat.path_similarity(dog)
    assert hl.similarity(["cat", "dog"], "identity").matrix.tolist() == [[1, 0], [0, 1]]
