"""Images that show the same picture: equal pixels (a PNG of a JPEG), and near-duplicates by a perceptual hash.

A copy may be saved again, resized, mirrored, or cropped by up to a tenth of each side. Images are decoded once: what is
kept of one, on disk by the content of its file, is a hash of its pixels and a grey thumbnail of 32 x 32. Zauner's
pHash (2010) gives 63 bits per thumbnail: which of the lowest frequencies of its cosine transform lie above their
median. Each image, mirrored or not, in 30 crops, is looked up among all images; hashes that differ in at most
`MAX_BITS` bits are confirmed by the correlation of the two thumbnails in the same crop. docs/concept-context-data.md
has the measured rates of detection and of false alarms.

>>> rng = np.random.default_rng(0)
>>> picture = cv2.resize(rng.integers(0, 256, (6, 6), dtype=np.uint8), (96, 96))
>>> other = cv2.resize(rng.integers(0, 256, (6, 6), dtype=np.uint8), (96, 96))
>>> thumbnails = np.stack([make_thumbnail(image) for image in (picture, other, picture[4:, 92::-1])])
>>> find_near_duplicates(thumbnails)[0].tolist()
[[0, 2]]

The lookup is exact and not quadratic: of two hashes of four words that differ in at most seven bits, one word differs
in at most one bit, and every word has a table (multi-index hashing; Norouzi, Punjani and Fleet, CVPR 2012).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.concept_context import ConceptContextImage
from hardlook.data.images import read_image
from hardlook.data.stored_files import Stored, hash_stored, read_stored_image
from hardlook.errors import DataError
from hardlook.file_hashes import default_cache_file, hash_files
from hardlook.fingerprints import hash_array

SIDE = 32  # of a thumbnail
MAX_BITS = 6  # of 63 that may differ; numbers of differing bits are even
LEAST_CORRELATION = 0.95
MOST_CROPPED = 0.1  # of each side

_Numbers = NDArray[np.int64]
_Hashes = NDArray[np.uint64]
_Floats = NDArray[np.float32]

Edges = tuple[float, float]
"""What is cut from a side, before and after, as shares of it."""

_NOTHING: Edges = (0.0, 0.0)
_FREQUENCIES = 8
_CONFIRMED_SIDE = 16  # coarser than a thumbnail: crops between those tried are half a cell off
_LEAST_DEVIATION = 2.0  # grey values; the hash of a flatter image is noise
_CROP_STEPS = 3
_WORD_BITS, _WORDS = 16, 4
_BLOCK = 8192  # images that are compared at a time
_MAX_PARAMETERS = 500  # of a query; old SQLite allows 999
_TABLE = "CREATE TABLE IF NOT EXISTS decoded_images (content TEXT PRIMARY KEY, pixels TEXT, thumbnail BLOB)"


@dataclass(frozen=True)
class DecodedImages:
    """What is kept of n decoded images.

    `contents` are hashes of the files and `pixels` of the pixels, "" where an image is corrupt; `thumbnails`
    (n, 32, 32) uint8 are grey; `corrupt` says what is wrong, by position.
    """

    contents: tuple[str, ...]
    pixels: tuple[str, ...]
    # What follows from the contents is not compared.
    thumbnails: NDArray[np.uint8] = field(compare=False, repr=False)
    corrupt: dict[int, str] = field(compare=False)


@dataclass(frozen=True)
class SimilarImages:
    """A group of positions whose images show the same picture; each resembles at least one other.

    `equal` says whether all of them have the same pixels; `correlation` is the lowest of the pairs that were found.
    """

    positions: tuple[int, ...]
    equal: bool
    correlation: float


def decode_images(
    images: Sequence[Path | Stored], *, folder: Path | None = None, advance: Callable[[int], object] | None = None
) -> DecodedImages:
    """Decode every image that was not decoded before; one that is missing, empty or no image is listed as corrupt.

    Images are files, or lie inside files or objects (`hardlook.data.stored_files`). `folder` holds the cache,
    `decoded-images.sqlite` (default: that of file hashes). `advance(count)` is called with the number of images done.
    """
    folder = folder or default_cache_file().parent
    contents, corrupt = _hash_contents(images, folder / default_cache_file().name)
    first: dict[str, int] = {}
    for position, content in contents.items():
        first.setdefault(content, position)
    known = _load_decoded(folder / "decoded-images.sqlite", list(first))
    fresh = [content for content in first if content not in known]
    faults: dict[str, str] = {}
    if advance is not None:
        advance(len(images) - len(fresh))
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:  # OpenCV and Pillow release the interpreter lock
        for start in range(0, len(fresh), 256):
            some = fresh[start : start + 256]
            made = dict(zip(some, pool.map(_decode, [images[first[content]] for content in some]), strict=True))
            good = {content: value for content, value in made.items() if not isinstance(value, str)}
            faults |= {content: value for content, value in made.items() if isinstance(value, str)}
            known |= good
            _store_decoded(folder / "decoded-images.sqlite", good)
            if advance is not None:
                advance(len(some))
    corrupt |= {position: faults[content] for position, content in contents.items() if content in faults}
    nothing = ("", bytes(SIDE * SIDE))
    rows = [known.get(contents.get(position, ""), nothing) for position in range(len(images))]
    thumbnails = np.frombuffer(b"".join(thumbnail for _, thumbnail in rows), np.uint8).reshape(-1, SIDE, SIDE)
    named = tuple("" if position in corrupt else contents[position] for position in range(len(images)))
    return DecodedImages(named, tuple(pixels for pixels, _ in rows), thumbnails, dict(sorted(corrupt.items())))


def find_unreadable(images: Sequence[Path | Stored]) -> dict[int, str]:
    """What is wrong with the images that have no content to decode, by position; the others are not decoded."""
    return _hash_contents(images, default_cache_file())[1]


def _hash_contents(images: Sequence[Path | Stored], cache: Path) -> tuple[dict[int, str], dict[int, str]]:
    """Hashes of contents by position, and what is wrong with those that have nothing to decode."""
    corrupt: dict[int, str] = {}
    hashed: dict[int, str] = {}
    files: dict[int, Path] = {}
    for position, image in enumerate(images):
        if not isinstance(image, Path):
            try:
                hashed[position] = hash_stored(image)
            except DataError as error:
                corrupt[position] = error.what
        elif why := _find_fault(image):
            corrupt[position] = why
        else:
            files[position] = image
    hashed |= zip(files, hash_files(list(files.values()), cache=cache), strict=True)
    return dict(sorted(hashed.items())), corrupt


def _find_fault(path: Path) -> str | None:
    """Why there is nothing to decode; None where there is."""
    try:
        if not path.is_file():
            return "there is no such file"
        return None if path.stat().st_size else "the file is empty"
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        return f"the file cannot be read: {getattr(error, 'strerror', None) or error}"


def _decode(file: Path | Stored) -> tuple[str, bytes] | str:
    """The hash of the pixels and the thumbnail, or what is wrong with the file."""
    try:
        image = read_image(file) if isinstance(file, Path) else read_stored_image(file)
    except DataError as error:
        return error.what
    return hash_array(image), make_thumbnail(image).tobytes()


def make_thumbnail(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(32, 32) uint8: the image (H, W, 3) or (H, W), grey and squashed."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image
    return np.asarray(cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA), np.uint8)


@contextlib.contextmanager
def _open_cache(path: Path) -> Iterator[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as store, store:
        store.execute(_TABLE)
        yield store


def _load_decoded(path: Path, contents: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    known: dict[str, tuple[str, bytes]] = {}
    if not path.is_file():
        return known
    try:
        with _open_cache(path) as store:
            for start in range(0, len(contents), _MAX_PARAMETERS):
                some = contents[start : start + _MAX_PARAMETERS]
                query = f"SELECT * FROM decoded_images WHERE content IN ({','.join('?' * len(some))})"
                known |= {content: (pixels, thumbnail) for content, pixels, thumbnail in store.execute(query, some)}
    except sqlite3.OperationalError:  # locked for too long, or in a read-only folder
        return {}
    except sqlite3.DatabaseError:  # damaged: the next write creates a new one
        with contextlib.suppress(OSError):
            path.unlink()
        return {}
    return {name: row for name, row in known.items() if row[0] and len(row[1] or b"") == SIDE * SIDE}


def _store_decoded(path: Path, made: dict[str, tuple[str, bytes]]) -> None:
    # A cache that cannot be written only costs time in the next run.
    with contextlib.suppress(OSError, sqlite3.Error), _open_cache(path) as store:
        rows = [(content, *value) for content, value in made.items()]
        store.executemany("INSERT OR REPLACE INTO decoded_images VALUES (?, ?, ?)", rows)


@lru_cache(maxsize=1)
def group_similar_images(decoded: DecodedImages) -> tuple[SimilarImages, ...]:
    """Groups of two or more positions with different files, by their first; corrupt images are in none."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(decoded.contents)
    whole = np.array([position not in decoded.corrupt for position in range(count)], np.bool_)
    first: dict[str, int] = {}
    owner = np.array([first.setdefault(pixels, place) for place, pixels in enumerate(decoded.pixels)], np.int64)
    distinct = np.flatnonzero((owner == np.arange(count)) & whole)
    pairs, correlations = find_near_duplicates(decoded.thumbnails[distinct])
    ends = distinct[pairs]
    copies = np.flatnonzero((owner != np.arange(count)) & whole)
    left, right = np.concatenate([ends[:, 0], owner[copies]]), np.concatenate([ends[:, 1], copies])
    graph = coo_array((np.ones(len(left), np.bool_), (left, right)), shape=(count, count))
    labels = connected_components(graph, directed=False)[1]
    lowest = np.ones(count)
    np.minimum.at(lowest, labels[ends[:, 0]], correlations)
    members: dict[int, list[int]] = {}
    for position in np.flatnonzero(whole & (np.bincount(labels, minlength=count)[labels] > 1)):
        members.setdefault(int(labels[position]), []).append(int(position))
    return tuple(
        SimilarImages(tuple(group), len({decoded.pixels[i] for i in group}) == 1, float(lowest[label]))
        for label, group in members.items()
        if len({decoded.contents[i] for i in group}) > 1
    )


