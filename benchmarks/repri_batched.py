"""RePRI's inference for all pairs of a batch at once beside a loop over the pairs, in one run.

Run `python benchmarks/repri_batched.py --device cuda`; `--device cpu --pairs 8` tries it in seconds. Features are unit
vectors of 512 numbers at 53 x 53 positions, as of images of 417 pixels, on the device already; 49 steps, as released.
Both call the same function, with one pair or with all. On a GPU a loop waits for kernels to start, a batch for memory;
on a processor one pair may stay in the cache that a batch exceeds. Seconds are wall time, best of three. Target: 10
times the loop on a GPU. Imports torch and the network alone.
"""

import argparse
import sys
import time
from collections.abc import Callable

import torch

from hardlook.networks.one_shot.repri import Adapted, adapt_classifiers

Tensor = torch.Tensor
TARGET, TIER_1_PAIRS = 10.0, 308_269


def make_pairs(pairs: int, side: int, shots: int, device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Unit features of queries and supports, which positions count, and labels with an object in the middle."""
    rng = torch.Generator(device).manual_seed(0)
    places = side * side
    query, support = (
        torch.nn.functional.normalize(torch.randn(pairs, 512, n, generator=rng, device=device) + 1, dim=1)
        for n in (places, shots * places)
    )
    label = torch.zeros(side, side, dtype=torch.uint8, device=device)
    label[side // 4 : side // 2, side // 4 : -side // 4] = 1
    label[-2:] = 255
    labels = label.flatten().repeat(pairs, shots)
    return query, torch.ones(pairs, places, dtype=torch.bool, device=device), support, labels


def measure(work: Callable[[], object], device: str) -> float:
    """Seconds of the best of three runs, after one that is not counted."""
    best = float("inf")
    for repeat in range(4):
        start = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        if repeat:
            best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--pairs", type=int, default=64, help="pairs of the batch")
    parser.add_argument("--side", type=int, default=53, help="positions along a side of the features")
    parser.add_argument("--shots", type=int, default=1)
    given = parser.parse_args()
    if given.device == "cpu":
        torch.set_num_threads(1)
    tensors = make_pairs(given.pairs, given.side, given.shots, given.device)

    def adapt(chosen: slice) -> Adapted:
        return adapt_classifiers(*(one[chosen] for one in tensors), shots=given.shots, steps=49, update=9)

    def loop() -> list[Adapted]:
        return [adapt(slice(place, place + 1)) for place in range(given.pairs)]

    def batch() -> Adapted:
        return adapt(slice(None))

    alone, together = torch.cat([one.weight for one in loop()]), batch().weight
    difference = float((alone - together).abs().max() / alone.abs().max())
    looped, batched = measure(loop, given.device), measure(batch, given.device)
    name = torch.cuda.get_device_name() if given.device.startswith("cuda") else given.device
    print(f"{given.pairs} pairs, {given.shots} shot, {given.side} x {given.side} positions, 49 steps, {name}")
    print(f"loop     {1000 * looped / given.pairs:9.2f} ms a pair")
    print(
        f"batched  {1000 * batched / given.pairs:9.2f} ms a pair, {batched * TIER_1_PAIRS / given.pairs / 60:.1f} min"
    )
    print(f"         for all {TIER_1_PAIRS:,} pairs of tier 1, without encoding")
    print(f"largest difference of the classifiers {difference:.1e}")
    ratio = looped / batched
    wanted = f"target {TARGET:g} on a GPU: {'met' if ratio >= TARGET else 'missed'}"
    print(f"ratio    {ratio:9.2f}   {wanted if given.device.startswith('cuda') else 'no target on a processor'}")
    return int(given.device.startswith("cuda") and ratio < TARGET)


if __name__ == "__main__":
    sys.exit(main())
