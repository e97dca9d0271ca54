"""Run-length masks by hotcoco, which hardlook uses, beside pycocotools, in one run.

Run `python benchmarks/mask_library.py`. 60 masks of 480 x 640 with three discs each; best of 20 repeats, one thread.
"""

import time
from collections.abc import Callable

import cv2
import hotcoco.mask as hotcoco
import numpy as np
import pycocotools.mask as pycocotools

MASKS, HEIGHT, WIDTH, REPEATS = 60, 480, 640, 20


def masks() -> np.ndarray:
    rng = np.random.default_rng(0)
    stack = np.zeros((MASKS, HEIGHT, WIDTH), np.uint8)
    for mask in stack:
        for _ in range(3):
            centre = (int(rng.integers(WIDTH)), int(rng.integers(HEIGHT)))
            cv2.circle(mask, centre, int(rng.integers(10, 120)), 1, -1)
    return np.asfortranarray(np.moveaxis(stack, 0, -1))


def milliseconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main() -> None:
    cv2.setNumThreads(1)
    stack = masks()
    ours, theirs = hotcoco.encode(stack), pycocotools.encode(stack)
    equal = all(a["counts"] == b["counts"] for a, b in zip(ours, theirs, strict=True))
    print(f"{MASKS} masks, encoded strings equal: {equal}")
    crowd = [0] * MASKS
    rows = (
        ("encode", lambda: hotcoco.encode(stack), lambda: pycocotools.encode(stack)),
        ("decode", lambda: hotcoco.decode(ours), lambda: pycocotools.decode(theirs)),
        ("IoU, all pairs", lambda: hotcoco.iou(ours, ours, crowd), lambda: pycocotools.iou(theirs, theirs, crowd)),
        ("area", lambda: hotcoco.area(ours), lambda: pycocotools.area(theirs)),
    )
    for name, one, other in rows:
        fast, slow = milliseconds(one), milliseconds(other)
        print(f"{name:16} hotcoco {fast:8.3f} ms   pycocotools {slow:8.3f} ms   {slow / fast:5.1f}x")


if __name__ == "__main__":
    main()