def find_leaks(rows: Sequence[ConceptContextImage], decoded: DecodedImages, tested: str | None) -> tuple[str, ...]:
    """Names of the images of the split `tested` to leave out, so that no two that are left show the same picture.

    Of a group that shows one picture the first file stays, under all of its contexts. None stays where the group has
    several concepts, or an image of another split. `decoded` are the `rows`; `tested` is None for all images.
    """
    contents = decoded.contents
    same: dict[str, list[int]] = {}
    for place, content in enumerate(contents):
        if content:
            same.setdefault(content, []).append(place)
    # A file may be listed several times, with several contexts or, wrongly, concepts.
    groups = [group.positions for group in group_similar_images(decoded)]
    groups += [tuple(group) for group in same.values() if len(group) > 1]
    dropped: set[int] = set()
    for group in groups:
        mixed = len({rows[place].concept for place in group}) > 1
        shared = tested is not None and any(rows[place].split != tested for place in group)
        kept = None if mixed or shared else contents[group[0]]
        dropped.update(place for place in group if contents[place] != kept)
    return tuple(rows[place].name for place in sorted(dropped) if tested in (None, rows[place].split))


def find_near_duplicates(thumbnails: NDArray[np.uint8]) -> tuple[_Numbers, NDArray[np.float64]]:
    """Pairs (m, 2) of positions, the smaller first, sorted, and the correlation (m,) of each.

    Images whose grey values hardly differ (a deviation below 2) resemble only images with the same thumbnail.
    """
    first: dict[bytes, int] = {}
    owner = np.array([first.setdefault(one.tobytes(), place) for place, one in enumerate(thumbnails)], np.int64)
    same = np.flatnonzero(owner != np.arange(len(owner)))
    distinct = np.array(list(first.values()), np.int64)
    textured = distinct[thumbnails[distinct].std(axis=(1, 2)) >= _LEAST_DEVIATION]
    pairs, correlations = _search(thumbnails[textured])
    ends = np.concatenate([textured[pairs], np.stack([owner[same], same], axis=1)])
    values = np.concatenate([correlations, np.ones(len(same))])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    return ends[order], values[order]


