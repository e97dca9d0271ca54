"""The size of the networks that are tried without files, and a tokenizer of CLIP."""

import json

from hardlook.models.open_vocabulary.text_features import END, START

TINY = "tiny"


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
