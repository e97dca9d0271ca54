"""Planted scenes as instances, and sessions that record what they are asked."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from hardlook.rclicks.clicks.courses import Instance
from hardlook.world.planted import PlantedWorld


def instances(count, size=(80, 64), ignored=True):
    """The subjects of a planted world's scenes; a stripe of the frame is ignored where asked for."""
    found = []
    for index, scene in enumerate(PlantedWorld(seed=3, count=count, size=size, salient=True)):
        ignore = np.zeros(scene.target_mask.shape, bool)
        if ignored and index % 2:
            ignore[:, : size[0] // 2 : 7] = True
        found.append(Instance("planted", f"scene-{index}", scene.image, scene.target_mask, ignore))
    return found


def plain(target, ignore=None):
    """An instance with a black picture."""
    target = np.asarray(target, bool)
    return Instance(
        "drawn", "one", np.zeros((*target.shape, 3), np.uint8), target, target & False if ignore is None else ignore
    )


@dataclass
class Recorder:
    """A session around another that keeps what it is asked: batches cannot be seen from the results."""

    session: object
    batches: list = field(default_factory=list)
    threads: set = field(default_factory=set)

    def predict(self, prompts):
        self.batches.append(list(prompts))
        self.threads.add(threading.current_thread().name)
        return self.session.predict(prompts)


def drive(playing, answer):
    """Play to the end with `answer(prompts)`; the result."""
    try:
        prompts = next(playing)
        while True:
            prompts = playing.send(answer(prompts))
    except StopIteration as end:
        return end.value


def same(first, second):
    """Whether two records of arrays are equal bit for bit."""
    for name, value in vars(first).items():
        other = getattr(second, name)
        pairs = zip(value, other, strict=True) if name == "last" else [(value, other)]
        for one, two in pairs:
            equal = one.tobytes() == two.tobytes() if isinstance(one, np.ndarray) else one == two
            if not equal:
                return False
    return True
