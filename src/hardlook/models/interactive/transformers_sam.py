"""SAM and SAM-HQ through transformers, from a local folder or from a checkpoint of the authors.

Kirillov et al., "Segment anything", ICCV 2023. Ke et al., "Segment anything in high quality", NeurIPS 2023. A
checkpoint is a file such as sam_vit_h_4b8939.pth or sam_hq_vit_b.pth, whose tensors are renamed.

>>> rename_tensor("image_encoder.blocks.3.attn.qkv.weight")
'vision_encoder.layers.3.attn.qkv.weight'
>>> Sam("nowhere")
Traceback (most recent call last):
...
hardlook.errors.DataError: the model's folder does not exist
  file: nowhere
  remedy: download the model's whole page (config and weights) and give that folder with --model-arg path=FOLDER
"""

from __future__ import annotations

import csv
import functools
import re
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.models.interactive.prompts import Multimask, PromptPolicy
from hardlook.models.interactive.sam_decoder import SamMaskDecoder, is_released_structure
from hardlook.models.interactive.sam_frame import SamFrame
from hardlook.models.interactive.sam_session import SamSession, check_device_and_batch, decode_prompts, open_network
from hardlook.models.roles import Image
from hardlook.models.torch_inference import Precision, exact_inference
from hardlook.networks.gpu import (
    CudaGraphs,
    copy_without_weights,
    replace_channel_norms,
    replace_transposed_convolutions,
)
from hardlook.networks.kernels.fused_layers import find_kernels as find_step_kernels
from hardlook.networks.kernels.split_products import find_kernels as find_product_kernels
from hardlook.networks.kernels.split_products import replace_linear_layers, state_of
from hardlook.networks.loading import load_into, load_state_dict

if TYPE_CHECKING:
    from torch import Tensor


class Sam:
    """SAM from `path`: a folder in transformers' layout, or a file such as sam_vit_h_4b8939.pth.

    `multimask` and `previous` are the prompt policy; `batch` is the most prompts in one forward pass. `precision` is
    float32, or on a GPU tf32 or bfloat16, which are faster and round more. With `split_products` a
    Hopper GPU computes large products of float32 on its tensor cores, with errors like float32's (`SamNetwork`).
    """

    family: ClassVar[str] = "sam"
    architecture: ClassVar[str] = "SamModel"
    takes_boxes = True

    def __init__(
        self,
        path: Path,
        multimask: Multimask = "always",
        previous: bool = True,
        device: str = "cpu",
        batch: int = 64,
        precision: Precision = "float32",
        split_products: bool = True,
    ) -> None:
        self._policy = PromptPolicy(multimask, previous)
        check_device_and_batch(device, batch, precision)
        if Path(path).expanduser().is_file():
            self._network, self.weights_files = load_checkpoint(path, self.architecture, device)
        else:
            self._network, self.weights_files = open_network(
                path, families=(self.family,), architecture=self.architecture, device=device
            )
        self.device, self._batch = device, batch
        self._opener = SamNetwork(self._network, precision, split_products=split_products)
        side = self._network.prompt_encoder.input_image_size
        self.conduct = f"{self._policy.describe()}; longest side {side} pixels; a mask is where the logit is over 0."
        if precision != "float32":
            self.conduct += f" Computed in {precision}."

    def open(self, image: Image) -> SamSession:
        """Encode the image, once."""
        return self._opener.open(image, self._policy, batch=self._batch)


class SamHQ(Sam):
    """SAM-HQ from `path`: its masks are SAM's plus those of its own token, as its authors add them."""

    family = "sam_hq"
    architecture = "SamHQModel"


