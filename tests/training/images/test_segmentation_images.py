"""Images and class maps changed together: against OpenCV and Pillow, by landmarks, and at the edges."""

import cv2
import numpy as np
import PIL.Image
import pytest

torch = pytest.importorskip("torch")

from hardlook.errors import OptionError  # noqa: E402
from hardlook.training.images import segmentation_images as module  # noqa: E402
from hardlook.training.images.segmentation_images import (  # noqa: E402
    Transforms,
    blur,
    draw_transforms,
    fit_sizes,
    fit_whole,
    pack_images,
    renumber,
    sample_points,
)

GREY = (128.0, 128.0, 128.0)


def make_image(height, width, seed=0):
    rng = np.random.default_rng(seed)
    smooth = cv2.resize(
        rng.integers(0, 256, (8, 8, 3)).astype(np.uint8), (width, height), interpolation=cv2.INTER_CUBIC
    )
    return smooth, rng.integers(0, 4, (height, width)).astype(np.uint8)


def take(image, label, transforms, size):
    packed = pack_images([image], [label])
    images, maps = packed.take(np.zeros(len(transforms), np.int64), transforms, size, outside=GREY)
    return images.numpy(), maps.numpy()


def plain(matrices):
    return Transforms(matrices, np.zeros(len(matrices), bool))


def test_a_letterbox_is_opencvs_resize_in_the_corner():
    image, label = make_image(60, 80)
    images, maps = take(image, label, plain(fit_whole(np.array([[60, 80]]), 65, "letterbox")), 65)
    wanted = cv2.resize(image.astype(np.float32), (64, 48), interpolation=cv2.INTER_LINEAR)
    assert np.abs(images[0, :, :48, :64].transpose(1, 2, 0) - wanted).max() < 0.02
    assert (images[0, :, 48:] == 128).all() and (images[0, :, :, 64:] == 128).all()
    assert (maps[0, 48:] == 255).all() and (maps[0, :, 64:] == 255).all()
    assert set(np.unique(maps[0, :48, :64])) <= {0, 1, 2, 3}


def test_a_squashed_image_has_no_outside_and_is_opencvs():
    image, label = make_image(30, 70)
    images, maps = take(image, label, plain(fit_whole(np.array([[30, 70]]), 33, "squash")), 33)
    wanted = cv2.resize(image.astype(np.float32), (33, 33), interpolation=cv2.INTER_LINEAR)
    assert np.abs(images[0].transpose(1, 2, 0) - wanted).max() < 0.02
    assert (maps != 255).all()


def test_image_and_map_move_together():
    """A map that is the image's own channel stays that, whatever the change."""
    rng = np.random.default_rng(3)
    label = cv2.resize(rng.integers(0, 2, (6, 6)).astype(np.uint8), (60, 60), interpolation=cv2.INTER_NEAREST)
    image = np.repeat((label * 200)[..., None], 3, 2).astype(np.uint8)
    for kind in ("crop", "resized-crop", "flips"):
        drawn = draw_transforms(np.random.default_rng(5), kind, np.full((12, 2), 60), 49, "letterbox")
        images, maps = take(image, label, plain(drawn.matrices), 49)
        inside = maps != 255
        assert inside.mean() > 0.5
        agree = ((images[:, 0] > 100) == (maps == 1))[inside]
        assert agree.mean() > 0.97, kind


def test_flips_turn_the_whole_letterbox():
    image, label = make_image(40, 80)
    sizes = np.full((64, 2), (40, 80))
    drawn = draw_transforms(np.random.default_rng(0), "flips", sizes, 65, "letterbox")
    images, _ = take(image, label, drawn, 65)
    base = images[np.flatnonzero((drawn.matrices == fit_whole(sizes[:1], 65, "letterbox")[0]).all((1, 2)))[0]]
    seen = set()
    for one in images:
        inner = one[:, :32, :64]
        for name, wanted in {
            "none": base[:, :32, :64],
            "left": base[:, :32, :64][:, :, ::-1],
            "up": base[:, :32, :64][:, ::-1],
            "both": base[:, :32, :64][:, ::-1, ::-1],
        }.items():
            if np.abs(inner - wanted).max() < 0.05:
                seen.add(name)
                break
        else:
            raise AssertionError("no flip of the image")
    assert seen == {"none", "left", "up", "both"}


def test_crops_keep_85_percent_of_an_object_where_that_is_possible():
    points = sample_points(np.pad(np.ones((20, 20), bool), ((12, 68), (12, 68))))
    drawn = draw_transforms(
        np.random.default_rng(1), "crop", np.full((200, 2), 100), 65, "letterbox", objects=[points] * 200
    )
    free = draw_transforms(np.random.default_rng(1), "crop", np.full((200, 2), 100), 65, "letterbox")

    def share(matrices):
        found = []
        for matrix in matrices:
            back = (points - matrix[:, 2]) @ np.linalg.inv(matrix[:, :2]).T
            found.append(((back >= -0.5) & (back <= 64.5)).all(1).mean())
        return np.array(found)

    assert (share(drawn.matrices) >= 0.85).mean() > 0.95
    assert (share(free.matrices) >= 0.85).mean() < 0.5