def _search(thumbnails: NDArray[np.uint8]) -> tuple[_Numbers, NDArray[np.float64]]:
    """As `find_near_duplicates`, of different thumbnails with texture."""
    hashes, coarse = np.empty(len(thumbnails), np.uint64), np.empty((len(thumbnails), _CONFIRMED_SIDE**2), np.float32)
    for start in range(0, len(thumbnails), _BLOCK):
        block = thumbnails[start : start + _BLOCK].astype(np.float32)
        hashes[start : start + _BLOCK] = _compute_hashes(_transform(block, _NOTHING, _NOTHING))
        coarse[start : start + _BLOCK] = _normalize(_crop(block, _NOTHING, _NOTHING))
    tables = _WordTables(hashes)
    found, values = [np.empty((0, 2), np.int64)], [np.empty(0)]
    for start in range(0, len(thumbnails), _BLOCK):
        block = thumbnails[start : start + _BLOCK].astype(np.float32)
        for rows, columns in _list_crops():
            coefficients = _transform(block, rows, columns)
            for mirrored in (False, True):
                # To mirror an image changes the sign of every odd horizontal frequency.
                asked, match = tables.find(_compute_hashes(coefficients * _SIGNS if mirrored else coefficients))
                other = asked + start != match
                asked, match = asked[other], match[other]
                for part in range(0, len(asked), _BLOCK):
                    some, their = asked[part : part + _BLOCK], match[part : part + _BLOCK]
                    cropped = _crop(block[some], rows, columns)
                    similar = (_normalize(cropped[..., ::-1] if mirrored else cropped) * coarse[their]).sum(1)
                    sure = similar >= LEAST_CORRELATION
                    found.append(np.stack([some[sure] + start, their[sure]], axis=1))
                    values.append(similar[sure].astype(np.float64))
    pairs = np.sort(np.concatenate(found), axis=1)
    every, inverse = np.unique(pairs, axis=0, return_inverse=True)
    best = np.zeros(len(every))
    np.maximum.at(best, inverse.reshape(-1), np.concatenate(values))
    return every, best


