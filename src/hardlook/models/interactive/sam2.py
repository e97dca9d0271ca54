"""SAM 2 and 2.1 on single images through transformers, from a local folder or from a checkpoint of the authors.

Ravi et al., "SAM 2: Segment anything in images and videos", ICLR 2025.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.models.interactive.prompts import Multimask, PromptPolicy
from hardlook.models.interactive.sam2_checkpoints import load_sam2_checkpoint
from hardlook.models.interactive.sam_frame import prepare_sam2_image
from hardlook.models.interactive.sam_session import SamSession, check_device_and_batch, decode_prompts, open_network
from hardlook.models.roles import Image
from hardlook.models.torch_inference import exact_inference
from hardlook.networks.gpu import replace_transposed_convolutions

if TYPE_CHECKING:
    from torch import Tensor

MAX_LOGIT = 32.0
"""Logits that go back to SAM 2 as the previous mask are clamped to [-32, 32], as its own predictor does."""


class Sam2:
    """SAM 2 or 2.1 from `path`: a folder in transformers' layout, or a file such as sam2.1_hiera_large.pt.

    Of a model for videos the memory is not used.
    `multimask` and `previous` are the prompt policy; `batch` is the largest number of prompts in one forward pass.
    """

    def __init__(
        self, path: Path, multimask: Multimask = "never", previous: bool = True, device: str = "cpu", batch: int = 64
    ) -> None:
        self._policy = PromptPolicy(multimask, previous)
        check_device_and_batch(device, batch)
        prefix = ""
        if Path(path).expanduser().is_file():
            self._network, self.weights_files, version = load_sam2_checkpoint(path, device)
            prefix = f"{version}: "
        else:
            self._network, self.weights_files = open_network(
                path, families=("sam2", "sam2_video"), architecture="Sam2Model", device=device
            )
        if device.startswith("cuda"):
            replace_transposed_convolutions(self._network.mask_decoder)
        self.device, self._batch = device, batch
        side = self._network.prompt_encoder.input_image_size
        unstable = multimask != "always" and self._network.mask_decoder.dynamic_multimask_via_stability
        self.conduct = (
            f"{prefix}{self._policy.describe()}; {'the best of three where the one is unstable; ' if unstable else ''}"
            f"stretched to {side} x {side} pixels; a mask is where the logit is over 0."
        )

    def open(self, image: Image) -> SamSession:
        """Encode the image, once."""
        return open_sam2_session(self._network, image, self._policy, batch=self._batch)


def open_sam2_session(network: Any, image: Image, policy: PromptPolicy, *, batch: int = 64) -> SamSession:
    """A session of a Sam2Model on the device that the network is on."""
    import torch

    device = str(network.device)
    side = int(network.prompt_encoder.input_image_size)
    with exact_inference():
        maps = network.get_image_embeddings(torch.from_numpy(prepare_sam2_image(image, side)).to(device))
        positions = network.get_image_wide_positional_embeddings()
    encoded = Sam2EncodedImage(network, tuple(maps), positions, (image.shape[0], image.shape[1]), side)
    return SamSession(encoded, policy, device, batch)


@dataclass(frozen=True)
class Sam2EncodedImage:
    """An encoded image: `maps` (1, C, h, w) of three resolutions, finest first; `positions` of the coarsest."""

    network: Any
    maps: tuple[Tensor, ...]
    positions: Tensor
    shape: tuple[int, int]
    side: int

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the input per pixel of the image, along x and y."""
        return self.side / self.shape[1], self.side / self.shape[0]

    def decode(
        self, points: Tensor, labels: Tensor, boxes: Tensor | None, previous: Tensor | None, several: bool
    ) -> tuple[Tensor, Tensor]:
        """Logits (P, k, h, w) and predicted IoUs (P, k)."""
        *fine, coarse = self.maps
        # The fine maps keep batch size 1: they are broadcast over the prompts.
        return decode_prompts(
            self.network,
            coarse,
            self.positions,
            points,
            labels,
            boxes,
            previous,
            several,
            high_resolution_features=fine,
        )

    def prepare_state(self, logits: Tensor) -> Tensor:
        """The logits clamped to [-32, 32], to be passed with the next prompt."""
        return logits.clamp(-MAX_LOGIT, MAX_LOGIT)

    def enlarge(self, logits: Tensor) -> Tensor:
        """Logits (P, 1, h, w) resized in one step to the image's size, (P, 1, H, W)."""
        from torch.nn.functional import interpolate

        return interpolate(logits, self.shape, mode="bilinear", align_corners=False)
