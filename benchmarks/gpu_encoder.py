"""EfficientNet-Lite0 on a GPU: images a second by batch size, batch against one by one, GPU against processor.

Run `python benchmarks/gpu_encoder.py WEIGHTS.pth`. Needs torch with CUDA and OpenCV, nothing else of the package's
dependencies. Images are decoded already; preparing them on the processor is part of the time.
"""

import sys
import time
from pathlib import Path

import numpy as np

from hardlook.models.encoders.efficientnet_lite0 import EfficientNetLite0

IMAGES = 256


def main() -> None:
    weights = Path(sys.argv[1])
    rng = np.random.default_rng(0)
    sizes = rng.integers(100, 400, (IMAGES, 2))
    images = [rng.integers(0, 256, (height, width, 3), dtype=np.uint8) for height, width in sizes]
    on_gpu = EfficientNetLite0(weights=weights, device="cuda")
    together = on_gpu.encode(images[:16]).vectors
    alone = np.concatenate([on_gpu.encode([image]).vectors for image in images[:16]])
    processor = EfficientNetLite0(weights=weights).encode(images[:16]).vectors
    print(f"batch against one by one: {np.abs(together - alone).max():.1e}")
    print(f"GPU against processor: {np.abs(together - processor).max():.1e} of {np.abs(processor).max():.1f}")
    for batch in (1, 8, 32, 128):
        encoder = EfficientNetLite0(weights=weights, device="cuda", batch=batch)
        encoder.encode(images[:batch])
        start = time.perf_counter()
        encoder.encode(images)
        print(f"batch {batch:4}: {IMAGES / (time.perf_counter() - start):7.1f} images a second")


if __name__ == "__main__":
    main()
