import os
import subprocess
import sys

import numpy as np
import pytest

from hardlook.models.feature_cache import CachedEncoder
from hardlook.models.roles import Features
from hardlook.world.planted import PlantedWorld

IMAGES = [scene.image for scene in PlantedWorld(count=6)]


class Counting:
    """An encoder that counts the images it is asked for; without maps unless told."""

    dimension = 3

    def __init__(self, maps=False):
        self.asked, self.maps = 0, maps

    def encode(self, images):
        self.asked += len(images)
        vectors = np.stack([image.reshape(-1, 3).mean(0) for image in images]).astype(np.float32)
        return Features(vectors, [image[:2, :2, 0].astype(np.float32)[None] for image in images] if self.maps else None)


@pytest.mark.parametrize("maps", [True, False])
def test_answers_are_those_of_the_encoder_first_and_later(tmp_path, maps):
    plain = Counting(maps).encode(IMAGES)
    for _ in range(2):
        cached = CachedEncoder(Counting(maps), "c", tmp_path).encode(IMAGES)
        assert (cached.vectors == plain.vectors).all()
        assert (cached.maps is None) == (plain.maps is None)
        if maps:
            assert all((a == b).all() for a, b in zip(cached.maps, plain.maps, strict=True))


def test_each_image_is_encoded_once_over_calls_runs_and_names(tmp_path):
    encoder = Counting()
    first = CachedEncoder(encoder, "c", tmp_path)
    first.encode(IMAGES[:4])
    first.encode([IMAGES[3], IMAGES[0], IMAGES[0].copy()])
    CachedEncoder(encoder, "c", tmp_path).encode(IMAGES)
    assert encoder.asked == 6
    assert (first.encoded, first.found) == (4, 3)


def test_doubles_within_one_call_are_encoded_once(tmp_path):
    encoder = Counting()
    answer = CachedEncoder(encoder, "c", tmp_path).encode([IMAGES[0], IMAGES[0]])
    assert encoder.asked == 1
    assert (answer.vectors[0] == answer.vectors[1]).all()


def test_another_encoder_size_or_pixel_is_another_feature(tmp_path):
    encoder = Counting()
    changed = IMAGES[0].copy()
    changed[0, 0, 0] ^= 1
    for identity, size, image in (
        ("a", "", IMAGES[0]),
        ("b", "", IMAGES[0]),
        ("a", "84", IMAGES[0]),
        ("a", "", changed),
    ):
        CachedEncoder(encoder, identity, tmp_path, size=size).encode([image])
    assert encoder.asked == 4


def test_the_bound_holds_and_the_used_stay(tmp_path):
    encoder = Counting()
    cached = CachedEncoder(encoder, "c", tmp_path)
    cached.encode(IMAGES)
    files = sorted(tmp_path.rglob("*.npz"))
    for age, path in enumerate(files):
        os.utime(path, (1_000_000 + age, 1_000_000 + age))
    cached.encode(IMAGES[:1])
    cached.files.most_bytes = 3 * files[0].stat().st_size
    cached.files.shrink()
    assert len(list(tmp_path.rglob("*.npz"))) == 3
    cached.encode(IMAGES[:1])
    assert encoder.asked == 6
    cached.encode(IMAGES)
    assert encoder.asked == 9


def test_what_a_killed_process_left_behind_is_cleared(tmp_path):
    cached = CachedEncoder(Counting(), "c", tmp_path)
    cached.encode(IMAGES[:1])
    half, fresh = cached.files.folder / ".half", cached.files.folder / ".fresh"
    for path in (half, fresh):
        path.write_bytes(b"x")
    os.utime(half, (1_000_000, 1_000_000))
    cached.files.shrink()
    assert (half.exists(), fresh.exists()) == (False, True)


def test_the_bound_is_over_all_encoders(tmp_path):
    CachedEncoder(Counting(), "a", tmp_path).encode(IMAGES)
    CachedEncoder(Counting(), "b", tmp_path, most_bytes=0).encode(IMAGES[:1])
    assert not list(tmp_path.rglob("*.npz"))


def test_a_damaged_file_is_encoded_again(tmp_path):
    encoder = Counting()
    CachedEncoder(encoder, "c", tmp_path).encode(IMAGES[:1])
    (path,) = tmp_path.rglob("*.npz")
    path.write_bytes(path.read_bytes()[:20])
    answer = CachedEncoder(encoder, "c", tmp_path).encode(IMAGES[:1])
    assert encoder.asked == 2
    assert (answer.vectors == Counting().encode(IMAGES[:1]).vectors).all()


def test_an_empty_call(tmp_path):
    assert CachedEncoder(Counting(), "c", tmp_path).encode([]).vectors.shape == (0, 3)


ENCODE_ALL = """
import sys
from pathlib import Path
from hardlook.models.feature_cache import CachedEncoder
from hardlook.models.registry import build
from hardlook.world.planted import PlantedWorld
images = [scene.image for scene in PlantedWorld(count=6)]
CachedEncoder(build("planted-encoder", role="encoder"), "p", Path(sys.argv[1])).encode(images)
"""


def test_processes_may_share_the_folder(tmp_path):
    workers = [subprocess.Popen([sys.executable, "-c", ENCODE_ALL, str(tmp_path)]) for _ in range(3)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert len(list(tmp_path.rglob("*.npz"))) == 6
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".npz"]
