"""The training loop: epochs of KL against click maps, each validated and saved, resumed where a run was stopped.

A folder holds `clickability.safetensors` (the best network by SIM on validation), `last.safetensors` (the state after
the last epoch) and `history.jsonl`. Training in a folder with a state resumes from it; on a processor the weights at
the end are those of a run that was never stopped, bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardlook.errors import OptionError, RunError
from hardlook.extras import require
from hardlook.metrics.click_maps import map_divergence, map_similarity, nss
from hardlook.models.torch_inference import exact_inference
from hardlook.networks.clickability import build_network, load_backbone, save_checkpoint
from hardlook.networks.segnext import SEGNEXT_B, Architecture
from hardlook.randomness import generator
from hardlook.rclicks.training.samples import GridSamples, TrainingSample, epoch_flips, epoch_order, stack_batch
from hardlook.rclicks.training.settings import Precision, TrainingSettings, compute_learning_rate
from hardlook.rclicks.training.state import (
    BEST,
    HISTORY,
    LAST,
    EpochRecord,
    TrainingProgress,
    append_epoch,
    cut_history,
    load_state,
    save_state,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from torch.amp import GradScaler
    from torch.optim import Optimizer

EPSILON = 1e-9


@dataclass(frozen=True)
class TrainingResult:
    """The best checkpoint, the epoch it is of, and all epochs."""

    checkpoint: Path
    best_epoch: int
    history: tuple[EpochRecord, ...]


def train(
    training: Sequence[TrainingSample],
    validation: Sequence[TrainingSample],
    folder: Path,
    settings: TrainingSettings | None = None,
    *,
    architecture: Architecture = SEGNEXT_B,
    backbone: Path | None = None,
    device: str = "cpu",
    workers: int = 0,
    keep: bool = False,
    progress: Callable[[EpochRecord], None] | None = None,
) -> TrainingResult:
    """Train a network on `training`, choose the best epoch on `validation`, and write both to `folder`.

    `backbone` is a file of MSCAN weights to start from (else random ones); `workers` threads prepare samples ahead
    and `keep` holds them in memory; `progress` is called after each epoch, when its state is on disk.
    """
    require("torch", extra="torch")
    from torch.amp import GradScaler

    settings = settings or TrainingSettings()
    if not training or not validation:
        what = f"{len(training)} training and {len(validation)} validation samples"
        raise OptionError(what, remedy="both need at least one")
    network = build_network(architecture, settings.seed)
    if backbone is not None:
        load_backbone(network, backbone)
    network.to(device)
    optimizer = _adam(network, settings)
    kind = choose_precision(settings.precision, device)
    # Does nothing unless the small gradients of float16 need it.
    loss_scaler = GradScaler(device.split(":")[0], enabled=kind == "float16")
    identity = {
        "settings": asdict(settings) | {"precision": kind},
        "architecture": architecture.to_json(),
        "training samples": len(training),
        "validation samples": len(validation),
    }
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / LAST
    reached = load_state(state, network, optimizer, identity) if state.is_file() else TrainingProgress()
    if reached.scaler:
        loss_scaler.load_state_dict(dict(reached.scaler))
    history = list(cut_history(folder / HISTORY, reached.epoch))
    samples = GridSamples(training, settings, workers=workers, keep=keep)
    held_out = GridSamples(validation, settings, workers=workers, keep=keep)
    for epoch in range(reached.epoch + 1, settings.epochs + 1):
        start = time.perf_counter()
        loss, rate = _train_epoch(network, optimizer, loss_scaler, samples, settings, epoch, device=device, kind=kind)
        scores = validate(network, held_out, device=device, batch=settings.batch)
        record = EpochRecord(epoch, rate, loss, scores, time.perf_counter() - start)
        better = scores["sim"] > reached.best_sim
        best = (scores["sim"], epoch) if better else (reached.best_sim, reached.best_epoch)
        # The state is written last: a run killed before it repeats the epoch and writes the same again.
        append_epoch(folder / HISTORY, record)
        if better:
            save_checkpoint(network, folder / BEST, architecture, size=settings.size)
        reached = TrainingProgress(epoch, *best, scaler=loss_scaler.state_dict() or None)
        save_state(state, network, optimizer, reached, identity)
        history.append(record)
        if progress:
            progress(record)
    return TrainingResult(folder / BEST, reached.best_epoch, tuple(history))


def _train_epoch(
    network: nn.Module,
    optimizer: Optimizer,
    loss_scaler: GradScaler,
    samples: GridSamples,
    settings: TrainingSettings,
    epoch: int,
    *,
    device: str,
    kind: str,
) -> tuple[float, float]:
    import torch

    order = epoch_order(settings.seed, epoch, len(samples))
    flips = epoch_flips(settings.seed, epoch, len(samples)) & settings.flip
    steps = -(-len(samples) // settings.batch)
    total = torch.zeros((), device=device)
    rate = settings.lr
    network.train()
    with torch.random.fork_rng(devices=[torch.device(device)] if device.startswith("cuda") else []):
        # What dropout and drop path leave out is drawn by seed and epoch.
        torch.manual_seed(int(generator(settings.seed, "clickability", "dropped", epoch).integers(2**62)))
        for step, group in enumerate(samples.batches(order, settings.batch)):
            places = order[step * settings.batch : step * settings.batch + len(group)]
            images, masks, targets = (part.to(device, non_blocking=True) for part in stack_batch(group, flips[places]))
            rate = compute_learning_rate(settings, (epoch - 1) * steps + step, settings.epochs * steps)
            for parameters in optimizer.param_groups:
                parameters["lr"] = rate * parameters["factor"]
            with autocast(kind, device):
                maps = network(images, masks)
            losses = kl_divergence(targets, maps)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss_scaler.scale(losses.mean()))
            if settings.clip is not None:
                loss_scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
            loss_scaler.step(optimizer)
            loss_scaler.update()
            total += losses.detach().sum()
    mean = float(total) / len(samples)
    if not math.isfinite(mean):
        what = f"the training diverged in epoch {epoch}: its loss is {mean}"
        raise RunError(what, remedy="take a lower lr, or bound the gradient with clip")
    return mean, rate


def _adam(network: nn.Module, settings: TrainingSettings) -> Optimizer:
    import torch

    inside = [value for name, value in network.named_parameters() if name.startswith("backbone.")]
    outside = [value for name, value in network.named_parameters() if not name.startswith("backbone.")]
    groups = [{"params": inside, "factor": settings.backbone_rate}, {"params": outside, "factor": 1.0}]
    return torch.optim.Adam(groups, lr=settings.lr)


def validate(network: nn.Module, samples: GridSamples, *, device: str, batch: int) -> dict[str, float]:
    """Means over the samples: `kl` in nats (lower is better), `sim` in [0, 1] and `nss` (higher is better).

    KL and SIM compare the whole map with the click map, NSS is of the clicks in the part that the image covers. The
    network runs in float32, as it will in a benchmark. A map that is 0 all over counts as uniform; one with values
    that are not finite is a `RunError`.
    """
    network.eval()
    rows: list[tuple[float, ...]] = []
    for group in samples.batches(range(len(samples)), batch):
        images, masks, _ = stack_batch(group, [False] * len(group))
        with exact_inference():
            maps = network(images.to(device), masks.to(device)).cpu().numpy()
        if not np.isfinite(maps).all():
            remedy = "a lower --lr, a bound by --clip, or --precision float32"
            raise RunError("the network's maps are not finite: the training has diverged", remedy=remedy)
        for sample, plane in zip(group, maps, strict=True):
            chances = plane if plane.sum() > 0 else np.ones_like(plane)
            inside = sample.box.content(chances)
            inside = inside if inside.sum() > 0 else np.ones_like(inside)
            fits = map_divergence(sample.target, chances), map_similarity(sample.target, chances)
            rows.append((*fits, nss(inside, sample.clicks)))
    return dict(zip(("kl", "sim", "nss"), np.mean(rows, axis=0).tolist(), strict=True))


def kl_divergence(target: Tensor, predicted: Tensor) -> Tensor:
    """(N,) KL(p || q) in nats of maps (N, H, W), each divided by its sum; 1e-9 keeps zeros finite.

    >>> import torch
    >>> p, q = torch.tensor([[[0.5, 0.5, 0.0, 0.0]]]), torch.ones(1, 1, 4)
    >>> round(float(kl_divergence(p, q)), 6)
    0.693147
    """
    import torch

    p = target / (target.sum((1, 2), keepdim=True) + EPSILON)
    q = predicted / (predicted.sum((1, 2), keepdim=True) + EPSILON)
    return (p * torch.log(EPSILON + p / (q + EPSILON))).sum((1, 2))


def choose_precision(precision: Precision, device: str) -> str:
    """What `auto` means on the device (float32, bfloat16 or float16), or the precision that was given.

    >>> choose_precision("auto", "cpu"), choose_precision("bfloat16", "cpu")
    ('float32', 'bfloat16')
    """
    import torch

    if not device.startswith("cuda"):
        if precision == "float16":
            raise OptionError("float16 trains on a GPU only", remedy="precision is float32 or bfloat16 here")
        return "float32" if precision == "auto" else precision
    if precision != "auto":
        return precision
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


def autocast(kind: str, device: str) -> torch.autocast:
    """The context in which the network is called."""
    import torch

    used = torch.float16 if kind == "float16" else torch.bfloat16
    return torch.autocast(torch.device(device).type, dtype=used, enabled=kind != "float32")
