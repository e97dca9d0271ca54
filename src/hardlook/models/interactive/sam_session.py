"""SAM-like networks in torch: an image is encoded once, then any number of prompts is answered in few forward passes.

`open_network` reads such a network from a local folder in transformers' layout. Of the processor's files nothing is
read: images are prepared here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.models.interactive.prompts import PromptGroup, PromptPolicy, answer_in_groups
from hardlook.models.roles import Clicks, Prompted
from hardlook.models.torch_inference import Precision, exact_inference
from hardlook.models.transformers_folder import check_folder, read_network

if TYPE_CHECKING:
    from torch import Tensor

ENLARGED_AT_ONCE = 16
"""Logits enlarged to the image's size at a time: 64 of a large photograph would take gigabytes."""


class EncodedImage(Protocol):
    """What a family of networks keeps of an image, and how it answers prompts on it."""

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the network's input per pixel of the image, along x and y."""

    def decode(
        self, points: Tensor, labels: Tensor, boxes: Tensor | None, previous: Tensor | None, several: bool
    ) -> tuple[Tensor, Tensor]:
        """Logits (P, k, h, w) and predicted IoUs (P, k).

        Of points (P, n, 2), labels (P, n) int64, boxes (P, 4) and previous logits (P, 1, h, w), in the input's pixels.
        """

    def prepare_state(self, logits: Tensor) -> Tensor:
        """Logits (P, 1, h, w) as the next prompt takes them."""

    def enlarge(self, logits: Tensor) -> Tensor:
        """Logits (P, 1, h, w) at the image's size, (P, 1, H, W)."""


def check_device_and_batch(device: str, batch: int, precision: Precision = "float32") -> None:
    """An error where there is no such GPU, where no prompt fits into a forward pass, or for an unknown precision."""
    torch = require("torch", extra="torch")
    if precision not in get_args(Precision):
        raise OptionError(f"precision is {precision!r}", remedy=f"one of {', '.join(get_args(Precision))}")
    if precision != "float32" and not device.startswith("cuda"):
        raise OptionError(f"precision {precision} is for a GPU", remedy="device=cuda, or precision=float32")
    if batch < 1:
        raise OptionError(f"batch {batch} leaves no prompt to answer", remedy="batch is at least 1")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ModelError(f"torch finds no GPU for device={device!r}", remedy="device=cpu, or a torch built for it")


@dataclass(frozen=True)
class SamSession:
    """Answers prompts, at most `batch` in one pass; an answer's state is its mask's logits (1, h, w) on the device."""

    image: EncodedImage
    policy: PromptPolicy
    device: str
    batch: int
    precision: Precision = "float32"

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt; prompts with the same number of clicks are answered in one forward pass."""
        return answer_in_groups(prompts, self.policy, self.batch, self._answer)

    def _answer(self, group: PromptGroup) -> list[Prompted]:
        import torch

        with exact_inference(self.precision):
            points = torch.from_numpy(group.scaled(*self.image.scale)).to(self.device)
            labels = torch.from_numpy(group.labels).to(self.device)
            previous = torch.stack(group.states) if group.states else None
            corners = group.scaled_boxes(*self.image.scale)
            boxes = None if corners is None else torch.from_numpy(corners).to(self.device)
            answers = self.image.decode(points, labels, boxes, previous, group.several)
            logits, scores = (one.float() for one in answers)
            best = scores.argmax(dim=1)
            chosen = logits[torch.arange(len(best), device=best.device), best][:, None]
            parts = [chosen[start : start + ENLARGED_AT_ONCE] for start in range(0, len(chosen), ENLARGED_AT_ONCE)]
            masks = _copy_to_cpu(torch.cat([self.image.enlarge(part)[:, 0] > 0 for part in parts]))
            states = self.image.prepare_state(chosen) if self.policy.previous else [None] * len(masks)
        return [Prompted(mask, state) for mask, state in zip(masks, states, strict=True)]


def _copy_to_cpu(masks: Tensor) -> NDArray[np.bool_]:
    import torch

    if masks.device.type != "cuda":
        return masks.cpu().numpy()
    # Into page-locked memory, which torch keeps for the next call: several times faster than an ordinary copy.
    return torch.empty(masks.shape, dtype=masks.dtype, pin_memory=True).copy_(masks).numpy()


def decode_prompts(
    network: Any,
    embeddings: Tensor,
    positions: Tensor,
    points: Tensor,
    labels: Tensor,
    boxes: Tensor | None,
    previous: Tensor | None,
    several: bool,
    **more: Any,
) -> tuple[Tensor, Tensor]:
    """`EncodedImage.decode` by a network of transformers; `embeddings` and `positions` (1, C, h, w) of the image."""
    # Previous masks go with the images of a batch, not with its prompts: so one prompt per image.
    clicked = points.shape[1] > 0
    sparse, dense = network.prompt_encoder(
        input_points=points[:, None] if clicked else None,
        input_labels=labels[:, None] if clicked else None,
        input_boxes=None if boxes is None else boxes[:, None],
        input_masks=previous,
    )
    logits, scores, *_ = network.mask_decoder(
        image_embeddings=embeddings.expand(len(points), -1, -1, -1),
        image_positional_embeddings=positions.expand(len(points), -1, -1, -1),
        sparse_prompt_embeddings=sparse,
        dense_prompt_embeddings=dense,
        multimask_output=several,
        **more,
    )
    return logits[:, 0], scores[:, 0]


_REMEDY = "download the model's whole page (config and weights) and give that folder with --model-arg path=FOLDER"


def open_network(
    path: Path, *, families: tuple[str, ...], architecture: str, device: str = "cpu"
) -> tuple[Any, tuple[Path, ...]]:
    """Transformers' class `architecture` in float32 from a folder of one of the `families`, and the files read."""
    folder = Path(path).expanduser()
    files = check_folder(folder, families, remedy=_REMEDY)
    return read_network(folder, architecture, remedy=_REMEDY, device=device), files
