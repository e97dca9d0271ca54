"""all-MiniLM-L6-v2 sentence vectors: a six-layer BERT, its token vectors averaged, in torch and tokenizers alone.

Wang et al., "MiniLM: Deep self-attention distillation for task-agnostic compression of pre-trained
transformers", NeurIPS 2020; Reimers and Gurevych, "Sentence-BERT", EMNLP 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import DataError
from hardlook.extras import require
from hardlook.models.roles import Vectors
from hardlook.models.torch_inference import exact_inference
from hardlook.models.transformers_folder import average_tokens, encode_in_batches, pad_tokens
from hardlook.models.weights.install import locate_weights
from hardlook.networks.loading import load_into, load_state_dict

if TYPE_CHECKING:
    from torch import Tensor, nn

DIMENSION, LAYERS, HEADS, WIDE = 384, 6, 12, 1536
WORDS, POSITIONS, KINDS = 30522, 512, 2

LONGEST = 256
"""Tokens kept of a text, the two marks at its ends included; what is beyond is cut, as the authors do."""

UNUSED = ("pooler.", "embeddings.position_ids")


class MiniLM:
    """Vectors of length 1 and 384 dimensions for sentences and words in English.

    `weights` is a state dict with BERT's usual names (default: the installed `all-minilm-l6-v2`); `tokenizer`
    is its `tokenizer.json` (default: the one beside the weights). `batch` texts at a time pass the network.
    """

    def __init__(
        self, weights: Path | None = None, tokenizer: Path | None = None, device: str = "cpu", batch: int = 64
    ) -> None:
        require("torch", extra="torch")
        path = Path(weights) if weights else locate_weights("all-minilm-l6-v2")["model.safetensors"]
        vocabulary = Path(tokenizer) if tokenizer else path.parent / "tokenizer.json"
        self._tokenizer = _read_tokenizer(vocabulary)
        self._network = build_network()
        load_into(self._network, load_state_dict(path), ignore=UNUSED)
        self._network.eval().requires_grad_(False).to(device)
        self._batch = batch
        self.device, self.dimension = device, DIMENSION
        self.weights_files: tuple[Path, ...] = (path, vocabulary)

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, 384) float32 of unit length."""
        return encode_in_batches(texts, self._batch, DIMENSION, self._encode)

    def _encode(self, texts: Sequence[str]) -> Any:
        import torch

        tokens, mask = pad_tokens([one.ids for one in self._tokenizer.encode_batch(list(texts))], self.device)
        with exact_inference():
            average = average_tokens(forward(self._network, tokens, mask.bool()), mask)
            return torch.nn.functional.normalize(average, dim=1).cpu().numpy()


def build_network() -> nn.ModuleDict:
    """BERT's layers with random weights under their usual names; `forward` runs them."""
    from torch import nn

    def dense(inputs: int, outputs: int) -> nn.ModuleDict:
        return nn.ModuleDict({"dense": nn.Linear(inputs, outputs)})

    def dense_and_norm(inputs: int) -> nn.ModuleDict:
        return nn.ModuleDict({"dense": nn.Linear(inputs, DIMENSION), "LayerNorm": nn.LayerNorm(DIMENSION, eps=1e-12)})

    def layer() -> nn.ModuleDict:
        heads = nn.ModuleDict({name: nn.Linear(DIMENSION, DIMENSION) for name in ("query", "key", "value")})
        attention = nn.ModuleDict({"self": heads, "output": dense_and_norm(DIMENSION)})
        return nn.ModuleDict(
            {"attention": attention, "intermediate": dense(DIMENSION, WIDE), "output": dense_and_norm(WIDE)}
        )

    embeddings = nn.ModuleDict(
        {
            "word_embeddings": nn.Embedding(WORDS, DIMENSION),
            "position_embeddings": nn.Embedding(POSITIONS, DIMENSION),
            "token_type_embeddings": nn.Embedding(KINDS, DIMENSION),
            "LayerNorm": nn.LayerNorm(DIMENSION, eps=1e-12),
        }
    )
    encoder = nn.ModuleDict({"layer": nn.ModuleList(layer() for _ in range(LAYERS))})
    return nn.ModuleDict({"embeddings": embeddings, "encoder": encoder})


def forward(network: nn.ModuleDict, tokens: Tensor, mask: Tensor) -> Tensor:
    """Token numbers (N, T) and a bool mask of the real ones to hidden states (N, T, 384)."""
    import torch
    import torch.nn.functional as functional

    parts: Any = network  # a tree of dictionaries, which the type of ModuleDict does not express
    embeddings = parts["embeddings"]
    count, length = tokens.shape
    x = embeddings["word_embeddings"](tokens) + embeddings["token_type_embeddings"].weight[0]
    x = embeddings["LayerNorm"](x + embeddings["position_embeddings"](torch.arange(length, device=tokens.device)))
    for layer in parts["encoder"]["layer"]:
        attention, heads = layer["attention"], layer["attention"]["self"]
        query, key, value = (
            heads[name](x).view(count, length, HEADS, -1).transpose(1, 2) for name in ("query", "key", "value")
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        seen = seen.transpose(1, 2).reshape(count, length, DIMENSION)
        x = attention["output"]["LayerNorm"](x + attention["output"]["dense"](seen))
        wide = functional.gelu(layer["intermediate"]["dense"](x))
        x = layer["output"]["LayerNorm"](x + layer["output"]["dense"](wide))
    hidden: Tensor = x
    return hidden


def _read_tokenizer(path: Path) -> Any:
    tokenizers = require("tokenizers", extra="hf")
    if not path.is_file():
        raise DataError("the tokenizer is missing", file=path, remedy="give the path of its tokenizer.json")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(LONGEST)
    tokenizer.no_padding()
    return tokenizer
