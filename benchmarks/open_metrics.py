"""All speed rows of the open metrics in one run, one thread: masks, detections, similarity, and the peak of memory.

Run `python benchmarks/open_metrics.py`. Each part is a script of its own beside this one and prints its targets.
"""

import pickle
import resource
import time

import numpy as np

import open_ap
import open_metrics_masks
import similarity
from hardlook.metrics import OpenMeanIoU, OpenPQ
from hardlook.metrics.panoptic import Segments

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


def growing() -> None:
    """Open AP and Open PQ keep each image's matches: what that comes to for 20,000 images."""
    rng = np.random.default_rng(0)
    detections = [open_ap.make_image(rng) for _ in range(200)]
    by_image = len(pickle.dumps(open_ap.ours(detections))) / len(detections)
    print(f"Open AP keeps {by_image / 1e3:.1f} kB an image of 20 detections: {by_image * IMAGES / 1e6:.0f} MB in all")
    places = open_metrics_masks.regions(rng, 480, 640, 60).astype(np.int32) + 1
    table = Segments(np.arange(1, 61), rng.integers(0, CLASSES, 60))
    metric = OpenPQ([str(i) for i in range(CLASSES)], np.eye(CLASSES), np.arange(CLASSES) < 80)
    for _ in range(50):
        metric.update(places, table, np.roll(places, 4, 1), table)
    by_image = len(pickle.dumps(metric.matches)) / 50
    print(f"Open PQ keeps {by_image / 1e3:.1f} kB an image of 60 segments: {by_image * IMAGES / 1e6:.0f} MB in all")


def main() -> None:
    for part in (open_metrics_masks, open_ap, similarity):
        print(f"\n== {part.__name__}")
        part.main()
    print("\n== memory")
    streaming()
    growing()


if __name__ == "__main__":
    main()
