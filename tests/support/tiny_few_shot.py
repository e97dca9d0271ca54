"""A few-shot training of a second: coloured noise of a few classes, 32 pixels, Conv64F with few filters."""

import numpy as np

from hardlook.training.devices import open_fabric
from hardlook.training.few_shot import EpisodeRows, FewShotData, read_trained, train_few_shot
from hardlook.training.recipes import change_recipe, find_recipe

SIZE = 32


def make_images(classes, each, seed):
    """(n, 36, 36, 3) uint8 and labels (n,): every class has a colour."""
    rng = np.random.default_rng(seed)
    colours = rng.integers(40, 216, (classes, 1, 1, 3)).repeat(each, 0)
    images = np.clip(colours + rng.integers(-40, 41, (classes * each, 36, 36, 3)), 0, 255)
    return images.astype(np.uint8), np.repeat(np.arange(classes), each)


def make_draw(labels, seed, ways, shots, queries):
    """Tasks by number."""

    def draw(numbers):
        rows, classes = [], []
        for number in numbers:
            rng = np.random.default_rng([seed, int(number)])
            classes.append(rng.choice(int(labels.max()) + 1, ways, replace=False))
            chosen = [rng.choice(np.flatnonzero(labels == one), shots + queries, replace=False) for one in classes[-1]]
            rows.append(np.stack(chosen))
        both = np.stack(rows)
        return EpisodeRows(both[..., :shots], both[..., shots:], np.stack(classes))

    return draw


def make_data(ways=3, shots=1, queries=2, validated=True):
    images, labels = make_images(6, 8, 0)
    held, held_labels = make_images(5, 8, 1)
    modes = {"blind": 2, "iid": 3, "ood": 4}
    tasks = {mode: make_draw(held_labels, seed, ways, shots, queries)(range(4)) for mode, seed in modes.items()}
    return FewShotData(
        images,
        labels,
        tuple("abcdef"),
        make_draw(labels, 1, ways, shots, queries),
        held if validated else None,
        tasks if validated else {},
        {"fingerprint": "tiny"},
    )


def make_recipe(method="protonet", stages=("episodes",), **changes):
    """A recipe of a few steps on a narrow Conv64F."""
    given = {"ways": 3, "shots": 1, "queries": 2, "epochs": 2, "episodes": 6, "backbone.channels": 8, **changes}
    return change_recipe(find_recipe(method, "conv64f", stages), given)


def train_tiny(folder, recipe=None, data=None, **settings):
    """The training in a folder, on one thread of the processor."""
    recipe, data = recipe or make_recipe(), data or make_data()
    given = {"size": SIZE, "validations": 3, **settings}
    fabric = given.pop("fabric", None) or open_fabric("cpu")
    fabric.launch(lambda opened: train_few_shot(data, recipe, folder, opened, **given))
    return read_trained(folder)
