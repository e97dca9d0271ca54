"""FC-CLIP, SAN and CAT-Seg as models, in batches, beside a plain loop over images with the same networks: one run.

Run `python benchmarks/open_vocabulary_networks.py --images coco/val2017 --device cuda`, or on drawn images, without
data: `python benchmarks/open_vocabulary_networks.py --size tiny --shorter 128 --count 4`. Weights are random: time does
not depend on them. The plain loop is what the authors' evaluations do: one image at a time, scores of all words at the
image's size, then the largest; CAT-Seg's attention goes over all 256 words, those that are missing included. Ours is
`model.segment` on `--count` images, at most `--batch` in a forward pass. Both go from images in memory to label maps in
memory, with the reading `released`. Seconds are those of one pass after one image that is not counted: wall time on a
GPU, else the processor's time on one thread, which other work on the machine does not lengthen. `differ` is the share
of pixels with another label, `texts` the seconds for the vectors of all words, computed and read from the cache.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import PIL.Image
import torch
from torch.nn import functional

from hardlook.models.feature_cache import default_cache_folder
from hardlook.models.registry import build
from hardlook.networks.open_vocabulary import cat_seg, fc_clip

NETWORKS = ("fc-clip", "san", "cat-seg")


def read_images(folder: Path | None, count: int) -> list[np.ndarray]:
    """The first images of a folder, or drawn ones of two sizes."""
    if folder is not None:
        return [np.array(PIL.Image.open(path).convert("RGB")) for path in sorted(folder.iterdir())[:count]]
    rng = np.random.default_rng(0)
    sizes = [(480, 640, 3) if place % 3 else (640, 480, 3) for place in range(count)]
    return [rng.integers(0, 256, size, dtype=np.uint8) for size in sizes]


def attend_to_all(self: Any, x: torch.Tensor, word: torch.Tensor, filler: Any, missing: int) -> torch.Tensor:
    """CAT-Seg's attention over 256 tokens, those of missing words one by one."""
    if missing:
        x = torch.cat((x, filler[0].expand(len(x), missing, -1)), 1)
        word = torch.cat((word, filler[1].expand(len(x), missing, -1)), 1)
    joined, split = torch.cat((x, word), 2), (*x.shape[:2], cat_seg.HEADS, -1)
    query, key, value = (
        layer(given).reshape(split) for layer, given in ((self.q, joined), (self.k, joined), (self.v, x))
    )
    query, key = functional.elu(query) + 1, functional.elu(key) + 1
    found = torch.einsum("nthd,nhdv->nthv", query, torch.einsum("nshd,nshv->nhdv", key, value))
    total = torch.einsum("nthd,nhd->nth", query, key.sum(1))
    return (found / (total[..., None] + 1e-6)).flatten(2)[:, : x.shape[1] - missing]


def run_plain(model: Any, name: str, images: list[np.ndarray]) -> list[np.ndarray]:
    """One image at a time, all scores at its size."""
    answers = []
    with torch.inference_mode(), mock.patch.object(cat_seg._LinearAttention, "forward", attend_to_all):
        for image in images:
            pixels, size = model._stack([image]), image.shape[:2]
            if name == "fc-clip":
                batch = fc_clip.prepare([pixels[0]])
                found = model._network(batch, model._text)
                inner, padded = (tuple(map(int, one.shape[-2:])) for one in (pixels, batch))
                masks = fc_clip.resize_masks(found.masks[0], (padded[0], padded[1]), (inner[0], inner[1]), size)
                scores = fc_clip.segment_semantic(found.log_probabilities[0], masks)
            elif name == "san":
                scores = model._network.segment(pixels.float(), model.text, size)[0]
            else:
                scores = model._network.segment_windows(pixels.float(), model.text, size)[0]
            answers.append(scores.argmax(0).cpu().numpy())
    return answers


def measure(
    run: Callable[[list[np.ndarray]], list[np.ndarray]], images: list[np.ndarray], clock: Callable[[], float]
) -> tuple[float, Any]:
    """Seconds and answers of a pass over all images, after one image that is not counted."""
    run(images[:1])
    started = clock()
    answers = run(images)
    return clock() - started, answers


@contextmanager
def own_cache() -> Iterator[None]:
    """A cache of texts that is empty and goes away."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", {"HARDLOOK_CACHE": folder}):
        assert default_cache_folder().is_relative_to(folder)
        yield


def main() -> None:
    """Print a row per network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, help="a folder; drawn images by default")
    parser.add_argument("--count", type=int, default=16, help="images")
    parser.add_argument("--batch", type=int, default=8, help="images in a forward pass")
    parser.add_argument("--labels", default="voc20", help="words, a file or a label set")
    parser.add_argument("--size", default="", help="of the networks; ResNet50 and ViT-B/16 by default, or tiny")
    parser.add_argument("--shorter", type=int, default=0, help="pixels of the shorter side; published by default")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", help="of ours; the plain loop has float32")
    parser.add_argument("--only", default=",".join(NETWORKS), help="networks, separated by commas")
    given = parser.parse_args()
    clock = time.perf_counter
    if given.device == "cpu":
        torch.set_num_threads(1)
        clock = time.process_time
    images = read_images(given.images, given.count)
    print(f"{len(images)} images, {given.labels}, {given.device}, {given.precision}, batch {given.batch}")
    print(f"{'network':8} {'ours s':>8} {'plain s':>8} {'ratio':>6} {'differ':>8}  texts: computed, read s")
    for name in given.only.split(","):
        args: dict[str, Any] = {
            "labels": given.labels, "weights": "random:1", "reading": "released", "device": given.device,
            "precision": given.precision, "batch": given.batch, "size": given.size,
            **({"shorter": given.shorter} if given.shorter else {}),
        }  # fmt: skip
        with own_cache():
            seconds = []
            for _ in range(2):
                started = clock()
                model = build(name, "semantic-segmenter", args)
                seconds.append(clock() - started)
        ours, answers = measure(model.segment, images, clock)
        plain, expected = measure(functools.partial(run_plain, model, name), images, clock)
        pairs = zip(answers, expected, strict=True)
        differ = sum(int((one != other).sum()) for one, other in pairs) / sum(one.size for one in answers)
        texts = f"{seconds[0]:.1f}, {seconds[1]:.1f} with the network"
        print(f"{name:8} {ours:8.2f} {plain:8.2f} {plain / ours:6.2f} {differ:8.1e}  {texts}")


if __name__ == "__main__":
    main()
