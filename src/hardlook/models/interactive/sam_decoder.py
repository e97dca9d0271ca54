"""SAM's mask decoder for many prompts on one image, with fewer passes over maps than the network of transformers.

The results are those of `SamModel` up to the last bits of float32. What is saved: an image and its positions are not
copied for every prompt; keys, values and queries of a map are one product, with the positions' share W p of
W (x + p) = W x + W p computed once; and upscaled pixels stay where the products leave them, so that only the masks'
logits are put into rows. Masks that are not wanted are not computed.

Weights of products that were joined are copies: a decoder is made anew once the network's weights have changed, as
`SamNetwork` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hardlook.networks.gpu import read_upscaling
from hardlook.networks.kernels.fused_layers import attend, draw_masks, normalize
from hardlook.networks.kernels.split_products import SplitWeight

if TYPE_CHECKING:
    from torch import Tensor


class Product:
    """A linear layer over maps: `weight` (N, K), `bias` (N,) and a table of the positions' share, added to each map."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, split: bool) -> None:
        self.weight, self.bias = weight.contiguous(), bias
        self.table: Tensor | None = None
        self._split = SplitWeight() if split else None

    def __call__(self, maps: Tensor) -> Tensor:
        """Map (P, cells, K) to (P, cells, N)."""
        from torch.nn.functional import linear

        if self._split is not None:
            product = self._split.multiply(maps, self.weight, self.bias, self.table)
            if product is not None:
                return product
        product = linear(maps, self.weight, self.bias)
        return product if self.table is None else product.add_(self.table)


@dataclass
class _Layer:
    """A layer of the two-way transformer: its network, and one product for the keys, values and queries of a map."""

    network: Any
    joint: Product
    output: Product


