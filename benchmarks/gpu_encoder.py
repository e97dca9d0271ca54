"""EfficientNet-Lite0 on a GPU: images a second, batch against one by one, GPU against processor.

Run `python benchmarks/gpu_encoder.py WEIGHTS.pth`. Needs torch with CUDA and OpenCV, nothing else of the package's
dependencies. Images are decoded already, except for the last rows; preparing them on the processor is part of the time.
The last rows read JPEG files of 500 x 375, decode, encode and store them, as a run of MetaCoCo does.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

from hardlook.data.images import read_image
from hardlook.models.encoders.efficientnet_lite0 import EfficientNetLite0
from hardlook.models.feature_tables import encode_table

IMAGES, FILES, TARGET = 256, 8192, 2000


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
    on_gpu.encode(images)
    start = time.perf_counter()
    on_gpu.encode(images)
    print(
        f"{IMAGES} images in memory to vectors and maps: {IMAGES / (time.perf_counter() - start):7.1f} images a second"
    )
    with tempfile.TemporaryDirectory() as folder:
        files = write_photographs(Path(folder) / "images")
        names = [path.name for path in files]
        for maps in (False, True):
            tables = Path(folder) / f"tables-{maps}"
            some = FILES if not maps else FILES // 8
            encode_table(on_gpu, "warm", files[:128], names[:128], maps=maps, read=read_image, folder=tables)
            start = time.perf_counter()
            encode_table(on_gpu, "timed", files[:some], names[:some], maps=maps, read=read_image, folder=tables)
            rate = some / (time.perf_counter() - start)
            kind, target = ("vectors and maps", "") if maps else ("vectors", f" (target {TARGET})")
            print(f"{some} files to {kind}, {os.cpu_count()} cores: {rate:7.1f} images a second{target}")


def write_photographs(folder: Path) -> list[Path]:
    """JPEG files of 500 x 375 with coarse shapes and noise, as large as photographs are."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    shapes = [cv2.resize(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8), (500, 375)) for _ in range(64)]
    noise = rng.integers(0, 24, (64, 375, 500, 3), dtype=np.uint8)
    files = [folder / f"{number:05d}.jpg" for number in range(FILES)]
    for number, path in enumerate(files):
        cv2.imwrite(str(path), cv2.add(shapes[number % 64], noise[number // 64 % 64]))
    return files


if __name__ == "__main__":
    main()
