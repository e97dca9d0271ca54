"""SAM ViT-H on a GPU: one image encoded once for all its clicks, against a loop that encodes it at every click.

Run `python benchmarks/rclicks_gpu.py` on a machine with a GPU (`--device cpu --small` tries the script without one).
Needs numpy, torch and transformers, nothing else. Weights are random, of the size of trained ones: time does not depend
on their values. The loop is the published way with the plain network in float32 without TF32. Ours is measured in
`float32` without TF32; `split`, the same with large products computed from three of half precision, as it runs by
default; in `tf32` and in `bfloat16`. The error of each, against the network in float64, is that of the encoded image
and that of masks' logits (of users' clicks, once alone and once with the logits of an earlier mask). The work is that
of one instance of 1024 x 1024 pixels: the baseline and ten groups over 20 rounds (220 clicks, 11 at once, each with the
logits of the click before) and 97 first clicks of users. Times are those between two events on the GPU, so they hold
the GPU's pauses too, and everything from pixels to masks in the processor's memory; the middle one of five passes for
ours, one pass for the loop (`--skip-published` leaves it out).
"""

import argparse
import copy
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import transformers

from hardlook.models.interactive.prompts import PromptPolicy
from hardlook.models.interactive.sam_frame import SamFrame
from hardlook.models.interactive.sam_session import SamSession, decode_prompts
from hardlook.models.interactive.transformers_sam import SamNetwork
from hardlook.models.roles import Clicks, Prompted
from hardlook.models.torch_inference import Precision, exact_inference
from hardlook.networks.kernels import fused_layers, split_products


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


