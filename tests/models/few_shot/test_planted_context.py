"""The planted learner follows context where its dial says, and only where that can be seen."""

import numpy as np
import pytest

from hardlook.models.planted.few_shot import PlantedLearner
from hardlook.models.roles import Episode
from hardlook.world.planted import PlantedWorld


def table():
    world = PlantedWorld(seed=3, count=192, size=(64, 64), distractors=0)
    images = {}
    for index in range(len(world)):
        images.setdefault((world.concept(index), world.context(index)), []).append(index)
    return world, images


WORLD, IMAGES = table()

CONCEPTS, PLACES = (sorted({pair[i] for pair in IMAGES}) for i in (0, 1))


def episode(number, places, asked, shots=1):
    """One task: way i shows its concept in places[i], its query is in asked[i]."""
    chosen = [CONCEPTS[(number + way) % len(CONCEPTS)] for way in range(len(places))]
    shown = [IMAGES[c, p][shot] for c, p in zip(chosen, places, strict=True) for shot in range(shots)]
    query = [IMAGES[c, p][-1] for c, p in zip(chosen, asked, strict=True)]
    labels = np.repeat(np.arange(len(places)), shots)
    return Episode([WORLD[i].image for i in shown], labels, [WORLD[i].image for i in query], len(places), f"{number}")


def answers(episodes, **dials):
    return np.array([scores.argmax(axis=1) for scores in PlantedLearner(**dials).classify(episodes)])


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_context_changes_no_answer_where_it_is_shared(noise):
    # Two ways share a context: following it alone would have to guess between them.
    places = [PLACES[0], PLACES[0], PLACES[1], PLACES[2]]
    tasks = [episode(number, places, places) for number in range(8)]
    still = answers(tasks, noise=noise)
    for dial in (0.3, 1.0):
        assert np.array_equal(answers(tasks, noise=noise, context=dial), still)
    assert noise or np.array_equal(still, np.tile(np.arange(4), (8, 1)))


def test_a_wrong_answer_shows_the_context_of_the_query():
    places = PLACES[:4]
    asked = [PLACES[1], PLACES[0], PLACES[5], PLACES[2]]
    tasks = [episode(number, places, asked) for number in range(8)]
    # The third query's context is shown by no way, so its concept decides.
    assert np.array_equal(answers(tasks, context=1.0), np.tile([1, 0, 2, 2], (8, 1)))
    half = answers(tasks, context=0.5)
    assert set(half[half != np.arange(4)].tolist()) <= {0, 1, 2}
    wrong = half != np.arange(4)
    assert wrong.any() and (half[wrong] == np.tile([1, 0, 2, 2], (8, 1))[wrong]).all()


def test_several_shots_are_followed_alike():
    places = PLACES[:3]
    tasks = [episode(number, places, [*places[1:], places[0]], shots=2) for number in range(4)]
    assert np.array_equal(answers(tasks), np.tile([0, 1, 2], (4, 1)))
    assert np.array_equal(answers(tasks, context=1.0), np.tile([1, 2, 0], (4, 1)))
