"""A click of several courses of one object: through the network together, and one by one as published.

    python benchmarks/interactive_courses.py --device cuda
    python benchmarks/interactive_courses.py --family simpleclick --size vit_base --device cuda --precision bfloat16

One by one is the published way: the network as it is, one course after the other. Parameters are random, as time does
not depend on them. The courses' last masks are discs of different places and sizes, so that their crops differ. Prints
milliseconds per click of all courses, the ratio beside its target on a GPU, and how far the answers differ. On a
processor, where a batch gains nothing: --courses 2 --repeats 1 --size hrnet18s.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from hardlook.models.torch_inference import exact_inference
from hardlook.networks.interactive.checkpoints import FAMILIES, build_random
from hardlook.networks.interactive.gpu.inference import GpuOptions
from hardlook.networks.interactive.predictor_settings import PUBLISHED
from hardlook.networks.interactive.predictors import Course, CourseState, Predictor

WARM_UPS = 3  # at the third call with a shape a CUDA graph is recorded
TARGET = 5.0  # times as fast, eleven courses of RITM-HRNet18 in float32 or SimpleClick ViT-B in bfloat16 on a GPU


def make_courses(count: int, size: tuple[int, int], device: str) -> list[Course]:
    """Courses before their second click, their last masks discs of many sizes."""
    rng = np.random.default_rng(0)
    rows, columns = (torch.arange(length, device=device) for length in size)
    courses = []
    for _ in range(count):
        row, column = (float(rng.uniform(0.2, 0.8) * length) for length in size)
        radius = rng.uniform(0.1, 0.35) * min(size)
        # Discs are wider or higher, so that the crops have different shapes.
        stretch = rng.uniform(0.6, 1.6)
        distance = ((rows[:, None] - row) ** 2 + ((columns[None] - column) / stretch) ** 2).sqrt()
        state = CourseState(torch.sigmoid((radius - distance) / 4).float(), None, 1)
        clicks = [(int(row), int(column), True), (int(row), int(min(column + 2 * radius, size[1] - 1)), False)]
        courses.append(Course(clicks, state))
    return courses


def measure(
    predictor: Predictor,
    picture: np.ndarray,
    courses: list[Course],
    together: bool,
    repeats: int,
    args: argparse.Namespace,
) -> tuple[float, torch.Tensor]:
    """Milliseconds of a click of all courses (the median), and its probabilities."""
    opened = predictor.open(picture, device=args.device)
    times = []
    for _ in range(repeats + WARM_UPS):
        start = time.perf_counter()
        with exact_inference(args.precision):
            states = opened.predict(courses) if together else [opened.predict([one])[0] for one in courses]
            maps = torch.stack([state.probabilities for state in states]).cpu()
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times[WARM_UPS:])), maps


def main() -> None:
    """Measure and print one row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=sorted(FAMILIES), default="ritm")
    parser.add_argument("--size", default=None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32", "bfloat16"))
    parser.add_argument("--courses", type=int, default=11)
    parser.add_argument("--picture", type=int, nargs=2, default=(480, 640), metavar=("HEIGHT", "WIDTH"))
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    if args.device == "cpu" and args.precision != "float32":
        parser.error(f"--precision {args.precision} is for a GPU: pass --device cuda")
    torch.set_num_threads(1)
    network = build_random(args.family, args.size, seed=0).to(args.device)
    picture = np.random.default_rng(1).integers(0, 256, (*args.picture, 3), dtype=np.uint8)
    courses = make_courses(args.courses, tuple(args.picture), args.device)
    settings = PUBLISHED[args.family]
    one_by_one = Predictor(network, settings, batch=1, gpu=GpuOptions(enabled=False))
    batched = Predictor(network, settings, batch=args.courses, pad=True)
    alone, expected = measure(one_by_one, picture, courses, False, args.repeats, args)
    joined, found = measure(batched, picture, courses, True, args.repeats, args)
    flipped = ((expected > settings.threshold) != (found > settings.threshold)).float().mean()
    verdict = "on a GPU" if args.device == "cpu" else "met" if alone / joined >= TARGET else "missed"
    print(
        f"{args.family} {args.size or FAMILIES[args.family][1]}, {args.courses} courses, {args.precision} on "
        f"{args.device}: one by one {alone:.1f} ms, together {joined:.1f} ms, {alone / joined:.1f} times as fast "
        f"(target {TARGET:g}, {verdict}); "
        f"probabilities differ by {float((expected - found).abs().max()):.1e} at most, {100 * float(flipped):.4f} % of "
        "the masks' pixels"
    )


if __name__ == "__main__":
    main()
