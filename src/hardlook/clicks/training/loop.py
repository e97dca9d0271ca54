"""The training loop: epochs of KL against click maps, validated, saved, and continued where a run was killed.

A folder holds `clickability.safetensors` (the best network by SIM on validation), `last.safetensors` (the state after
the last epoch) and `history.jsonl`. Starting in a folder with a state goes on from it; on a processor the weights at
the end are those of a run that was never stopped, bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.clicks.training.divergence import kl_divergence
from hardlook.clicks.training.history import EpochRecord, append_epoch, cut_history
from hardlook.clicks.training.precision import autocast, chosen, scaler
from hardlook.clicks.training.samples import GridSamples, TrainingSample, epoch_flips, epoch_order, stacked
from hardlook.clicks.training.settings import TrainingSettings, learning_rate
from hardlook.clicks.training.state import Reached, load_state, save_state
from hardlook.clicks.training.validation import validate
from hardlook.errors import OptionError, RunError
from hardlook.extras import require
from hardlook.models.click_models.clickability.architecture import SEGNEXT_B, Architecture
from hardlook.models.click_models.clickability.checkpoint import NAME, load_backbone, save_checkpoint
from hardlook.models.click_models.clickability.network import build_network
from hardlook.randomness import generator

if TYPE_CHECKING:
    from torch import nn
    from torch.amp import GradScaler
    from torch.optim import Optimizer

BEST, LAST, HISTORY = NAME, "last.safetensors", "history.jsonl"


@dataclass(frozen=True)
class Trained:
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
) -> Trained:
    """Train a network on `training`, choose the best epoch on `validation`, and write both to `folder`.

    `backbone` is a file of MSCAN weights to start from (else random ones); `workers` threads prepare samples ahead
    and `keep` holds them in memory; `progress` is called after each epoch, when its state is on disk.
    """
    require("torch", extra="torch")
    settings = settings or TrainingSettings()
    if not training or not validation:
        raise OptionError(
            f"{len(training)} training and {len(validation)} validation samples", remedy="both need at least one"
        )
    network = build_network(architecture, settings.seed)
    if backbone is not None:
        load_backbone(network, backbone)
    network.to(device)
    optimizer = _adam(network, settings)
    kind = chosen(settings.precision, device)
    loss_scaler = scaler(kind, device)
    identity = {
        "settings": asdict(settings) | {"precision": kind},
        "architecture": architecture.to_json(),
        "training samples": len(training),
        "validation samples": len(validation),
    }
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / LAST
    reached = load_state(state, network, optimizer, identity) if state.is_file() else Reached()
    if reached.scaler:
        loss_scaler.load_state_dict(dict(reached.scaler))
    history = list(cut_history(folder / HISTORY, reached.epoch))
    shown = GridSamples(training, settings, workers=workers, keep=keep)
    judged = GridSamples(validation, settings, workers=workers, keep=keep)
    for epoch in range(reached.epoch + 1, settings.epochs + 1):
        start = time.perf_counter()
        loss, rate = _epoch(network, optimizer, loss_scaler, shown, settings, epoch, device=device, kind=kind)
        scores = validate(network, judged, device=device, batch=settings.batch)
        record = EpochRecord(epoch, rate, loss, scores, time.perf_counter() - start)
        better = scores["sim"] > reached.best_sim
        best = (scores["sim"], epoch) if better else (reached.best_sim, reached.best_epoch)
        # The state comes last: a run killed before it repeats the epoch and writes the same again.
        append_epoch(folder / HISTORY, record)
        if better:
            save_checkpoint(network, folder / BEST, architecture, size=settings.size)
        reached = Reached(epoch, *best, scaler=loss_scaler.state_dict() or None)
        save_state(state, network, optimizer, reached, identity)
        history.append(record)
        if progress:
            progress(record)
    return Trained(folder / BEST, reached.best_epoch, tuple(history))


def _epoch(
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
            images, masks, targets = (part.to(device, non_blocking=True) for part in stacked(group, flips[places]))
            rate = learning_rate(settings, (epoch - 1) * steps + step, settings.epochs * steps)
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
        raise RunError(
            f"the training diverged in epoch {epoch}: its loss is {mean}",
            remedy="take a lower lr, or bound the gradient with clip",
        )
    return mean, rate


def _adam(network: nn.Module, settings: TrainingSettings) -> Optimizer:
    import torch

    inside = [value for name, value in network.named_parameters() if name.startswith("backbone.")]
    outside = [value for name, value in network.named_parameters() if not name.startswith("backbone.")]
    groups = [{"params": inside, "factor": settings.backbone_rate}, {"params": outside, "factor": 1.0}]
    return torch.optim.Adam(groups, lr=settings.lr)
