"""SAM 2 and 2.1 on single images through transformers, from a local folder or from a checkpoint of the authors.

Ravi et al., "SAM 2: Segment anything in images and videos", ICLR 2025.

Checkpoints are files such as sam2_hiera_tiny.pt and sam2.1_hiera_large.pt. For single images both versions are one
network: a file of 2.1 has more tensors than one of 2 in the part that remembers earlier frames of a video, which is
left out here.

>>> rename_tensor("image_encoder.trunk.blocks.3.mlp.layers.1.bias")
'vision_encoder.backbone.blocks.3.mlp.proj_out.bias'
>>> rename_tensor("sam_mask_decoder.transformer.layers.0.self_attn.out_proj.weight")
'mask_decoder.transformer.layers.0.self_attn.o_proj.weight'
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.models.interactive.prompts import Multimask, PromptPolicy
from hardlook.models.interactive.sam_frame import prepare_sam2_image
from hardlook.models.interactive.sam_session import SamSession, check_device_and_batch, decode_prompts, open_network
from hardlook.models.roles import Image
from hardlook.models.torch_inference import exact_inference
from hardlook.networks.gpu import replace_transposed_convolutions
from hardlook.networks.loading import load_into, load_state_dict

if TYPE_CHECKING:
    from torch import Tensor

MAX_LOGIT = 32.0
"""Logits that go back to SAM 2 as the previous mask are clamped to [-32, 32], as its own predictor does."""

MEMORY = (
    *("memory_attention.", "memory_encoder.", "maskmem_tpos_enc", "no_mem_pos_enc", "no_obj_ptr", "obj_ptr_proj."),
    *("mask_downsample.", "obj_ptr_tpos_proj.", "no_obj_embed_spatial"),
)
"""Starts of names in the part for videos."""

ONLY_IN_21 = ("obj_ptr_tpos_proj.", "no_obj_embed_spatial")
"""Starts of names that files of 2.1 have and those of 2 lack."""

_HEADS = r"(output_hypernetworks_mlps\.\d+|iou_prediction_head|pred_obj_score_head)"
# (pattern of the authors' name, replacement for transformers' name), applied in order.
_RULES = (
    (r"^image_encoder\.trunk\.patch_embed\.proj\.", "vision_encoder.backbone.patch_embed.projection."),
    (r"^image_encoder\.trunk\.", "vision_encoder.backbone."),
    (r"^image_encoder\.neck\.convs\.(\d+)\.conv\.", r"vision_encoder.neck.convs.\1."),
    (r"^sam_prompt_encoder\.", "prompt_encoder."),
    (r"^sam_mask_decoder\.", "mask_decoder."),
    (r"^no_mem_embed$", "no_memory_embedding"),
    (r"pe_layer\.positional_encoding_gaussian_matrix$", "shared_embedding.positional_embedding"),
    (r"mask_downscaling\.0\.", "mask_embed.conv1."),
    (r"mask_downscaling\.1\.", "mask_embed.layer_norm1."),
    (r"mask_downscaling\.3\.", "mask_embed.conv2."),
    (r"mask_downscaling\.4\.", "mask_embed.layer_norm2."),
    (r"mask_downscaling\.6\.", "mask_embed.conv3."),
    (r"output_upscaling\.0\.", "upscale_conv1."),
    (r"output_upscaling\.1\.", "upscale_layer_norm."),
    (r"output_upscaling\.3\.", "upscale_conv2."),
    (r"\.norm_final_attn\.", ".layer_norm_final_attn."),
    (r"\.norm(\d)\.", r".layer_norm\1."),
    (r"\.out_proj\.", ".o_proj."),
    (r"\.mlp\.layers\.0\.", ".mlp.proj_in."),
    (r"\.mlp\.layers\.1\.", ".mlp.proj_out."),
    (rf"{_HEADS}\.layers\.0\.", r"\1.proj_in."),
    (rf"{_HEADS}\.layers\.1\.", r"\1.layers.0."),
    (rf"{_HEADS}\.layers\.2\.", r"\1.proj_out."),
)


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


@dataclass(frozen=True)
class HieraSize:
    """What the shapes of an encoder's tensors do not tell; `side` is that of the network's input."""

    name: str
    heads: tuple[int, ...]
    windows: tuple[int, ...]
    global_blocks: tuple[int, ...]
    side: int = 1024


def _read_sizes() -> dict[tuple[int, int], HieraSize]:
    text = Path(__file__).with_name("sam2_sizes.csv").read_text(encoding="utf-8")
    sizes = {}
    for row in csv.DictReader(text.splitlines()):
        heads, windows, global_blocks = (
            tuple(int(number) for number in row[column].split()) for column in ("heads", "windows", "global_blocks")
        )
        sizes[int(row["width"]), int(row["blocks"])] = HieraSize(row["size"], heads, windows, global_blocks)
    return sizes


SIZES = _read_sizes()
"""By the width and the number of blocks of the encoder."""


def load_sam2_checkpoint(path: Path, device: str = "cpu") -> tuple[Any, tuple[Path, ...], str]:
    """Transformers' Sam2Model with the file's weights, the file, and what it is, such as SAM 2.1 tiny."""
    loaded = load_state_dict(Path(path).expanduser())
    if "image_encoder.trunk.pos_embed_window" not in loaded.state:
        raise ModelError(
            "the file holds no SAM 2: it has no image_encoder.trunk.pos_embed_window",
            file=path,
            remedy="give a file such as sam2.1_hiera_tiny.pt, or a folder in transformers' layout",
        )
    transformers = require("transformers", extra="hf")
    size = find_size(loaded.state, path)
    network = transformers.Sam2Model(transformers.Sam2Config(**read_config(loaded.state, size)))
    load_into(network, replace(loaded, state=rename_tensors(loaded.state)))
    version = "2.1" if any(name.startswith(ONLY_IN_21) for name in loaded.state) else "2"
    return network.float().eval().requires_grad_(False).to(device), (loaded.path,), f"SAM {version} {size.name}"


def rename_tensors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors for single images under transformers' names."""
    import torch

    found = {rename_tensor(name): value for name, value in state.items() if not name.startswith(MEMORY)}
    # Four tables of one row are one table of four.
    points = [found.pop(name, None) for name in (f"prompt_encoder.point_embeddings.{n}.weight" for n in range(4))]
    if all(point is not None for point in points):
        found["prompt_encoder.point_embed.weight"] = torch.cat([point for point in points if point is not None])
    if (shared := found.get("prompt_encoder.shared_embedding.positional_embedding")) is not None:
        found["shared_image_embedding.positional_embedding"] = shared
    return found


