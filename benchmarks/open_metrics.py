"""All speed rows of the open metrics in one run, one thread: masks, detections, similarity, and the peak of memory.

Run `python benchmarks/open_metrics.py`. Each part is a script of its own beside this one and prints its targets.
"""

import resource
import time

import numpy as np

import open_ap
import open_metrics_masks
import similarity
from hardlook.metrics import OpenMeanIoU

IMAGES, SIDE, CLASSES = 20_000, 512, 150


def streaming() -> None:
    """20,000 images through Open mIoU: the state is one integer matrix, whatever their number."""
    rng = np.random.default_rng(0)
    maps = rng.integers(0, CLASSES, (8, SIDE, SIDE), dtype=np.uint8)
    metric = OpenMeanIoU([str(i) for i in range(CLASSES)], np.eye(CLASSES))
    metric.update(maps[0], maps[1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    for index in range(IMAGES):
        metric.update(maps[index % 8], maps[(index + 1) % 8])
    took = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"streaming {IMAGES} images of {SIDE} x {SIDE}: {took:.1f} s, peak memory grew by {grown:.1f} MiB")


def main() -> None:
    for part in (open_metrics_masks, open_ap, similarity):
        print(f"\n== {part.__name__}")
        part.main()
    print("\n== memory")
    streaming()


if __name__ == "__main__":
    main()
