"""The measures of a clickability network, and how they are written beside its weights.

Guo and others, "SegNeXt: Rethinking convolutional attention design for semantic segmentation", NeurIPS 2022; the two
masks that it sees beside the image are of "RClicks" (2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

STAGES = 4


@dataclass(frozen=True)
class Architecture:
    """One entry a stage in `dims`, `depths` and `mlp_ratios`; strides of the stages are 4, 8, 16 and 32.

    `head` channels in the decoder, normalised in `groups`; the factorisation has `rank` bases and takes
    `train_steps` or `eval_steps`. `drop_path` is the rate of the last block (the first has 0), `dropout` that of
    the last layer; both act in training only.

    >>> Architecture() == Architecture.from_json(Architecture().to_json())
    True
    """

    dims: tuple[int, ...] = (64, 128, 320, 512)
    depths: tuple[int, ...] = (3, 3, 12, 3)
    mlp_ratios: tuple[int, ...] = (8, 8, 4, 4)
    head: int = 512
    groups: int = 32
    rank: int = 16
    train_steps: int = 6
    eval_steps: int = 7
    drop_path: float = 0.1
    dropout: float = 0.1

    def __post_init__(self) -> None:
        lengths = {len(self.dims), len(self.depths), len(self.mlp_ratios)}
        if lengths != {STAGES}:
            raise ValueError(f"expected {STAGES} stages in dims, depths and mlp_ratios, got lengths {sorted(lengths)}")
        if self.head % self.groups:
            raise ValueError(f"expected the head's channels to be a multiple of {self.groups} groups, got {self.head}")

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Architecture:
        """The same from `to_json`; names that are not known are an error."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"expected the fields of an architecture, got {', '.join(unknown)} as well")
        settled: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        return cls(**settled)


SEGNEXT_B = Architecture()