def test_crops_are_scaled_turned_blurred_and_mirrored_as_published():
    drawn = draw_transforms(np.random.default_rng(2), "crop", np.full((4000, 2), 200), 65, "letterbox")
    linear = drawn.matrices[:, :, :2]
    scale = 1 / np.sqrt(np.abs(np.linalg.det(linear)))
    assert scale.min() == pytest.approx(0.9, abs=0.002) and scale.max() == pytest.approx(1.1, abs=0.002)
    mirrored = np.linalg.det(linear) < 0
    assert mirrored.mean() == pytest.approx(0.5, abs=0.03) and drawn.blurred.mean() == pytest.approx(0.5, abs=0.03)
    angle = np.rad2deg(np.arctan2(linear[:, 1, 0], np.abs(linear[:, 0, 0])))
    assert (angle == 0).mean() == pytest.approx(0.5, abs=0.03) and np.abs(angle).max() == pytest.approx(10, abs=0.1)


def test_resized_crops_stay_inside_with_half_to_all_of_the_area():
    drawn = draw_transforms(np.random.default_rng(2), "resized-crop", np.full((500, 2), (60, 90)), 33, "squash")
    corners = np.array([[-0.5, -0.5, 1], [32.5, 32.5, 1]])
    ends = np.einsum("nij,kj->nki", drawn.matrices, corners)
    assert ends.min() >= -0.5 - 1e-9 and (ends[..., 0].max() <= 89.5 + 1e-9) and (ends[..., 1].max() <= 59.5 + 1e-9)
    area = np.abs(np.prod(ends[:, 1] - ends[:, 0], axis=1)) / (60 * 90)
    assert area.min() >= 0.5 - 1e-9 and area.max() <= 1 + 1e-9 and area.std() > 0.05


def test_blur_is_opencvs_gaussian():
    image = make_image(20, 24)[0].astype(np.float32)
    ours = blur(torch.from_numpy(image).movedim(-1, 0)[None])[0].movedim(0, -1).numpy()
    theirs = cv2.GaussianBlur(image, (5, 5), 0, borderType=cv2.BORDER_REFLECT_101)
    assert np.abs(ours - theirs).max() < 1e-3


def test_only_marked_images_are_blurred():
    image, label = make_image(33, 33)
    whole = fit_whole(np.full((2, 2), 33), 33, "squash")
    images, _ = take(image, label, Transforms(whole, np.array([False, True])), 33)
    assert np.abs(images[0].transpose(1, 2, 0) - image).max() < 0.01
    assert np.abs(images[1] - images[0]).max() > 1


def test_sizes_of_letterboxes():
    assert fit_sizes(np.array([[375, 500], [500, 333], [321, 321]]), 473, "letterbox").tolist() == [
        [352, 472],
        [472, 312],
        [472, 472],
    ]
    assert fit_sizes(np.array([[1, 4000]]), 65, "letterbox").tolist() == [[8, 64]]


def test_images_of_different_sizes_share_a_canvas():
    first, second = make_image(20, 30, 1), make_image(40, 10, 2)
    packed = pack_images([first[0], second[0]], [first[1], second[1]])
    assert packed.images.shape == (2, 40, 40, 3) and packed.sizes.tolist() == [[20, 30], [40, 10]]
    assert (packed.classes[0, 20:] == 255).all() and (packed.classes[1, :, 10:] == 255).all()
    assert np.array_equal(packed.images[1, :40, :10].numpy(), second[0])


def test_points_lie_in_the_mask_and_are_few():
    mask = np.zeros((50, 40), bool)
    mask[10:20, 5:9] = True
    points = sample_points(mask, most=16)
    assert len(points) == 16 and mask[points[:, 1].astype(int), points[:, 0].astype(int)].all()
    assert len(sample_points(mask)) == 40 and sample_points(~mask & mask).shape == (0, 2)


def test_classes_get_other_numbers_at_once():
    assert renumber(torch.tensor([1, 2, 3], dtype=torch.uint8), {1: 2, 2: 1}).tolist() == [2, 1, 3]


def test_unknown_words_are_named():
    with pytest.raises(OptionError, match="augmentation 'spin'"):
        draw_transforms(np.random.default_rng(0), "spin", np.full((1, 2), 10), 33, "squash")
    with pytest.raises(OptionError, match="to fit an image"):
        fit_sizes(np.full((1, 2), 10), 33, "stretch")
    assert set(module.AUGMENTATIONS) == {"none", "crop", "resized-crop", "flips"}


def test_a_label_map_shrinks_as_pillows_nearest():
    image, label = make_image(66, 66)
    _, maps = take(image, label, plain(fit_whole(np.array([[66, 66]]), 33, "squash")), 33)
    theirs = np.asarray(PIL.Image.fromarray(label).resize((33, 33), PIL.Image.Resampling.NEAREST))
    # A pixel of the result lies on the border of two; Pillow takes the later one, rounding to even the even one.
    assert (maps[0] == theirs).mean() > 0.2 and set(np.unique(maps)) <= {0, 1, 2, 3}