class SamNetwork:
    """A SamModel or SamHQModel on its device, ready to open images; on a GPU its decoder is replayed as CUDA graphs.

    With `split_products` a Hopper GPU (H100, H200) computes large products of float32 from three of half precision
    (`hardlook.networks.kernels.split_products`), with errors like float32's. That takes as much memory as the weights,
    beside these (ViT-H: 2.5 GB). Elsewhere the option changes nothing. The given network stays as it is.

    Its weights may be changed in place or replaced between images; open images again afterwards. Changes that torch
    counts (`state_of`) are noticed, and others (fused optimizers, writes to `.data`) where they change a tensor's norm.
    Not noticed is an uncounted change that keeps the norm, such as one of signs or order, or one too small for float32.
    """

    def __init__(self, network: Any, precision: Precision = "float32", *, split_products: bool = True) -> None:
        self.network, self.precision = network, precision
        self.device = str(network.device)
        self.encoder = network.vision_encoder
        self.positions: Tensor | None = None
        self.decoder: SamMaskDecoder | None = None
        self._given, self._split = network, split_products and precision == "float32"
        self._decode: Callable[..., tuple[Tensor, ...]] | None = None
        self._encoder_norms: list[int] = []
        self._weights: tuple[list[Tensor], list[Hashable]] = [], []
        if self._is_on_gpu:
            # Kernels are compiled here, not while the first image waits.
            find_step_kernels(network.device)
            if self._split:
                find_product_kernels(network.device)
        self._follow_weights()

    @property
    def _is_on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    def _follow_weights(self) -> None:
        """Prepare the encoder, the decoder and the image's positions, again once one of their weights has changed."""
        given, encoding = self._given, []
        weights = _list_tensors(given.shared_image_embedding)
        if self._is_on_gpu:
            weights += _list_tensors(given.mask_decoder, given.prompt_encoder)
            encoding = _list_tensors(given.vision_encoder)
        norms = _measure([*weights, *encoding])
        if self._encoder_norms != norms[len(weights) :]:
            self.encoder = prepare_encoder(given.vision_encoder, split_products=self._split)
            self._encoder_norms = norms[len(weights) :]
        states = [*map(state_of, weights), *norms[: len(weights)]]
        if self._weights[1] == states:
            return
        self._decode = self.decoder = None  # their memory is free before the next are made
        with exact_inference():
            self.positions = given.get_image_wide_positional_embeddings()
        if self._is_on_gpu:
            self.network, self.decoder = prepare_decoder(given, self.positions, split_products=self._split)
        # Not a method, which would keep this object and all that it has prepared until garbage is collected.
        decode = functools.partial(_decode, self.network, self.decoder)
        self._decode = CudaGraphs(decode) if self._is_on_gpu else decode
        # As long as their memory is kept, no other tensors are there, and graphs read what they were recorded with.
        self._weights = [one.detach() for one in weights], states

    def open(self, image: Image, policy: PromptPolicy, *, batch: int = 64) -> SamSession:
        """A session on the image, which is encoded once."""
        frame = SamFrame.from_image(image, int(self.network.prompt_encoder.input_image_size))
        self._follow_weights()
        with exact_inference(self.precision):
            output = self.encoder(frame.prepare_tensor(image, self.device))
            encoded = SamEncodedImage(
                network=self,
                frame=frame,
                embeddings=output.last_hidden_state,
                intermediate=tuple(getattr(output, "intermediate_embeddings", None) or ()),
            )
        return SamSession(encoded, policy, self.device, batch, self.precision)

    def decode(
        self,
        embeddings: Tensor,
        intermediate: tuple[Tensor, ...],
        points: Tensor,
        labels: Tensor,
        boxes: Tensor | None,
        previous: Tensor | None,
        several: bool,
    ) -> tuple[Tensor, Tensor]:
        """Logits (P, k, h, w) and predicted IoUs (P, k)."""
        decode: Any = self._decode
        positions = self.positions if self.decoder is None else None  # it has them already
        logits, scores = decode(several, embeddings, positions, points, labels, boxes, previous, *intermediate)
        return logits, scores


def _decode(
    network: Any,
    decoder: SamMaskDecoder | None,
    several: bool,
    embeddings: Tensor,
    positions: Tensor | None,
    points: Tensor,
    labels: Tensor,
    boxes: Tensor | None,
    previous: Tensor | None,
    *intermediate: Tensor,
) -> tuple[Tensor, Tensor]:
    if decoder is not None:
        return decoder.decode(embeddings, points, labels, boxes, previous, several)
    assert positions is not None
    hq_arguments: dict[str, Any] = {}
    if intermediate:
        hq_arguments = {"intermediate_embeddings": list(intermediate), "hq_token_only": False}
    return decode_prompts(network, embeddings, positions, points, labels, boxes, previous, several, **hq_arguments)


