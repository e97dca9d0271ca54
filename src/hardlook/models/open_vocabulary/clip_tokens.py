"""Texts as CLIP's tokens: by the tokenizer of a local folder, or letter by letter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hardlook.errors import ModelError
from hardlook.extras import require
from hardlook.models.transformers_folder import loading_errors, quiet_and_offline, tokenize

START, END, CONTEXT = 49406, 49407, 77
FILES = ("vocab.json", "merges.txt")
_REMEDY = "--model-arg tokenizer=FOLDER with vocab.json and merges.txt of a CLIP, as published with every CLIP"

# CLIP's vocabulary begins with the bytes that can be printed, then the others; then all again, as ends of words.
_PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))
_BYTES = {byte: number for number, byte in enumerate((*_PRINTED, *(one for one in range(256) if one not in _PRINTED)))}


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
        self.files = tuple(folder / name for name in FILES)
        if absent := [path for path in self.files if not path.is_file()]:
            raise ModelError("the folder has no tokenizer of CLIP", file=absent[0], remedy=_REMEDY)
        with quiet_and_offline(), loading_errors(folder, _REMEDY):
            transformers = require("transformers", extra="hf")
            self._tokenizer: Any = transformers.CLIPTokenizer.from_pretrained(str(folder), local_files_only=True)
        # The text tower finds the end of a text by its token, the largest of all.
        if self._tokenizer.eos_token_id != END:
            raise ModelError(
                f"the end of a text is the token {self._tokenizer.eos_token_id}, with CLIP it is {END}",
                file=self.files[0],
                remedy=_REMEDY,
            )

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, at most 77, with the marks of start and end."""
        return tokenize(self._tokenizer, texts, CONTEXT)
