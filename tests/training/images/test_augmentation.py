"""Crops, flips and colours of batches against Pillow, image by image, with the same draws."""

import numpy as np
import PIL.Image
import PIL.ImageEnhance
import torch

from hardlook.randomness import generator
from hardlook.training.images.augmentation import Draws, ImageStore, draw_augmentations
from hardlook.training.images.colours import DEVIATION, MEAN, jitter_colours, scale_colours

ENHANCERS = (PIL.ImageEnhance.Brightness, PIL.ImageEnhance.Contrast, PIL.ImageEnhance.Color)


def photographs(count, side, seed=0):
    """Smooth pictures with noise, so that contrast and grey differ from image to image."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (count, 4, 4, 3), dtype=np.uint8)
    large = [np.array(PIL.Image.fromarray(one).resize((side, side), PIL.Image.Resampling.BILINEAR)) for one in small]
    return np.clip(np.stack(large) + rng.integers(-20, 21, (count, side, side, 3)), 0, 255).astype(np.uint8)


def by_pillow(image, size, draws, place):
    y, x = draws.corner[place].tolist()
    cut = PIL.Image.fromarray(image).crop((x, y, x + size, y + size))
    for which in draws.order[place].tolist():
        cut = ENHANCERS[which](cut).enhance(float(draws.factors[place, which]))
    if draws.mirrored[place]:
        cut = cut.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(cut)


def unscaled(images):
    mean, deviation = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, DEVIATION))
    return (images * deviation + mean).movedim(1, -1).round().numpy()


def test_a_batch_is_what_pillow_makes_of_each_image():
    images = photographs(24, 48)
    draws = draw_augmentations(generator(0, "test"), 24, room=6)
    store = ImageStore(torch.from_numpy(images), size=42)
    found = unscaled(store.augment(torch.arange(24), draws))
    wanted = np.stack([by_pillow(image, 42, draws, place) for place, image in enumerate(images)])
    difference = np.abs(found - wanted)
    # A product that is a whole number may be rounded to either side of it.
    assert difference.max() <= 1 and (difference > 0).mean() < 1e-3


def test_each_change_alone_is_pillows():
    images = photographs(8, 20, seed=1)
    given = torch.from_numpy(images).movedim(-1, 1).float()
    for which, factor in ((0, 0.6), (0, 1.4), (1, 0.7), (1, 1.35), (2, 0.0), (2, 1.4)):
        factors = torch.ones(8, 3)
        factors[:, which] = factor
        found = jitter_colours(given, factors, torch.tensor([[0, 1, 2]]).expand(8, 3)).movedim(1, -1).numpy()
        wanted = np.stack([np.asarray(ENHANCERS[which](PIL.Image.fromarray(one)).enhance(factor)) for one in images])
        assert np.abs(found - wanted).max() <= 1 and (found != wanted).mean() < 1e-3


def test_draws_cover_their_ranges_and_differ_between_images():
    draws = draw_augmentations(generator(1, "test"), 4000, room=12)
    assert draws.corner.min() == 0 and draws.corner.max() == 12
    assert 0.6 <= draws.factors.min() < 0.61 and 1.39 < draws.factors.max() <= 1.4
    assert 0.45 < draws.mirrored.float().mean() < 0.55
    assert len(torch.unique(draws.order, dim=0)) == 6
    again = draw_augmentations(generator(1, "test"), 4000, room=12)
    assert torch.equal(draws.factors, again.factors) and len(torch.unique(draws.factors[:, 0])) > 3900


def test_the_centre_is_that_of_the_protocol():
    images = photographs(2, 96)
    store = ImageStore(torch.from_numpy(images), size=84)
    assert (unscaled(store.crop_centre(torch.tensor([1, 0]))) == images[[1, 0], 6:90, 6:90]).all()
    assert store.crop_centre(torch.zeros(2, 3, dtype=torch.int64)).shape == (2, 3, 3, 84, 84)
    assert scale_colours(torch.full((1, 3, 1, 1), 255.0)).flatten().tolist() == [
        (255 - mean) / deviation for mean, deviation in zip(np.float32(MEAN), np.float32(DEVIATION), strict=True)
    ]


def test_an_image_does_not_depend_on_its_batch():
    images = photographs(6, 40)
    draws = draw_augmentations(generator(2, "test"), 6, room=8)
    store = ImageStore(torch.from_numpy(images), size=32)
    whole = store.augment(torch.arange(6), draws)
    one = store.augment(torch.tensor([4]), draws.part(slice(4, 5)))
    assert torch.equal(whole[4], one[0])
    still = Draws(torch.zeros(1, 2, dtype=torch.int64), torch.tensor([False]), torch.ones(1, 3), draws.order[:1])
    assert (unscaled(store.augment(torch.tensor([3]), still)) == images[3:4, :32, :32]).all()
