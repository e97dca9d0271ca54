"""Segmenters that end, hang, exhaust memory, print or hold the interpreter, on some scenes of the planted world."""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from troubled_segmenters import is_scene

from hardlook.models.planted.segmenters import PlantedSegmenter


class Exits(PlantedSegmenter):
    """Calls sys.exit on a scene."""

    def __init__(self, scene: int = 3):
        super().__init__()
        self.scene = scene

    def segment(self, images):
        if any(is_scene(image, [self.scene]) for image in images):
            sys.exit(0)
        return super().segment(images)


class ExitsWhenMade(PlantedSegmenter):
    """Calls sys.exit before it is there."""

    def __init__(self):
        super().__init__()
        sys.exit(0)


class DiesWhenMade(PlantedSegmenter):
    """Takes its process down before it is there."""

    def __init__(self):
        super().__init__()
        os.kill(os.getpid(), signal.SIGKILL)


class Hangs(PlantedSegmenter):
    """Never answers for a scene; `log` gets a line with the process and the size of each batch it is asked.

    `hanging` gets a letter each time.
    """

    def __init__(self, scene: int = 3, log: str = "", hanging: str = ""):
        super().__init__()
        self.scene, self.log, self.hanging = scene, log, hanging

    def fingerprint(self):
        return "hangs"

    def segment(self, images):
        if self.log:
            with Path(self.log).open("a") as log:
                log.write(f"{os.getpid()} {len(images)}\n")
        if any(is_scene(image, [self.scene]) for image in images):
            if self.hanging:
                with Path(self.hanging).open("a") as hanging:
                    hanging.write("x")
            time.sleep(3600)
        return super().segment(images)


class HoldsInterpreter(PlantedSegmenter):
    """Sleeps in a C call that keeps the interpreter's lock, so that no thread of its process runs."""

    def __init__(self, log: str = ""):
        super().__init__()
        self.log = log

    def fingerprint(self):
        return "holds"

    def segment(self, images):
        with Path(self.log).open("a") as log:
            log.write(f"{os.getpid()}\n")
        ctypes.PyDLL(None).sleep(600)
        return super().segment(images)


class ShortOfMemory(PlantedSegmenter):
    """Has memory for a few images at a time; `log` gets a line with the size of each batch it is asked."""

    def __init__(self, most: int = 2, log: str = "", kind: str = "MemoryError"):
        super().__init__()
        self.most, self.log, self.kind = most, log, kind

    def fingerprint(self):
        return "short of memory"

    def segment(self, images):
        if self.log:
            with Path(self.log).open("a") as log:
                log.write(f"{len(images)}\n")
        if len(images) > self.most:
            if self.kind == "torch":
                import torch

                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
            raise MemoryError
        return super().segment(images)


class Prints(PlantedSegmenter):
    """Writes to standard output, as Python and as C do it."""

    def segment(self, images):
        for _ in images:
            print("segmenting 1")
        os.write(1, b"written by C\n")
        ctypes.CDLL(None).puts(b"left in a buffer of C")
        return super().segment(images)


class Waits(PlantedSegmenter):
    """Writes its process into `log` when it is asked, and answers once the file `go` is there."""

    def __init__(self, log: str, go: str):
        super().__init__(stranger=0.3)
        self.log, self.go = log, go

    def fingerprint(self):
        return "waits"

    def segment(self, images):
        with Path(self.log).open("a") as log:
            log.write(f"{os.getpid()}\n")
        while not Path(self.go).exists():
            time.sleep(0.02)
        return super().segment(images)
