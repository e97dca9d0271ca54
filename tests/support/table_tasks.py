"""Tasks that are rows of one random table of features, for tests."""

import numpy as np

from hardlook.models.few_shot.table_episodes import TableEpisodes


def table_episodes(seed, shape=(24,), images=40, count=6, shots=(2, 1, 3), queries=7, read_only=False):
    random = np.random.default_rng(seed)
    table = np.maximum(random.standard_normal((images, *shape)), 0).astype(np.float32) + np.float32(0.01)
    table.flags.writeable = not read_only
    labels = random.permutation(np.repeat(np.arange(len(shots)), shots))
    rows = np.stack([random.permutation(images)[: len(labels) + queries] for _ in range(count)])
    keys = tuple(f"task {place}" for place in range(count))
    return TableEpisodes(table, rows[:, : len(labels)], labels, rows[:, len(labels) :], len(shots), keys)
