"""Open mIoU and Open PQ beside what people use for the closed metrics, in one run, on one thread.

Run `python benchmarks/open_metrics_masks.py`. Maps are made of regions, as label maps are; predictions are shifted,
partly relabelled and, for the confusion, speckled. Processor time, best of several repeats. Kernels are called once
before that; what the first call took is printed. Peers do the same work: counts of one pair of label maps with one
label ignored; matches of 50 pairs of panoptic maps and their score, by the pair. The row without a target does less.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torchmetrics.detection import PanopticQuality
from torchmetrics.segmentation import MeanIoU

from hardlook.metrics.confusion import confusion_counts
from hardlook.metrics.mean_iou import mean_iou
from hardlook.metrics.open_miou import OpenMeanIoU, soft_counts_by_image
from hardlook.metrics.open_pq import OpenPQ
from hardlook.metrics.panoptic import Segments

CLASSES = 150
IMAGES, MATRICES, CELLS_AN_IMAGE = 2_000, 11, 150
PANOPTIC_IMAGES = 50
Map = NDArray[np.integer]


def seconds(work: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def regions(rng: np.random.Generator, height: int, width: int, count: int) -> Map:
    """The nearest of `count` random points: their numbers as a map."""
    points = rng.random((count, 2)) * (height, width)
    y, x = np.mgrid[:height, :width]
    return np.asarray(np.argmin([(y - py) ** 2 + (x - px) ** 2 for py, px in points], axis=0))


def row(name: str, ours: float, peer: float, target: float | None) -> None:
    ratio = peer / ours
    verdict = "" if target is None else f"  target {target:g}x: {'met' if ratio >= target else 'MISSED'}"
    print(f"    {name:42} {peer * 1e3:10.3f} ms {ratio:8.1f}x{verdict}")


def bincount(truth: Map, prediction: Map, classes: int = CLASSES) -> object:
    return np.bincount((truth * classes + prediction).ravel(), minlength=classes**2)


def bincount_with_ignore(truth: Map, prediction: Map) -> object:
    kept = (truth >= 0) & (truth < CLASSES)
    return np.bincount(CLASSES * truth[kept] + prediction[kept], minlength=CLASSES**2)


def confusion(rng: np.random.Generator) -> None:
    labels = rng.integers(0, CLASSES, 60)
    truth = labels[regions(rng, 512, 512, 60)]
    prediction = np.where(rng.random(truth.shape) < 0.02, rng.integers(0, CLASSES, truth.shape), np.roll(truth, 5, 1))
    inputs = (("uint8", (truth.astype(np.uint8), prediction.astype(np.uint8))), ("int64", (truth, prediction)))
    first = [seconds(partial(confusion_counts, *maps, classes=CLASSES), 1) for _, maps in inputs]
    print(f"confusion of 512 x 512, {CLASSES} classes (first calls {first[0]:.2f} s and {first[1]:.2f} s)")
    metric = MeanIoU(num_classes=CLASSES, input_format="index")
    tensors = torch.from_numpy(prediction)[None], torch.from_numpy(truth)[None]
    peers = (
        ("np.bincount on int64", seconds(partial(bincount_with_ignore, truth, prediction), 200), 3),
        ("np.bincount on int64, nothing ignored", seconds(partial(bincount, truth, prediction), 200), 3),
        ("torchmetrics MeanIoU", seconds(partial(metric.update, *tensors), 3), 1000),
    )
    for name, maps in inputs:
        ours = seconds(partial(confusion_counts, *maps, classes=CLASSES), 300)
        print(f"  {'ours, ' + name:44} {ours * 1e3:10.3f} ms")
        for peer, took, target in peers:
            row(peer, ours, took, target)


def many_classes(rng: np.random.Generator) -> None:
    """Updates of Open mIoU against np.bincount with nothing ignored, as the classes grow; int64 maps.

    Every map is a new one, as in a run: with a map that comes again all its pairs are known already. Ours includes
    reading the pairs after the last map, by which time all are sorted; np.bincount is without its addition.
    """
    print("updates with new maps of 512 x 512, int64, by the number of classes; np.bincount without its addition")
    for name, draw in (("regions", draw_regions), ("noise", draw_noise)):
        for classes in (CLASSES, 300, 847, 1_203, 2_000, 4_096, 4_097, 5_792, 5_793, 7_000, 10_000, 22_000):
            maps = [draw(rng, classes) for _ in range(16 if classes <= 6_000 else 4)]
            similarity = np.eye(classes) if classes <= 4_096 else lambda true, called: (true == called).astype(float)
            metric = OpenMeanIoU([str(k) for k in range(classes)], similarity)
            metric.update(*draw(rng, classes))
            metric.pairs.cells()  # compiles, where it is the first time
            start = time.process_time()
            for truth, prediction in maps:
                metric.update(truth, prediction)
            updated = (time.process_time() - start) / len(maps)
            pairs = len(metric.pairs.cells()[0]) if not metric.pairs.is_table else 0
            ours = (time.process_time() - start) / len(maps)
            start = time.process_time()
            for truth, prediction in maps:
                bincount(truth, prediction, classes)
            peer = (time.process_time() - start) / len(maps)
            seen = f", {pairs:,} pairs" if pairs else ""
            row(
                f"{name}, {classes:,} classes{seen}: {updated * 1e3:.2f} + {(ours - updated) * 1e3:.2f} ms",
                ours,
                peer,
                1,
            )
    start = time.process_time()
    metric.compute()
    print(f"  scores of {classes:,} classes: {time.process_time() - start:.2f} s of processor time")


def draw_regions(rng: np.random.Generator, classes: int) -> tuple[Map, Map]:
    truth = rng.integers(0, classes, 60)[regions(rng, 512, 512, 60)]
    speckled = rng.random(truth.shape) < 0.02
    return truth, np.where(speckled, rng.integers(0, classes, truth.shape), np.roll(truth, 5, 1))


def draw_noise(rng: np.random.Generator, classes: int) -> tuple[Map, Map]:
    truth, prediction = rng.integers(0, classes, (2, 512, 512))
    return truth, prediction


def unique_quality(
    truth: Map, true_class: dict[int, int], true_area: dict[int, int], prediction: Map, called: dict[int, int]
) -> float:
    """Closed PQ of one image in the way of panopticapi, without its reading of files; true areas come with the data."""
    area = dict(zip(*np.unique(prediction, return_counts=True), strict=True))
    shared = {}
    pairs = truth.astype(np.uint64) * 2**24 + prediction.astype(np.uint64)
    for pair, pixels in zip(*np.unique(pairs, return_counts=True), strict=True):
        shared[pair // 2**24, pair % 2**24] = pixels
    sums: dict[int, list[float]] = {label: [0.0, 0, 0, 0] for label in {*true_class.values(), *called.values()}}
    matched: set[tuple[str, int]] = set()
    for (one, other), n in shared.items():
        if true_class.get(one, -1) != called.get(other, -2):
            continue
        iou = n / (true_area[one] + area[other] - n - shared.get((0, other), 0))
        if iou > 0.5:
            sums[true_class[one]][0] += iou
            sums[true_class[one]][1] += 1
            matched |= {("true", one), ("called", other)}
    for one, label in true_class.items():
        sums[label][3] += ("true", one) not in matched
    for other, label in called.items():
        excused = 2 * shared.get((0, other), 0) > area[other]
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
    metric = OpenPQ([str(k) for k in range(classes)], np.eye(classes), np.arange(classes) < 80)
    tables = Segments(ids, true_class), Segments(ids[::-1], called)
    maps = truth.astype(np.int32), prediction.astype(np.int32)

    def score() -> float:
        metric.reset()
        for _ in range(PANOPTIC_IMAGES):
            metric.update(maps[0], tables[0], maps[1], tables[1])
        return metric.compute().vanilla.all.pq

    first = seconds(score, 1)
    print(f"Open PQ, 640 x 480, {segments} segments, {PANOPTIC_IMAGES} images and their score (first {first:.2f} s)")
    named = [
        dict(zip(one.tolist(), labels.tolist(), strict=True))
        for one, labels in ((ids, true_class), (ids[::-1], called))
    ]
    areas = {one: int((truth == one).sum()) for one in named[0]}
    unique = partial(unique_quality, maps[0], named[0], areas, maps[1], named[1])
    assert abs(score() - unique()) < 1e-12
    stacks = [
        torch.from_numpy(np.stack([labels[np.searchsorted(ids, m)], np.searchsorted(ids, m)], -1))[None]
        for labels, m in ((true_class, truth), (called[::-1], prediction))
    ]
    theirs = PanopticQuality(things=set(range(80)), stuffs=set(range(80, classes)))
    ours = seconds(score, 20) / PANOPTIC_IMAGES
    print(f"  {'ours, by the image':44} {ours * 1e3:10.3f} ms")
    by_unique = seconds(lambda: [unique() for _ in range(PANOPTIC_IMAGES)], 10) / PANOPTIC_IMAGES
    row("np.unique, as panopticapi", ours, by_unique, 8)
    row("torchmetrics PanopticQuality", ours, seconds(partial(theirs, stacks[1], stacks[0]), 3), 100)


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
        many_classes(rng)
        panoptic(rng)
        rescoring(rng)


if __name__ == "__main__":
    main()
