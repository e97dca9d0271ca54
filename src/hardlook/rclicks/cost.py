"""What an interactive segmenter or a click model costs: time per image and per click, memory, parameters, FLOPs.

Times are those of one prompt per call, with everything from the image's bytes to the mask in main memory. FLOPs are
counted by torch (two per multiplication and addition), for networks in torch only.

>>> from hardlook.models.planted.disc import Disc
>>> cost = measure_cost(Disc(), "promptable-segmenter", size=(64, 48), images=2, clicks=3)
>>> cost.parameters, cost.click_flops, cost.opening.count, cost.click.count
(None, None, 2, 6)
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from hardlook.errors import OptionError
from hardlook.harness.published import PublishedTable
from hardlook.harness.sections import Table
from hardlook.models.answer_checks import CheckedSession
from hardlook.models.roles import Clicks, Image, Mask
from hardlook.randomness import generator
from hardlook.rclicks.published import published_numbers
from hardlook.rclicks.time_to_mask import COST_SCHEMA
from hardlook.report.formatting import format_count
from hardlook.report.text_tables import format_table
from hardlook.world.planted import PlantedWorld

if TYPE_CHECKING:
    from torch import nn

    from hardlook.models.named_model import NamedModel

ROLES = ("promptable-segmenter", "click-model")
DEPTH = 5  # attributes of attributes of a model that are searched for networks
_STATUS = Path("/proc/self/status")
_CLEAR_PEAK = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Milliseconds:
    """The mean and the standard deviation (with n - 1; 0 of a single one) of `count` measured times."""

    mean: float
    std: float
    count: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Milliseconds:
        """The summary of times in seconds.

        >>> Milliseconds.of([0.001, 0.003])
        Milliseconds(mean=2.0, std=1.41..., count=2)
        """
        times = [1000 * one for one in seconds]
        return cls(statistics.fmean(times), statistics.stdev(times) if len(times) > 1 else 0.0, len(times))


@dataclass(frozen=True)
class Cost:
    """The cost of a model on images of `width` x `height` pixels, `clicks` clicks each.

    `opening` is the time per image before the first click (of a click model 0), `first_mask` opening and first click
    together, as in the paper's Table 5, `click` the time of a click. `peak_memory` in bytes: on a GPU the most that
    torch had allocated, else the most resident memory of the process, libraries included. `parameters` and the FLOPs
    are None where the model is not a network in torch.
    """

    role: str
    device: str
    machine: str
    threads: int | None
    width: int
    height: int
    images: int
    clicks: int
    opening: Milliseconds
    click: Milliseconds
    first_mask: Milliseconds
    peak_memory: int
    parameters: int | None
    opening_flops: int | None
    click_flops: int | None


def measure_cost(
    model: Any,
    role: str,
    *,
    size: tuple[int, int] = (640, 480),
    images: int = 5,
    clicks: int = 10,
    threads: int | None = None,
    seed: int = 0,
) -> Cost:
    """Open `images` images of `size` (width, height) and click on each so often; one image before them warms up.

    FLOPs are counted on the image that warms up. `threads` is what the caller has set, for the record.
    """
    if role not in ROLES:
        raise OptionError(f"the cost of a {role} is not measured", remedy=f"a model of the role {' or '.join(ROLES)}")
    if images < 1 or clicks < 1:
        raise OptionError(f"{images} images with {clicks} clicks each", remedy="at least one of both")
    networks = list(find_networks(model))
    device = str(getattr(model, "device", "cpu"))
    scenes = _make_scenes(size, images + 1, seed)
    open_image = _open_session if role == "promptable-segmenter" else _open_click_model
    opened: list[float] = []
    first: list[float] = []
    clicked: list[float] = []
    flops: tuple[int, list[int]] = (0, [])
    _reset_peak_memory(device)
    for number, (image, target) in enumerate(scenes):
        if number == 0:
            flops = _count_flops(model, open_image, image, target, clicks, bool(networks))
            continue
        start = time.perf_counter()
        answer = open_image(model, image, target)
        _synchronize(device)
        opened.append(time.perf_counter() - start)
        for click in _make_clicks(target, clicks, seed, number):
            start = time.perf_counter()
            answer(*click)
            _synchronize(device)
            clicked.append(time.perf_counter() - start)
        first.append(opened[-1] + clicked[-clicks])
    counted = bool(networks) and (flops[0] > 0 or any(flops[1]))
    return Cost(
        role=role,
        device=device,
        machine=describe_machine(device),
        threads=threads,
        width=size[0],
        height=size[1],
        images=images,
        clicks=clicks,
        opening=Milliseconds.of(opened if role == "promptable-segmenter" else [0.0] * images),
        click=Milliseconds.of(clicked),
        first_mask=Milliseconds.of(first),
        peak_memory=_read_peak_memory(device),
        parameters=count_parameters(networks) if networks else None,
        opening_flops=flops[0] if counted else None,
        click_flops=round(statistics.fmean(flops[1])) if counted else None,
    )


Answer = Callable[[np.ndarray, np.ndarray], None]


def _open_session(model: Any, image: Image, target: Mask) -> Answer:
    session, states = CheckedSession(model, image), [None]

    def answer(points: np.ndarray, positive: np.ndarray) -> None:
        (answered,) = session.predict([Clicks(points, positive, states[-1])])
        states.append(answered.state)

    return answer


def _open_click_model(model: Any, image: Image, target: Mask) -> Answer:
    def answer(points: np.ndarray, positive: np.ndarray) -> None:
        # The error shrinks with the clicks, so that no map is that of the call before.
        error = target.copy()
        error[tuple(points.astype(int)[:, ::-1].T)] = False
        model.click_map(image, target, error if error.any() else target, True)

    return answer


def _count_flops(
    model: Any, open_image: Callable[..., Answer], image: Image, target: Mask, clicks: int, torch_model: bool
) -> tuple[int, list[int]]:
    """FLOPs of opening an image and of each click. The first calls of a network, which no CUDA graph replays yet."""
    answers: list[Answer] = []
    opening = count_flops(lambda: answers.append(open_image(model, image, target)), torch_model)
    steps = [
        count_flops(lambda click=click: answers[0](*click), torch_model)  # type: ignore[misc]
        for click in _make_clicks(target, clicks, 0, 0)
    ]
    return opening, steps


def count_flops(function: Callable[[], object], torch_model: bool = True) -> int:
    """The floating-point operations of torch in one call, two per multiplication and addition; 0 without torch.

    >>> import torch
    >>> layer = torch.nn.Linear(10, 7, bias=False)
    >>> count_flops(lambda: layer(torch.zeros(3, 10)))
    420
    """
    if not torch_model:
        function()
        return 0
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    # Torch's counter knows the fused attention of GPUs only.
    on_processor = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _count_attention}
    with FlopCounterMode(display=False, custom_mapping=on_processor) as counter:
        function()
    return int(counter.get_total_flops())


def _count_attention(query: Sequence[int], key: Sequence[int], value: Sequence[int], *_: Any, **__: Any) -> int:
    """FLOPs of attention by shapes (B, heads, N, C): queries times keys, then shares times values."""
    batch, heads, count, width = query
    return 2 * batch * heads * count * key[2] * (width + value[3])


def find_networks(model: Any) -> Iterator[nn.Module]:
    """The torch networks that a model holds, in its attributes and theirs; none while torch is not loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    seen: set[int] = set()
    level = [model]
    for _ in range(DEPTH):
        following: list[Any] = []
        for one in level:
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, torch.nn.Module):
                yield one
            elif isinstance(one, Mapping):
                following += one.values()
            elif isinstance(one, list | tuple | set):
                following += one
            elif hasattr(one, "__dict__") and not isinstance(one, type | type(sys)):
                following += vars(one).values()
        level = following


