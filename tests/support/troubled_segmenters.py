"""Segmenters with troubles that real ones have: they raise, die, stall, or are never the same twice."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from hardlook.models.planted.segmenters import PlantedSegmenter
from hardlook.world.planted import PlantedWorld

LABELS = PlantedSegmenter.labels


def is_scene(image, scenes, seed=0):
    """Whether the image is one of these scenes of a planted world of any size."""
    return any((PlantedWorld(seed=seed, count=scene + 1)[scene].image == image).all() for scene in scenes)


class Raises(PlantedSegmenter):
    """Raises on some scenes, given as 3+5."""

    def __init__(self, scenes: str = "3"):
        super().__init__()
        self.scenes = [int(scene) for scene in scenes.split("+")]

    def segment(self, images):
        for image in images:
            if is_scene(image, self.scenes):
                raise ValueError("this picture is too much for me")
        return super().segment(images)


class Dies(PlantedSegmenter):
    """Takes its process down on a scene: always, or only the first time, which a file remembers."""

    def __init__(self, scene: int = 3, once: str = ""):
        super().__init__()
        self.scene, self.once = scene, once

    def fingerprint(self):
        return "dies"

    def segment(self, images):
        if any(is_scene(image, [self.scene]) for image in images) and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().segment(images)


class Slow(PlantedSegmenter):
    """Takes its time over each image; a process that answers writes its number into the log."""

    def __init__(self, seconds: float = 0.02, log: str = ""):
        super().__init__(stranger=0.3)
        self.seconds, self.log = seconds, log

    def segment(self, images):
        if self.log:
            with Path(self.log).open("a") as log:
                log.write(f"{os.getpid()}\n")
        time.sleep(self.seconds * len(images))
        return super().segment(images)


class Moody(PlantedSegmenter):
    """Answers whatever the process that runs it was told in MOOD."""

    def segment(self, images):
        return [np.full(image.shape[:2], int(os.environ["MOOD"]), np.int32) for image in images]


class WrongSize(PlantedSegmenter):
    """Answers maps of another size."""

    def segment(self, images):
        return [answer[:-1] for answer in super().segment(images)]


class OutOfRange(PlantedSegmenter):
    """Answers a number that is none of its labels for the first pixel."""

    def segment(self, images):
        answers = super().segment(images)
        for answer in answers:
            answer[0, 0] = 30000
        return answers
