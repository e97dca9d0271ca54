"""SAM ViT-H on a GPU: one image encoded once for all its clicks, against a loop that encodes it at every click.

Run `python benchmarks/rclicks_gpu.py` on a machine with a GPU (`--device cpu --small` tries the script without one).
Needs numpy, torch and transformers, nothing else. Weights are random: time does not depend on them. Everything is
float32 without TF32. The work is that of one instance of 1024 x 1024 pixels: the baseline and ten groups over 20
rounds (220 clicks, 11 at a time, each with the logits of the click before) and 97 first clicks of users. Times are
those between two events on the GPU, so they hold the GPU's pauses too, and everything from pixels to masks in the
processor's memory; the middle one of three passes for ours, one pass for the loop.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers

from hardlook.models.interactive.prompts import PromptPolicy
from hardlook.models.interactive.transformers_sam import open_sam_session
from hardlook.models.roles import Clicks, Prompted


@dataclass(frozen=True)
class Work:
    """One instance: so many trajectories of so many rounds, users' first clicks, and pixels along a side."""

    trajectories: int = 11
    rounds: int = 20
    users: int = 97
    side: int = 1024

    @property
    def clicks(self) -> int:
        """All of them."""
        return self.trajectories * self.rounds + self.users


LONGEST = 60.0
"""Seconds that the loop may take; beyond it a few clicks are measured and the rest is extrapolated."""
TARGET = 100
POLICY = PromptPolicy("always", previous=True)
HUGE = {
    "hidden_size": 1280,
    "num_hidden_layers": 32,
    "num_attention_heads": 16,
    "mlp_dim": 5120,
    "global_attn_indexes": [7, 15, 23, 31],
}
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "mlp_dim": 64,
    "global_attn_indexes": [3],
}


def build(device: str, small: bool, side: int) -> torch.nn.Module:
    vision = {**(SMALL if small else HUGE), "image_size": side}
    torch.manual_seed(0)
    config = transformers.SamConfig(vision_config=vision, prompt_encoder_config={"image_size": side})
    sam: Any = transformers.SamModel
    network: torch.nn.Module = sam(config).float().eval().requires_grad_(False).to(device)
    return network


def all_clicks(work: Work) -> tuple[list[list[Clicks]], list[Clicks]]:
    """The prompts of every round (rounds, trajectories), without states, and the users' first clicks."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, work.side, (work.trajectories, work.rounds, 2)).astype(np.float32)
    positive = rng.random((work.trajectories, work.rounds)) < 0.6
    rounds = [
        [Clicks(points[one, : done + 1], positive[one, : done + 1]) for one in range(work.trajectories)]
        for done in range(work.rounds)
    ]
    first = rng.integers(0, work.side, (work.users, 1, 2)).astype(np.float32)
    return rounds, [Clicks(one, np.array([True])) for one in first]


def with_states(prompts: list[Clicks], answers: list[Prompted] | None) -> list[Clicks]:
    if answers is None:
        return prompts
    return [Clicks(one.points, one.positive, a.state) for one, a in zip(prompts, answers, strict=True)]


def encoded_once(network: torch.nn.Module, image: np.ndarray, work: Work) -> list[np.ndarray]:
    rounds, users = all_clicks(work)
    session = open_sam_session(network, image, POLICY, batch=64)
    answers: list[Prompted] | None = None
    for prompts in rounds:
        answers = session.predict(with_states(prompts, answers))
    return [answer.mask for answer in [*(answers or []), *session.predict(users)]]


def encoded_always(network: torch.nn.Module, image: np.ndarray, work: Work, most: int) -> list[np.ndarray]:
    """The first `most` clicks in the same order, each with an encoding of its own; the last masks as above."""
    rounds, users = all_clicks(work)
    answers: list[Prompted] | None = None
    done = 0
    for prompts in rounds:
        following = []
        for prompt in with_states(prompts, answers):
            if done == most:
                return []
            following += open_sam_session(network, image, POLICY, batch=1).predict([prompt])
            done += 1
        answers = following
    masks = [answer.mask for answer in answers or []]
    for prompt in users:
        if done == most:
            return []
        masks.append(open_sam_session(network, image, POLICY, batch=1).predict([prompt])[0].mask)
        done += 1
    return masks


def seconds(call: Callable[[], list[np.ndarray]], device: str) -> tuple[float, list[np.ndarray]]:
    if not device.startswith("cuda"):
        start = time.perf_counter()
        result = call()
        return time.perf_counter() - start, result
    event: Any = torch.cuda.Event
    begin, end = (event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    result = call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000, result


def main() -> None:
    parser = argparse.ArgumentParser(description="SAM ViT-H: encoded once against encoded at every click.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a small encoder and little work, to try the script")
    chosen = parser.parse_args()
    device = chosen.device
    work = Work(trajectories=3, rounds=3, users=5, side=256) if chosen.small else Work()
    network = build(device, chosen.small, work.side)
    image = np.random.default_rng(1).integers(0, 256, (work.side, work.side, 3), dtype=np.uint8)
    encodings: list[int] = []
    network.get_submodule("vision_encoder").register_forward_hook(lambda *_: encodings.append(1))
    parameters = sum(value.numel() for value in network.parameters()) / 1e6
    where = torch.cuda.get_device_name() if device.startswith("cuda") else "the processor"
    print(f"{where}, torch {torch.__version__}, transformers {transformers.__version__}, {parameters:.0f} M parameters")
    encoded_once(network, image, work)  # warm-up: libraries load and memory is taken at the first call
    encodings.clear()
    runs = [seconds(lambda: encoded_once(network, image, work), device) for _ in range(3)]
    ours, masks = sorted(runs, key=lambda run: run[0])[1]
    per_image = len(encodings) / len(runs)
    print(f"encoded once: {ours:.3f} s for {work.clicks} clicks, {per_image:g} encodings of the image (target 1)")
    print("  runs: " + ", ".join(f"{run:.3f}" for run, _ in runs) + " s", flush=True)
    seconds(lambda: encoded_always(network, image, work, 1), device)
    few, _ = seconds(lambda: encoded_always(network, image, work, 3), device)
    whole = few / 3 * work.clicks <= LONGEST
    encodings.clear()
    measured = work.clicks if whole else 3
    theirs, others = seconds(lambda: encoded_always(network, image, work, measured), device)
    said = "measured" if whole else f"extrapolated from {measured} clicks"
    print(f"encoded at every click: {theirs / measured * work.clicks:.3f} s ({said}, {len(encodings)} encodings)")
    print(f"ratio: {theirs / measured * work.clicks / ours:.0f} (target {TARGET})")
    if others:
        apart = np.mean([np.mean(one != other) for one, other in zip(masks, others, strict=True)])
        print(f"last masks of both ways: {apart:.1e} of the pixels differ")
    if device.startswith("cuda"):
        print(f"memory of the GPU: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at most")
    heavy = [name for name in ("polars", "pydantic", "torchvision") if sys.modules.get(name)]
    print(f"of polars, pydantic and torchvision loaded: {', '.join(heavy) or 'none'}")


if __name__ == "__main__":
    main()
