"""Coloured rectangles to click on, and an interactive network that is small enough to learn them in seconds."""

import numpy as np

from hardlook.rclicks.network_training.clicking import TrainingClicks
from hardlook.training.devices import open_fabric
from hardlook.training.folder import read_trained
from hardlook.training.images.segmentation_images import pack_images
from hardlook.training.interactive.recipes import change_interactive_recipe, find_interactive_recipe
from hardlook.training.interactive.trainee import (
    InteractiveData,
    InteractiveTrainee,
    build_interactive,
    train_interactive,
)

COLOURS = np.array([[90, 90, 90], [220, 40, 40], [40, 200, 60], [50, 60, 230]])


def draw_image(rng, size=(40, 48)):
    """A grey image with rectangles of two colours, and the map of its objects with a void pixel."""
    objects = np.zeros(size, np.uint8)
    for number, left in ((1, 0), (2, size[1] // 2)):
        high, wide = rng.integers(12, 18, 2)
        y, x = rng.integers(1, size[0] - high), left + rng.integers(1, size[1] // 2 - wide)
        objects[y : y + high, x : x + wide] = number
    colours = np.concatenate([COLOURS[:1], rng.permutation(COLOURS[1:])])
    image = np.clip(colours[objects] + rng.integers(-20, 21, (*size, 3)), 0, 255).astype(np.uint8)
    objects[0, 0] = 255
    return image, objects


def make_data(count=16, held=3, seed=0):
    rng = np.random.default_rng(seed)
    images, maps = zip(*(draw_image(rng) for _ in range(count)), strict=True)
    objects = np.array([(row, number) for row in range(count) for number in (1, 2)])
    facts = {"fingerprint": "tiny", "validation": {"objects": 2 * held}}
    return InteractiveData(pack_images(images, maps), objects[2 * held :], objects[: 2 * held], (), facts)


def make_recipe(**changes):
    given = {"size": 32, "batch": 4, "lr": 0.004, "most_clicks": 3, "backbone_rate": 1, "colours": 0, "epochs": 2}
    options = {"option.stages": 1, "option.width": 8, "option.frozen_norm": "no", "option.first_scale": 1}
    return change_interactive_recipe(find_interactive_recipe("ritm", "resnet50-keras"), given | options | changes)


def make_trainee(clicks="distance", data=None, recipe=None, seed=0, **settings):
    recipe = recipe or make_recipe()
    network = build_interactive(recipe, seed=seed)
    clicker = TrainingClicks(clicks, seed=seed)
    return InteractiveTrainee(network, recipe, data or make_data(), clicker, seed=seed, **settings)


def train_tiny(folder, recipe=None, data=None, clicks="distance", seed=0, **settings):
    """The training in a folder, on one thread of the processor."""
    clicker = TrainingClicks(clicks, seed=seed)
    options = {"validations": 2, "validation_objects": 6, "save_seconds": None, "seed": seed, **settings}
    train_interactive(
        data or make_data(), recipe or make_recipe(), clicker, folder, open_fabric("cpu"), clicks=clicker.describe(),
        **options,
    )  # fmt: skip
    return read_trained(folder)
