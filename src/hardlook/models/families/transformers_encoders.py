"""Encoders of transformers: DINOv2, DINOv3, ViT, ResNet, ConvNeXt and other backbones; CLIP, SigLIP and SigLIP 2.

Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021. Zhai et al.,
"Sigmoid loss for language image pre-training", ICCV 2023. Tschannen et al., "SigLIP 2", 2025. Zhou et al., "Extract
free dense labels from CLIP", ECCV 2022 (MaskCLIP).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.models.families.hub_models import REMEDY, HubFolder, HubModel, encode_tokens, takes_option
from hardlook.models.families.image_preparation import prepare_image
from hardlook.models.roles import Features, Image, Vectors
from hardlook.models.torch_inference import exact_inference
from hardlook.models.wrapping import wrap

if TYPE_CHECKING:
    from torch import Tensor


class HubEncoder(HubModel):
    """A backbone: its pooled vector (else the class token, else the mean), and the last layer's map."""

    def __init__(self, folder: HubFolder) -> None:
        processor, files = folder.load_processor()
        super().__init__(folder, *files)
        known = getattr(require("transformers", extra="hf"), folder.architecture)
        # Classifiers come without the pooling layer, which would be filled at random.
        lacks_pooling = takes_option(known, "add_pooling_layer") and not folder.has_tensor("pooler")
        network = folder.load_network(**({"add_pooling_layer": False} if lacks_pooling else {}))
        if network.main_input_name != "pixel_values":
            raise ModelError(f"a {folder.model_type} reads no images", file=folder.path, remedy="choose an image model")
        self._wrapped = wrap(network, "encoder", preprocess=processor, batch_size=folder.batch_size)
        self.dimension = int(self._wrapped.dimension)

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, dimension) float32 and, where the network has them, one map (C, h, w) per image."""
        features: Features = self._wrapped.encode(images)
        return features


class HubImageTextEncoder(HubModel):
    """CLIP, SigLIP or SigLIP 2: images, texts and patches as vectors of one space."""

    def __init__(self, folder: HubFolder) -> None:
        self._processor, images = folder.load_processor()
        self._tokenizer, texts = folder.load_tokenizer()
        super().__init__(folder, *images, *texts)
        self._network = folder.load_network()
        self._batch = folder.batch_size
        self._is_clip = folder.model_type == "clip"
        text, vision = self._network.config.text_config, self._network.config.vision_config
        self._longest = int(text.max_position_embeddings)
        self._patch = int(vision.patch_size)
        self._side = int(getattr(vision, "image_size", 0) or 0)
        if not self._is_clip and getattr(self._network.vision_model, "head", None) is None:
            raise ModelError("the network has no pooling head (vision_use_head)", file=folder.path, remedy=REMEDY)
        self.dimension = int(self._network.config.projection_dim if self._is_clip else vision.hidden_size)
        self.logit_scale = float(self._network.logit_scale.exp())

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, dimension) float32 of unit length, and the last layer's patches as a map (C, h, w) per image."""
        if not len(images):
            return Features(np.zeros((0, self.dimension), np.float32))
        vectors, maps = zip(*self._run(images, self._read_features), strict=True)
        return Features(np.stack(vectors), list(maps))

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """(N, dimension) float32 of unit length."""
        vectors = [vector for vector, _ in self._run(images, self._read_features)]
        return np.stack(vectors) if vectors else np.zeros((0, self.dimension), np.float32)

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, dimension) float32 of unit length; texts are taken as they are."""
        import torch

        parts = [np.zeros((0, self.dimension), np.float32)]
        for start in range(0, len(texts), self._batch):
            some = texts[start : start + self._batch]
            # SigLIP was trained on texts filled to one length, without a mask.
            tokens = encode_tokens(self._tokenizer, some, self._longest, self.device, masked=self._is_clip)
            with exact_inference():
                pooled = _get_pooled(self._network.get_text_features(**tokens))
                parts.append(torch.nn.functional.normalize(pooled, dim=1).cpu().numpy())
        return np.concatenate(parts)

    def encode_patches(self, images: Sequence[Image], size: int = 0) -> list[NDArray[np.float32]]:
        """One map (dimension, h, w) float32 per image: a unit vector for each patch, of the space of the texts.

        MaskCLIP's way: in the last attention each patch sees itself alone, that is its value; for SigLIP that is the
        attention of the pooling head. The whole image is stretched to a square of `size` pixels, by default that of
        training; SigLIP 2 keeps the image's proportions and has no `size`.
        """
        return self._run(images, self._read_patches, whole=True, size=size)

    def _run(
        self, images: Sequence[Image], read: Callable[[dict[str, Any]], list[Any]], whole: bool = False, size: int = 0
    ) -> list[Any]:
        """What `read` makes of the inputs, one answer per image."""
        import torch

        prepared = [self._prepare(image, whole, size) for image in images]
        answers: list[Any] = []
        for start in range(0, len(images), self._batch):
            some = prepared[start : start + self._batch]
            inputs = {
                name: torch.from_numpy(np.concatenate([one[name] for one in some])).to(self.device) for name in some[0]
            }
            with exact_inference():
                answers += read(inputs)
        return answers

    def _prepare(self, image: Image, whole: bool, size: int) -> dict[str, NDArray[Any]]:
        options: dict[str, Any] = {}
        if whole and self._side:
            side = max(self._patch, (size or self._side) // self._patch * self._patch)
            options = {"size": {"height": side, "width": side}, "do_resize": True}
            if hasattr(self._processor, "do_center_crop"):
                options["do_center_crop"] = False
        made = prepare_image(self._processor, image, **options)
        return made

    def _read_features(self, inputs: dict[str, Any]) -> list[Any]:
        import torch

        pooled, hidden = self._look(inputs)
        vectors = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
        return list(zip(vectors, self._to_maps(hidden, inputs), strict=True))

    def _look(self, inputs: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Pooled vectors (N, D), not yet of unit length, and the last layer's patches (N, P, C)."""
        seen = self._network.vision_model(**_rename_mask(self._network.vision_model, inputs))
        if self._is_clip:
            return self._network.visual_projection(seen.pooler_output), seen.last_hidden_state[:, 1:]
        return seen.pooler_output, seen.last_hidden_state

    def _read_patches(self, inputs: dict[str, Any]) -> list[Any]:
        import torch

        vision = self._network.vision_model
        if self._is_clip:
            last = vision.encoder.layers[-1]
            # The states before the last layer.
            hidden = vision(**inputs, interpolate_pos_encoding=True, output_hidden_states=True).hidden_states[-2]
            values = last.self_attn.out_proj(last.self_attn.v_proj(last.layer_norm1(hidden)))
            hidden = hidden + values
            hidden = hidden + last.mlp(last.layer_norm2(hidden))
            patches = self._network.visual_projection(vision.post_layernorm(hidden[:, 1:]))
        else:
            options = {"interpolate_pos_encoding": True} if self._side else {}
            hidden = vision(**_rename_mask(vision, inputs), **options).last_hidden_state
            count, length, width = hidden.shape
            patches = vision.head(hidden.reshape(count * length, 1, width)).reshape(count, length, -1)
        return self._to_maps(torch.nn.functional.normalize(patches, dim=2), inputs)

    def _to_maps(self, tokens: Tensor, inputs: dict[str, Any]) -> list[NDArray[np.float32]]:
        """Tokens (N, P, C) of patches as one map (C, h, w) per image."""
        shapes = inputs.get("spatial_shapes")
        maps = []
        for place, cells in enumerate(tokens.cpu().numpy()):
            if shapes is not None:
                height, width = (int(length) for length in shapes[place])
            else:
                height, width = (length // self._patch for length in inputs["pixel_values"].shape[2:])
            kept = cells[: height * width].reshape(height, width, -1)
            maps.append(np.ascontiguousarray(kept.transpose(2, 0, 1)))
        return maps


def _rename_mask(vision: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs under the names of the vision network: SigLIP 2 has called its mask by two."""
    if "pixel_attention_mask" in inspect.signature(vision.forward).parameters:
        return inputs
    return {("attention_mask" if name == "pixel_attention_mask" else name): inputs[name] for name in inputs}


def _get_pooled(answer: Any) -> Tensor:
    """Vectors (N, D): transformers 5.0 and later return an object that holds them, earlier versions the tensor."""
    pooled: Tensor = getattr(answer, "pooler_output", answer)
    return pooled
