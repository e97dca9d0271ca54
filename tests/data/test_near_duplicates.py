"""Images that show the same picture are found, others are not; damaged files are listed."""

import itertools
import sqlite3

import cv2
import numpy as np
import PIL.Image
import pytest
from scipy.fft import dctn

from hardlook.data import near_duplicates
from hardlook.data.concept_context import ConceptContextImage
from hardlook.data.near_duplicates import (
    LEAST_CORRELATION,
    MAX_BITS,
    decode_images,
    find_leaks,
    find_near_duplicates,
    group_similar_images,
    make_thumbnail,
)


def draw(seed, size=(120, 160)):
    """A picture with large and small shapes, as a photograph has."""
    rng = np.random.default_rng(seed)
    coarse = cv2.resize(rng.integers(0, 256, (5, 7, 3), dtype=np.uint8), size[::-1], interpolation=cv2.INTER_CUBIC)
    fine = cv2.resize(rng.integers(0, 80, (24, 32, 3), dtype=np.uint8), size[::-1], interpolation=cv2.INTER_CUBIC)
    return cv2.add(coarse, fine)


def save_again(image, quality):
    data = cv2.imencode(".jpg", np.ascontiguousarray(image), [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return cv2.imdecode(data, cv2.IMREAD_COLOR)


COPIES = {
    "saved at quality 30": lambda image: save_again(image, 30),
    "half as large": lambda image: cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA),
    "squashed to 84": lambda image: cv2.resize(image, (84, 84), interpolation=cv2.INTER_AREA),
    "three times as large": lambda image: cv2.resize(image, None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC),
    "mirrored": lambda image: image[:, ::-1],
    "cropped at the left": lambda image: image[:-6, 8:],
    "cropped at the right": lambda image: image[6:, :-8],
    "cropped by a tenth": lambda image: image[5:-7, 12:-4],
    "mirrored, cropped, saved": lambda image: save_again(image[4:-8, ::-1][:, 10:-6], 50),
    "grey": lambda image: np.repeat(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2),
}


def make_thumbnails(images):
    return np.stack([make_thumbnail(np.ascontiguousarray(image)) for image in images])


@pytest.mark.parametrize("kind", COPIES)
def test_copies_are_found_and_nothing_else(kind):
    originals = [draw(seed) for seed in range(40)]
    copies = [COPIES[kind](image) for image in originals]
    pairs, similar = find_near_duplicates(make_thumbnails(originals + copies))
    found = set(map(tuple, pairs.tolist()))
    wanted = {(place, place + 40) for place in range(40)}
    assert found <= wanted and len(found) >= 38
    assert (similar >= LEAST_CORRELATION).all() and (similar <= 1 + 1e-6).all()


def test_pictures_that_are_upside_down_negative_or_half_cut_are_others():
    originals = [draw(seed) for seed in range(20)]
    others = [change(image) for image in originals for change in (np.flipud, np.invert, lambda one: one[:, :80])]
    assert len(find_near_duplicates(make_thumbnails(originals + others))[0]) == 0


def test_the_lookup_finds_what_comparing_every_pair_finds():
    # The plain way, by scipy's transform and numpy's correlation, without crops: copies of many degrees of likeness.
    rng = np.random.default_rng(3)
    images = [draw(seed).astype(float) for seed in range(12)]
    blends = [
        np.clip(image + rng.normal(0, 1, image.shape) * noise, 0, 255) for image in images for noise in (0, 30, 90)
    ]
    mixed = [0.75 * one + 0.25 * other for one, other in itertools.pairwise(images)]
    thumbnails = make_thumbnails([image.astype(np.uint8) for image in [*blends, *mixed]])
    coefficients = dctn(thumbnails.astype(float), axes=(1, 2), norm="ortho")[:, :8, :8].reshape(-1, 64)[:, 1:]
    bits = coefficients > np.median(coefficients, axis=1, keepdims=True)
    coarse = thumbnails.reshape(-1, 16, 2, 16, 2).mean((2, 4)).reshape(len(thumbnails), -1)
    similar = np.corrcoef(coarse)
    wanted = {
        (one, other)
        for one, other in itertools.combinations(range(len(thumbnails)), 2)
        if (bits[one] != bits[other]).sum() <= MAX_BITS and similar[one, other] >= LEAST_CORRELATION
    }
    pairs, values = find_near_duplicates(thumbnails)
    found = dict(zip(map(tuple, pairs.tolist()), values, strict=True))
    assert len(wanted) >= 12 and wanted <= set(found)
    # A crop may fit better than the whole, never worse.
    assert all(found[pair] >= similar[pair] - 1e-5 for pair in wanted)


def test_every_hash_within_the_bound_is_found_and_none_beyond():
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 1 << 63, 500, dtype=np.uint64)
    tables = near_duplicates._WordTables(hashes)
    for changed in range(10):
        asked = hashes.copy()
        for place in range(len(asked)):
            for bit in rng.choice(63, changed, replace=False):
                asked[place] ^= np.uint64(1) << np.uint64(bit)
        questions, answers = tables.find(asked)
        own = set(questions[questions == answers].tolist())
        assert own == (set(range(500)) if changed <= MAX_BITS else set())


