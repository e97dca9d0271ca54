"""One-shot segmenters whose answers are not what was asked for, and some that look closely at what they are given."""

from typing import ClassVar

import numpy as np


class WrongShape:
    """Masks that lack a row."""

    def segment_queries(self, queries, supports):
        return [np.zeros((query.shape[0] - 1, query.shape[1]), bool) for query in queries]


class WrongType:
    """Scores where a mask is asked for."""

    def segment_queries(self, queries, supports):
        return [np.zeros(query.shape[:2], np.float32) for query in queries]


class NoArray:
    """Words in place of masks."""

    def segment_queries(self, queries, supports):
        return ["a mask" for query in queries]


class TooFew:
    """One mask less than queries."""

    def segment_queries(self, queries, supports):
        return [np.zeros(query.shape[:2], bool) for query in queries[1:]]


class ShyOfScene:
    """Empty masks, but no answer where the query is that scene of the planted world."""

    def __init__(self, scene: int = 3):
        from hardlook.world.planted import PlantedWorld

        self.image = PlantedWorld(count=scene + 1)[scene].image

    def segment_queries(self, queries, supports):
        if any(query.shape == self.image.shape and (query == self.image).all() for query in queries):
            raise ValueError("not this one")
        return [np.zeros(query.shape[:2], bool) for query in queries]


class Listens:
    """Empty masks; keeps the contexts."""

    heard: ClassVar[dict] = {}

    def segment_queries(self, queries, supports, contexts):
        for query, shown, context in zip(queries, supports, contexts, strict=True):
            self.heard[query.tobytes(), shown[0].image.tobytes(), bool(shown[0].mask.any())] = context
        return [np.zeros(query.shape[:2], bool) for query in queries]


class ReadsTensors:
    """Makes tensors of what it is given, as networks do."""

    def segment_queries(self, queries, supports):
        import torch

        torch.set_warn_always(True)
        for query, shown in zip(queries, supports, strict=True):
            for array in (query, shown[0].image, shown[0].mask):
                assert not array.flags.writeable
                torch.from_numpy(array)
        return [np.zeros(query.shape[:2], bool) for query in queries]
