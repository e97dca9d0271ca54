"""CLIP's text tower with open_clip's names, and classifiers made of names and prompts.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021. Token ids are handed
in: the tokenizer is that of the checkpoint's library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, CONTEXT = 49408, 77


@dataclass(frozen=True)
class TextSize:
    """Channels, layers and the length of CLIP's vectors; `quick` is the GELU of OpenAI's weights.

    There is one head for every 64 channels.
    """

    width: int
    layers: int
    output: int
    quick: bool = False
    vocabulary: int = VOCABULARY
    context: int = CONTEXT


TEXT_SIZES: Mapping[str, TextSize] = {
    "tiny": TextSize(64, 1, 24, quick=True),
    "convnext_base": TextSize(512, 12, 640),
    "convnext_large_d_320": TextSize(768, 16, 768),
    "RN50": TextSize(512, 12, 1024, quick=True),
    "RN101": TextSize(512, 12, 512, quick=True),
    "RN50x4": TextSize(640, 12, 640, quick=True),
    "RN50x16": TextSize(768, 12, 768, quick=True),
    "RN50x64": TextSize(1024, 12, 1024, quick=True),
    "ViT-B-16": TextSize(512, 12, 512, quick=True),
    "ViT-L-14": TextSize(768, 12, 768, quick=True),
    "ViT-L-14-336": TextSize(768, 12, 768, quick=True),
}
"""Sizes by the names of open_clip, and a tiny one for tries; the quick GELU is that of OpenAI's weights."""


class MLP(nn.Module):
    """The perceptron of both towers, with the exact GELU or OpenAI's `quick` one."""

    def __init__(self, width: int, quick: bool) -> None:
        super().__init__()
        self.quick = quick
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, width)."""
        x = self.c_fc(x)
        return self.c_proj(x * torch.sigmoid(1.702 * x) if self.quick else functional.gelu(x))  # type: ignore[no-any-return]


class ResidualBlock(nn.Module):
    """Attention, then a perceptron, each after layer normalisation and added to its input (B, N, width)."""

    def __init__(self, width: int, *, quick: bool) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, width // 64, batch_first=True)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width, quick)

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        """`hidden` (N, N) bool: what a position does not attend to."""
        normed = self.ln_1(x)
        x = x + self.attn(normed, normed, normed, attn_mask=hidden, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class _Transformer(nn.Module):
    def __init__(self, size: TextSize) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(ResidualBlock(size.width, quick=size.quick) for _ in range(size.layers))


class CLIP(nn.Module):
    """Both towers of a CLIP under open_clip's names; either may be left out.

    `visual` is the image side. Without `text` there are no parameters of texts, but the scale of logits.
    """

    def __init__(self, visual: nn.Module | None = None, text: TextSize | None = None) -> None:
        super().__init__()
        if text is not None:
            self.positional_embedding = nn.Parameter(0.01 * torch.randn(text.context, text.width))
            self.text_projection = nn.Parameter(torch.randn(text.width, text.output) / text.width**0.5)
        self.logit_scale = nn.Parameter(torch.tensor(1 / 0.07).log())
        if visual is not None:
            self.visual = visual
        if text is not None:
            self.transformer = _Transformer(text)
            self.token_embedding = nn.Embedding(text.vocabulary, text.width)
            self.ln_final = nn.LayerNorm(text.width)

    def encode_tokens(self, tokens: Tensor) -> Tensor:
        """Vectors (B, output), not of unit length, of token ids (B, N); the end token has the largest id."""
        ends = tokens.argmax(1)
        tokens = tokens[:, : int(ends.max()) + 1]  # no position sees a later one: what follows the ends has no effect
        x = self.token_embedding(tokens) + self.positional_embedding[: tokens.shape[1]]
        hidden = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).triu(1)
        for block in self.transformer.resblocks:
            x = block(x, hidden)
        found = self.ln_final(x[torch.arange(len(x), device=x.device), ends])
        return found @ self.text_projection.to(found.dtype)  # type: ignore[no-any-return]


def average_prompts(features: Tensor, prompts: int) -> Tensor:
    """Unit vectors (names, D) of text features (names * prompts, D), the prompts of a name side by side.

    >>> features = torch.tensor([[2.0, 0.0], [0.0, 5.0], [1.0, 0.0], [3.0, 0.0]])
    >>> average_prompts(features, 2)
    tensor([[0.7071, 0.7071],
            [1.0000, 0.0000]])
    """
    unit = functional.normalize(features, dim=-1)
    return functional.normalize(unit.reshape(-1, prompts, unit.shape[1]).mean(1), dim=-1)


def take_best_names(logits: Tensor, counts: Sequence[int]) -> Tensor:
    """Logits (..., classes) of logits (..., names), where the names of a class, `counts` of them, lie side by side.

    >>> take_best_names(torch.tensor([[1.0, 5.0, 3.0]]), [2, 1])
    tensor([[5., 3.]])
    """
    return torch.stack([names.amax(-1) for names in torch.split(logits, list(counts), -1)], -1)


def split_names(label: str, *, released: bool = False) -> tuple[str, ...]:
    """The names of a class, which commas separate, without blanks around them, none of them twice.

    `released` takes one blank after a comma away and nothing else: other blanks, empty and repeated names stay.

    >>> split_names("cat,  kitten, cat")
    ('cat', 'kitten')
    >>> split_names("cat,  kitten, cat", released=True)
    ('cat', ' kitten', 'cat')
    """
    if released:
        return tuple(label.replace(", ", ",").split(","))
    names = [" ".join(name.split()) for name in label.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


def find_seen(labels: Sequence[str], trained: Sequence[str], *, released: bool = False) -> tuple[bool, ...]:
    """Whether a class has a name that a class of the training data has; capitals count only if `released`.

    >>> find_seen(["Dog", "sofa,couch"], ["dog,dogs", "cat"])
    (True, False)
    >>> find_seen(["Dog", "sofa,couch"], ["dog,dogs", "cat"], released=True)
    (False, False)
    """

    def read(label: str) -> set[str]:
        names = split_names(label, released=released)
        return set(names) if released else {name.casefold() for name in names}

    known = set().union(*map(read, trained))
    return tuple(not known.isdisjoint(read(label)) for label in labels)