def _list_tensors(*parts: Any) -> list[Tensor]:
    return [one for part in parts for one in (*part.parameters(), *part.buffers())]


def _measure(tensors: list[Tensor]) -> list[int]:
    """The norm of each tensor as its bits, in which NaN is equal to itself; a GPU is waited for once."""
    import torch

    wide = (torch.float32, torch.float64)
    with exact_inference():
        norms = torch._foreach_norm([one if one.dtype in wide else one.float() for one in tensors])
        bits: list[int] = torch.stack(norms).double().view(torch.int64).tolist()
    return bits


def prepare_decoder(network: Any, positions: Tensor, *, split_products: bool) -> tuple[Any, SamMaskDecoder | None]:
    """The network with other layers in its prompt encoder and decoder, for a GPU, and what decodes in place of these.

    That is None where the decoder is not as released. The given network stays as it is.
    """
    prepared: Any = copy_without_weights(network)
    replace_channel_norms(prepared.prompt_encoder)
    if is_released_structure(network):
        return prepared, SamMaskDecoder(prepared, positions, split_products=split_products)
    replace_transposed_convolutions(prepared.mask_decoder)
    replace_channel_norms(prepared.mask_decoder)
    if split_products:
        replace_linear_layers(prepared.mask_decoder)
    return prepared, None


def prepare_encoder(encoder: Any, *, split_products: bool, least: int = 512) -> Any:
    """The encoder for inference on a GPU, over the same weights: its relative positions are computed once.

    With `split_products`, `replace_linear_layers` replaces its linear layers of `least` inputs or more. The given
    encoder stays as it is.
    """
    prepared = copy_without_weights(encoder).eval()
    for name, module in prepared.named_modules():
        if hasattr(module, "get_rel_pos"):
            # The given layer's: a method of the layer itself would keep it until garbage is collected.
            module.get_rel_pos = _cache_positions(encoder.get_submodule(name).get_rel_pos)
    if split_products:
        replace_linear_layers(prepared, least)
    return prepared


def _cache_positions(get_rel_pos: Any) -> Any:
    """Transformers' `get_rel_pos`, called again only for other sizes or tables or once `state_of` the table differs.

    It makes its indices on the processor: a GPU would wait for them in every layer.
    """
    known: dict[tuple[int, int, int], tuple[weakref.ref[Tensor], Hashable, Tensor]] = {}

    def cached(q_size: int, k_size: int, rel_pos: Tensor) -> Tensor:
        place, state = (q_size, k_size, id(rel_pos)), state_of(rel_pos)
        found = known.get(place)
        # Another table may lie where an earlier one did.
        if found is None or found[0]() is not rel_pos or found[1] != state:
            found = known[place] = weakref.ref(rel_pos), state, get_rel_pos(q_size, k_size, rel_pos)
        return found[2]

    return cached


@dataclass(frozen=True)
class SamEncodedImage:
    """An encoded image: `embeddings` (1, C, h, w); for SAM-HQ also `intermediate` of the global layers."""

    network: SamNetwork
    frame: SamFrame
    embeddings: Tensor
    intermediate: tuple[Tensor, ...]

    @property
    def scale(self) -> tuple[float, float]:
        """Pixels of the input per pixel of the image, along x and y."""
        return self.frame.scale

    def decode(
        self, points: Tensor, labels: Tensor, boxes: Tensor | None, previous: Tensor | None, several: bool
    ) -> tuple[Tensor, Tensor]:
        """Logits (P, k, h, w) and predicted IoUs (P, k)."""
        return self.network.decode(self.embeddings, self.intermediate, points, labels, boxes, previous, several)

    def prepare_state(self, logits: Tensor) -> Tensor:
        """The logits, unchanged: SAM's mask prompt is the logits of its last answer."""
        return logits

    def enlarge(self, logits: Tensor) -> Tensor:
        """Logits (P, 1, H, W), resized to the image's size."""
        return self.frame.enlarge(logits)


POSITIONS = "shared_embedding.positional_embedding"

