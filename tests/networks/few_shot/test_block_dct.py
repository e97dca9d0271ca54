"""The cosine transform of blocks: scipy's, Pillow's colours, and the released code."""

import numpy as np
import torch
from goldens import read_golden
from PIL import Image
from scipy.fft import dctn

from hardlook.networks.few_shot.block_dct import to_coefficients, to_images
from hardlook.networks.few_shot.fgfl import MEAN, SPREAD


def test_a_block_is_transformed_as_by_scipy_in_the_colours_of_pillow():
    pixels = np.random.default_rng(0).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    found = to_coefficients(torch.from_numpy(pixels / 255).permute(2, 0, 1)[None])
    planes = np.asarray(Image.fromarray(pixels).convert("YCbCr"), dtype=np.float64) - 128
    expected = dctn(planes[8:, 8:16], axes=(0, 1), norm="ortho").transpose(2, 0, 1)
    np.testing.assert_allclose(found[0, :, 8:, 8:16], expected, atol=6)  # Pillow rounds to whole numbers
    assert np.abs(expected).max() > 100


def test_it_is_undone_where_blocks_are_whole_and_grey_elsewhere():
    images = torch.rand(2, 3, 20, 16, dtype=torch.float64)
    back = to_images(to_coefficients(images))
    torch.testing.assert_close(back[:, :, :16], images[:, :, :16], rtol=0, atol=1e-6)
    torch.testing.assert_close(back[:, :, 16:], torch.full_like(back[:, :, 16:], 128 / 255), rtol=0, atol=1e-6)


def test_equals_the_released_code():
    golden, case = read_golden("few_shot", "method_fgfl"), "images84/1shot_1query"
    images = golden.images(golden.facts["cases"][case]["input"]["seed"], (10, 3, 84, 84))
    mean, spread = (torch.tensor(given).double()[:, None, None] for given in (MEAN, SPREAD))
    coefficients = to_coefficients((images * spread + mean).clamp(0, 1))
    golden.check(f"{case}/dct", coefficients)
    golden.check(f"{case}/dct_back", to_images(coefficients.clamp(-128, 127)).clamp(0, 1))
