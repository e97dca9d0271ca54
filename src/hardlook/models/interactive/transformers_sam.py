"""SAM and SAM-HQ through transformers, from a local folder or a checkpoint with its authors' names.

Kirillov et al., "Segment anything", ICCV 2023. Ke et al., "Segment anything in high quality", NeurIPS 2023.

>>> Sam("nowhere")
Traceback (most recent call last):
...
hardlook.errors.DataError: the model's folder does not exist
  file: nowhere
  remedy: download the model's whole page (config and weights) and give that folder with --model-arg path=FOLDER
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hardlook.models.interactive.prompt_policy import Multimask, PromptPolicy
from hardlook.models.interactive.sam_frame import Frame
from hardlook.models.interactive.transformers_sam_checkpoint import open_checkpoint
from hardlook.models.interactive.transformers_sam_folder import open_network
from hardlook.models.interactive.transformers_sam_session import SamSession, check_device_and_batch
from hardlook.models.roles import Image
from hardlook.models.torch_inference import exact_inference

if TYPE_CHECKING:
    from torch import Tensor


class Sam:
    """SAM from `path`: a folder in transformers' layout, or a file such as sam_vit_h_4b8939.pth.

    `multimask` and `previous` are the prompt policy; `batch` is the most prompts in one forward pass.
    """

    family: ClassVar[str] = "sam"
    architecture: ClassVar[str] = "SamModel"

    def __init__(
        self,
        path: Path,
        multimask: Multimask = "always",
        previous: bool = True,
        device: str = "cpu",
        batch: int = 64,
    ) -> None:
        self._policy = PromptPolicy(multimask, previous)
        check_device_and_batch(device, batch)
        if Path(path).expanduser().is_file():
            self._network, self.weights_files = open_checkpoint(path, self.architecture, device)
        else:
            self._network, self.weights_files = open_network(
                path, families=(self.family,), architecture=self.architecture, device=device
            )
        self.device, self._batch = device, batch
        side = self._network.prompt_encoder.input_image_size
        self.conduct = f"{self._policy.words()[:-1]}; longest side {side} pixels; a mask is where the logit is over 0."

    def open(self, image: Image) -> SamSession:
        """Encode the image, once."""
        return sam_session(self._network, image, self._policy, batch=self._batch)


class SamHQ(Sam):
    """SAM-HQ from `path`: its masks are SAM's plus those of its own token, as its authors add them."""

    family = "sam_hq"
    architecture = "SamHQModel"


def sam_session(network: Any, image: Image, policy: PromptPolicy, *, batch: int = 64) -> SamSession:
    """A session of a SamModel or SamHQModel on the device that the network is on."""
    import torch

    device = str(network.device)
    frame = Frame.of(image, int(network.prompt_encoder.input_image_size))
    with exact_inference():
        seen = network.vision_encoder(torch.from_numpy(frame.square(image))[None].to(device))
        opened = OpenedBySam(
            network=network,
            embeddings=seen.last_hidden_state,
            positions=network.get_image_wide_positional_embeddings(),
            intermediate=getattr(seen, "intermediate_embeddings", None),
            shape=frame.size,
            inside=frame.scaled,
            side=frame.side,
        )
    return SamSession(opened, policy, device, batch)


@dataclass(frozen=True)
class OpenedBySam:
    """An encoded image.

    `embeddings` and `positions` (1, C, h, w); `intermediate` of the encoder's global layers for SAM-HQ, else None;
    `shape` (H, W) of the image; `inside` (H, W) of the part of the network's square input that it fills.
    """

    network: Any
    embeddings: Tensor
    positions: Tensor
    intermediate: Any
    shape: tuple[int, int]
    inside: tuple[int, int]
    side: int

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the input a pixel of the image, along x and y; rounding makes them differ."""
        return self.inside[1] / self.shape[1], self.inside[0] / self.shape[0]

    def decode(self, points: Tensor, labels: Tensor, previous: Tensor | None, several: bool) -> tuple[Tensor, Tensor]:
        """Logits (P, k, h, w) and predicted IoUs (P, k)."""
        # Previous masks go with the images of a batch, not with the prompts of an image: so a prompt an image.
        sparse, dense = self.network.prompt_encoder(
            input_points=points[:, None], input_labels=labels[:, None], input_boxes=None, input_masks=previous
        )
        quality: dict[str, Any] = {}
        if self.intermediate is not None:
            quality = {"intermediate_embeddings": self.intermediate, "hq_token_only": False}
        logits, scores, *_ = self.network.mask_decoder(
            image_embeddings=self.embeddings.expand(len(points), -1, -1, -1),
            image_positional_embeddings=self.positions.expand(len(points), -1, -1, -1),
            sparse_prompt_embeddings=sparse,
            dense_prompt_embeddings=dense,
            multimask_output=several,
            **quality,
        )
        return logits[:, 0], scores[:, 0]

    def given_back(self, logits: Tensor) -> Tensor:
        """SAM takes its own logits as they are."""
        return logits

    def enlarge(self, logits: Tensor) -> Tensor:
        """First to the network's square, then the image's part of it to the image's size, as SAM does."""
        from torch.nn.functional import interpolate

        square = interpolate(logits, (self.side, self.side), mode="bilinear", align_corners=False)
        part = square[..., : self.inside[0], : self.inside[1]]
        if self.inside == self.shape:
            return part
        return interpolate(part, self.shape, mode="bilinear", align_corners=False)
