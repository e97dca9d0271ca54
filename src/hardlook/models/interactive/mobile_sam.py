"""MobileSAM: SAM's prompt encoder and mask decoder behind a small image encoder.

Zhang et al., "Faster Segment Anything: Towards lightweight SAM for mobile applications", 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.models.interactive.prompts import Multimask, PromptGroup, PromptPolicy, answer_in_groups
from hardlook.models.interactive.sam_frame import SamFrame
from hardlook.models.interactive.sam_session import check_device_and_batch
from hardlook.models.roles import Clicks, Image, Prompted
from hardlook.models.torch_inference import exact_inference
from hardlook.models.weights.install import locate_weights
from hardlook.networks.gpu import replace_transposed_convolutions
from hardlook.networks.loading import load_into, load_state_dict
from hardlook.networks.sam import INPUT_SIZE, build_mask_decoder, build_prompt_encoder
from hardlook.networks.tiny_vit import build_tiny_vit

if TYPE_CHECKING:
    from torch import Tensor, nn

GPU_BATCH = 64


class MobileSam:
    """An image is encoded once when it is opened; each prompt then costs a pass of the decoder.

    `multimask` and `previous` are the prompt policy; a pixel belongs to the mask where its logit is over
    `mask_threshold` (0 is a probability of .5). `weights` is a state dict with the published names (default: the
    installed `mobile-sam`). At most `batch` prompts pass the decoder together (default: 1 on the CPU, where more are no
    faster and one has the same bits in any company; 64 on a GPU).
    """

    takes_boxes = True

    def __init__(
        self,
        weights: Path | None = None,
        device: str = "cpu",
        multimask: Multimask = "always",
        previous: bool = True,
        mask_threshold: float = 0.0,
        batch: int | None = None,
    ) -> None:
        self._policy = PromptPolicy(multimask, previous)
        check_device_and_batch(device, 1 if batch is None else batch)
        path = Path(weights) if weights else locate_weights("mobile-sam")["mobile_sam.pt"]
        self._network: Any = build_network()
        load_into(self._network, load_state_dict(path))
        self._network.eval().requires_grad_(False).to(device)
        if device.startswith("cuda"):
            replace_transposed_convolutions(self._network)
        self._threshold = mask_threshold
        self._batch = batch or (1 if device == "cpu" else GPU_BATCH)
        self.device = device
        masks = f"a mask is where the logit is over {mask_threshold:g}."
        self.conduct = f"{self._policy.describe()}; longest side {INPUT_SIZE} pixels; {masks}"
        self.weights_files: tuple[Path, ...] = (path,)

    def open(self, image: Image) -> MobileSamSession:
        """Encode the image and return the session that answers prompts on it."""
        import torch

        frame = SamFrame.from_image(image)
        with exact_inference():
            square = torch.from_numpy(frame.prepare_image(image)).to(self.device)
            cells = self._network.image_encoder(square[None]).flatten(2).mT
            grid = self._network.prompt_encoder.grid()
        return MobileSamSession(self._network, frame, cells, grid, self._policy, self._threshold, self._batch)


@dataclass(frozen=True)
class MobileSamSession:
    """An opened image: `cells` (1, 4096, 256) of the image encoder, `grid` (4096, 256) of their places."""

    network: Any
    frame: SamFrame
    cells: Tensor
    grid: Tensor
    policy: PromptPolicy
    threshold: float
    batch: int

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt; the state is the mask's logits, (256, 256) float32."""
        return answer_in_groups(prompts, self.policy, self.batch, self._answer)

    def _answer(self, group: PromptGroup) -> list[Prompted]:
        with exact_inference():
            logits = self._logits(group)
            masks = self.frame.threshold_logits(logits, self.threshold)
            return [
                Prompted(mask.copy(), state.copy()) for mask, state in zip(masks, logits.cpu().numpy(), strict=True)
            ]

    def _logits(self, group: PromptGroup) -> Tensor:
        """(N, 256, 256) of the masks that the policy chooses."""
        import torch

        device = self.cells.device
        points = torch.from_numpy(group.scaled(*self.frame.scale)).to(device)
        positive = torch.from_numpy(group.labels == 1).to(device)
        states = torch.from_numpy(np.stack(group.states)).to(device) if group.states else None
        corners = group.scaled_boxes(*self.frame.scale)
        boxes = None if corners is None else torch.from_numpy(corners).to(device)
        encoder, decoder = self.network.prompt_encoder, self.network.mask_decoder
        # Without states the image's cells are the same for all prompts: what depends on them alone is computed once.
        logits, ious = decoder(encoder.tokens(points, positive, boxes), self.cells + encoder.mask(states), self.grid)
        chosen: Tensor = logits[:, 0]
        if group.several:
            chosen = logits[torch.arange(len(logits), device=device), 1 + ious[:, 1:].argmax(dim=1)]
        return chosen


def build_network() -> nn.Module:
    """The three parts with random weights, named as in the published file."""
    from torch import nn

    class MobileSamNetwork(nn.Module):
        """Parts that are called one by one."""

        def __init__(self) -> None:
            super().__init__()
            self.image_encoder = build_tiny_vit()
            self.prompt_encoder = build_prompt_encoder()
            self.mask_decoder = build_mask_decoder()

    return MobileSamNetwork()
