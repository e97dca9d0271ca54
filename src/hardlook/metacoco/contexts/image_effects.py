"""Image effects that stand for contexts: snow, dusk, fog, autumn, sketch, grey, blur, and grass and water by masks.

Every effect is a function of an image (H, W, 3) uint8 and a random generator; the same generator state gives the same
pixels. Grass and water replace the background and take the object's mask too. Lengths are shares of the shorter side,
and what follows from edges in the image (rims of snow, pencil lines) is computed at one working size: an image and a
smaller copy of it look alike in every effect.

>>> photo = np.full((48, 64, 3), 120, np.uint8)
>>> bool((apply_effect(photo, "fog", np.random.default_rng(0), strength=0.0) == photo).all())
True
>>> evening = dusk(photo, np.random.default_rng(0))
>>> bool(evening.mean() < 110), bool(evening[..., 0].mean() > evening[..., 1].mean())
(True, True)
>>> mask = np.zeros((48, 64), bool)
>>> mask[10:30, 20:40] = True
>>> meadow = grass(photo, np.random.default_rng(0), mask)
>>> meadow[20, 30].tolist(), bool(meadow[5, 5, 1] > meadow[5, 5, 0])
([120, 120, 120], True)
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError

Pixels = NDArray[np.uint8]
Plane = NDArray[np.float32]

VERSION = 2  # raise it when an effect's pixels change
WORKING_SIDE = 128  # shorter side in pixels at which edges are looked for
FLAKES_SIDE = 256  # and at which flakes are drawn


def apply_effect(
    image: Pixels, name: str, rng: np.random.Generator, *, mask: NDArray[np.bool_] | None = None, strength: float = 1.0
) -> Pixels:
    """A copy of the image (H, W, 3) with an effect of `EFFECTS`, or of `MASKED_EFFECTS` given the object's mask (H, W).

    `strength` in [0, 1] mixes the result with the image: 0 leaves it as it was, 1 is the effect itself.
    """
    if name in MASKED_EFFECTS:
        if mask is None or mask.shape != image.shape[:2]:
            given = "none" if mask is None else str(mask.shape)
            remedy = "give a mask of the image's size, or a context that needs none"
            raise OptionError(f"{name} needs a mask of {image.shape[:2]}, there is {given}", remedy=remedy)
        changed = MASKED_EFFECTS[name](image, rng, mask)
    elif name in EFFECTS:
        changed = EFFECTS[name](image, rng)
    else:
        raise OptionError(f"no context {name!r}", remedy=f"one of {', '.join([*EFFECTS, *MASKED_EFFECTS])}")
    return changed if strength >= 1 else to_uint8(blend(image, changed, strength))


RIM_FALL = 90  # Sobel response that is a full rim, at the working size
_SNOW = np.array([240, 245, 252], np.float32)
_MIST = np.array([206, 211, 214], np.float32)


def snow(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Cold pale light, a bank of snow along the lower edge, a white rim on what faces up, falling flakes."""
    shape = image.shape[:2]
    pale = blend(image, np.repeat(to_grey(image)[..., None], 3, axis=2), 0.55)
    cold = pale * np.array([0.86, 0.93, 1.02], np.float32) + np.array([20, 26, 34], np.float32)
    covered = blend(cold, _SNOW[None, None], _draw_lying_snow(image, rng))
    shaded = covered + (smooth_noise(shape, 10, rng)[..., None] - 0.5) * 10
    return to_uint8(blend(shaded, _SNOW[None, None] + 6, _draw_flakes(shape, rng)))


def fog(image: Pixels, rng: np.random.Generator) -> Pixels:
    """A grey veil, thicker far away (higher up) and in drifts, that takes contrast, colour and sharpness."""
    height, width = image.shape[:2]
    soft = np.asarray(cv2.GaussianBlur(image, (0, 0), max(0.6, 0.008 * min(height, width))), np.uint8)
    dull = blend(soft, np.repeat(to_grey(soft)[..., None], 3, axis=2), 0.5)
    far = gradient((height, width), (0.0, (0.86, 0, 0)), (0.55, (0.7, 0, 0)), (1.0, (0.5, 0, 0)))[..., 0]
    drifts = smooth_noise((height, width), 2, rng)
    return to_uint8(blend(dull, _MIST[None, None], np.clip(far + 0.24 * (drifts - 0.5), 0, 0.92)))


