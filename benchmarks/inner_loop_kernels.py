"""MAML's inner loop with tasks as an axis beside the same loop by torch.func, on a GPU, and where its time goes.

  python benchmarks/inner_loop_kernels.py
  python benchmarks/inner_loop_kernels.py --precision tf32 --tasks 4 --no-tiles

Conv64F at 84 pixels, 5 ways, 5 shots, 75 queries, 5 steps, second order. It prints how far loss and gradients of both
are from those of torch.func in float64; milliseconds of a training step (without an optimiser) and how much of it the
processor needs to start it; the kernels of a step; and milliseconds of every operation by block and by tiles.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from unittest import mock

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot import task_axis
from hardlook.networks.few_shot.maml import Maml
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.kernels.task_kernels import TILES, Tile, Tiles, TritonOperations
from hardlook.training.devices import arrange_network, multiplying_in

WAYS, SHOTS, QUERIES, SIDE = 5, 5, 75, 84
TYPES = {"bfloat16": torch.bfloat16, "tf32": torch.float32, "float32": torch.float32}
BLOCKS: dict[int, tuple[int, int, int]] = {1: (84, 32, 1), 2: (42, 64, 9), 3: (21, 64, 9), 4: (10, 64, 9)}
"""Side, channels of the input and taps."""
CONVOLVE = [Tile(64, 4, 3), Tile(128, 4, 2), Tile(128, 4, 3), Tile(128, 4, 4), Tile(128, 8, 3), Tile(256, 8, 3)]
WEIGH = [
    Tile(32, 4, 3),
    Tile(32, 4, 4),
    Tile(64, 4, 2),
    Tile(64, 4, 3),
    Tile(64, 8, 3),
    Tile(128, 4, 2),
    Tile(128, 8, 2),
]
WINDOWS = [8, 16, 32, 64]


def draw_episodes(tasks: int) -> Episodes:
    """Noise whose classes differ in their mean, so that there is something to adapt to."""
    random = torch.Generator("cuda").manual_seed(tasks)
    means = torch.randn(tasks, WAYS, 1, 3, SIDE, SIDE, device="cuda", generator=random)
    support, query = (
        means + torch.randn(tasks, WAYS, count, 3, SIDE, SIDE, device="cuda", generator=random)
        for count in (SHOTS, QUERIES // WAYS)
    )
    labels = torch.arange(WAYS, device="cuda").repeat_interleave(QUERIES // WAYS).expand(tasks, -1)
    return Episodes(support, query.flatten(1, 2), labels)


def build(precision: str) -> Maml:
    torch.manual_seed(0)
    network = Maml(build_backbone("conv64f"), channels=1600, ways=WAYS).cuda().train()
    arrange_network(network, torch.device("cuda"), precision)
    return network


@contextlib.contextmanager
def by_torch_func() -> Iterator[None]:
    """Without the kernels."""
    with mock.patch.object(task_axis, "choose_operations", lambda *given: None):
        yield


def step(network: Maml, episodes: Episodes, precision: str) -> tuple[Tensor, list[Tensor]]:
    """Loss and gradients."""
    network.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
        loss = network.loss(episodes)[0]
    torch.autograd.backward(loss)
    return loss.detach(), [one.grad for one in network.parameters() if one.grad is not None]


def measure(call: Callable[[], object], seconds: float = 0.05, warm: int = 2) -> float:
    """Milliseconds of a call on the GPU, the median of as many as fit into the seconds."""
    for _ in range(warm):
        call()
    torch.cuda.synchronize()
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < seconds:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        first.record()
        call()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last))
    return sorted(times)[len(times) // 2]


def measure_step(network: Maml, episodes: Episodes, precision: str, seconds: float) -> tuple[float, float]:
    """Milliseconds of a step, and until the processor has started all of it."""
    for _ in range(2):
        step(network, episodes, precision)
    torch.cuda.synchronize()
    whole: list[float] = []
    started: list[float] = []
    start = time.perf_counter()
    while len(whole) < 2 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        step(network, episodes, precision)
        started.append(time.perf_counter() - before)
        torch.cuda.synchronize()
        whole.append(time.perf_counter() - before)
    return 1e3 * sorted(whole)[len(whole) // 2], 1e3 * sorted(started)[len(started) // 2]


def compare_values(precisions: list[str]) -> None:
    """Losses and gradients of two tasks beside those of torch.func in float64."""
    episodes = draw_episodes(2)
    wide = Episodes(episodes.support.double(), episodes.query.double(), episodes.labels)
    with by_torch_func():
        loss, exact = step(build("float32").double(), wide, "float32")
    print(f"loss in float64 {float(loss):.6f}; of it and of the gradients (all together, the worst parameter) differ:")
    for name in precisions:
        for way, context in (("torch.func", by_torch_func()), ("kernels", contextlib.nullcontext())):
            with multiplying_in(name), context:
                other, found = step(build(name), episodes, name)
            pairs = [(a.double(), b) for a, b in zip(found, exact, strict=True) if b.abs().max() > 1e-12]
            apart = sum(float((a - b).square().sum()) for a, b in pairs) / sum(
                float(b.square().sum()) for _, b in pairs
            )
            worst = max(float((a - b).norm() / b.norm()) for a, b in pairs)
            print(f"  {name:9s} {way:11s} {abs(float(other - loss)):.1e} {apart**0.5:.1e} {worst:.1e}", flush=True)


def compare_times(precision: str, tasks: int, old: bool) -> None:
    """A step of both ways, and the kernels of ours."""
    network, episodes = build(precision), draw_episodes(tasks)
    torch.cuda.reset_peak_memory_stats()
    whole, started = measure_step(network, episodes, precision, 1.5)
    memory = torch.cuda.max_memory_allocated() / 2**30
    print(
        f"{tasks} tasks: kernels {whole:.1f} ms ({tasks / whole * 1e3:.0f} tasks/s), started in {started:.1f} ms",
        end="",
    )
    print(f", {memory:.1f} GiB", end="", flush=True)
    if old:
        with by_torch_func():
            before, _ = measure_step(network, episodes, precision, 0)
        print(f"; torch.func {before:.1f} ms ({tasks / before * 1e3:.0f} tasks/s): {before / whole:.1f} times", end="")
    print(flush=True)
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        step(network, episodes, precision)
        torch.cuda.synchronize()
    rows = [(one.key, one.count, one.self_device_time_total / 1e3) for one in seen.key_averages()]
    rows = sorted((one for one in rows if one[2] > 0), key=lambda one: -one[2])
    print(f"  {sum(one[1] for one in rows)} kernels, {sum(one[2] for one in rows):.1f} ms of the GPU, of these")
    for name, count, spent in rows[:16]:
        print(f"  {spent:8.2f} ms {count:5d} {name[:90]}")


def list_calls(operations: TritonOperations, tasks: int, number: int, images: int) -> dict[str, Callable[[], object]]:
    """Every operation of a block, on noise."""
    side, inputs, taps = BLOCKS[number]
    rows = torch.randn(tasks, taps * inputs * 64 + 128, device="cuda")
    weight = rows[:, :-128].view(tasks, taps, inputs, 64).to(operations.dtype)
    norm, sums = rows[:, -128:].view(tasks, 2, 64), torch.empty_like(rows)[:, -128:].view(tasks, 2, 64)
    result = torch.empty_like(rows)[:, :-128].view(tasks, taps, inputs, 64)
    maps = torch.randn(tasks, images, side, side, inputs, device="cuda").to(operations.dtype)
    moves = maps if taps == 9 else None
    block = operations.run(maps, weight, norm, 1e-5, 0.0)
    gradient = torch.randn_like(block.pooled)
    moved = operations.go_back(block, gradient, 0.0, sums)
    tangent = operations.run_tangent(block, moves, weight, weight, norm, 0.0)
    calls: dict[str, Callable[[], object]] = {
        "run": lambda: operations.run(maps, weight, norm, 1e-5, 0.0),
        "back": lambda: operations.go_back(block, gradient, 0.0, sums),
        "weigh": lambda: operations.weigh(maps, moved, result),
        "run'": lambda: operations.run_tangent(block, moves, weight, weight, norm, 0.0),
        "back'": lambda: operations.go_back_tangent(block, tangent, gradient, norm, 0.0, sums, sums),
        "weigh'": lambda: operations.weigh_tangent(block, moves, moved, result),
    }
    if taps == 9:
        calls["transpose"] = lambda: operations.transpose(moved, weight)
        calls["transpose'"] = lambda: operations.transpose_tangent(block, moved, weight, weight)
    else:
        pictures = torch.randn(tasks, images, 3, side, side, device="cuda")
        calls["patches"] = lambda: operations.cut_patches(pictures)
    return calls


def print_operations(precision: str, tasks: int) -> None:
    """Milliseconds by block."""
    operations = TritonOperations(TYPES[precision], "tf32" if precision == "tf32" else "ieee")
    for images in (WAYS * SHOTS, QUERIES):
        print(f"{tasks} tasks of {images} images, ms by block:")
        for number in BLOCKS:
            calls = list_calls(operations, tasks, number, images)
            found = {name: measure(call, 0.02) for name, call in calls.items() if images < QUERIES or "'" not in name}
            print(f"  {number}", "  ".join(f"{name} {spent:.3f}" for name, spent in found.items()), flush=True)


def print_tiles(precision: str, tasks: int) -> None:
    """Milliseconds of the operations of blocks 1 and 2 by tiles; what does not compile is left out."""
    own = TILES[TYPES[precision]]
    tried = [("convolve", one, Tiles(one, own.weigh, own.windows)) for one in CONVOLVE]
    tried += [("weigh", one, Tiles(own.convolve, one, own.windows)) for one in WEIGH]
    tried += [("windows", one, Tiles(own.convolve, own.weigh, one)) for one in WINDOWS]  # type: ignore[misc]
    wanted = {"convolve": ("run", "run'", "transpose", "transpose'"), "weigh": ("weigh", "weigh'")}
    wanted["windows"] = ("run", "run'", "back", "back'")
    for kind, tile, tiles in tried:
        operations = TritonOperations(TYPES[precision], "tf32" if precision == "tf32" else "ieee", tiles)
        found = []
        for number in (1, 2):
            try:
                calls = list_calls(operations, tasks, number, WAYS * SHOTS)
                names = [name for name in wanted[kind] if name in calls]
                found += [f"{number}.{name} {measure(calls[name], 0.01):.3f}" for name in names]
            except Exception as error:
                found.append(f"{number}: {type(error).__name__}")
        print(f"  {tasks} tasks, {kind} {tile}: " + "  ".join(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", default="bfloat16", choices=TYPES, help="(%(default)s)")
    parser.add_argument("--tasks", default="4,32", help="of a step (%(default)s)")
    parser.add_argument("--old", default="4,32", help="tasks of a step for which torch.func is measured (%(default)s)")
    parser.add_argument("--values", default="bfloat16,tf32", help="precisions whose values are compared (%(default)s)")
    parser.add_argument("--no-tiles", action="store_true", help="without the comparison of tiles")
    given = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__)
    network, start = build(given.precision), time.perf_counter()
    with torch.autocast("cuda", torch.bfloat16, enabled=given.precision == "bfloat16"), multiplying_in(given.precision):
        operations = task_axis.choose_operations(network, network.emb_func, draw_episodes(1).query)  # type: ignore[arg-type]
    print("kernels compiled" if operations else "NO KERNELS", f"in {time.perf_counter() - start:.1f} s", flush=True)
    if operations is None:
        TritonOperations(TYPES[given.precision]).cut_patches(draw_episodes(1).query)
        list_calls(TritonOperations(TYPES[given.precision]), 1, 2, 1)
    if given.values:
        compare_values(given.values.split(","))
        print(f"  after {time.perf_counter() - start:.1f} s")
    many = [int(one) for one in given.tasks.split(",")]
    with multiplying_in(given.precision):
        for tasks in many:
            compare_times(given.precision, tasks, str(tasks) in given.old.split(","))
        for tasks in many:
            print_operations(given.precision, tasks)
            if not given.no_tiles:
                print_tiles(given.precision, tasks)


if __name__ == "__main__":
    main()