def count_parameters(networks: Sequence[nn.Module]) -> int:
    """The parameters of networks, each counted once, also where two networks share it."""
    layers = [module for network in networks for module in network.modules()]
    # A faster layer that has its weights in another form names the one that it replaces.
    replaced = [one for layer in layers for one in getattr(layer, "replaced_layers", ())]
    return sum({id(one): one.numel() for part in (*networks, *replaced) for one in part.parameters()}.values())


def _make_scenes(size: tuple[int, int], count: int, seed: int) -> list[tuple[Image, Mask]]:
    """Scenes of the planted world, resized, with the object to be clicked on."""
    width, height = size
    if width < 8 or height < 8:
        raise OptionError(f"--size {width}x{height} is too small", remedy="at least 8x8")
    world = PlantedWorld(seed=seed, count=count)
    scenes = []
    for scene in (world[index] for index in range(count)):
        target = cv2.resize(scene.target_mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
        image = np.asarray(cv2.resize(scene.image, size, interpolation=cv2.INTER_LINEAR), np.uint8)
        scenes.append((image, target if target.any() else np.ones((height, width), bool)))
    return scenes


def _make_clicks(target: Mask, count: int, seed: int, image: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Prompts of 1 to `count` clicks, points (n, 2) and positive (n,): on the object and around it, by turns."""
    random = generator(seed, "rclicks", "cost", image)
    outside = target if target.all() else ~target
    points: list[tuple[int, int]] = []
    for number in range(count):
        rows, columns = np.nonzero(target if number % 2 == 0 else outside)
        chosen = int(random.integers(len(rows)))
        points.append((int(columns[chosen]), int(rows[chosen])))
        yield np.array(points, np.float32), np.arange(number + 1) % 2 == 0


def _synchronize(device: str) -> None:
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def _reset_peak_memory(device: str) -> None:
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats(device)
    elif _CLEAR_PEAK.exists():
        try:
            _CLEAR_PEAK.write_text("5")
        except OSError:
            return  # where this is forbidden, the peak since the start of the process is all that is known


def _read_peak_memory(device: str) -> int:
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    if _STATUS.exists():
        stated = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
        return 1024 * int(stated["VmHWM"].split()[0])
    import resource  # absent on Windows

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def describe_machine(device: str) -> str:
    """The name of the GPU, or of the processor."""
    if device.startswith("cuda"):
        import torch

        return str(torch.cuda.get_device_name(device))
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text(encoding="utf-8", errors="replace").splitlines() if cpus.exists() else []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return named or platform.processor() or platform.machine()


def parse_size(text: str) -> tuple[int, int]:
    """Width and height from a text such as 640x480.

    >>> parse_size("640x480")
    (640, 480)
    """
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise OptionError(f"--size {text} is not a size", remedy="WIDTHxHEIGHT in pixels, such as 640x480")
    return int(width), int(height)


def make_document(named: NamedModel, cost: Cost) -> dict[str, Any]:
    """The cost of a model as JSON values, with the model's identity and the published costs of others."""
    return {
        "schema": COST_SCHEMA,
        "model": named.facts(),
        "cost": asdict(cost),
        "published": [dict(zip(_read_table_5().columns, row, strict=True)) for row in _read_table_5().rows],
    }


def describe_cost(named: NamedModel, cost: Cost) -> str:
    """The cost in words, and a table of the paper's columns with the published rows."""
    where = f"{cost.device} ({cost.machine}" + (f", {format_count(cost.threads, 'thread')})" if cost.threads else ")")
    whose = "torch's on the GPU" if cost.device.startswith("cuda") else "the process, libraries included"
    rows = [
        ("opening an image", f"{_format_time(cost.opening)}, {_format_flops(cost.opening_flops)}"),
        ("a click", f"{_format_time(cost.click)}, {_format_flops(cost.click_flops)}"),
        ("opening and first click", _format_time(cost.first_mask)),
        ("peak memory", f"{cost.peak_memory / 1e9:.3f} GB ({whose})"),
        ("parameters", "unknown" if cost.parameters is None else f"{cost.parameters / 1e6:.2f} M"),
    ]
    if cost.role == "click-model":
        rows = [("a click map" if what == "a click" else what, text) for what, text in rows if "opening" not in what]
    lines = [
        f"{named.identity.name} on {where}: {format_count(cost.images, 'image')} of {cost.width}x{cost.height}, "
        f"{format_count(cost.clicks, 'click')} on each",
        *(f"  {what:<24} {text}" for what, text in rows),
    ]
    published = _read_table_5()
    own = (named.identity.name, *_convert_to_table_5(cost))
    table = Table("", "", published.columns, [own, *published.rows], 3)
    note = (
        f"{published.title}. There, ms is one whole pass at the network's own input size on the authors' GPU; here it "
        "is opening and first click. FLOPs here are torch's count, two per multiplication and addition; the paper "
        "does not name its counter."
    )
    return "\n".join([*lines, "", format_table(table, "markdown").rstrip(), "", note])


def _read_table_5() -> PublishedTable:
    return published_numbers().tables["table-5"]


def _convert_to_table_5(cost: Cost) -> tuple[float | str, ...]:
    """Parameters, FLOPs, memory, time and its spread, height and width, in the units of Table 5."""
    flops = None if cost.click_flops is None else (cost.opening_flops or 0) + cost.click_flops
    return (
        "unknown" if cost.parameters is None else round(cost.parameters / 1e6, 2),
        "unknown" if flops is None else round(flops / 1e9, 1),
        round(cost.peak_memory / 1e9, 3),
        round(cost.first_mask.mean, 1),
        round(cost.first_mask.std, 1),
        cost.height,
        cost.width,
    )


def _format_time(times: Milliseconds) -> str:
    return f"{times.mean:.1f} ms (standard deviation {times.std:.1f}, n {times.count})"


def _format_flops(flops: int | None) -> str:
    return "FLOPs unknown" if flops is None else f"{flops / 1e9:.1f} GFLOPs"