LONGEST = 120.0
"""Seconds that the loop may take; beyond it a few clicks are measured and the rest is extrapolated."""
TARGET = 300
PASSES = 5
ROWS: dict[str, tuple[Precision, bool]] = {
    "float32": ("float32", False),
    "split": ("float32", True),
    "tf32": ("tf32", False),
    "bfloat16": ("bfloat16", False),
}
"""What is measured of ours: the precision, and whether products are split."""
POLICY = PromptPolicy("always", previous=True)
# By default transformers draws the encoder's weights with a deviation of 1e-10: all products would be zero.
SIZE = {"initializer_range": 0.02}
HUGE = {
    **SIZE,
    "hidden_size": 1280,
    "num_hidden_layers": 32,
    "num_attention_heads": 16,
    "mlp_dim": 5120,
    "global_attn_indexes": [7, 15, 23, 31],
}
SMALL = {
    **SIZE,
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


@dataclass(frozen=True)
class PlainImage:
    """An image encoded by the network as transformers has it, without CUDA graphs or replaced layers."""

    network: Any
    frame: SamFrame
    embeddings: Any
    positions: Any

    @property
    def scale(self) -> tuple[float, float]:
        """As in `EncodedImage`, like the methods below."""
        return self.frame.scale

    def decode(self, points: Any, labels: Any, boxes: Any, previous: Any, several: bool) -> tuple[Any, Any]:
        """Logits and predicted IoUs."""
        return decode_prompts(self.network, self.embeddings, self.positions, points, labels, boxes, previous, several)

    def prepare_state(self, logits: Any) -> Any:
        """The logits."""
        return logits

    def enlarge(self, logits: Any) -> Any:
        """Logits at the image's size."""
        return self.frame.enlarge(logits)


def open_plain(network: Any, image: np.ndarray) -> SamSession:
    """A session on an image that is encoded for it."""
    frame = SamFrame.from_image(image, int(network.prompt_encoder.input_image_size))
    with exact_inference():
        pixels = torch.from_numpy(frame.prepare_image(image))[None].to(network.device)
        encoded = network.vision_encoder(pixels).last_hidden_state
        plain = PlainImage(network, frame, encoded, network.get_image_wide_positional_embeddings())
    return SamSession(plain, POLICY, str(network.device), 1)


def encoded_once(network: SamNetwork, image: np.ndarray, work: Work) -> list[np.ndarray]:
    rounds, users = all_clicks(work)
    session = network.open(image, POLICY, batch=128)
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
            following += open_plain(network, image).predict([prompt])
            done += 1
        answers = following
    masks = [answer.mask for answer in answers or []]
    for prompt in users:
        if done == most:
            return []
        masks.append(open_plain(network, image).predict([prompt])[0].mask)
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


def prepare_pixels(network: Any, image: np.ndarray) -> torch.Tensor:
    frame = SamFrame.from_image(image, int(network.prompt_encoder.input_image_size))
    return frame.prepare_tensor(image, str(network.device))


@dataclass(frozen=True)
class Exact:
    """The image and the logits of all masks of some clicks (P, 3, h, w) in float64; then those with `previous` ones."""

    encoded: torch.Tensor
    points: torch.Tensor
    labels: torch.Tensor
    previous: torch.Tensor
    logits: list[torch.Tensor]


def compute_exactly(network: Any, image: np.ndarray, work: Work, most: int = 11) -> Exact:
    """In float64; what that takes of the GPU's memory is given back."""
    exact = copy.deepcopy(network).double()
    users = all_clicks(work)[1][:most]
    points = torch.from_numpy(np.stack([one.points for one in users])).to(network.device)
    labels = torch.ones(points.shape[:2], dtype=torch.int64, device=network.device)
    with torch.inference_mode():
        encoded = exact.vision_encoder(prepare_pixels(network, image).double()).last_hidden_state
        positions = exact.get_image_wide_positional_embeddings()
        decode = partial(decode_prompts, exact, encoded, positions, points.double(), labels, None)
        logits, _ = decode(None, True)
        previous = logits[:, :1].float()
        again, _ = decode(previous.double(), True)
    del exact, decode
    if encoded.is_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return Exact(encoded, points, labels, previous, [logits, again])


def measure_errors(network: SamNetwork, image: np.ndarray, exact: Exact) -> tuple[float, float]:
    """Lengths of differences from the exact numbers, of these numbers' length: of the image, and of logits."""
    with exact_inference(network.precision):
        encoded = network.encoder(prepare_pixels(network.network, image)).last_hidden_state
        found = [
            network.decode(encoded, (), exact.points, exact.labels, None, previous, True)[0]
            for previous in (None, exact.previous)
        ]
    logits = torch.cat(exact.logits)
    of_image = (encoded.double() - exact.encoded).norm() / exact.encoded.norm()
    return float(of_image), float((torch.cat(found).double() - logits).norm() / logits.norm())


def measure_published(
    network: torch.nn.Module, image: np.ndarray, work: Work, device: str, most: int | None, encodings: list[int]
) -> tuple[float, list[np.ndarray]]:
    """Seconds of the loop, of all clicks or for all by those measured, and the last masks of all clicks."""
    seconds(lambda: encoded_always(network, image, work, 1), device)
    few, _ = seconds(lambda: encoded_always(network, image, work, 3), device)
    measured = work.clicks if few / 3 * work.clicks <= LONGEST else 3
    if most is not None:
        measured = min(measured, max(1, most))
    encodings.clear()
    theirs, others = seconds(lambda: encoded_always(network, image, work, measured), device)
    theirs *= work.clicks / measured
    how = "measured" if measured == work.clicks else f"extrapolated from {measured} clicks"
    print(f"encoded at every click, float32: {theirs:.3f} s ({how}, {len(encodings)} encodings)", flush=True)
    return theirs, others


def main() -> None:
    parser = argparse.ArgumentParser(description="SAM ViT-H: encoded once against encoded at every click.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a small encoder and little work, to try the script")
    parser.add_argument("--precisions", nargs="+", choices=ROWS, help="rows to measure (all; on a processor float32)")
    parser.add_argument("--clicks-of-loop", type=int, metavar="N", help="measure at most N clicks of the slow loop")
    parser.add_argument("--skip-published", action="store_true", help="leave the slow loop out, and the ratios")
    chosen = parser.parse_args()
    device = chosen.device
    names = chosen.precisions or (list(ROWS) if device.startswith("cuda") else ["float32"])
    work = Work(trajectories=3, rounds=3, users=5, side=256) if chosen.small else Work()
    network = build(device, chosen.small, work.side)
    image = np.random.default_rng(1).integers(0, 256, (work.side, work.side, 3), dtype=np.uint8)
    encodings: list[int] = []
    network.get_submodule("vision_encoder").register_forward_hook(lambda *_: encodings.append(1))
    parameters = sum(value.numel() for value in network.parameters()) / 1e6
    where = torch.cuda.get_device_name() if device.startswith("cuda") else "the processor"
    print(f"{where}, torch {torch.__version__}, transformers {transformers.__version__}, {parameters:.0f} M parameters")
    device_of_network = next(network.parameters()).device
    for kernels, module in (("split products", split_products), ("the decoder's steps", fused_layers)):
        print(f"kernels of {kernels}: {'none' if module.find_kernels(device_of_network) is None else 'yes'}")
    theirs, others = None, None
    if not chosen.skip_published:
        theirs, others = measure_published(network, image, work, device, chosen.clicks_of_loop, encodings)
    exact = compute_exactly(network, image, work)
    for name in names:
        precision, split = ROWS[name]
        ours = SamNetwork(network, precision, split_products=split)
        of_image, of_logits = measure_errors(ours, image, exact)
        for _ in range(4):  # libraries load, memory is taken, and graphs are recorded
            encoded_once(ours, image, work)
        encodings.clear()
        times = []
        for _ in range(PASSES):
            taken, masks = seconds(partial(encoded_once, ours, image, work), device)
            times.append(taken)
        middle = sorted(times)[PASSES // 2]
        per_image = len(encodings) / PASSES
        print(f"encoded once, {name}: {middle:.3f} s for {work.clicks} clicks, {per_image:g} encodings (target 1)")
        print("  passes: " + ", ".join(f"{one:.3f}" for one in times) + " s")
        if theirs is not None:
            print(f"  ratio: {theirs / middle:.0f}" + (f" (target {TARGET})" if precision == "float32" else ""))
        print(f"  error against float64: {of_image:.1e} of the image, {of_logits:.1e} of the logits", flush=True)
        if others and precision == "float32":  # random weights: rounded logits near 0 say nothing of real masks
            apart = np.mean([np.mean(one != other) for one, other in zip(masks, others, strict=True)])
            print(f"  last masks of both ways: {apart:.1e} of the pixels differ")
    if device.startswith("cuda"):
        print(f"memory of the GPU: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at most")
    heavy = [name for name in ("polars", "pydantic", "torchvision") if sys.modules.get(name)]
    print(f"of polars, pydantic and torchvision loaded: {', '.join(heavy) or 'none'}")


if __name__ == "__main__":
    main()