@cache
def _list_crops() -> tuple[tuple[Edges, Edges], ...]:
    """30 crops (rows, columns): 0, 1/3, 2/3 or all of `MOST_CROPPED` of both sides, in every place on this grid."""
    crops = []
    for size in range(_CROP_STEPS + 1):
        cuts = [(before / _CROP_STEPS, (size - before) / _CROP_STEPS) for before in range(size + 1)]
        edges = [(MOST_CROPPED * before, MOST_CROPPED * after) for before, after in cuts]
        crops += [(rows, columns) for rows in edges for columns in edges]
    return tuple(crops)


@cache
def _make_resampling(edges: Edges, cells: int) -> _Floats:
    """(cells, 32): averages over equal parts of what `edges` leave of a side of a thumbnail."""
    bounds = np.linspace(edges[0] * SIDE, (1 - edges[1]) * SIDE, cells + 1)
    low, high = bounds[:-1, None], bounds[1:, None]
    overlap = np.minimum(high, np.arange(1, SIDE + 1)) - np.maximum(low, np.arange(SIDE))
    return np.asarray(np.clip(overlap, 0, None) / (high - low), np.float32)


@cache
def _make_transform(edges: Edges) -> _Floats:
    """(8, 32): the lowest frequencies of the cosine transform (type II) of what `edges` leave of a side."""
    angles = np.pi / SIDE * np.arange(_FREQUENCIES)[:, None] * (np.arange(SIDE) + 0.5)
    scale = np.full((_FREQUENCIES, 1), np.sqrt(2 / SIDE))
    scale[0] = np.sqrt(1 / SIDE)
    return np.asarray(scale * np.cos(angles) @ _make_resampling(edges, SIDE), np.float32)