def rename_tensor(name: str) -> str:
    """Transformers' name of a tensor, given the authors' name."""
    for pattern, replacement in _RULES:
        name = re.sub(pattern, replacement, name)
    return name


def find_size(state: Mapping[str, Tensor], path: Path) -> HieraSize:
    """The published size of the encoder."""
    key = (state["image_encoder.trunk.pos_embed_window"].shape[1], len(_list_widths(state)))
    if key not in SIZES:
        names = ", ".join(size.name for size in SIZES.values())
        raise ModelError(
            f"the file holds no published size of SAM 2: its encoder has {key[0]} channels and {key[1]} blocks",
            file=path,
            remedy=f"give one of {names}, or a folder in transformers' layout",
        )
    return SIZES[key]


def read_config(state: Mapping[str, Tensor], size: HieraSize) -> dict[str, dict[str, Any]]:
    """The three parts of transformers' configuration."""
    trunk = "image_encoder.trunk."
    widths = _list_widths(state)
    dims = sorted(set(widths))
    hidden = state["sam_prompt_encoder.no_mask_embed.weight"].shape[1]
    backbone = {
        "model_type": "sam2_hiera_det_model",
        "hidden_size": widths[0],
        "num_attention_heads": size.heads[0],
        "image_size": [size.side, size.side],
        "blocks_per_stage": [widths.count(width) for width in dims],
        "embed_dim_per_stage": dims,
        "num_attention_heads_per_stage": list(size.heads),
        "window_size_per_stage": list(size.windows),
        "global_attention_blocks": list(size.global_blocks),
        "window_positional_embedding_background_size": list(state[f"{trunk}pos_embed"].shape[2:]),
    }
    vision = {
        "backbone_config": backbone,
        "backbone_channel_list": dims[::-1],
        "backbone_feature_sizes": [[size.side // stride] * 2 for stride in (4, 8, 16)],
        "fpn_hidden_size": hidden,
    }
    mlp = state["sam_mask_decoder.transformer.layers.0.mlp.layers.0.weight"].shape[0]
    iou = state["sam_mask_decoder.iou_prediction_head.layers.0.weight"].shape[0]
    return {
        "vision_config": vision,
        "prompt_encoder_config": {"hidden_size": hidden, "image_size": size.side, "patch_size": 16},
        "mask_decoder_config": {"hidden_size": hidden, "mlp_dim": mlp, "iou_head_hidden_dim": iou},
    }


def _list_widths(state: Mapping[str, Tensor]) -> list[int]:
    """The output width of every block of the encoder, in order."""
    pattern = re.compile(r"image_encoder\.trunk\.blocks\.(\d+)\.attn\.proj\.weight")
    found = {int(match[1]): state[name].shape[0] for name in state if (match := pattern.fullmatch(name))}
    return [found[number] for number in sorted(found)]
