"""fastText's binary model against gensim, which writes and reads it, and its hash against known values."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError
from hardlook.similarity.fasttext import MAGIC, character_ngrams, hash_ngram, read_fasttext_binary, read_fasttext_header
from hardlook.similarity.word_vectors import read_word_vectors

SENTENCES = [["cat", "dog", "naïve", "熊猫", "Bär"], ["car", "bus", "cat", "tram"], ["dog", "tree", "bus"]] * 20


def trained(folder, **options):
    """A model by gensim, written as fastText writes it."""
    models = pytest.importorskip("gensim.models")
    fasttext = pytest.importorskip("gensim.models.fasttext")
    model = models.FastText(SENTENCES, vector_size=6, min_count=1, bucket=300, epochs=2, workers=1, seed=1, **options)
    fasttext.save_facebook_model(model, str(folder / "model.bin"))
    return folder / "model.bin", model.wv


@pytest.mark.parametrize(("min_n", "max_n"), [(3, 6), (1, 2), (2, 5)])
def test_known_and_unknown_words_as_gensim_has_them(tmp_path, min_n, max_n):
    path, theirs = trained(tmp_path, min_n=min_n, max_n=max_n)
    unknown = ["cats", "Möwe", "unseen", "猫"]
    dimension, known, composed = read_fasttext_binary(path, {*theirs.key_to_index, *unknown})
    assert dimension == 6
    assert set(known) == set(theirs.key_to_index)
    assert set(composed) == set(unknown)
    for word, vector in {**known, **composed}.items():
        assert vector == pytest.approx(theirs[word], abs=1e-6)


def test_the_reader_of_all_formats_finds_it(tmp_path):
    path, theirs = trained(tmp_path)
    read = read_word_vectors(path, {"cat", "cats"})
    assert read.format == "fasttext" and set(read.vectors) == {"cat"} and set(read.composed) == {"cats"}
    assert read.composed["cats"] == pytest.approx(theirs["cats"], abs=1e-6)


@given(st.text(min_size=1, max_size=8), st.integers(1, 4), st.integers(0, 4))
def test_ngrams_are_all_substrings_of_the_marked_word(word, shortest, more):
    word = word.encode(errors="ignore").decode() or "x"
    marked = f"<{word}>"
    spans = [(i, j) for i in range(len(marked)) for j in range(i + 1, len(marked) + 1)]
    wanted = [marked[i:j] for i, j in spans if shortest <= j - i <= shortest + more]
    wanted = [gram for gram in wanted if gram not in "<>" or len(gram) != 1 or gram in word]
    found = [gram.decode() for gram in character_ngrams(word, shortest, shortest + more)]
    if not {"<", ">"} & set(word):  # a mark within the word counts, one at its edge does not
        assert sorted(found) == sorted(wanted)


def test_hash_is_fnv_1a_with_signed_bytes():
    # Fowler, Noll and Vo's published values of the 32-bit FNV-1a.
    assert (hash_ngram(b""), hash_ngram(b"a"), hash_ngram(b"foobar")) == (0x811C9DC5, 0xE40C292C, 0xBF9CF968)
    signed = np.frombuffer("ä".encode(), np.int8).astype(np.int64)
    value = 2166136261
    for byte in signed.tolist():
        value = ((value ^ (byte % 2**32)) * 16777619) % 2**32
    assert hash_ngram("ä".encode()) == value


def model_bytes(*, kept=-1, pairs=(), quantised=False, rows=12, bucket=10, version=12, kind=2):
    """A model of two words and one class, dimension 2, bigrams; row i of its matrix is (i, -i)."""
    arguments = struct.pack("<12id", 2, 5, 5, 1, 5, 1, 2, kind, bucket, 2, 2, 100, 1e-4)
    entries = [("cat", 0), ("é", 0), ("__label__x", 1)]
    counts = struct.pack("<3i2q", len(entries), 2, 1, 99, kept)
    dictionary = b"".join(word.encode() + b"\0" + struct.pack("<qb", 7, type_) for word, type_ in entries)
    matrix = np.stack([np.arange(rows), -np.arange(rows)], 1).astype("<f4")
    tail = struct.pack("<?2q", quantised, rows, 2) + matrix.tobytes()
    return struct.pack("<2i", MAGIC, version) + arguments + counts + dictionary + np.int32(pairs).tobytes() + tail


def test_rows_by_hand(tmp_path):
    path = tmp_path / "m.bin"
    path.write_bytes(model_bytes())
    rows = [2 + hash_ngram(gram) % 10 for gram in (b"<c", b"ca", b"at", b"t>")]
    _, known, composed = read_fasttext_binary(path, {"cat", "bat", "__label__x"})
    assert known["cat"] == pytest.approx(np.mean([0, *rows]) * np.array([1, -1]))
    assert set(composed) == {"bat", "__label__x"}  # a class of a classifier is no word


def test_pruned_models_keep_some_ngrams(tmp_path):
    path = tmp_path / "m.bin"
    slot = hash_ngram(b"ca") % 10
    path.write_bytes(model_bytes(kept=1, pairs=[slot, 1], rows=3 + 1))
    grams = [gram for gram in character_ngrams("cat", 2, 2) if hash_ngram(gram) % 10 == slot]
    assert read_fasttext_header(path, {"cat"}).row_numbers("cat") == [0] + [3] * len(grams)
    path.write_bytes(model_bytes(kept=0, rows=2))
    assert read_fasttext_header(path, {"cat"}).row_numbers("cat") == [0]
    assert read_fasttext_binary(path, {"bat"})[1:] == ({}, {})


def test_classifiers_of_the_old_version_use_no_ngrams(tmp_path):
    path = tmp_path / "m.bin"
    path.write_bytes(model_bytes(version=11, kind=3))
    assert read_fasttext_header(path, {"cat"}).row_numbers("cat") == [0]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (model_bytes()[:30], "the file ends at byte 30"),
        (model_bytes()[:100], "the dictionary ends early"),
        (model_bytes()[:-8], "a matrix of 12 x 2 numbers is announced, 88 bytes follow"),
        (model_bytes(quantised=True), "quantised"),
        (model_bytes(version=13), "no fastText model of version"),
    ],
)
def test_faults_are_named(tmp_path, data, expected):
    path = tmp_path / "bad.bin"
    path.write_bytes(data)
    with pytest.raises(DataError, match=expected) as caught:
        read_fasttext_binary(path, {"cat"})
    assert caught.value.file == str(path) and caught.value.remedy
