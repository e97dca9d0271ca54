"""Vectors of free words by a text tower: CLIP's tokens of a text, and vectors that are computed once.

Tokens come from the tokenizer of a local folder, or letter by letter. Vectors are kept on disk beside the features of
images (`hardlook.models.feature_cache`), so that the next run, and every worker of one, reads them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.errors import ModelError, OptionError
from hardlook.extras import require
from hardlook.fingerprints import hash_file, hash_value
from hardlook.models.feature_cache import FeatureFiles, default_cache_folder
from hardlook.models.open_vocabulary.free_words import FreeWords
from hardlook.models.torch_inference import Precision, exact_inference
from hardlook.models.transformers_folder import loading_errors, pad_tokens, quiet_and_offline
from hardlook.models.transformers_folder import tokenize as tokenize_texts

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.networks.open_vocabulary.clip_text import CLIP

START, END, CONTEXT = 49406, 49407, 77
TOKENIZER_FILES = ("vocab.json", "merges.txt")
_TOKENIZER_REMEDY = (
    "--model-arg tokenizer=FOLDER with vocab.json and merges.txt of a CLIP, as published with every CLIP"
)

# CLIP's vocabulary begins with the bytes that can be printed, then the others; then all again, as ends of words.
_PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))
_BYTES = {byte: number for number, byte in enumerate((*_PRINTED, *(one for one in range(256) if one not in _PRINTED)))}

TEXT_BATCH = 128

Tokenize = Callable[[Sequence[str]], list[list[int]]]


def spell(text: str) -> list[int]:
    """Tokens of a text by letters, without the merges that a tokenizer's file has; for networks that learnt none.

    >>> spell("A cat")
    [49406, 320, 66, 64, 339, 49407]
    """
    numbers = []
    for word in re.findall(r"[^\W\d_]+|\d|(?:[^\s\w]|_)+", text.lower()):
        *first, last = word.encode()
        numbers += [*(_BYTES[byte] for byte in first), _BYTES[last] + len(_BYTES)]
    return [START, *numbers[: CONTEXT - 2], END]


class ClipTokenizer:
    """The tokenizer of a folder in transformers' layout; `files` are those it was read from."""

    def __init__(self, folder: Path) -> None:
        self.files = tuple(folder / name for name in TOKENIZER_FILES)
        if absent := [path for path in self.files if not path.is_file()]:
            raise ModelError("the folder has no tokenizer of CLIP", file=absent[0], remedy=_TOKENIZER_REMEDY)
        with quiet_and_offline(), loading_errors(folder, _TOKENIZER_REMEDY):
            transformers = require("transformers", extra="hf")
            self._tokenizer: Any = transformers.CLIPTokenizer.from_pretrained(str(folder), local_files_only=True)
        # The text tower finds the end of a text by its token, the largest of all.
        if self._tokenizer.eos_token_id != END:
            raise ModelError(
                f"the end of a text is the token {self._tokenizer.eos_token_id}, with CLIP it is {END}",
                file=self.files[0],
                remedy=_TOKENIZER_REMEDY,
            )

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, at most 77, with the marks of start and end."""
        return tokenize_texts(self._tokenizer, texts, CONTEXT)


def open_tokenizer(folder: Path | None, *, random: bool) -> tuple[Tokenize, tuple[Path, ...]]:
    """The tokenizer of a folder and its files; for `random` parameters a text may be spelt without one."""
    if folder is not None:
        tokenizer = ClipTokenizer(Path(folder).expanduser())
        return tokenizer, tokenizer.files
    if random:
        return lambda texts: [spell(text) for text in texts], ()
    raise OptionError(
        "words cannot be read without the tokenizer of CLIP",
        remedy="--model-arg tokenizer=FOLDER with vocab.json and merges.txt of a CLIP",
    )


def make_encoder(
    tower: CLIP, tokenize: Tokenize, device: str = "cpu", precision: Precision = "float32"
) -> Callable[[Sequence[str]], Tensor]:
    """A function from texts to CLIP's vectors (N, D) float32, not of unit length; `tower` is on the device."""
    import torch

    def encode(texts: Sequence[str]) -> Tensor:
        rows = []
        with exact_inference(precision):
            for start in range(0, len(texts), TEXT_BATCH):
                tokens, _ = pad_tokens(tokenize(texts[start : start + TEXT_BATCH]), device)
                rows.append(tower.encode_tokens(tokens).float())
        return torch.cat(rows)

    return encode


def encode_words(
    words: FreeWords,
    encode: Callable[[Sequence[str]], Any],
    *,
    tower: Sequence[Any],
    device: str = "cpu",
    precision: Precision = "float32",
    folder: Path | None = None,
) -> Tensor:
    """Unit vectors (names, D) float32 on the device: for each name the mean over its prompts' unit vectors.

    `encode` answers texts with vectors (N, D), as tensor or array. `tower` says whose they are: paths of files, which
    count by content, and plain values. What was computed before for the same tower, names and prompts is read from
    `folder`, by default the user's cache.
    """
    torch = require("torch", extra="torch")
    from hardlook.networks.open_vocabulary.clip_text import average_prompts

    whose = [hash_file(one) if isinstance(one, Path) else one for one in tower]
    # Other devices and versions round otherwise; a run has the same numbers whether or not it finds some.
    identity = hash_value(["text features 1", whose, device.partition(":")[0], precision, torch.__version__])
    stored = FeatureFiles(folder or default_cache_folder(), identity)
    key = hash_value([list(words.names), list(words.templates)])
    if (found := stored.read(key)) is None or len(found.get("vectors", ())) != len(words.names):
        features = torch.as_tensor(encode(words.list_prompts())).float()
        found = {"vectors": average_prompts(features, len(words.templates)).cpu().numpy()}
        with contextlib.suppress(OSError):  # no cache can be written here: the run goes on
            stored.write(key, found)
    rows: Tensor = torch.from_numpy(np.ascontiguousarray(found["vectors"], np.float32)).to(device)
    return rows
