"""Networks and tokenizers from a local folder in transformers' layout; nothing is downloaded or unpickled.

The layout is what `save_pretrained` writes and what a model hub's page holds: `config.json` and the weights, and for a
text network `tokenizer.json` or the older tokenizer files of its family.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hardlook.errors import DataError, ModelError, shorten
from hardlook.extras import require
from hardlook.models.roles import Vectors
from hardlook.reading import reading

WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def read_network(folder: Path, architecture: str, *, remedy: str, device: str = "cpu", **options: Any) -> Any:
    """Transformers' class `architecture` from a folder, in float32 and evaluation mode, on the device.

    Weights that leave a part of the network without values are an error: transformers would fill it at random.
    """
    require("torch", extra="torch")
    with quiet_and_offline():
        transformers = require("transformers", extra="hf")
        if (known := getattr(transformers, architecture, None)) is None:
            what = f"the installed transformers {transformers.__version__} has no {architecture}"
            raise ModelError(what, remedy='pip install --upgrade "hardlook[hf]"')
        with loading_errors(folder, remedy):
            network, report = known.from_pretrained(
                str(folder), local_files_only=True, output_loading_info=True, **options
            )
    if lacking := sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]])):
        shown = ", ".join(lacking[:6]) + (f" and {len(lacking) - 6} more" if len(lacking) > 6 else "")
        raise ModelError(f"the weights lack {len(lacking)} tensors: {shown}", file=folder, remedy=remedy)
    return network.float().eval().requires_grad_(False).to(device)


@contextmanager
def loading_errors(folder: Path, remedy: str) -> Iterator[None]:
    """Whatever transformers raises while it reads the folder, as an error that names it."""
    try:
        yield
    except (OSError, ValueError, ImportError, RuntimeError, KeyError, pickle.UnpicklingError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"transformers cannot load this folder: {lines[0]}", file=folder, remedy=remedy) from error


def check_folder(folder: Path, families: tuple[str, ...], *, remedy: str) -> tuple[Path, ...]:
    """The files of the folder that matter; an error with `remedy` that names the first one missing.

    `families` are the model types that its config may name.

    >>> check_folder(Path("nowhere"), ("bert",), remedy="download it")
    Traceback (most recent call last):
    ...
    hardlook.errors.DataError: the model's folder does not exist
      file: nowhere
      remedy: download it
    """
    if not folder.is_dir():
        raise DataError("the model's folder does not exist", file=folder, remedy=remedy)
    config = folder / "config.json"
    if not config.is_file():
        raise DataError("the folder has no config.json", file=folder, remedy=remedy)
    with reading(config, "not a readable configuration", remedy=remedy):
        kind = json.loads(config.read_text(encoding="utf-8")).get("model_type")
    kind = shorten(str(kind), 60)
    if kind not in families:
        raise ModelError(
            f"the folder holds a {kind!r} model, expected {' or '.join(map(repr, families))}",
            file=config,
            remedy=f"give a folder of the {' or '.join(families)} family, or the model that is for {kind}",
        )
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise DataError(f"the folder has no weights ({' or '.join(WEIGHTS[::2])})", file=folder, remedy=remedy)
    parts = [weights]
    if weights.suffix == ".json":
        with reading(weights, "not a readable index of weights", remedy=remedy):
            named = json.loads(weights.read_text(encoding="utf-8"))["weight_map"].values()
            parts += [folder / name for name in sorted(set(named))]
    with reading(weights, "not a readable index of weights", remedy=remedy):
        absent = [part for part in parts if not part.is_file()]
    if absent:
        raise DataError("a part of the weights is missing", file=absent[0], remedy=remedy)
    return (config, *parts)


@contextmanager
def quiet_and_offline() -> Iterator[None]:
    """Loading without progress bars and tables of keys, and with the hub switched off."""
    before = {name: os.environ.get(name) for name in _OFFLINE}
    os.environ.update(_OFFLINE)
    try:
        logging = require("transformers.utils.logging", extra="hf")
        level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bar:
                logging.enable_progress_bar()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


TOKENIZERS = (("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"), ("spiece.model",))

_REMEDY = (
    "download the model's whole page (config, weights, tokenizer) and give that folder with --model-arg path=FOLDER"
)


@dataclass(frozen=True)
class TextNetwork:
    """A network in evaluation mode, its tokenizer, and the files they were read from."""

    network: Any
    tokenizer: Any
    files: tuple[Path, ...]


def open_text_network(
    path: Path | str, *, family: str, architecture: str, device: str = "cpu", **options: Any
) -> TextNetwork:
    """Load transformers' class `architecture` from a folder whose config says it is of `family`."""
    folder = Path(path).expanduser()
    files = (*check_folder(folder, (family,), remedy=_REMEDY), *_tokenizer_files(folder))
    network = read_network(folder, architecture, remedy=_REMEDY, device=device, **options)
    with quiet_and_offline(), loading_errors(folder, _REMEDY):
        transformers = require("transformers", extra="hf")
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    return TextNetwork(network, tokenizer, files)


def _tokenizer_files(folder: Path) -> list[Path]:
    # Without these transformers makes an empty tokenizer and says nothing.
    found = next((names for names in TOKENIZERS if all((folder / name).is_file() for name in names)), None)
    if found is None:
        known = " or ".join(" + ".join(names) for names in TOKENIZERS)
        raise DataError(f"the folder has no tokenizer ({known})", file=folder, remedy=_REMEDY)
    return [folder / name for name in found]


def tokenize(tokenizer: Any, texts: Sequence[str], longest: int) -> list[list[int]]:
    """Token numbers of each text, cut to `longest`; a text without any is the end-of-text mark alone."""
    numbers = tokenizer(list(texts), truncation=True, max_length=longest, padding=False)["input_ids"]
    end = next((n for n in (tokenizer.eos_token_id, tokenizer.bos_token_id) if n is not None), 0)
    return [list(row) or [end] for row in numbers]


def pad_tokens(numbers: Sequence[Sequence[int]], device: str, fill: int = 0) -> tuple[Any, Any]:
    """Token numbers (N, T) int64, filled at the end, and the mask (N, T) int64 of the real ones."""
    import torch

    longest = max(map(len, numbers))
    tokens = torch.tensor([[*row, *[fill] * (longest - len(row))] for row in numbers], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in numbers], device=device)
    return tokens, mask


def encode_in_batches(
    items: Sequence[Any], batch: int, dimension: int, encode: Callable[[Sequence[Any]], Any]
) -> Vectors:
    """(N, dimension) float32: what `encode` gives for at most `batch` items at a time."""
    parts = [encode(items[start : start + batch]) for start in range(0, len(items), batch)]
    return np.concatenate([np.empty((0, dimension), np.float32), *parts])


def average_tokens(hidden: Any, mask: Any) -> Any:
    """Mean (N, D) over the real tokens of hidden states (N, T, D), with the mask (N, T) of `pad_tokens`."""
    weight = mask.to(hidden.dtype)[..., None]
    return (hidden * weight).sum(1) / weight.sum(1)
