"""A one-shot network of a few convolutions, and coloured shapes to train it on in a second."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from hardlook.networks.one_shot import catalogue
from hardlook.networks.one_shot.network import OneShotNetwork, average_masked
from hardlook.training.devices import open_fabric
from hardlook.training.folder import read_trained
from hardlook.training.images.segmentation_images import pack_images
from hardlook.training.one_shot import OneShotData, train_one_shot
from hardlook.training.one_shot_recipes import change_one_shot_recipe, find_one_shot_recipe


class TinyNetwork(OneShotNetwork):
    """Cosine of each pixel's features to the mean of the supports' masked ones."""

    def __init__(self, backbone="resnet50", *, released=False):
        super().__init__()
        self.released = released
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))
        self.scale = nn.Parameter(torch.tensor([0.0, 10.0]))

    def encode(self, images):
        return (self.backbone(images),)

    def describe(self, features, masks):
        return (average_masked(features[0], (masks == 1).to(features[0].dtype)[:, None]),)

    def match(self, query, supports, size, query_mask=None):
        near = functional.cosine_similarity(query[0], supports[0].mean(1), dim=1)
        shown = self.scale[0] + self.scale[1] * near
        logits = torch.stack([torch.full_like(shown, 5.0), shown], 1)
        return functional.interpolate(logits, size, mode="bilinear", align_corners=True)


class TinyClassifier(TinyNetwork):
    """The same, trained on labelled images."""

    stages = ("classes",)

    def __init__(self, backbone="resnet50", *, classes=4, released=False):
        super().__init__(backbone, released=released)
        self.classifier = nn.Conv2d(16, classes, 1)

    def class_loss(self, images, labels):
        logits = self.classifier(self.backbone(images))
        return functional.cross_entropy(logits, labels.long(), ignore_index=255), logits


def use_tiny(monkeypatch, kind=TinyNetwork):
    """Every network is the tiny one."""
    monkeypatch.setattr(catalogue.NetworkEntry, "load", lambda self: kind)


COLOURS = np.array([[90, 90, 90], [220, 40, 40], [40, 220, 40], [40, 40, 220], [220, 220, 40]])


def draw_image(rng, classes, size=(40, 48)):
    """A grey image with one rectangle per class, and its class map with a void pixel."""
    labels = np.zeros(size, np.uint8)
    for number in classes:
        y, x = rng.integers(0, size[0] - 14), rng.integers(0, size[1] - 14)
        labels[y : y + 14, x : x + 14] = number
    image = np.clip(COLOURS[labels] + rng.integers(-30, 31, (*size, 3)), 0, 255).astype(np.uint8)
    labels[0, 0] = 255
    return image, labels


def make_data(count=24, held=4, training=(1, 2, 3), novel=(4,), seed=0):
    rng = np.random.default_rng(seed)
    drawn = [draw_image(rng, [1 + place % 3, *([4] if place % 4 == 0 else [])]) for place in range(count)]
    images, maps = zip(*drawn, strict=True)
    rows = np.arange(count)
    names = {1: "red", 2: "green", 3: "blue", 4: "yellow"}
    facts = {"fingerprint": "tiny", "validation": {"images": held}}
    return OneShotData(pack_images(images, maps), training, novel, rows[held:], rows[:held], names, facts)


def make_recipe(network="simpropnet", **changes):
    given = {"size": 33, "batch": 2, "epochs": 1, "lr": 0.02, "least_area": 0, "fit": "squash", **changes}
    return change_one_shot_recipe(find_one_shot_recipe(network), given)


def train_tiny(folder, recipe=None, data=None, **settings):
    """The training in a folder, on one thread of the processor."""
    options = {"validations": 2, "validation_pairs": 4, "save_seconds": None, **settings}
    train_one_shot(data or make_data(), recipe or make_recipe(), folder, open_fabric("cpu"), **options)
    return read_trained(folder)