_SIGNS = np.where(np.arange(_FREQUENCIES) % 2, -1, 1).astype(np.float32)


def _transform(thumbnails: _Floats, rows: Edges, columns: Edges) -> _Floats:
    """(n, 8, 8) coefficients of the cropped thumbnails."""
    across = thumbnails @ _make_transform(columns).T
    return np.asarray(_make_transform(rows) @ across, np.float32)


def _crop(thumbnails: _Floats, rows: Edges, columns: Edges) -> _Floats:
    """(n, 16, 16) the cropped thumbnails."""
    across = thumbnails @ _make_resampling(columns, _CONFIRMED_SIDE).T
    return np.asarray(_make_resampling(rows, _CONFIRMED_SIDE) @ across, np.float32)


def _normalize(images: _Floats) -> _Floats:
    """(n, 256) of mean 0 and length 1, so that a dot product is a correlation."""
    flat = images.reshape(len(images), -1)
    flat = flat - flat.mean(1, keepdims=True)
    return np.asarray(flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6), np.float32)


def _compute_hashes(coefficients: _Floats) -> _Hashes:
    """(n,) pHash: which of the 63 coefficients (all but the mean) lie above their median."""
    flat = coefficients.reshape(len(coefficients), -1)[:, 1:]
    middle = flat.shape[1] // 2
    above = flat > np.partition(flat, middle, axis=1)[:, middle, None]
    packed = np.packbits(np.pad(above, ((0, 0), (1, 0))), axis=1)
    return np.ascontiguousarray(packed).view(np.uint64).reshape(-1)


class _WordTables:
    """Hashes, found by those that differ from them in at most `MAX_BITS` (up to 7) bits."""

    def __init__(self, hashes: _Hashes) -> None:
        self.hashes = hashes
        self.orders, self.starts = [], []
        for word in range(_WORDS):
            values = self._take_word(hashes, word)
            self.orders.append(np.argsort(values, kind="stable"))
            counts = np.bincount(values, minlength=1 << _WORD_BITS)
            self.starts.append(np.concatenate([[0], np.cumsum(counts)]))
        # A word as it is, and with one bit changed.
        self.changes = np.array([0, *(1 << bit for bit in range(_WORD_BITS))])

    @staticmethod
    def _take_word(hashes: _Hashes, word: int) -> _Numbers:
        shifted = hashes >> np.uint64(word * _WORD_BITS)
        return (shifted & np.uint64((1 << _WORD_BITS) - 1)).astype(np.int64)

    def find(self, asked: _Hashes) -> tuple[_Numbers, _Numbers]:
        """Positions in `asked` and positions of the hashes near them; a pair may come up to four times."""
        questions, answers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for word in range(_WORDS):
            values = (self._take_word(asked, word)[:, None] ^ self.changes).reshape(-1)
            begins, ends = self.starts[word][values], self.starts[word][values + 1]
            filled = np.flatnonzero(ends > begins)
            counts = (ends - begins)[filled]
            # Blocks of candidates: a word that many images share must not take all memory.
            for part in _split_by_sum(counts, 1 << 22):
                some = counts[part]
                offsets = np.arange(some.sum()) - np.repeat(np.cumsum(some) - some, some)
                candidates = self.orders[word][np.repeat(begins[filled[part]], some) + offsets]
                question = np.repeat(filled[part] // len(self.changes), some)
                near = np.bitwise_count(asked[question] ^ self.hashes[candidates]) <= MAX_BITS
                questions.append(question[near])
                answers.append(candidates[near])
        return np.concatenate(questions), np.concatenate(answers)


def _split_by_sum(counts: _Numbers, most: int) -> Iterator[slice]:
    """Slices of consecutive counts whose sum is about `most`."""
    blocks = np.cumsum(counts) // most
    bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(counts)]
    yield from (slice(begin, end) for begin, end in pairwise(bounds) if end > begin)
