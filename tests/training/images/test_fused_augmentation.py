"""Augmentation in one pass gives the bits of `ImageStore.augment` by torch."""

from itertools import permutations

import numpy as np
import pytest
import torch
import triton_loops  # noqa: F401
from triton_tests import DEVICE, NEEDS_TRITON

from hardlook.randomness import generator
from hardlook.training.images import fused_augmentation
from hardlook.training.images.augmentation import JITTER, Draws, ImageStore, draw_augmentations
from hardlook.training.images.colours import DEVIATION, MEAN
from hardlook.training.images.fused_augmentation import augment_at_once, build_kernel


@pytest.fixture
def kernel(monkeypatch):
    """The kernel, also on a processor; the list has the number of images of each launch."""
    launches, built, launch = [], build_kernel(), fused_augmentation._launch

    def count(*given):
        launches.append(len(given[3]))
        launch(*given)

    monkeypatch.setattr(fused_augmentation, "find_kernel", lambda where: built)
    monkeypatch.setattr(fused_augmentation, "_launch", count)
    return launches


def make_images(count, side, seed=0):
    """Noise, smooth pictures, dark and light ones, one colour and the ends of the range."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, side, side, 3))
    slope = np.arange(side)[:, None, None] * 255 // max(side - 1, 1)
    images[1::5] = (images[1::5] + 3 * slope) // 4
    images[2::5] //= 8
    images[3::5] = 255 - images[3::5] // 16
    images[4::5] = rng.integers(0, 256, (len(images[4::5]), 1, 1, 3))
    images[0, : side // 2], images[0, side // 2 :] = 0, 255
    return torch.from_numpy(images.astype(np.uint8)).to(DEVICE)


def by_torch(monkeypatch, store, rows, draws):
    with monkeypatch.context() as patch:
        patch.setattr(fused_augmentation, "find_kernel", lambda where: None)
        return store.augment(rows, draws)


def compare(monkeypatch, images, size, rows, draws):
    store, rows, draws = ImageStore(images, size), rows.to(DEVICE), draws.to(DEVICE)
    found, wanted = store.augment(rows, draws), by_torch(monkeypatch, store, rows, draws)
    assert found.shape == wanted.shape == (len(rows), 3, size, size) and found.dtype == torch.float32
    assert torch.equal(found, wanted)
    return found


def make_draws(corner, mirrored, factors, order):
    return Draws(
        torch.tensor(corner), torch.tensor(mirrored), torch.tensor(factors, dtype=torch.float32), torch.tensor(order)
    )


@NEEDS_TRITON
@pytest.mark.parametrize(("side", "size"), [(20, 17), (9, 8), (7, 7), (12, 1), (40, 33), (96, 84)])
def test_random_draws(kernel, monkeypatch, side, size):
    count = 6 if size == 84 else 20
    images = make_images(count, side)
    draws = draw_augmentations(generator(side, "test"), count, side - size)
    rows = torch.from_numpy(np.random.default_rng(1).integers(0, count, count))
    compare(monkeypatch, images, size, rows, draws)
    assert kernel == [count]


@NEEDS_TRITON
def test_means_between_whole_numbers_are_rounded_up(kernel, monkeypatch):
    """At 22 x 22 pixels their sum times the reciprocal of 484 is below them."""
    images = torch.empty((5, 22, 22, 3), dtype=torch.uint8)
    images[:, :11] = torch.tensor([1, 3, 6, 7, 11], dtype=torch.uint8)[:, None, None, None]
    images[:, 11:] = images[:, :11] + 1
    factors = [[1.0, 0.0, 1.0]] * 5  # all that is left of the contrast is the mean
    draws = make_draws([[0, 0]] * 5, [False] * 5, factors, [[0, 1, 2]] * 5)
    found = compare(monkeypatch, images.to(DEVICE), 22, torch.arange(5), draws)
    wanted = torch.tensor([2.0, 4, 7, 8, 12], device=DEVICE)[:, None] - torch.tensor(MEAN, device=DEVICE)
    assert torch.equal(found[:, :, 5, 17], wanted / torch.tensor(DEVIATION, device=DEVICE))


@NEEDS_TRITON
@pytest.mark.parametrize("order", permutations(range(3)))
def test_orders_and_factors_at_the_ends(kernel, monkeypatch, order):
    ends = np.float32([1 - JITTER, 1, 1 + JITTER])
    factors = np.stack(np.meshgrid(ends, ends, ends), -1).reshape(-1, 3)
    # Every corner of the room, mirrored or not.
    corner = [[2 * (number & 1), number & 2] for number in range(27)]
    mirrored = [bool(number & 4) for number in range(27)]
    draws = make_draws(corner, mirrored, factors, [order] * 27)
    compare(monkeypatch, make_images(27, 7), 5, torch.arange(27), draws)


@NEEDS_TRITON
def test_places_and_colours_are_kept_where_nothing_changes(kernel):
    images = make_images(1, 6)
    images[0] = torch.arange(108, dtype=torch.uint8).view(6, 6, 3)
    draws = make_draws([[1, 2], [1, 2]], [False, True], [[1.0] * 3] * 2, [[0, 1, 2]] * 2).to(DEVICE)
    found = ImageStore(images, 3).augment(torch.tensor([0, 0], device=DEVICE), draws)
    wanted = (images[0, 1:4, 2:5].float() - torch.tensor(MEAN, device=DEVICE)) / torch.tensor(DEVIATION, device=DEVICE)
    assert torch.equal(found[0].movedim(0, -1), wanted) and torch.equal(found[1].movedim(0, -1), wanted.flip(1))
    assert kernel == [2]


@NEEDS_TRITON
def test_the_layout_is_that_of_torch(kernel, monkeypatch):
    images, draws = make_images(3, 8), draw_augmentations(generator(0, "test"), 3, 2)
    found = compare(monkeypatch, images, 6, torch.arange(3), draws)
    assert found.is_contiguous(memory_format=torch.channels_last)


@NEEDS_TRITON
def test_draws_may_be_parts_of_others(kernel, monkeypatch):
    draws = draw_augmentations(generator(0, "test"), 12, 2)
    images = make_images(12, 8)
    whole = compare(monkeypatch, images, 6, torch.arange(12), draws)
    part = compare(monkeypatch, images, 6, torch.arange(12)[1::3], draws.part(slice(1, 12, 3)))
    assert torch.equal(whole[1::3], part)
    turned = Draws(draws.corner.T.contiguous().T, draws.mirrored, draws.factors.T.contiguous().T, draws.order)
    assert torch.equal(compare(monkeypatch, images, 6, torch.arange(12, dtype=torch.int32), turned), whole)


@NEEDS_TRITON
def test_no_images(kernel, monkeypatch):
    draws = draw_augmentations(generator(0, "test"), 0, 2)
    compare(monkeypatch, make_images(2, 8), 6, torch.arange(0), draws)
    assert not kernel


@pytest.mark.parametrize(
    ("change", "size"),
    [
        (lambda images: images.float(), 6),
        (lambda images: images[:, ::2, ::2], 3),
        (lambda images: images[:, :7].contiguous(), 6),
        (lambda images: images.movedim(-1, 1).contiguous().movedim(1, -1), 6),
        (lambda images: images, fused_augmentation.LARGEST + 1),
    ],
)
def test_other_images_are_left_to_torch(monkeypatch, change, size):
    monkeypatch.setattr(fused_augmentation, "find_kernel", lambda where: pytest.fail("the kernel was asked for"))
    images, draws = change(make_images(2, 8)), draw_augmentations(generator(0, "test"), 2, 1).to(DEVICE)
    rows = torch.arange(2, device=DEVICE)
    given = (draws.corner, draws.mirrored, draws.factors, draws.order)
    assert augment_at_once(images, size, rows, *given) is None
    if size <= 6:
        assert ImageStore(images, size).augment(rows, draws).shape == (2, 3, size, size)


def test_draws_elsewhere_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(fused_augmentation, "find_kernel", lambda where: pytest.fail("the kernel was asked for"))
    draws = draw_augmentations(generator(0, "test"), 2, 2).to(DEVICE)
    given = [torch.arange(2, device=DEVICE), draws.corner, draws.mirrored, draws.factors, draws.order]
    for number, one in enumerate(given):
        moved = [*given[:number], one.to("meta"), *given[number + 1 :]]
        assert augment_at_once(make_images(2, 8), 6, *moved) is None


def test_without_a_gpu_torch_computes():
    assert fused_augmentation.find_kernel(torch.device("cpu")) is None


@NEEDS_TRITON
def test_images_are_float32_whatever_torch_makes_by_default(monkeypatch, kernel):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        compare(monkeypatch, make_images(5, 9), 7, torch.arange(5), draw_augmentations(generator(0, "draws"), 5, 2))
    finally:
        torch.set_default_dtype(before)
    assert kernel == [5]
