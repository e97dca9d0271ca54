"""Tasks of vectors with overlapping classes, for tests."""

import numpy as np

from hardlook.models.roles import Episode
from hardlook.randomness import generator


def task(key, ways=5, shots=5, queries=3, width=40, spread=1.0, scale=1.0):
    """An episode; `shots` a number, or one a class; supports in a mixed order; the queries' classes take turns."""
    random = generator(7, "vector tasks", key)
    counts = [shots] * ways if isinstance(shots, int) else shots
    labels = random.permutation(np.repeat(np.arange(ways), counts)).astype(np.int64)
    centres = random.standard_normal((ways, width))
    support = centres[labels] + spread * random.standard_normal((len(labels), width))
    asked = np.arange(queries * ways) % ways
    query = centres[asked] + spread * random.standard_normal((len(asked), width))
    return Episode((scale * support).astype(np.float32), labels, (scale * query).astype(np.float32), ways, str(key))


def tasks(count, **how):
    return [task(f"task {index}", **how) for index in range(count)]


def by_class(episode):
    """Supports and labels in the order that learners see them: by class, within a class as they came."""
    order = np.argsort(episode.support_labels, kind="stable")
    return episode.support[order], episode.support_labels[order]
