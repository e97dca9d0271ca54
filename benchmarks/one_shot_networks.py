"""Each image encoded once beside the published way, which encodes both images of every pair: one run per network.

Run `python benchmarks/one_shot_networks.py --voc VOC2012 --pairs TOSS --device cuda`, or on drawn images, without data:
`python benchmarks/one_shot_networks.py --device cpu --size 97 --count 24`. Pairs are those of tier 1 whose files are
there, in the order of its lists, so that images repeat as they do in a run. Weights are random: time does not depend on
them. All ways do all of it, from images in memory to masks of their size; seconds are wall time of one pass after one
that is not counted. Published scripts take one pair at a time; beside that the same batches as ours are measured.
Target: 3 times the published way, one pair at a time. With `--precision bfloat16` the IoU of its
masks with those of float32 is printed beside. The time of all 308,269 pairs is extrapolated. Imports nothing of the
record store: beside torch it needs cachetools, and Pillow for `--voc`.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

from hardlook.data.toss_pairs import list_pair_files
from hardlook.models.one_shot import network_segmenter
from hardlook.models.roles import Support

TARGET, TIER_1_PAIRS = 3.0, 308_269
NETWORKS = ("simpropnet", "pfenet", "rpmm", "hsnet", "repri", "panet")


def draw_pairs(count: int) -> list[tuple[np.ndarray, Support]]:
    """Pairs of about count / 18 images: tier 1 has about 80,000 pairs over 4,300 images."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (375, 500, 3)).astype(np.uint8) for _ in range(max(4, count // 18))]
    masks = [np.zeros((375, 500), bool) for _ in images]
    for mask in masks:
        y, x = rng.integers(0, 200, 2)
        mask[y : y + 150, x : x + 200] = True
    chosen = rng.integers(0, len(images), (count, 2))
    return [(images[query], Support(images[support], masks[support])) for query, support in chosen]


def read_pairs(voc: Path, lists: Path, count: int) -> list[tuple[np.ndarray, Support]]:
    """The first pairs of tier 1's lists whose images and masks are there."""
    import PIL.Image

    images: dict[str, np.ndarray] = {}
    masks: dict[str, np.ndarray] = {}

    def read(token: str) -> Support | None:
        number, _, name = token.partition("_")
        paths = voc / "JPEGImages" / f"{name}.jpg", voc / "SegmentationClass" / f"{name}.png"
        if not all(path.is_file() for path in paths):
            return None
        if name not in images:
            images[name] = np.asarray(PIL.Image.open(paths[0]).convert("RGB"))
        if token not in masks:
            masks[token] = np.asarray(PIL.Image.open(paths[1])) == int(number)
        return Support(images[name], masks[token])

    found: list[tuple[np.ndarray, Support]] = []
    for file in (one for one in list_pair_files(lists) if one.tier == 1):
        for line in file.path.read_text().splitlines():
            query, support = (read(token) for token in line.split()[:2])
            if query is not None and support is not None:
                found.append((query.image, support))
            if len(found) == count:
                return found
    if not found:
        sys.exit(f"no pair of tier 1 in {lists} has its files in {voc}")
    return found


def measure(
    model: network_segmenter.NetworkSegmenter, pairs: list[tuple[np.ndarray, Support]], *, once: bool, size: int
) -> float:
    """Seconds of all pairs, `size` at a time; with `once` the features of images are kept."""

    def run(part: list[tuple[np.ndarray, Support]]) -> list[np.ndarray]:
        answers = []
        for start in range(0, len(part), size):
            some = part[start : start + size]
            if not once:
                model.forget()
            answers += model.segment_queries([query for query, _ in some], [[support] for _, support in some])
        return answers

    run(pairs[:size])
    model.forget()
    model.encoded = 0
    started = time.perf_counter()
    model.answers = run(pairs)  # type: ignore[attr-defined]
    if model.device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - started


def main() -> None:
    """Print a row per network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", type=Path)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--count", type=int, default=512, help="pairs")
    parser.add_argument("--batch", type=int, default=8, help="pairs matched at a time, on a GPU")
    parser.add_argument("--size", type=int, default=0, help="pixels of the input; the network's own by default")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--only", default="", help="networks, separated by commas")
    given = parser.parse_args()
    torch.set_num_threads(1 if given.device == "cpu" else torch.get_num_threads())
    pairs = read_pairs(given.voc, given.pairs, given.count) if given.voc else draw_pairs(given.count)
    distinct = len({id(image) for query, support in pairs for image in (query, support.image)})
    print(f"{len(pairs)} pairs of {distinct} images, {given.device}, {given.precision}")
    print(
        f"{'network':11} {'size':>5} {'encoded':>8} {'once s':>8} {'published s':>12} {'ratio':>6} {'batched s':>10} ",
        end="",
    )
    print(f"{'ratio':>6}  all of tier 1 h")
    size = given.batch if given.device != "cpu" else 1
    missed = False
    for name in [one for one in NETWORKS if one in (given.only.split(",") if given.only else NETWORKS)]:
        kind = next(one for one in vars(network_segmenter).values() if getattr(one, "network", None) == name)
        options = {
            "weights": "random:0", "backbone": "resnet50-keras", "device": given.device,
            "precision": given.precision, "pairs": size,
        }  # fmt: skip
        model = kind(size=given.size and (given.size if name != "hsnet" else max(97, given.size)), **options)
        once = measure(model, pairs, once=True, size=size)
        encoded, answers = model.encoded, model.answers
        assert encoded == distinct, f"{encoded} of {distinct} images were encoded"
        each = measure(model, pairs, once=False, size=size)
        differing = sum(not np.array_equal(one, two) for one, two in zip(answers, model.answers, strict=True))
        hours = once / len(pairs) * TIER_1_PAIRS / 3600
        alone = each if size == 1 else measure(model, pairs, once=False, size=1)
        missed |= alone / once < TARGET
        print(f"{name:11} {model.rule.size:5} {encoded:8} {once:8.2f} {alone:12.2f} {alone / once:6.1f} ", end="")
        print(f"{each:10.2f} {each / once:6.1f}  {hours:.1f}", end="")
        print(f"  ({differing} masks differ)" if differing else "")
        if given.precision != "float32":
            exact = kind(size=given.size, **{**options, "precision": "float32"})
            measure(exact, pairs, once=True, size=size)
            common = sum((one & two).sum() for one, two in zip(answers, exact.answers, strict=True))
            either = sum((one | two).sum() for one, two in zip(answers, exact.answers, strict=True))
            print(f"{'':11} IoU with the masks of float32: {common / max(1, either):.4f}")
    print(f"target {TARGET:g}: {'missed by at least one' if missed else 'reached by all'}")
    sys.exit(0)


if __name__ == "__main__":
    main()
