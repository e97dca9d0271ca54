"""Random tasks of feature maps, and what the tests of learners on maps ask of them."""

import numpy as np

from hardlook.models.roles import Episode


def random_episode(seed, shots=(2, 2, 2), queries=4, shape=(6, 2, 3), key="", shuffled=True):
    """A task whose classes differ in their mean map; supports in any order; not negative, as after a ReLU."""
    rng = np.random.default_rng(seed)
    ways = len(shots)
    labels = np.repeat(np.arange(ways), shots)
    if shuffled:
        labels = rng.permutation(labels)
    means = rng.standard_normal((ways, *shape))
    support = np.maximum(means[labels] + 0.7 * rng.standard_normal((len(labels), *shape)), 0)
    asked = np.arange(queries) % ways
    query = np.maximum(means[asked] + 0.7 * rng.standard_normal((queries, *shape)), 0)
    return Episode(support.astype(np.float32), labels.astype(np.int64), query.astype(np.float32), ways, key)


def cells(image_map):
    """The descriptors of one map (C, h, w) as a list of float64 vectors."""
    channels, height, width = image_map.shape
    return [np.array([float(image_map[c, y, x]) for c in range(channels)]) for y in range(height) for x in range(width)]


def pool(episode, way):
    """All descriptors of a class's supports."""
    shown = [s for s, label in zip(episode.support, episode.support_labels, strict=True) if label == way]
    return [cell for image_map in shown for cell in cells(image_map)]


def scored(episode, score):
    """(queries, ways) of score(query map, way), one by one."""
    return np.array([[score(query, way) for way in range(episode.ways)] for query in episode.query])
