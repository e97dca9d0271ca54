"""One opened image of a SAM-like network in torch: encoded once, then any number of prompts in few forward passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.models.interactive.alike_prompts import AlikePrompts, alike
from hardlook.models.interactive.prompt_policy import PromptPolicy
from hardlook.models.roles import Clicks, Prompted
from hardlook.models.torch_inference import exact_inference

if TYPE_CHECKING:
    from torch import Tensor

ENLARGED_TOGETHER = 16
"""Logits enlarged to the image's size at a time: 64 of a large photograph would take gigabytes."""


class OpenedImage(Protocol):
    """What a family of networks keeps of an image, and how it answers on it."""

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the network's input a pixel of the image, along x and y."""
        ...

    def decode(self, points: Tensor, labels: Tensor, previous: Tensor | None, several: bool) -> tuple[Tensor, Tensor]:
        """Logits (P, k, h, w) and predicted IoUs (P, k) of k masks a prompt.

        `points` (P, n, 2) in pixels of the network's input; `labels` (P, n) int64; `previous` (P, 1, h, w) logits.
        """
        ...

    def given_back(self, logits: Tensor) -> Tensor:
        """Logits (P, 1, h, w) as the next prompt wants them."""
        ...

    def enlarge(self, logits: Tensor) -> Tensor:
        """Logits (P, 1, h, w) at the image's size, (P, 1, H, W)."""
        ...


def check_device_and_batch(device: str, batch: int) -> None:
    """An error where there is no such GPU, or where no prompt fits into a forward pass.

    >>> check_device_and_batch("cpu", 64)
    """
    torch = require("torch", extra="torch")
    if batch < 1:
        raise OptionError(f"batch {batch} leaves no prompt to answer", remedy="batch is at least 1")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ModelError(f"torch finds no GPU for device={device!r}", remedy="device=cpu, or a torch built for it")


@dataclass(frozen=True)
class SamSession:
    """Answers prompts; the state of an answer is the low-resolution logits (1, h, w) of its mask, on the device.

    `batch` is the most prompts in one forward pass.
    """

    opened: OpenedImage
    policy: PromptPolicy
    device: str
    batch: int

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask a prompt; prompts with as many clicks are answered in one forward pass."""
        answers: list[Prompted | None] = [None] * len(prompts)
        for group in alike(prompts, self.policy, self.batch):
            for place, answer in zip(group.places, self._answer(group), strict=True):
                answers[place] = answer
        return [answer for answer in answers if answer is not None]

    def _answer(self, group: AlikePrompts) -> list[Prompted]:
        import torch

        with exact_inference():
            points = torch.from_numpy(group.scaled(*self.opened.scale)).to(self.device)
            labels = torch.from_numpy(group.labels).to(self.device)
            previous = torch.stack(group.states) if group.states else None
            logits, scores = self.opened.decode(points, labels, previous, group.several)
            best = scores.argmax(dim=1)
            chosen = logits[torch.arange(len(best), device=best.device), best][:, None]
            parts = [chosen[start : start + ENLARGED_TOGETHER] for start in range(0, len(chosen), ENLARGED_TOGETHER)]
            masks = _on_processor(torch.cat([self.opened.enlarge(part)[:, 0] > 0 for part in parts]))
            states = self.opened.given_back(chosen) if self.policy.previous else [None] * len(masks)
        return [Prompted(mask, state) for mask, state in zip(masks, states, strict=True)]


def _on_processor(masks: Tensor) -> NDArray[np.bool_]:
    import torch

    if masks.device.type != "cuda":
        array: NDArray[np.bool_] = masks.cpu().numpy()
        return array
    # Into page-locked memory, which torch keeps for the next call: several times faster than an ordinary copy.
    locked = torch.empty(masks.shape, dtype=masks.dtype, pin_memory=True)
    copied: NDArray[np.bool_] = locked.copy_(masks).numpy()
    return copied