def _draw_lying_snow(image: Pixels, rng: np.random.Generator) -> Plane:
    """(H, W) in [0, 1]: the bank at the lower edge and rims where a bright area stands above a dark one."""
    height, width = image.shape[:2]
    crest = 0.82 + 0.08 * (
        cv2.resize(rng.random((1, 6), np.float32), (width, 1), interpolation=cv2.INTER_CUBIC)[0] - 0.5
    )
    depth = np.linspace(0, 1, height, dtype=np.float32)[:, None] - crest[None]
    bank = np.clip(depth / 0.05, 0, 1)
    working = resize_plane(to_grey(image), find_working_shape((height, width)))
    calm = cv2.GaussianBlur(working, (0, 0), 0.012 * WORKING_SIDE)
    # Falling brightness from one row to the next is where the top of something meets the light behind it.
    falls = np.clip(-cv2.Sobel(calm, cv2.CV_32F, 0, 1, ksize=3) / RIM_FALL, 0, 1)
    rim = cv2.dilate(falls, np.ones((make_odd(0.035 * len(working)), 1), np.uint8), anchor=(0, 0))
    rim = resize_plane(np.asarray(cv2.GaussianBlur(rim, (0, 0), 0.006 * len(working)), np.float32), (height, width))
    return np.asarray(np.maximum(bank, np.clip(rim * 1.1, 0, 0.75)), np.float32)


def _draw_flakes(shape: tuple[int, int], rng: np.random.Generator) -> Plane:
    """(H, W) in [0, 1]: flakes far (small, many) and near (large, soft, few)."""
    height, width = working = find_working_shape(shape, FLAKES_SIDE)
    total = np.zeros(working, np.float32)
    for count, size, blur, strength in ((170, 0.006, 0.002, 0.8), (60, 0.012, 0.004, 0.95), (12, 0.024, 0.01, 0.8)):
        layer = np.zeros(working, np.float32)
        for x, y, scale in rng.random((round(count * height * width / FLAKES_SIDE**2), 3)):
            centre = (round(x * width * 16), round(y * height * 16))
            radius = round(max(0.5, size * FLAKES_SIDE * (0.7 + 0.6 * scale)) * 16)
            cv2.circle(layer, centre, radius, strength, -1, cv2.LINE_AA, 4)
        total = np.maximum(total, cv2.GaussianBlur(layer, (0, 0), max(0.4, blur * FLAKES_SIDE)))
    return np.clip(resize_plane(total, shape), 0, 1)


_LEAVES = ((214, 110, 28), (186, 52, 28), (232, 168, 44), (150, 74, 30))


def dusk(image: Pixels, rng: np.random.Generator) -> Pixels:
    """The light after sunset: dark, violet above, an orange glow at a low height, shadows gone blue."""
    height, width = image.shape[:2]
    glow_at = 0.45 + 0.2 * rng.random()
    light = gradient(
        (height, width),
        (0.0, (0.40, 0.30, 0.52)),
        (glow_at - 0.15, (0.78, 0.42, 0.42)),
        (glow_at, (1.0, 0.55, 0.30)),
        (glow_at + 0.2, (0.55, 0.33, 0.32)),
        (1.0, (0.30, 0.22, 0.30)),
    )
    # A curve that deepens the dark parts: at dusk what is dark has no detail left.
    tone = 255 * (image.astype(np.float32) / 255) ** 1.25
    x, y = np.meshgrid(np.linspace(0, 1, width, dtype=np.float32), np.linspace(0, 1, height, dtype=np.float32))
    sun = 0.2 + 0.6 * rng.random()
    halo = np.exp(-(((x - sun) / 0.28) ** 2) - ((y - glow_at) / 0.16) ** 2)[..., None]
    return to_uint8(tone * light + halo * np.array([86, 40, 6], np.float32) + np.array([8, 4, 14], np.float32))