def test_flat_images_are_alike_only_if_equal():
    flat = [np.full((40, 40, 3), value, np.uint8) for value in (0, 128, 255, 255)]
    speck = flat[1].copy()
    speck[20, 20] = 129
    assert find_near_duplicates(make_thumbnails([*flat, speck]))[0].tolist() == [[2, 3]]


def test_no_image_one_image_and_thousands_of_copies_of_one():
    assert find_near_duplicates(np.zeros((0, 32, 32), np.uint8))[0].shape == (0, 2)
    one = make_thumbnails([draw(0)])
    assert len(find_near_duplicates(one)[0]) == 0
    # Every copy is paired with the first alone: not 12 million pairs.
    assert len(find_near_duplicates(np.repeat(one, 5000, axis=0))[0]) == 4999


@pytest.fixture
def files(tmp_path):
    """Name to path: a JPEG, the same pixels as PNG, a smaller copy, another picture, and what is no picture."""
    names = ("a.jpg", "a.png", "small.jpg", "b.png", "cut.png", "empty.png", "text.jpg")
    paths = {name: tmp_path / name for name in names}
    PIL.Image.fromarray(draw(1)).save(paths["a.jpg"], quality=90)
    pixels = np.asarray(PIL.Image.open(paths["a.jpg"]))
    PIL.Image.fromarray(pixels).save(paths["a.png"])
    PIL.Image.fromarray(pixels).resize((80, 60)).save(paths["small.jpg"], quality=60)
    PIL.Image.fromarray(draw(2)).save(paths["b.png"])
    paths["cut.png"].write_bytes(paths["b.png"].read_bytes()[:900])
    paths["empty.png"].touch()
    paths["text.jpg"].write_text("no picture")
    return {**paths, "lost.png": tmp_path / "lost.png"}


def test_a_png_of_a_jpeg_has_equal_pixels_and_damaged_files_are_listed(files, tmp_path):
    counted = []
    decoded = decode_images(list(files.values()), folder=tmp_path / "cache", advance=counted.append)
    assert sum(counted) == len(files)
    assert decoded.pixels[0] == decoded.pixels[1] != decoded.pixels[3]
    names = list(files)
    assert {names[place] for place in decoded.corrupt} == {"cut.png", "empty.png", "text.jpg", "lost.png"}
    assert "empty" in decoded.corrupt[5] and "no such file" in decoded.corrupt[7]
    assert all((decoded.contents[place] == "") == (place in decoded.corrupt) for place in range(len(names)))
    (group,) = group_similar_images(decoded)
    assert group.positions == (0, 1, 2) and not group.equal and LEAST_CORRELATION <= group.correlation <= 1
    (equal,) = group_similar_images(decode_images([files["a.jpg"], files["a.png"]], folder=tmp_path / "cache"))
    assert equal.equal and equal.correlation == 1


def test_images_are_decoded_once_and_a_damaged_cache_is_replaced(files, tmp_path, monkeypatch):
    good = [files[name] for name in ("a.jpg", "a.png", "b.png")]
    first = decode_images(good, folder=tmp_path / "cache")
    monkeypatch.setattr(near_duplicates, "read_image", None)
    again = decode_images(good[::-1], folder=tmp_path / "cache")
    assert again.pixels == first.pixels[::-1] and (again.thumbnails == first.thumbnails[::-1]).all()
    monkeypatch.undo()
    store = tmp_path / "cache" / "decoded-images.sqlite"
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE decoded_images SET thumbnail = x'00'")
    assert (decode_images(good, folder=tmp_path / "cache").thumbnails == first.thumbnails).all()
    store.write_bytes(b"no database" * 100)
    assert decode_images(good, folder=tmp_path / "cache").pixels == first.pixels
    assert decode_images(good, folder=tmp_path / "cache").pixels == first.pixels


def row(path, concept, context="snow", split=None):
    return ConceptContextImage(path, f"{concept}/{context}/{path.name}", concept, context, split)


def test_of_one_picture_one_file_stays_unless_concepts_or_splits_differ(files, tmp_path):
    a, same, b = (files[name] for name in ("a.jpg", "a.png", "b.png"))

    def leaks(rows, tested=None):
        return find_leaks(rows, decode_images([one.path for one in rows], folder=tmp_path / "cache"), tested)

    assert leaks([row(a, "cat"), row(same, "cat"), row(b, "cat")]) == ("cat/snow/a.png",)
    assert leaks([row(a, "cat"), row(same, "dog"), row(b, "cat")]) == ("cat/snow/a.jpg", "dog/snow/a.png")
    # One file under two contexts is no leak; under two concepts it is.
    assert leaks([row(a, "cat"), row(a, "cat", "mud")]) == ()
    assert leaks([row(a, "cat"), row(a, "dog")]) == ("cat/snow/a.jpg", "dog/snow/a.jpg")
    split = [row(a, "cat", split="train"), row(same, "cat", split="test"), row(b, "cat", split="test")]
    assert leaks(split, "test") == ("cat/snow/a.png",) and leaks(split, "train") == ("cat/snow/a.jpg",)
    assert leaks([row(files["cut.png"], "cat"), row(files["empty.png"], "dog")]) == ()
