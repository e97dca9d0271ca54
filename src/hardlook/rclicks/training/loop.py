"""Training a clickability network: epochs of KL against click maps, on the loop of `hardlook.training`.

A folder holds `clickability.safetensors` (the best network by SIM on validation), `last.safetensors` (the state after
the last epoch) and `history.jsonl`. Training in a folder with a state resumes from it; on a processor the weights at
the end are those of a run that was never stopped, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    check_state,
    cut_history,
    restore_state,
    save_state,
)

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

    from hardlook.training.loop import Record, Stage, StepLoss
    from hardlook.training.state import Progress

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
    from hardlook.training.devices import open_fabric
    from hardlook.training.loop import run_loop

    settings = settings or TrainingSettings()
    if not training or not validation:
        what = f"{len(training)} training and {len(validation)} validation samples"
        raise OptionError(what, remedy="both need at least one")
    network = build_network(architecture, settings.seed)
    if backbone is not None:
        load_backbone(network, backbone)
    kind = choose_precision(settings.precision, device)
    identity = {
        "settings": asdict(settings) | {"precision": kind},
        "architecture": architecture.to_json(),
        "training samples": len(training),
        "validation samples": len(validation),
    }
    folder.mkdir(parents=True, exist_ok=True)
    samples = GridSamples(training, settings, workers=workers, keep=keep)
    held_out = GridSamples(validation, settings, workers=workers, keep=keep)
    trainee = _ClickTrainee(network, settings, samples, held_out, device)
    store = _ClickStore(folder, identity, architecture, settings.size, trainee.steps)

    def report(step: int) -> None:
        if progress and step % trainee.steps == 0:
            progress(store.history[-1])

    fabric = open_fabric(device, precision=kind)  # type: ignore[arg-type]
    run_loop(trainee, store, fabric, show_progress=report)
    return TrainingResult(folder / BEST, store.reached.best_epoch, tuple(store.history))


class _ClickTrainee:
    """The network as the training loop uses it: KL against click maps; each epoch has all samples in its own order."""

    def __init__(
        self, network: nn.Module, settings: TrainingSettings, samples: GridSamples, held_out: GridSamples, device: str
    ) -> None:
        from hardlook.training.loop import Stage

        self.module, self.settings, self.samples, self.held_out = network, settings, samples, held_out
        self.device = device
        self.steps = -(-len(samples) // settings.batch)
        self.stages: Sequence[Stage] = [Stage("clicks", 0, settings.epochs * self.steps, settings.clip or 0.0)]
        self.marks: Sequence[int] = range(self.steps, settings.epochs * self.steps + 1, self.steps)

    def start_stage(self, stage: Stage) -> Optimizer:
        """Adam, with a separate learning rate for the backbone."""
        import torch

        self.module.to(self.device)
        named = list(self.module.named_parameters())
        inside = [value for name, value in named if name.startswith("backbone.")]
        outside = [value for name, value in named if not name.startswith("backbone.")]
        groups = [{"params": inside, "factor": self.settings.backbone_rate}, {"params": outside, "factor": 1.0}]
        return torch.optim.Adam(groups, lr=self.settings.lr)

    def compute_rate(self, step: int) -> float:
        """By the settings' schedule."""
        return compute_learning_rate(self.settings, step, self.settings.epochs * self.steps)

    def start_step(self, step: int, rank: int) -> int | None:
        """What dropout and drop path leave out is drawn by seed and epoch, from its first step on."""
        if step % self.steps:
            return None
        epoch = step // self.steps + 1
        return int(generator(self.settings.seed, "clickability", "dropped", epoch).integers(2**62))

    def draw_batches(self, first: int, last: int, rank: int, world: int) -> Iterator[Sequence[tuple[Tensor, ...]]]:
        """One batch per step; threads prepare those ahead."""
        settings, count = self.settings, len(self.samples)
        for epoch in range(first // self.steps + 1, last // self.steps + 1):
            order = epoch_order(settings.seed, epoch, count)
            flips = epoch_flips(settings.seed, epoch, count) & settings.flip
            for step, group in enumerate(self.samples.batches(order, settings.batch)):
                places = order[step * settings.batch : step * settings.batch + len(group)]
                batch = stack_batch(group, flips[places])
                yield [tuple(part.to(self.device, non_blocking=True) for part in batch)]

    def compute_loss(self, call: Any, batch: tuple[Tensor, ...]) -> StepLoss:
        """KL of the network's maps, in float32, from the click maps."""
        from hardlook.training.loop import StepLoss

        images, masks, targets = batch
        losses = kl_divergence(targets, call("", images, masks))
        return StepLoss(losses.mean(), len(losses), {"loss": losses.detach().sum()})

    def validate(self, module: nn.Module) -> dict[str, float]:
        """KL, SIM and NSS of the held-out samples."""
        return validate(module, self.held_out, device=self.device, batch=self.settings.batch)

    def select(self, validation: Mapping[str, float]) -> Mapping[str, float]:
        """By SIM."""
        return {"sim": validation["sim"]}


class _ClickStore:
    """The folder of a training, in epochs of `steps` steps."""

    def __init__(
        self, folder: Path, identity: Mapping[str, Any], architecture: Architecture, size: int, steps: int
    ) -> None:
        self.folder, self.identity, self.architecture = folder, identity, architecture
        self.size, self.steps = size, steps
        self.reached = TrainingProgress()
        self.history: list[EpochRecord] = []
        self._seconds = 0.0

    def read_progress(self) -> Progress:
        """The epochs done, as steps; lines of the history after that are removed."""
        from hardlook.training.state import Progress

        state = self.folder / LAST
        if state.is_file():
            self.reached = check_state(state, self.identity)
        self.history = list(cut_history(self.folder / HISTORY, self.reached.epoch))
        best = {"sim": (self.reached.best_sim, self.reached.best_epoch * self.steps)} if self.reached.best_epoch else {}
        return Progress(self.reached.epoch * self.steps, best, scaler=dict(self.reached.scaler or {}))

    def restore(self, module: nn.Module, optimiser: Optimizer | None, average: object) -> None:
        """Load the last epoch's state."""
        restore_state(self.folder / LAST, module, optimiser)

    def save(self, module: nn.Module, optimiser: Optimizer, average: object, reached: Progress) -> None:
        """Save the state after an epoch."""
        best, step = reached.best["sim"]
        self.reached = TrainingProgress(
            reached.step // self.steps, best, step // self.steps, scaler=dict(reached.scaler) or None
        )
        save_state(self.folder / LAST, module, optimiser, self.reached, self.identity)

    def append(self, record: Record) -> None:
        """Add an epoch to the history."""
        epoch = EpochRecord(
            record.step // self.steps,
            record.lr,
            record.means["loss"],
            record.validation,
            record.seconds - self._seconds,
        )
        self._seconds = record.seconds
        append_epoch(self.folder / HISTORY, epoch)
        self.history.append(epoch)

    def keep_best(self, selection: str, module: nn.Module, record: Record) -> None:
        """Write the checkpoint."""
        save_checkpoint(module, self.folder / BEST, self.architecture, size=self.size)


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
