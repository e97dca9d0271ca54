"""nltk's reader over WordNet's own files, which the weights `wordnet-3.0` bring."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hardlook.models.weights.install import get_weights_status, locate_weights
from hardlook.similarity.wordnet.nouns import read_lines


@pytest.fixture(scope="session")
def dict_folder(tmp_path_factory) -> Path:
    """A complete dict folder: the package's files, data.noun in one piece, and the lists that the package lacks.

    `noun.exc` is made from our own archive, as the package has none; the other lists of exceptions are empty.
    """
    if get_weights_status("wordnet-3.0") != "installed":
        pytest.skip("wordnet-3.0 is not installed; hardlook weights install wordnet-3.0")
    files = locate_weights("wordnet-3.0")
    folder = tmp_path_factory.mktemp("dict")
    for path in files["index.noun"].parent.iterdir():
        if path.name.startswith(("data.", "index.", "lexnames")) and not path.name.startswith("data.noun"):
            # A copy, as nltk follows no link out of the folders it was told of.
            shutil.copyfile(path, folder / path.name)
    halves = [files[name].read_text(encoding="ascii") for name in ("data.noun1", "data.noun2")]
    (folder / "data.noun").write_text("\n".join(halves), encoding="ascii")
    (folder / "noun.exc").write_text("".join(f"{line}\n" for line in read_lines("exceptions")), encoding="ascii")
    for name in ("adj.exc", "adv.exc", "verb.exc", "cntlist.rev"):
        (folder / name).touch()
    return folder


@pytest.fixture(scope="session")
def reader(dict_folder) -> Iterator[Any]:
    """nltk's WordNetCorpusReader; nltk opens only files below a folder on its own search path."""
    nltk_wordnet = pytest.importorskip("nltk.corpus.reader.wordnet")

    class EnglishReader(nltk_wordnet.WordNetCorpusReader):
        def map_wn(self, version="wordnet"):
            """No map to other releases: only the multilingual functions need it, and it needs nltk's downloads."""

    search_path = pytest.importorskip("nltk.data").path
    search_path.append(str(dict_folder))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The multilingual functions")
        yield EnglishReader(str(dict_folder), None)
    search_path.remove(str(dict_folder))
