"""Prototype matching with its encoder on a GPU: images encoded a second, and pairs matched a second once they are.

Run `python benchmarks/toss_gpu.py WEIGHTS.pth`. Needs torch and OpenCV, nothing else of the package's dependencies.
Pictures of 500 x 375 are in memory; each is encoded by itself, as in a run, so that its numbers depend on nothing else.
Matching, resizing to full size and counting stay on one core of the processor.
"""

import sys
import time

import numpy as np

from hardlook.models.one_shot.prototype import Prototype
from hardlook.models.roles import Support

IMAGES, PAIRS, TIER_1_IMAGES, TIER_1_PAIRS = 256, 8192, 14_830, 308_269


def main() -> None:
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (375, 500, 3), dtype=np.uint8) for _ in range(IMAGES)]
    masks = [rng.random((375, 500)) < 0.3 for _ in range(IMAGES)]
    for array in (*images, *masks):
        array.flags.writeable = False
    for device in ("cpu", "cuda"):
        model = Prototype(encoder_args=f"weights={sys.argv[1]}", device=device)
        model.segment_queries(images[:1], [[Support(images[1], masks[1])]])
        start = time.perf_counter()
        answers = model.segment_queries(
            images, [[Support(image, mask)] for image, mask in zip(images, masks, strict=True)]
        )
        encoding = time.perf_counter() - start
        query, support = rng.integers(0, IMAGES, (2, PAIRS))
        start = time.perf_counter()
        for first in range(0, PAIRS, 64):
            chosen = slice(first, first + 64)
            shown = [[Support(images[one], masks[one])] for one in support[chosen]]
            found = model.segment_queries([images[one] for one in query[chosen]], shown)
            for one, mask in zip(query[chosen], found, strict=True):
                np.count_nonzero(mask & masks[one])
        matching = time.perf_counter() - start
        whole = TIER_1_IMAGES * encoding / IMAGES + TIER_1_PAIRS * matching / PAIRS
        print(f"{device}: {IMAGES / encoding:.0f} images a second, {PAIRS / matching:.0f} pairs a second once encoded;")
        print(
            f"  all of tier 1 ({TIER_1_PAIRS:,} pairs, {TIER_1_IMAGES:,} masks): {whole / 60:.1f} minutes", flush=True
        )
        print(f"  share of pixels found: {np.mean([answer.mean() for answer in answers]):.6f}")


if __name__ == "__main__":
    main()
