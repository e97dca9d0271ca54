"""Few-shot learners whose answers are not what was asked for, and one that takes its time."""

import time

import numpy as np


class _Learner:
    accepts = "images"

    def classify(self, episodes):
        return [self.answer(np.zeros((len(episode.query), episode.ways), np.float32)) for episode in episodes]


class WrongShape(_Learner):
    """One class too few."""

    def answer(self, scores):
        return scores[:, 1:]


class NotFinite(_Learner):
    """One score that is no number."""

    def answer(self, scores):
        scores[1, 2] = np.nan
        return scores


class NoArray(_Learner):
    """Words in place of scores."""

    def answer(self, scores):
        return "scores"


class TooFew(_Learner):
    """One answer less than episodes."""

    def classify(self, episodes):
        return [np.zeros((len(episode.query), episode.ways), np.float32) for episode in episodes[1:]]


class ShyOfTask(_Learner):
    """The first class, but no answer to the task of this key."""

    def __init__(self, key: str = "5way-1shot-ood-3"):
        self.key = key

    def classify(self, episodes):
        if any(episode.key == self.key for episode in episodes):
            raise ValueError("not this one")
        return super().classify(episodes)

    def answer(self, scores):
        return scores


class AcceptsSound(_Learner):
    """Wants what no benchmark here has."""

    accepts = "sound"

    def answer(self, scores):
        return scores


class Slow:
    """The planted learner, slowly, so that a run can be killed in its middle."""

    accepts = "images"

    def __init__(self, seconds: float = 0.1):
        from hardlook.models.planted.few_shot import PlantedLearner

        self.seconds, self.learner = seconds, PlantedLearner(context=0.5, noise=0.2)

    def classify(self, episodes):
        time.sleep(self.seconds * len(episodes))
        return self.learner.classify(episodes)


class VectorsOnly:
    """An encoder without feature maps."""

    dimension = 4

    def encode(self, images):
        from hardlook.models.roles import Features

        return Features(np.array([[image.mean(), *image.mean((0, 1))] for image in images], np.float32))
