"""What all learners on vectors share: the role's contract, no look at neighbours, and what they say of themselves."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from vector_tasks import tasks

from hardlook.models.conformance import check_named
from hardlook.models.registry import build, find

QUICK = {"epochs": "5"}

LEARNERS = {
    "nearest-centroid": {},
    "cosine-centroid": {},
    "k-nn": {"k": "3"},
    "matching": {},
    "ridge": {},
    "logistic": {},
    "soft-k-means": {},
    "bd-cspn": {},
    "laplacian-shot": {},
    "tim": {"steps": "20"},
    "pt-map": {"steps": "3"},
    "linear-head": QUICK,
    "cosine-head": QUICK,
    "neg-cosine-head": QUICK,
}

CLOSED_FORM = [name for name in LEARNERS if not name.endswith("-head")]

every_learner = pytest.mark.parametrize("name", LEARNERS)


def made(name):
    return build(name, "few-shot-learner", LEARNERS[name])


@every_learner
def test_the_contract_of_the_role(name):
    findings = check_named(name, "few-shot-learner", LEARNERS[name])
    assert [finding for finding in findings if not finding.passed] == []
    assert len(findings) > 10


@every_learner
def test_alone_and_together_alike(name):
    learner = made(name)
    episodes = [*tasks(5), *tasks(3, shots=[1, 2, 3, 4, 5]), *tasks(2, ways=3), *tasks(4, shots=1)]
    together = learner.classify(episodes)
    for episode, scores in zip(episodes, together, strict=True):
        assert np.array_equal(learner.classify([episode])[0], scores)


@pytest.mark.parametrize("name", CLOSED_FORM)
def test_the_order_of_the_supports_says_nothing(name):
    learner = made(name)
    for episode in tasks(3):
        turned = replace(episode, support=episode.support[::-1], support_labels=episode.support_labels[::-1])
        one, other = learner.classify([episode, turned])
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CLOSED_FORM)
def test_the_numbers_of_the_classes_say_nothing(name):
    learner, numbers = made(name), np.array([3, 0, 4, 1, 2])
    for episode in tasks(3):
        renamed = replace(episode, support_labels=numbers[episode.support_labels])
        one, other = learner.classify([episode, renamed])
        np.testing.assert_allclose(one, other[:, numbers], rtol=1e-4, atol=1e-4)


@every_learner
def test_easy_tasks_are_solved(name):
    learner = made(name)
    for episode, scores in zip(tasks(5, spread=0.1), learner.classify(tasks(5, spread=0.1)), strict=True):
        assert scores.argmax(1).tolist() == (np.arange(len(episode.query)) % 5).tolist()


@every_learner
def test_only_transductive_learners_look_at_other_queries(name):
    learner = made(name)
    [episode] = tasks(1, spread=2.0)
    half = replace(episode, query=episode.query[:7])
    [whole], [part] = learner.classify([episode]), learner.classify([half])
    assert np.allclose(whole[:7], part, rtol=1e-5, atol=1e-5) != learner.transductive


@every_learner
def test_what_a_learner_says_of_itself(name):
    learner = made(name)
    assert learner.accepts == "features"
    assert set(learner.flags) <= {"GL", "LL", "TT"}
    assert find(name).card.summary
    assert ("transductive" in find(name).card.marks) == learner.transductive


def test_learners_are_found_without_torch():
    code = (
        "import sys; from hardlook.models.registry import build;"
        f"[build(name, 'few-shot-learner') for name in {list(LEARNERS)!r}];"
        "print([name for name in ('torch', 'sklearn', 'numba') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