# (pattern of the authors' name, replacement for transformers' name). All rules are applied in order; the last three
# rename the layers of heads, whose names earlier rules have made.
TENSOR_NAME_RULES = [
    (row["pattern"], row["replacement"])
    for row in csv.DictReader(Path(__file__).with_name("sam_tensor_names.csv").read_text(encoding="utf-8").splitlines())
]


def load_checkpoint(path: Path, architecture: str, device: str = "cpu") -> tuple[Any, tuple[Path, ...]]:
    """Transformers' SamModel or SamHQModel with the file's weights, and the file; sizes come from tensor shapes."""
    loaded = load_state_dict(Path(path).expanduser())
    if "image_encoder.pos_embed" not in loaded.state:
        raise ModelError(
            "the file holds no SAM with a ViT encoder: it has no image_encoder.pos_embed",
            file=path,
            remedy="give a file such as sam_vit_h_4b8939.pth or a folder in transformers' layout; "
            "MobileSAM is the model mobile-sam",
        )
    transformers = require("transformers", extra="hf")
    state = {rename_tensor(name): tensor for name, tensor in loaded.state.items()}
    if (shared := state.get(f"prompt_encoder.{POSITIONS}")) is not None:
        state["shared_image_embedding.positional_embedding"] = shared
    config = getattr(transformers, architecture).config_class(
        **read_config(loaded.state, hq=architecture == "SamHQModel")
    )
    network = getattr(transformers, architecture)(config)
    load_into(network, replace(loaded, state=state))
    return network.float().eval().requires_grad_(False).to(device), (loaded.path,)


def rename_tensor(name: str) -> str:
    """Transformers' name of a tensor, given the authors' name.

    >>> rename_tensor("mask_decoder.iou_prediction_head.layers.2.bias")
    'mask_decoder.iou_prediction_head.proj_out.bias'
    """
    for pattern, replacement in TENSOR_NAME_RULES:
        name = re.sub(pattern, replacement, name)
    return name


def read_config(state: Mapping[str, Tensor], *, hq: bool = False) -> dict[str, dict[str, Any]]:
    """The three parts of transformers' configuration, from the shapes of the tensors under their authors' names.

    A layer has global attention if its table of relative positions covers the whole grid, else windowed attention.
    """
    _, grid, _, hidden = state["image_encoder.pos_embed"].shape
    patch = state["image_encoder.patch_embed.proj.weight"].shape[-1]
    table_shapes = [
        state[key].shape for key in _list_numbered_keys(state, r"image_encoder\.blocks\.(\d+)\.attn\.rel_pos_h")
    ]
    windows = [(length + 1) // 2 for length, _ in table_shapes if length != 2 * grid - 1]
    channels = state["image_encoder.neck.0.weight"].shape[0]
    decoder_layer = "mask_decoder.transformer.layers.0."
    vision = {
        "hidden_size": hidden,
        "num_hidden_layers": len(table_shapes),
        "num_attention_heads": hidden // table_shapes[0][1],
        "image_size": grid * patch,
        "patch_size": patch,
        "output_channels": channels,
        "mlp_dim": state["image_encoder.blocks.0.mlp.lin1.weight"].shape[0],
        "window_size": windows[0] if windows else 0,
        "global_attn_indexes": [layer for layer, (length, _) in enumerate(table_shapes) if length == 2 * grid - 1],
        "num_pos_feats": channels // 2,
    }
    prompt = {"hidden_size": channels, "image_size": grid * patch, "patch_size": patch}
    decoder = {"hidden_size": channels, "mlp_dim": state[f"{decoder_layer}mlp.lin1.weight"].shape[0]}
    return {
        "vision_config": vision,
        "prompt_encoder_config": prompt,
        "mask_decoder_config": decoder | ({"vit_dim": hidden} if hq else {}),
    }


def _list_numbered_keys(state: Mapping[str, Tensor], pattern: str) -> list[str]:
    """The keys that match `pattern`, sorted by the number in its group."""
    numbered = [(int(match[1]), match[0]) for match in (re.fullmatch(pattern, name) for name in state) if match]
    return [name for _, name in sorted(numbered)]
