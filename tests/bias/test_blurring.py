import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from hardlook.bias.blurring import suppress_salient


def photograph(seed, height=40, width=60):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def disc(height=40, width=60, radius=12):
    rows, columns = np.ogrid[:height, :width]
    return (rows - height / 2) ** 2 + (columns - width / 3) ** 2 < radius**2


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_inside_is_scipys_gaussian_of_the_whole_image(share):
    image, mask = photograph(0), disc()
    sigma = share * np.hypot(40, 60)
    # The kernel ends after whole pixels: as many as scipy takes for this radius.
    radius = int(np.ceil(3 * sigma))
    theirs = np.stack(
        [gaussian_filter(image[..., c].astype(float), sigma, mode="reflect", radius=radius) for c in range(3)], axis=-1
    )
    ours = suppress_salient(image, mask, sigma_share=share)
    assert np.abs(ours[mask] - theirs[mask]).max() < 0.51


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.6))
def test_outside_stays_bit_for_bit_and_the_input_is_left_alone(seed, share):
    image = photograph(seed, 20, 30)
    mask = np.random.default_rng(seed).random((20, 30)) < 0.3
    before = image.copy()
    after = suppress_salient(image, mask, sigma_share=share)
    assert (after[~mask] == image[~mask]).all() and (image == before).all()
    assert after.min() >= image.min() and after.max() <= image.max()


def test_inside_is_smoothed_and_a_wider_gaussian_smooths_more():
    image, mask = photograph(1), disc()
    spreads = [suppress_salient(image, mask, sigma_share=share)[mask].std(axis=0).mean() for share in (0.02, 0.1)]
    assert image[mask].std(axis=0).mean() > spreads[0] > spreads[1]


def test_nothing_salient_changes_nothing_and_a_flat_image_stays_flat():
    image = photograph(2)
    unchanged = suppress_salient(image, np.zeros((40, 60), bool))
    assert (unchanged == image).all() and unchanged is not image
    flat = np.full((9, 14, 3), 77, np.uint8)
    assert (suppress_salient(flat, np.ones((9, 14), bool)) == 77).all()


@pytest.mark.parametrize(
    ("image", "mask", "share", "said"),
    [
        (np.zeros((4, 4), np.uint8), np.zeros((4, 4), bool), 0.1, r"expected \(H, W, 3\) of uint8, got \(4, 4\)"),
        (np.zeros((4, 4, 3), np.float32), np.zeros((4, 4), bool), 0.1, "of float32"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((4, 5), bool), 0.1, r"expected \(4, 4\) of bool, got \(4, 5\)"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), np.uint8), 0.1, "of uint8"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), bool), 0.0, "more than 0"),
    ],
)
def test_wrong_input_is_named(image, mask, share, said):
    with pytest.raises(ValueError, match=said):
        suppress_salient(image, mask, sigma_share=share)
