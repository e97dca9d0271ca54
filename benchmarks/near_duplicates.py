"""Near-duplicates: how often copies are found, which pairs are found among real images, and how long it takes.

Run `python benchmarks/near_duplicates.py FOLDER...` on folders of images. Copies are made of 1,200 images, drawn by
seed. The last rows compare 25,000, 50,000 and 100,000 thumbnails, which are parts of the images, upside down in turn;
`--pairs FILE.png` draws the pairs that were found among the images themselves.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from hardlook.data.images import is_image_name, read_image
from hardlook.data.near_duplicates import find_near_duplicates, make_thumbnail

COPIED, SEED = 1200, 0
SIZES = (25_000, 50_000, 100_000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--pairs", type=Path)
    given = parser.parse_args()
    cv2.setNumThreads(1)
    files = [path for folder in given.folders for path in sorted(folder.rglob("*")) if is_image_name(path)]
    start = time.perf_counter()
    thumbnails = np.stack([make_thumbnail(read_image(path)) for path in files])
    print(f"{len(files)} images decoded in {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    pairs, similar = find_near_duplicates(thumbnails)
    every = len(files) * (len(files) - 1) // 2
    print(f"{len(pairs)} of {every:,} pairs found in {time.perf_counter() - start:.1f} s")
    for least in (0.96, 0.97, 0.98, 0.99):
        print(f"  {int((similar >= least).sum())} with a correlation of {least} or more")
    if given.pairs:
        draw_pairs(given.pairs, files, pairs, similar)
    rng = np.random.default_rng(SEED)
    chosen = np.sort(rng.choice(len(files), min(COPIED, len(files)), replace=False))
    copies: dict[str, list[np.ndarray]] = {}
    for number in chosen:
        for kind, copy in make_copies(read_image(files[number]), rng):
            copies.setdefault(kind, []).append(make_thumbnail(np.ascontiguousarray(copy)))
    for kind, made in copies.items():
        both = np.concatenate([thumbnails[chosen], np.stack(made)])
        found = set(map(tuple, find_near_duplicates(both)[0].tolist()))
        hits = sum((place, place + len(chosen)) in found for place in range(len(chosen)))
        print(f"{kind:40s} found {hits / len(chosen):.3f}")
    for size in SIZES:
        parts = make_parts(files, size, rng)
        start = time.perf_counter()
        pairs, _ = find_near_duplicates(parts)
        print(f"{size} thumbnails compared in {time.perf_counter() - start:.1f} s, {len(pairs)} pairs")


def make_copies(image: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """(kind, copy) for each kind of change."""
    yield "JPEG at quality 50", save(image, 50)
    yield "JPEG at quality 20", save(image, 20)
    yield "half the size", save(scale(image, 0.5), 90)
    yield "twice the size", save(scale(image, 2), 90)
    yield "squashed to 84 x 84", cv2.resize(image, (84, 84), interpolation=cv2.INTER_AREA)
    yield "mirrored", save(image[:, ::-1], 90)
    yield "grey", np.repeat(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)
    yield "brighter by a fifth", cv2.convertScaleAbs(image, alpha=1.2, beta=15)
    for share in (0.02, 0.05, 0.1, 0.15, 0.2):
        yield f"each side cropped by {share:.0%}", save(crop(image, share, rng), 90)
    yield "mirrored, cropped 10%, halved, quality 50", save(scale(crop(image, 0.1, rng)[:, ::-1], 0.5), 50)


def save(image: Any, quality: int) -> Any:
    encoded = cv2.imencode(".jpg", np.ascontiguousarray(image), [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return cv2.imdecode(encoded, cv2.IMREAD_COLOR)


def scale(image: Any, factor: float) -> Any:
    way = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    return cv2.resize(np.ascontiguousarray(image), None, fx=factor, fy=factor, interpolation=way)


def crop(image: Any, share: float, rng: np.random.Generator) -> Any:
    height, width = (round(side * (1 - share)) for side in image.shape[:2])
    top, left = rng.integers(0, image.shape[0] - height + 1), rng.integers(0, image.shape[1] - width + 1)
    return image[top : top + height, left : left + width]


def make_parts(files: Sequence[Path], count: int, rng: np.random.Generator) -> Any:
    """(count, 32, 32) thumbnails of random parts of the images, half as wide and high, every second upside down."""
    images = [cv2.cvtColor(read_image(path), cv2.COLOR_RGB2GRAY) for path in files]
    parts = [make_thumbnail(crop(images[number % len(images)], 0.5, rng)) for number in range(count)]
    return np.stack([part[::-1] if number % 2 else part for number, part in enumerate(parts)])


def draw_pairs(path: Path, files: Sequence[Path], pairs: Any, similar: Any) -> None:
    """Every pair side by side, the most similar first."""
    tiles = []
    for place in np.argsort(-similar, kind="stable"):
        two = [cv2.resize(read_image(files[number])[..., ::-1].copy(), (80, 80)) for number in pairs[place]]
        tile = np.vstack([np.hstack(two), np.full((14, 160, 3), 255, np.uint8)])
        cv2.putText(tile, f"{similar[place]:.3f}", (4, 91), cv2.FONT_HERSHEY_SIMPLEX, 0.35, (0, 0, 0))
        tiles.append(np.hstack([tile, np.zeros((94, 6, 3), np.uint8)]))
    tiles += [np.zeros_like(tiles[0])] * (-len(tiles) % 10)
    cv2.imwrite(str(path), np.vstack([np.hstack(tiles[row : row + 10]) for row in range(0, len(tiles), 10)]))


if __name__ == "__main__":
    main()
