"""A text network and its tokenizer from a local folder in transformers' layout.

The tokenizer lies beside the weights as `tokenizer.json` or in the older files of its family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardlook.errors import DataError
from hardlook.extras import require
from hardlook.models.transformers_network import check_folder, loading, quiet_and_offline, read_network

TOKENIZERS = (("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"), ("spiece.model",))
_GET = "download the model's whole page (config, weights, tokenizer) and give that folder with --model-arg path=FOLDER"


@dataclass(frozen=True)
class TransformersFolder:
    """A network in evaluation mode, its configuration and tokenizer, and the files they were read from."""

    network: Any
    config: Any
    tokenizer: Any
    files: tuple[Path, ...]


def open_folder(
    path: Path | str, *, family: str, architecture: str, device: str = "cpu", **options: Any
) -> TransformersFolder:
    """Load transformers' class `architecture` from a folder whose config says it is of `family`."""
    folder = Path(path).expanduser()
    files = (*check_folder(folder, (family,), remedy=_GET), *_tokenizer_files(folder))
    network = read_network(folder, architecture, remedy=_GET, device=device, **options)
    with quiet_and_offline(), loading(folder, _GET):
        transformers = require("transformers", extra="hf")
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    return TransformersFolder(network, network.config, tokenizer, files)


def _tokenizer_files(folder: Path) -> list[Path]:
    # Without these transformers makes an empty tokenizer and says nothing.
    words = next((names for names in TOKENIZERS if all((folder / name).is_file() for name in names)), None)
    if words is None:
        known = " or ".join(" + ".join(names) for names in TOKENIZERS)
        raise DataError(f"the folder has no tokenizer ({known})", file=folder, remedy=_GET)
    return [folder / name for name in words]


def token_numbers(tokenizer: Any, texts: Sequence[str], longest: int) -> list[list[int]]:
    """Token numbers of each text, cut to `longest`; a text without any is the end-of-text mark alone."""
    numbers = tokenizer(list(texts), truncation=True, max_length=longest, padding=False)["input_ids"]
    end = next((n for n in (tokenizer.eos_token_id, tokenizer.bos_token_id) if n is not None), 0)
    return [list(row) or [end] for row in numbers]


def padded(numbers: Sequence[Sequence[int]], device: str, fill: int = 0) -> tuple[Any, Any]:
    """Token numbers (N, T) int64, filled at the end, and the mask (N, T) int64 of the real ones."""
    import torch

    longest = max(map(len, numbers))
    tokens = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in numbers], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in numbers], device=device)
    return tokens, mask
