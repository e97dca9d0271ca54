"""How images, points and masks pass between the picture and SAM's square."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from hardlook.models.interactive import sam_frame
from hardlook.models.interactive.sam_frame import MEAN, STD, SamFrame

torch = pytest.importorskip("torch", reason="the extra torch is not installed")


def frame_of(height: int, width: int) -> SamFrame:
    return SamFrame.from_image(np.zeros((height, width, 3), np.uint8))


@pytest.mark.parametrize(
    ("size", "scaled"),
    # 321 x 1024 / 481 = 683.4; 375 x 2.048 = 768; 1365 / 2 = 682.5, which rounds up; a hair's breadth stays one pixel.
    [((321, 481), (683, 1024)), ((500, 375), (1024, 768)), ((1365, 2048), (683, 1024)), ((1, 5000), (1, 1024))],
)
def test_the_longest_side_fills_the_square(size, scaled) -> None:
    assert frame_of(*size).scaled == scaled


def test_the_image_is_normalised_and_zeros_lie_beyond_it() -> None:
    image = np.full((30, 60, 3), (200, 10, 90), np.uint8)
    square = SamFrame.from_image(image).prepare_image(image)
    assert square.shape == (3, 1024, 1024) and square.dtype == np.float32
    wanted = (np.array([200.0, 10.0, 90.0]) - MEAN) / STD
    assert np.allclose(square[:, :512], wanted[:, None, None], atol=1e-6)
    assert not square[:, 512:].any()


@pytest.mark.parametrize("size", [(1024, 1024), (33, 1024), (57, 40), (2000, 1500)])
def test_the_tensor_of_an_image_has_the_bits_of_the_array(size) -> None:
    image = np.random.default_rng(3).integers(0, 256, (*size, 3), dtype=np.uint8)
    frame = SamFrame.from_image(image)
    assert np.array_equal(frame.prepare_tensor(image, "cpu")[0].numpy(), frame.prepare_image(image))


def test_shrinking_averages_over_all_pixels() -> None:
    # A triangle filter as wide as the step sees both colours of a chessboard alike, away from the border.
    board = np.indices((4096, 256)).sum(0) % 2 * 255
    image = np.repeat(board[..., None], 3, axis=2).astype(np.uint8)
    square = SamFrame.from_image(image).prepare_image(image)[:, 2:-2, 2:62]
    grey = (127.5 - MEAN) / STD
    assert np.abs(square - grey[:, None, None]).max() < 1.0 / STD.min()


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_points_keep_their_share_of_the_sides(height, width) -> None:
    frame = frame_of(height, width)
    corners = np.array([[0, 0], [width, height], [width / 2, height / 4]])
    tall, wide = frame.scaled
    assert np.allclose(corners * frame.scale, [[0, 0], [wide, tall], [wide / 2, tall / 4]], rtol=1e-6)


@pytest.mark.parametrize("size", [(40, 60), (90, 50), (1200, 700)])
def test_masks_are_two_linear_enlargements(size) -> None:
    logits = np.random.default_rng(0).normal(size=(2, 256, 256)).astype(np.float32)
    frame = frame_of(*size)
    masks = list(frame.threshold_logits(torch.from_numpy(logits), 0.2))
    assert [mask.shape for mask in masks] == [size] * 2 and masks[0].dtype == np.bool_
    for mask, low in zip(masks, logits, strict=True):
        square = linear(low.astype(float), (1024, 1024))
        wanted = linear(square[: frame.scaled[0], : frame.scaled[1]], size)
        clear = np.abs(wanted - 0.2) > 1e-4
        assert np.array_equal(mask[clear], (wanted > 0.2)[clear]) and clear.mean() > 0.99


def linear(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Values at the centres of `size` cells over the same area, the outermost continued."""
    places = [(np.arange(after) + 0.5) * before / after - 0.5 for before, after in zip(values.shape, size, strict=True)]
    return map_coordinates(values, np.meshgrid(*places, indexing="ij"), order=1, mode="nearest")


def test_masks_made_a_few_at_a_time_are_the_same(monkeypatch) -> None:
    logits = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 256, 256)).astype(np.float32))
    frame = frame_of(120, 90)
    together = list(frame.threshold_logits(logits, 0.0))
    monkeypatch.setattr(sam_frame, "ELEMENTS", 2 * (1024 * 1024 + 120 * 90))
    parts = frame.threshold_logits(logits, 0.0)
    assert all(np.array_equal(one, other) for one, other in zip(together, parts, strict=True))
    assert len(together) == 5 and not list(frame.threshold_logits(logits[:0], 0.0))