class SamMaskDecoder:
    """Answers of the `prompt_encoder` and the `mask_decoder` of a SamModel with the released structure.

    `positions` (1, C, h, w) are the image's.
    """

    def __init__(self, network: Any, positions: Tensor, *, split_products: bool = False) -> None:
        import torch

        self.prompts, self.decoder = network.prompt_encoder, network.mask_decoder
        transformer = self.decoder.transformer
        self._layers = []
        for layer in transformer.layers:
            parts = (
                layer.cross_attn_token_to_image.k_proj,
                layer.cross_attn_token_to_image.v_proj,
                layer.cross_attn_image_to_token.q_proj,
            )
            out = layer.cross_attn_image_to_token.out_proj
            output = Product(out.weight, out.bias, split=split_products)
            self._layers.append(_Layer(layer, _join(parts, split=split_products), output))
        last = transformer.final_attn_token_to_image
        self._last = _join((last.k_proj, last.v_proj), split=split_products)
        self._first, self._second = (
            _as_product(layer, split=split_products)
            for layer in (self.decoder.upscale_conv1, self.decoder.upscale_conv2)
        )
        with torch.inference_mode():
            self._tokens = torch.cat([self.decoder.iou_token.weight, self.decoder.mask_tokens.weight])
            self._compute_tables(positions)

    def _compute_tables(self, positions: Tensor) -> None:
        """The share of the image's positions in all products, once."""
        import torch
        from torch.nn.functional import linear

        cells = positions[0].flatten(1).T.contiguous()
        with torch.autocast(cells.device.type, enabled=False):
            for joint in (*(layer.joint for layer in self._layers), self._last):
                # Keys and queries are of cells with their positions, values of the cells alone.
                weight = joint.weight.clone()
                width = len(weight) // (2 if joint is self._last else 3)
                weight[width : 2 * width] = 0
                joint.table = linear(cells.to(weight.dtype), weight)

    def decode(
        self,
        embeddings: Tensor,
        points: Tensor,
        labels: Tensor,
        boxes: Tensor | None,
        previous: Tensor | None,
        several: bool,
    ) -> tuple[Tensor, Tensor]:
        """As `EncodedImage.decode`, with the image's embeddings (1, C, h, w)."""
        import torch

        clicked = points.shape[1] > 0
        sparse, _ = self.prompts(
            input_points=points[:, None] if clicked else None,
            input_labels=labels[:, None] if clicked else None,
            input_boxes=None if boxes is None else boxes[:, None],
            input_masks=None,
        )
        count, (height, width) = len(points), embeddings.shape[-2:]
        cells = embeddings[0].flatten(1).T
        keys = cells + self.prompts.no_mask_embed.weight if previous is None else cells + self._embed(previous)
        # Without masks before, the maps are alike until they attend to their own tokens.
        tokens = self._tokens.expand(count, -1, -1)
        if sparse is not None:
            tokens = torch.cat([tokens, sparse[:, 0]], 1)
        queries, keys = self._transform(tokens, keys.expand(count, -1, -1))
        wanted = slice(1, None) if several else slice(0, 1)
        total = len(self.decoder.mask_tokens.weight)
        heads = list(self.decoder.output_hypernetworks_mlps)[wanted]
        numbers = range(total)[wanted]
        filters = torch.stack([head(queries[:, 1 + one]) for one, head in zip(numbers, heads, strict=True)], 1)
        scores = self.decoder.iou_prediction_head(queries[:, 0])[:, wanted]
        return self._draw(keys, filters, height, width), scores

    def _embed(self, previous: Tensor) -> Tensor:
        """Logits (P, 1, 4 h, 4 w) as maps (P, cells, C), whose channels lie last."""
        from torch.nn.functional import linear

        embed = self.prompts.mask_embed
        features = embed.activation(embed.layer_norm1(embed.conv1(previous)))
        features = embed.activation(embed.layer_norm2(embed.conv2(features)))
        return linear(features.flatten(2).transpose(1, 2), embed.conv3.weight.flatten(1), embed.conv3.bias)

    def _transform(self, tokens: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """The two-way transformer on tokens (P, n, C) and maps (P, cells, C)."""
        queries = tokens
        for place, layer in enumerate(self._layers):
            network = layer.network
            attention = network.self_attn
            asking = queries if network.skip_first_layer_pe else queries + tokens
            attended = _attend(attention, attention.q_proj(asking), attention.k_proj(asking), attention.v_proj(queries))
            attended = attention.out_proj(attended)
            queries = network.layer_norm1(attended if network.skip_first_layer_pe else queries + attended)
            # Where all maps are still the same one, one product serves them all.
            shared = place == 0 and keys.stride(0) == 0
            joint = layer.joint(keys[:1]).expand(len(keys), -1, -1) if shared else layer.joint(keys)
            map_keys, map_values, map_queries = joint.chunk(3, -1)
            attention = network.cross_attn_token_to_image
            attended = _attend(attention, attention.q_proj(queries + tokens), map_keys, map_values)
            queries = network.layer_norm2(queries + attention.out_proj(attended))
            queries = network.layer_norm3(queries + network.mlp(queries))
            attention = network.cross_attn_image_to_token
            attended = _attend(attention, map_queries, attention.k_proj(queries + tokens), attention.v_proj(queries))
            keys = normalize(layer.output(attended), network.layer_norm4, plus=keys)
        attention = self.decoder.transformer.final_attn_token_to_image
        map_keys, map_values = self._last(keys).chunk(2, -1)
        attended = _attend(attention, attention.q_proj(queries + tokens), map_keys, map_values)
        return self.decoder.transformer.layer_norm_final_attn(queries + attention.out_proj(attended)), keys

    def _draw(self, keys: Tensor, filters: Tensor, height: int, width: int) -> Tensor:
        """Logits (P, k, 4 h, 4 w) of maps (P, cells, C) and the masks' filters (P, k, C / 8)."""
        blocks = self._first(keys).reshape(len(keys), 4 * height * width, -1)
        blocks = normalize(blocks, self.decoder.upscale_layer_norm, gelu=True)
        pixels = self._second(blocks)
        return draw_masks(pixels.reshape(len(keys), height * width, -1), filters, height, width)


def is_released_structure(network: Any) -> bool:
    """Whether `SamMaskDecoder` computes what the network does: a SamModel in whose decoder nothing was changed.

    Nor may hooks listen to its layers, since many of them are not called, or attention be a function of others. Hooks
    that are registered later are not seen.
    """
    import torch

    kind = type(network)
    if (kind.__module__, kind.__qualname__) != ("transformers.models.sam.modeling_sam", "SamModel"):
        return False
    if torch.nn.modules.module._has_any_global_hook():  # type: ignore[no-untyped-call]
        return False
    if network.config.mask_decoder_config._attn_implementation not in ("sdpa", "eager"):
        return False
    modeling = import_module(kind.__module__)
    with torch.device("meta"):
        decoder = modeling.SamMaskDecoder(network.config.mask_decoder_config)
        prompts = modeling.SamPromptEncoder(network.config)
    pairs = (network.mask_decoder, decoder), (network.prompt_encoder, prompts)
    return all(_list_layers(one) == _list_layers(released) for one, released in pairs)


def _list_layers(network: Any) -> list[Any]:
    """Names, classes, settings and tensors' shapes of all layers, and whether something else than the class computes.

    Settings are such as strides, the number of heads and the factor of scores.
    """
    return [
        (
            name,
            type(one),
            getattr(getattr(one, "config", None), "_attn_implementation", None),
            *((key, value) for key, value in sorted(vars(one).items()) if _is_setting(key, value)),
            *((key, value.shape) for key, value in one.named_parameters(recurse=False)),
            *_list_changes(one),
        )
        for name, one in network.named_modules(remove_duplicate=False)
    ]


def _is_setting(name: str, value: Any) -> bool:
    return not name.startswith("_") and name != "training" and isinstance(value, int | float | str | tuple | None)


def _list_changes(layer: Any) -> list[Any]:
    return ["forward" in vars(layer), *layer._forward_hooks.values(), *layer._forward_pre_hooks.values()]


def _join(layers: tuple[Any, ...], *, split: bool) -> Product:
    import torch

    with torch.inference_mode():
        weight, bias = (torch.cat([getattr(one, name) for one in layers]) for name in ("weight", "bias"))
    return Product(weight, bias, split=split)


def _as_product(convolution: Any, *, split: bool) -> Product:
    """A transposed convolution whose kernel is its stride: each pixel becomes (rows, columns, filters) numbers."""
    import torch

    with torch.inference_mode():
        return Product(*read_upscaling(convolution), split=split)


def _attend(network: Any, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return attend(queries, keys, values, network.num_attention_heads)
