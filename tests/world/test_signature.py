from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.errors import DataError
from hardlook.world import signature
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import RenderedScene
from hardlook.world.vocabulary import BY_CODE, VOID

_SCENE = PlantedWorld(seed=6, count=1)[0]


@settings(max_examples=30, deadline=None)
@given(turns=st.integers(0, 3), flip=st.booleans(), top=st.integers(0, 100), left=st.integers(0, 140))
def test_turns_flips_and_crops_keep_it(turns: int, flip: bool, top: int, left: int) -> None:
    def moved(array: np.ndarray) -> np.ndarray:
        turned = np.rot90(array[top:, left:], turns)
        return turned[:, ::-1] if flip else turned

    truth = signature.read_signature(moved(_SCENE.image))
    assert np.array_equal(truth.classes, moved(_SCENE.classes))
    assert np.array_equal(truth.instances, moved(_SCENE.instances))
    assert np.array_equal(truth.salient, moved(_SCENE.salient))


@settings(max_examples=20, deadline=None)
@given(width=st.integers(40, 300), height=st.integers(40, 300))
def test_nearest_neighbour_resizing_keeps_it(width: int, height: int) -> None:
    resized = cv2.resize(_SCENE.image, (width, height), interpolation=cv2.INTER_NEAREST)
    classes = cv2.resize(_SCENE.classes, (width, height), interpolation=cv2.INTER_NEAREST)
    assert np.array_equal(signature.read_signature(resized).classes, classes)


@pytest.mark.parametrize("quality", [50, 75, 95, 100])
def test_jpeg_is_refused(scenes: tuple[RenderedScene, ...], quality: int) -> None:
    for rendered in scenes[:4]:
        _, data = cv2.imencode(".jpg", rendered.image, [cv2.IMWRITE_JPEG_QUALITY, quality])
        with pytest.raises(DataError, match="no signature") as caught:
            signature.read_signature(cv2.imdecode(data, cv2.IMREAD_COLOR))
        assert "PNG" in str(caught.value.remedy)


def test_interpolation_and_plain_pictures_are_refused(scenes: tuple[RenderedScene, ...]) -> None:
    with pytest.raises(DataError):
        signature.read_signature(cv2.resize(scenes[0].image, (111, 83), interpolation=cv2.INTER_LINEAR))
    with pytest.raises(DataError):
        signature.read_signature(np.random.default_rng(0).integers(0, 256, (20, 20, 3), dtype=np.uint8))


@given(st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1, max_size=6))
def test_bits_are_read_one_by_one(pixels: list[tuple[int, int, int]]) -> None:
    """Bit 8 is the parity of bits 0 to 7: class, instance, salience; three bits a channel, the lowest first."""
    picture = np.array([pixels], np.uint8)
    nine = [[channel >> place & 1 for channel in pixel for place in range(3)] for pixel in pixels]
    codes = [sum(bit << place for place, bit in enumerate(bits)) for bits in nine]
    known = [code & 31 == VOID or code & 31 in BY_CODE for code in codes]
    signed = all(known) and all(sum(bits[:8]) % 2 == bits[8] for bits in nine)
    assert signature.has_signature(picture) == signed
    if signed:
        truth = signature.read_signature(picture)
        assert truth.classes[0].tolist() == [code & 31 for code in codes]
        assert truth.instances[0].tolist() == [code >> 5 & 3 for code in codes]
        assert truth.salient[0].tolist() == [bool(code >> 7 & 1) for code in codes]
    else:
        right = [ok and sum(bits[:8]) % 2 == bits[8] for ok, bits in zip(known, nine, strict=True)]
        with pytest.raises(DataError, match=f"{sum(right) / len(right):.0%} of its pixels are valid"):
            signature.read_signature(picture)


def test_a_picture_without_pixels_is_signed_by_nothing_wrong() -> None:
    empty = np.zeros((0, 5, 3), np.uint8)
    assert signature.has_signature(empty)
    assert signature.read_signature(empty).classes.shape == (0, 5)


def test_codes_that_do_not_fit_are_refused() -> None:
    picture, zeros = np.zeros((2, 2, 3), np.uint8), np.zeros((2, 2), np.uint8)
    with pytest.raises(ValueError, match="classes reach 32"):
        signature.write_signature(picture, zeros + 32, zeros, zeros.astype(bool))
    with pytest.raises(ValueError, match="instances 4"):
        signature.write_signature(picture, zeros, zeros + 4, zeros.astype(bool))
