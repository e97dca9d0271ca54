"""Open mIoU and Open PQ beside what people use for the closed metrics, in one run, on one thread.

Run `python benchmarks/open_metrics_masks.py`. Label maps are made of regions, as label maps are, with a prediction that
is shifted, partly relabelled and speckled. Best of several repeats; compiled kernels are called once before the clock
starts, and what that first call took is printed. Peers do the same work: counts of one pair of label maps; matches of
one pair of panoptic maps and the score from them. The first np.bincount row does less: it cannot ignore a label.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torchmetrics.detection import PanopticQuality
from torchmetrics.segmentation import MeanIoU

from hardlook.metrics.confusion import confusion_counts
from hardlook.metrics.mean_iou import mean_iou
from hardlook.metrics.open_pq import OpenPQ
from hardlook.metrics.panoptic_matching import Segments
from hardlook.metrics.soft_counts import soft_counts_by_image

CLASSES = 150
IMAGES, MATRICES, CELLS_AN_IMAGE = 2_000, 11, 150
Map = NDArray[np.int64]


def seconds(work: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def regions(rng: np.random.Generator, height: int, width: int, count: int) -> Map:
    """The nearest of `count` random points: their numbers as a map."""
    points = rng.random((count, 2)) * (height, width)
    y, x = np.mgrid[:height, :width]
    return np.argmin([(y - py) ** 2 + (x - px) ** 2 for py, px in points], axis=0)


def row(name: str, ours: float, peer: float, target: float) -> None:
    ratio = peer / ours
    verdict = "met" if ratio >= target else "MISSED"
    print(f"  {name:44} {peer * 1e3:10.3f} ms {ratio:8.1f}x  target {target:g}x: {verdict}")


def bincount(truth: Map, prediction: Map) -> object:
    return np.bincount((truth * CLASSES + prediction).ravel(), minlength=CLASSES**2)


def bincount_with_ignore(truth: Map, prediction: Map) -> object:
    kept = (truth >= 0) & (truth < CLASSES)
    return np.bincount(CLASSES * truth[kept] + prediction[kept], minlength=CLASSES**2)


def confusion(rng: np.random.Generator) -> None:
    labels = rng.integers(0, CLASSES, 60)
    truth = labels[regions(rng, 512, 512, 60)]
    prediction = np.where(rng.random(truth.shape) < 0.02, rng.integers(0, CLASSES, truth.shape), np.roll(truth, 5, 1))
    bytes_ = truth.astype(np.uint8), prediction.astype(np.uint8)
    first = [
        seconds(lambda maps=maps: confusion_counts(*maps, classes=CLASSES), 1) for maps in (bytes_, (truth, prediction))
    ]
    print(f"confusion of 512 x 512, {CLASSES} classes (first calls {first[0]:.2f} s and {first[1]:.2f} s)")
    reference = torch.from_numpy(truth)[None], torch.from_numpy(prediction)[None]
    metric = MeanIoU(num_classes=CLASSES, input_format="index")
    peers = (
        ("np.bincount on int64, nothing ignored", seconds(lambda: bincount(truth, prediction), 200), 3),
        ("np.bincount on int64, a label ignored", seconds(lambda: bincount_with_ignore(truth, prediction), 200), 3),
        ("torchmetrics MeanIoU", seconds(lambda: metric.update(reference[1], reference[0]), 3), 1000),
    )
    for name, maps in (("uint8", bytes_), ("int64", (truth, prediction))):
        ours = seconds(lambda maps=maps: confusion_counts(*maps, classes=CLASSES), 300)
        print(f"  {'ours, ' + name:44} {ours * 1e3:10.3f} ms")
        for peer, took, target in peers:
            row(peer, ours, took, target)


def unique_quality(truth: Map, true_class: dict[int, int], prediction: Map, called: dict[int, int]) -> float:
    """Closed PQ of one image in the way of panopticapi, without its reading of files."""
    areas = [
        dict(zip(*map(np.ndarray.tolist, np.unique(m, return_counts=True)), strict=True)) for m in (truth, prediction)
    ]
    pairs, pixels = np.unique(truth.astype(np.uint64) * 2**24 + prediction.astype(np.uint64), return_counts=True)
    shared = {divmod(pair, 2**24): n for pair, n in zip(pairs.tolist(), pixels.tolist(), strict=True)}
    sums: dict[int, list[float]] = {label: [0.0, 0, 0, 0] for label in {*true_class.values(), *called.values()}}
    matched: set[tuple[str, int]] = set()
    for (one, other), n in shared.items():
        if true_class.get(one, -1) != called.get(other, -2):
            continue
        iou = n / (areas[0][one] + areas[1][other] - n - shared.get((0, other), 0))
        if iou > 0.5:
            sums[true_class[one]][0] += iou
            sums[true_class[one]][1] += 1
            matched |= {("true", one), ("called", other)}
    for one, label in true_class.items():
        sums[label][3] += ("true", one) not in matched
    for other, label in called.items():
        excused = 2 * shared.get((0, other), 0) > areas[1][other]
        sums[label][2] += ("called", other) not in matched and not excused
    values = [iou / (tp + fp / 2 + fn / 2) for iou, tp, fp, fn in sums.values() if tp + fp + fn]
    return float(np.mean(values))


def panoptic(rng: np.random.Generator) -> None:
    classes, segments = 133, 60
    ids = np.sort(rng.choice(np.arange(1, 2**24), segments, replace=False))
    places = regions(rng, 480, 640, segments)
    truth, prediction = ids[places], ids[::-1][np.roll(places, 4, 1)]
    true_class = rng.integers(0, classes, segments)
    called = np.where(rng.random(segments) < 0.2, rng.integers(0, classes, segments), true_class)
    labels, things = [str(k) for k in range(classes)], np.arange(classes) < 80
    metric = OpenPQ(labels, np.eye(classes), things)
    tables = Segments(ids, true_class), Segments(ids[::-1], called)
    maps = truth.astype(np.int32), prediction.astype(np.int32)

    def score() -> float:
        metric.reset()
        metric.update(maps[0], tables[0], maps[1], tables[1])
        return metric.compute().vanilla.all.pq

    first = seconds(score, 1)
    print(f"Open PQ, 640 x 480, {segments} segments (first call {first:.2f} s)")
    plain = (
        dict(zip(ids.tolist(), true_class.tolist(), strict=True)),
        dict(zip(ids[::-1].tolist(), called.tolist(), strict=True)),
    )
    stacks = [
        torch.from_numpy(np.stack([label[np.searchsorted(ids, m)], np.searchsorted(ids, m)], -1))[None]
        for label, m in ((true_class, truth), (called[::-1], prediction))
    ]
    theirs = PanopticQuality(things=set(range(80)), stuffs=set(range(80, classes)))
    peers = (
        ("np.unique, as panopticapi", seconds(lambda: unique_quality(maps[0], plain[0], maps[1], plain[1]), 20), 8),
        ("torchmetrics PanopticQuality", seconds(lambda: theirs(stacks[1], stacks[0]), 3), 100),
    )
    assert abs(score() - unique_quality(maps[0], plain[0], maps[1], plain[1])) < 1e-12
    matching = seconds(lambda: metric.update(maps[0], tables[0], maps[1], tables[1]), 100)
    for name, ours in (
        ("ours, an image of a run", matching),
        ("ours, one image and all its scores", seconds(score, 100)),
    ):
        print(f"  {name:44} {ours * 1e3:10.3f} ms")
        for peer, took, target in peers:
            row(peer, ours, took, target)


def rescoring(rng: np.random.Generator) -> None:
    image = np.repeat(np.arange(IMAGES), CELLS_AN_IMAGE)
    cell = rng.integers(0, CLASSES * (CLASSES + 1), image.size)
    pixels = rng.integers(1, 5_000, image.size)
    matrices = np.maximum(rng.random((MATRICES, CLASSES, CLASSES)), np.eye(CLASSES))

    def rescore() -> list[float]:
        counts = (soft_counts_by_image(image, cell, pixels, one, images=IMAGES) for one in matrices)
        return [float(mean_iou(by_image.sum(0))) for by_image in counts]

    took = seconds(rescore, 3)
    verdict = "met" if took < 1 else "MISSED"
    print(f"re-scoring {IMAGES} images, {CLASSES} classes, {image.size} cells, under {MATRICES} matrices")
    print(f"  {'ours, soft counts by image and Open mIoU':44} {took:10.3f} s   target 1 s: {verdict}")


def main() -> None:
    torch.set_num_threads(1)
    with threadpool_limits(1):
        rng = np.random.default_rng(0)
        confusion(rng)
        panoptic(rng)
        rescoring(rng)


if __name__ == "__main__":
    main()
