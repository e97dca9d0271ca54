"""Open AP beside pycocotools and hotcoco in one run: 1,000 images, 20,000 detections, 80 classes, one thread.

Run `python benchmarks/open_ap.py`. Theirs is evaluate + accumulate on data already loaded (COCO objects); ours is
update of every image + compute on data already loaded (Objects, Detections), which gives vanilla AP, AP-dagger and Open
AP at once. Box overlaps are computed inside all. Processor time decides, the best of a few runs; ours and hotcoco's are
taken by turns. The figures of vanilla AP must agree.
"""

import contextlib
import io
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from threadpoolctl import threadpool_limits

from hardlook.metrics.average_precision import soft_precision
from hardlook.metrics.detection import Detections, Objects
from hardlook.metrics.open_ap import OpenAP, open_average_precision

IMAGES, DETECTIONS, CLASSES = 1_000, 20, 80
# How many times faster than pycocotools; how many times slower than hotcoco, which computes one of the three kinds.
TARGET, TARGET_SLOWER = 15.0, 1.5
ROUNDS = 7
MATRICES, RESAMPLES = 11, 200


def boxes_of(rng: np.random.Generator, n: int) -> Any:
    sides = np.exp(rng.uniform(np.log(10), np.log(300), (n, 2)))
    return np.concatenate([rng.uniform(0, np.array([640, 480]) - sides), sides], axis=1)


def make_image(rng: np.random.Generator) -> tuple[Objects, Detections]:
    """Three quarters of the detections are near an object; of those seven in ten bear its label."""
    objects = int(rng.integers(3, 12))
    truth, classes = boxes_of(rng, objects), rng.integers(0, CLASSES, objects)
    found, labels = boxes_of(rng, DETECTIONS), rng.integers(0, CLASSES, DETECTIONS)
    near = rng.random(DETECTIONS) < 0.75
    chosen = rng.integers(0, objects, DETECTIONS)
    moved = truth[chosen] + rng.normal(0, 0.08, (DETECTIONS, 4)) * np.tile(truth[chosen, 2:], 2)
    found = np.where(near[:, None], moved, found)
    found[:, 2:] = np.maximum(found[:, 2:], 1)
    labels = np.where(near & (rng.random(DETECTIONS) < 0.7), classes[chosen], labels)
    crowd = rng.random(objects) < 0.01
    return (
        Objects(classes, boxes=truth, area=truth[:, 2] * truth[:, 3], crowd=crowd),
        Detections(labels, rng.random(DETECTIONS), boxes=found),
    )


def as_coco(images: list[tuple[Objects, Detections]]) -> tuple[COCO, COCO]:
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for i, (truth, found) in enumerate(images):
        assert truth.boxes is not None
        assert truth.area is not None
        assert found.boxes is not None
        for k, box, area, crowd in zip(truth.classes, truth.boxes, truth.area, truth.crowd, strict=True):
            annotations.append(
                {"id": len(annotations) + 1, "image_id": i, "category_id": int(k), "bbox": box.tolist(),
                 "area": float(area), "iscrowd": int(crowd)}
            )  # fmt: skip
        for k, box, score in zip(found.classes, found.boxes, found.scores, strict=True):
            results.append({"image_id": i, "category_id": int(k), "bbox": box.tolist(), "score": float(score)})
    coco = COCO()
    coco.dataset = {
        "images": [{"id": i, "width": 640, "height": 480} for i in range(len(images))],
        "annotations": annotations,
        "categories": [{"id": k, "name": str(k)} for k in range(CLASSES)],
    }
    coco.createIndex()
    return coco, coco.loadRes(results)


def theirs(truth: COCO, results: COCO) -> COCOeval:
    evaluation = COCOeval(truth, results, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    return evaluation


def load_hotcoco(truth: COCO, results: COCO) -> Callable[[], Any]:
    """A function that evaluates and accumulates the same data with hotcoco."""
    os.environ["RAYON_NUM_THREADS"] = "1"  # read when its first evaluation starts
    import hotcoco

    loaded = hotcoco.COCO(truth.dataset)
    found = loaded.load_res(results.dataset["annotations"])

    def evaluate() -> Any:
        evaluation = hotcoco.COCOeval(loaded, found, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        return evaluation

    return evaluate


def ours(images: list[tuple[Objects, Detections]]) -> OpenAP:
    metric = OpenAP([str(k) for k in range(CLASSES)], np.full((CLASSES, CLASSES), 0.2) + 0.8 * np.eye(CLASSES),
                    iou_type="bbox")  # fmt: skip
    for i, (truth, found) in enumerate(images):
        metric.update(truth, found, image=i)
    metric.compute()
    return metric


def seconds(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    images = [make_image(rng) for _ in range(IMAGES)]
    with threadpool_limits(limits=1):
        with contextlib.redirect_stdout(io.StringIO()):
            truth, results = as_coco(images)
            evaluation = theirs(truth, results)
            evaluation.summarize()
            peer = seconds(lambda: theirs(truth, results), 2)
            hotcoco = load_hotcoco(truth, results)
            other = hotcoco()
            other.summarize()
        metric = ours(images)  # the first call compiles
        for stats in (evaluation.stats, other.stats):
            difference = abs(metric.compute().summary()["vanilla"]["AP"] - stats[0])
            assert difference < 1e-9, difference
        turns = [(seconds(lambda: ours(images), 1), seconds(hotcoco, 1)) for _ in range(ROUNDS)]
        own, rust = (min(times) for times in zip(*turns, strict=True))
        table = metric.table()
        matrices = [np.full((CLASSES, CLASSES), s) + (1 - s) * np.eye(CLASSES) for s in np.linspace(0, 0.9, MATRICES)]
        again = seconds(lambda: [soft_precision(table, matrix) for matrix in matrices], 3)
        drawn = rng.integers(0, IMAGES, (RESAMPLES, IMAGES))
        resampling = seconds(
            lambda: [open_average_precision(table.resampled(row), metric.similarity) for row in drawn], 1
        )
    verdict = "met" if peer / own >= TARGET else "missed"
    print(f"{IMAGES:,} images, {IMAGES * DETECTIONS:,} detections, {CLASSES} classes, boxes; one thread")
    print(f"{'':<34}{'ours s':>8}{'pycocotools s':>15}{'ratio':>8}  target")
    name = "match and score, with overlaps"
    print(f"{name:<34}{own:>8.3f}{peer:>15.2f}{peer / own:>7.1f}x  {TARGET:.0f}x {verdict}")
    verdict = "met" if own / rust <= TARGET_SLOWER else "missed"
    print(f"{'':<34}{'ours s':>8}{'hotcoco s':>15}{'slower':>8}  target")
    name = "three kinds beside its closed AP"
    print(f"{name:<34}{own:>8.3f}{rust:>15.3f}{own / rust:>7.2f}x  {TARGET_SLOWER}x {verdict}")
    print(f"re-scoring under {MATRICES} matrices: {again:.3f} s")
    print(f"{RESAMPLES} resamples of images, all three kinds: {resampling:.2f} s")


if __name__ == "__main__":
    main()
