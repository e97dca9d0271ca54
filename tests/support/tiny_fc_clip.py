"""FC-CLIP on a CLIP of one block per stage, registered under the name `tiny`, and its files."""

import json

from hardlook.models.open_vocabulary.clip_tokens import END, START
from hardlook.networks.open_vocabulary.clip_resnet import RESNET_SIZES, ResNetSize
from hardlook.networks.open_vocabulary.clip_text import TEXT_SIZES, TextSize

TINY = "tiny"


def use_tiny(monkeypatch):
    """Register the size for a test."""
    monkeypatch.setitem(RESNET_SIZES, TINY, ResNetSize((1, 1, 1, 1), 16, 24, 64))
    monkeypatch.setitem(TEXT_SIZES, TINY, TextSize(64, 1, 24, quick=True))


def write_tokenizer(folder, *, end=END):
    """CLIP's vocabulary with the letters and no merges but one, which makes `cat` begin with `ca`."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    letters = [*map(chr, printed), *(chr(256 + number) for number in range(len(others)))]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "ca"]
    vocabulary = {word: number for number, word in enumerate(words)}
    vocabulary |= {f"unused{number}": number for number in range(len(words), START)}
    vocabulary |= {"<|startoftext|>": START, "<|endoftext|>": end}
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\nc a\n", encoding="utf-8")
    return folder
