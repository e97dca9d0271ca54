"""One-shot segmenters whose answers are not what was asked for."""

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
    """Lists of lists."""

    def segment_queries(self, queries, supports):
        return [np.zeros(query.shape[:2], bool).tolist() for query in queries]


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