def autumn(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Greens gone to orange, golden light, and leaves: falling, and lying along the lower edge."""
    hue, saturation, value = cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2HSV).astype(np.float32))
    # OpenCV's hue runs to 180: yellow-green to blue-green (about 25 to 90) moves to red-orange (6 to 20).
    leafy = np.clip((hue - 20) / 10, 0, 1) * np.clip((100 - hue) / 12, 0, 1)
    turned = hue * (1 - leafy) + (6 + (np.clip(hue, 25, 90) - 25) * 14 / 65) * leafy
    richer = np.clip(saturation * (1 + 0.5 * leafy), 0, 255)
    rotated = cv2.cvtColor(to_uint8(np.stack([turned, richer, value], axis=-1)), cv2.COLOR_HSV2RGB)
    golden = rotated.astype(np.float32) * np.array([1.06, 0.9, 0.66], np.float32)
    amber = to_grey(image)[..., None] / 255 * np.array([255, 176, 84], np.float32)
    return _add_leaves(to_uint8(blend(golden, amber, 0.28) + 6), rng)


def _add_leaves(picture: Pixels, rng: np.random.Generator) -> Pixels:
    height, width = picture.shape[:2]
    unit = min(height, width)
    falling = rng.random((round(16 * height * width / unit**2), 4))
    lying = rng.random((round(60 * width / unit), 4))
    lying[:, 1] = 1 - 0.13 * lying[:, 1] ** 1.5
    drawn = picture.copy()
    for x, y, turn, kind in np.concatenate([falling, lying]):
        size = (0.026 + 0.02 * kind) * unit
        base = np.array(_LEAVES[int(kind * 997) % len(_LEAVES)], np.float32)
        colour = tuple(float(channel) for channel in base * (0.85 + 0.3 * turn))
        _draw_leaf(drawn, (x * width, y * height), size, 2 * np.pi * turn, colour)
    return drawn


def _draw_leaf(drawn: Pixels, at: tuple[float, float], size: float, angle: float, colour: tuple[float, ...]) -> None:
    """A pointed leaf with a stalk and a midrib."""
    along = np.linspace(-1, 1, 9)
    half = 0.45 * np.cos(along * np.pi / 2) ** 0.8 * (1 - 0.25 * along)
    outline = np.concatenate([np.stack([along, half], 1), np.stack([along[::-1], -half[::-1]], 1)])
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    points = np.rint((outline @ turn * size + at) * 16).astype(np.int32)
    cv2.fillPoly(drawn, [points], colour, cv2.LINE_AA, 4)
    ends = np.rint((np.array([[-1.4, 0.0], [0.7, 0.0]]) @ turn * size + at) * 16).astype(np.int32)
    rib = tuple(0.6 * channel for channel in colour)
    wide = max(1, round(0.12 * size))
    cv2.line(drawn, tuple(map(int, ends[0])), tuple(map(int, ends[1])), rib, wide, cv2.LINE_AA, 4)


def sketch(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Pencil on paper: outlines, hatching where it is dark, the paper's grain."""
    shape = find_working_shape(image.shape[:2])
    working = to_uint8(resize_plane(to_grey(image), shape))
    calm = cv2.bilateralFilter(working, 0, 30, 0.008 * WORKING_SIDE).astype(np.float32)
    around = cv2.GaussianBlur(calm, (0, 0), 0.016 * WORKING_SIDE)
    # Dodging: a tone divided by its surroundings leaves only what is darker than they are, the lines.
    lines = np.clip(calm / np.maximum(around, 1), 0, 1)
    outline = np.clip((lines - 0.72) / 0.25, 0, 1)
    tone = cv2.GaussianBlur(calm, (0, 0), 0.01 * WORKING_SIDE) / 255
    hatched = 1 - 0.42 * _draw_hatching(shape, rng) * np.clip((0.55 - tone) / 0.45, 0, 1)
    grain = 0.97 + 0.03 * smooth_noise(shape, WORKING_SIDE // 6, rng, octaves=2)
    paper = np.array([250, 247, 240], np.float32)
    lead = np.array([52, 52, 56], np.float32)
    left = resize_plane(np.asarray(outline * hatched * grain, np.float32), image.shape[:2])[..., None]
    return to_uint8(lead + (paper - lead) * left)


def grey(image: Pixels, rng: np.random.Generator) -> Pixels:
    """A black-and-white photograph; `rng` is not used."""
    return np.repeat(to_uint8(to_grey(image))[..., None], 3, axis=2)


def blur(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Out of focus: a Gaussian of 2.5 to 3.5 % of the shorter side."""
    sigma = (0.025 + 0.01 * rng.random()) * min(image.shape[:2])
    return np.asarray(cv2.GaussianBlur(image, (0, 0), max(1.0, sigma)), np.uint8)


def _draw_hatching(shape: tuple[int, int], rng: np.random.Generator) -> Plane:
    """(H, W) in [0, 1]: slanted strokes, a little uneven; `shape` is a working shape."""
    rows, columns = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    apart = 0.03 * WORKING_SIDE
    slant = np.pi / 4 + 0.2 * (rng.random() - 0.5)
    wobble = smooth_noise(shape, 6, rng) * apart
    phase = (columns * np.cos(slant) + rows * np.sin(slant) + wobble) / apart
    return np.asarray(0.5 + 0.5 * np.cos(2 * np.pi * phase), np.float32)


_BLADES = ((74, 132, 44), (96, 158, 58), (56, 108, 36), (122, 176, 74))


def grass(image: Pixels, rng: np.random.Generator, mask: NDArray[np.bool_]) -> Pixels:
    """The object on a meadow that fills the picture, blades longer towards the viewer; `mask` (H, W) is the object."""
    shape = image.shape[:2]
    unit = min(shape)
    ground = gradient(shape, (0.0, (142, 178, 92)), (1.0, (66, 122, 40)))
    meadow = to_uint8(ground * (0.85 + 0.3 * smooth_noise(shape, 5, rng)[..., None]))
    strokes = rng.random((round(900 * shape[0] * shape[1] / unit**2), 4))
    for x, y, lean, kind in strokes[np.argsort(strokes[:, 1])]:
        root = np.array([x * shape[1], y * shape[0] * 1.05])
        tip = root + np.array([(lean - 0.5) * 0.05, -(0.02 + 0.08 * y)]) * unit
        start, end = (tuple(map(int, np.rint(point * 16))) for point in (root, tip))
        shade = 0.75 + 0.4 * lean
        colour = tuple(float(channel * shade) for channel in _BLADES[int(kind * 997) % len(_BLADES)])
        cv2.line(meadow, start, end, colour, max(1, round(0.008 * unit)), cv2.LINE_AA, 4)
    return _paste(image, meadow, mask, shadow=0.35)


def water(image: Pixels, rng: np.random.Generator, mask: NDArray[np.bool_]) -> Pixels:
    """The object before a lake: sky at the top, ripples that widen towards the viewer; `mask` (H, W) is the object."""
    height, width = shape = image.shape[:2]
    horizon = 0.22 + 0.08 * rng.random()
    depth = np.clip((np.linspace(0, 1, height, dtype=np.float32) - horizon) / (1 - horizon), 0, 1)[:, None]
    sky = gradient(shape, (0.0, (150, 196, 232)), (horizon, (222, 236, 244)), (1.0, (222, 236, 244)))
    sea = gradient(shape, (horizon, (124, 176, 206)), (1.0, (22, 86, 136)))
    columns = np.linspace(0, width / height, width, dtype=np.float32)[None]
    # Rows of waves crowd together towards the horizon, as seen from the shore.
    near = 26 * np.log1p(9 * depth)
    drift = smooth_noise(shape, 4, rng)
    waves = np.sin(near + 5 * drift + 3 * np.sin(7 * columns + 2 * near / 9 + 6 * rng.random()))
    fine = np.sin(2.7 * near + 9 * smooth_noise(shape, 7, rng) + 17 * columns)
    lit = (
        (20 * waves + 9 * fine)[..., None] * np.array([0.75, 0.95, 1.0], np.float32) * (0.25 + 0.75 * depth[..., None])
    )
    foam = np.clip((waves * fine - 0.72) / 0.28, 0, 1)[..., None] * 70 * depth[..., None]
    return _paste(image, to_uint8(np.where(depth[..., None] > 0, sea + lit + foam, sky)), mask, shadow=0.25)


def _paste(image: Pixels, scene: Pixels, mask: NDArray[np.bool_], shadow: float) -> Pixels:
    """The object over the scene: a soft shadow below it, and an edge that is a pixel or two wide."""
    solid = mask.astype(np.float32)
    unit = min(mask.shape)
    fallen = cv2.GaussianBlur(solid, (0, 0), max(1.0, 0.03 * unit))
    shift = np.array([[1, 0, 0], [0, 1, 0.03 * unit]], np.float32)
    fallen = cv2.warpAffine(fallen, shift, (mask.shape[1], mask.shape[0]))
    darker = scene.astype(np.float32) * (1 - shadow * fallen[..., None])
    edge = cv2.GaussianBlur(solid, (0, 0), max(0.5, 0.004 * unit))
    # The rim of a mask often holds background: it fades inwards, and the inside stays as it was.
    return to_uint8(blend(darker, image, np.asarray(np.clip((edge - 0.5) / 0.45, 0, 1), np.float32)))


def plain(image: Pixels, rng: np.random.Generator) -> Pixels:
    """The image as it is; `rng` is not used."""
    return image.copy()


def smooth_noise(shape: tuple[int, int], cells: int, rng: np.random.Generator, octaves: int = 3) -> Plane:
    """(H, W) float32 in [0, 1]: clouds of about `cells` patches along the shorter side, with finer ones on top.

    >>> noise = smooth_noise((40, 60), 8, np.random.default_rng(0))
    >>> noise.shape, float(noise.min()), float(noise.max())
    ((40, 60), 0.0, 1.0)
    """
    height, width = shape
    total = np.zeros(shape, np.float32)
    for octave in range(octaves):
        across = cells * 2**octave
        short = min(height, width)
        grid = (max(2, round(across * height / short)), max(2, round(across * width / short)))
        coarse = rng.random(grid, dtype=np.float32)
        total += cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC) / 2**octave
    low, high = float(total.min()), float(total.max())
    return (total - low) / (high - low) if high > low else np.zeros(shape, np.float32)


def find_working_shape(shape: tuple[int, ...], short: int = WORKING_SIDE) -> tuple[int, int]:
    """(H, W) of the same proportions with a shorter side of `short`, the longer at most eight times as long.

    >>> find_working_shape((96, 144)), find_working_shape((1200, 800))
    ((128, 192), (192, 128))
    """
    height, width = (min(round(side * short / min(shape[:2])), 8 * short) for side in shape[:2])
    return height, width


def resize_plane(plane: Plane, shape: tuple[int, ...]) -> Plane:
    """The plane (H, W) float32 at another shape: averaged where it shrinks, interpolated where it grows."""
    shrinks = plane.shape[0] >= shape[0] and plane.shape[1] >= shape[1]
    way = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(plane, (shape[1], shape[0]), interpolation=way), np.float32)


def blend(image: NDArray[np.generic], other: NDArray[np.generic], share: Plane | float) -> Plane:
    """(H, W, 3) float32 between two pictures; `share` (H, W) or one number in [0, 1] is how much is the other.

    >>> float(blend(np.zeros((1, 1, 3), np.uint8), np.full((1, 1, 3), 200, np.uint8), 0.25)[0, 0, 0])
    50.0
    """
    weight = np.asarray(share, np.float32)
    weight = weight[..., None] if weight.ndim == 2 else weight
    return np.asarray(image.astype(np.float32) * (1 - weight) + other.astype(np.float32) * weight, np.float32)


def to_uint8(picture: NDArray[np.generic]) -> Pixels:
    """The picture as uint8, values beyond 0-255 cut off.

    >>> to_uint8(np.array([-3.0, 99.6, 300.0])).tolist()
    [0, 100, 255]
    """
    return np.asarray(np.clip(np.rint(picture), 0, 255), np.uint8)


def gradient(shape: tuple[int, int], *stops: tuple[float, tuple[float, float, float]]) -> Plane:
    """(H, W, 3) float32: colours at heights 0 (top) to 1 (bottom), blended in between.

    >>> gradient((3, 1), (0.0, (0, 0, 0)), (1.0, (100, 50, 0)))[1, 0].tolist()
    [50.0, 25.0, 0.0]
    """
    rows = np.linspace(0, 1, shape[0])
    places = [place for place, _ in stops]
    channels = [np.interp(rows, places, [colour[channel] for _, colour in stops]) for channel in range(3)]
    return np.ascontiguousarray(np.broadcast_to(np.stack(channels, axis=-1).astype(np.float32)[:, None], (*shape, 3)))


def to_grey(image: Pixels) -> Plane:
    """(H, W) float32 brightness 0-255, by the weights of Rec. 601."""
    return np.asarray(image.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32))


def make_odd(number: float) -> int:
    """The nearest odd whole number from 3 on, as OpenCV's kernels want it.

    >>> make_odd(0.4), make_odd(6.2)
    (3, 7)
    """
    return max(3, round((number - 1) / 2) * 2 + 1)


EFFECTS: dict[str, Callable[[Pixels, np.random.Generator], Pixels]] = {
    effect.__name__: effect for effect in (snow, dusk, fog, autumn, sketch, grey, blur, plain)
}
MASKED_EFFECTS: dict[str, Callable[[Pixels, np.random.Generator, NDArray[np.bool_]], Pixels]] = {
    effect.__name__: effect for effect in (grass, water)
}
