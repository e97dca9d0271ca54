"""The training images of a one-shot split, and which of them SGTSS (saliency-guided training set selection) keeps.

Classes go into folds in order, as in PASCAL-5i.

>>> split = split_of_fold(("cat", "dog", "car", "bus"), fold=1, folds=2)
>>> split.training, split.test
(('cat', 'dog'), ('car', 'bus'))

For image i with salient pixels S, K = |training classes' pixels AND S| / |S|. SGTSS drops the images with K below the
median of all: what is salient and not labelled teaches a network that such things are background, and a later test
class may be among them. The rules at the edges:

- an image without any training class is not a training image: neither kept nor dropped, and not in the median;
- an image without salient pixels has no K: it is kept, since nothing salient is unlabelled in it, and it is not in
  the median;
- K equal to the median is kept;
- pixels that the truth leaves open (VOC's 255) count as salient where they are, and never as a training class.

>>> rows = [Coverage("a", 10, 9), Coverage("b", 10, 2), Coverage("c", 10, 5), Coverage("d", 0, 0)]
>>> chosen = select_images(rows)
>>> chosen.median, chosen.kept, chosen.dropped
(0.5, ('a', 'c', 'd'), ('b',))
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks import ClassMaskSource
from hardlook.errors import DataError, OptionError
from hardlook.harness.stats import Estimate, Interval, bootstrap_score, ratio
from hardlook.toss.saliency_cache import SaliencyMaskCache
from hardlook.toss.tiers.attributes import FailedImage
from hardlook.toss.tiers.dataset import list_unreadable_images, open_source
from hardlook.toss.tiers.rules import split_into_folds


@dataclass(frozen=True)
class ClassSplit:
    """The names of the training and of the test classes; `name` says where the split comes from."""

    training: tuple[str, ...]
    test: tuple[str, ...]
    name: str


def split_of_fold(classes: Sequence[str], fold: int, folds: int = 4) -> ClassSplit:
    """Fold `fold` (from 0) tests its own classes and trains on all others.

    >>> split_of_fold(tuple("abcdef"), fold=0, folds=3).test
    ('a', 'b')
    """
    tested = assign_folds(classes, folds)
    if not 0 <= fold < folds:
        raise OptionError(f"--fold {fold}: there is no such fold", remedy=f"one from 0 to {folds - 1}")
    training, test = (tuple(name for name in classes if (tested[name] == fold) is own) for own in (False, True))
    return ClassSplit(training, test, f"fold {fold} of {folds}")


def split_of_training(classes: Sequence[str], training: Sequence[str]) -> ClassSplit:
    """The named classes train, all others test.

    >>> split_of_training(("cat", "dog", "car"), ["car"]).test
    ('cat', 'dog')
    """
    unknown = [name for name in training if name not in classes]
    if unknown or not training:
        what = f"no class {unknown[0]!r} in the data" if unknown else "no training class is named"
        raise OptionError(what, remedy=f"the data has {', '.join(classes)}")
    chosen = tuple(name for name in classes if name in set(training))
    return ClassSplit(chosen, tuple(name for name in classes if name not in chosen), "classes given by name")


def assign_folds(classes: Sequence[str], folds: int = 4) -> dict[str, int]:
    """Each class and the fold that tests it.

    >>> assign_folds(("a", "b", "c", "d"), folds=2)
    {'a': 0, 'b': 0, 'c': 1, 'd': 1}
    """
    # One fold would test every class and train on none.
    if not 2 <= folds <= len(classes):
        raise OptionError(f"--folds {folds}: expected from 2 to {len(classes)}, the number of classes")
    return {name: fold for fold, names in enumerate(split_into_folds(classes, folds)) for name in names}


LEVEL = 0.95


def estimate_share(having: int, images: int) -> Estimate:
    """`having` of `images`, in [0, 1], with Wilson's interval of level .95; NaN without images.

    A bootstrap of five images that all lack something would say that the share is exactly 0. Wilson's interval (E. B.
    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 1927) does not.

    >>> share = estimate_share(5, 10)
    >>> share.value, round(share.interval.low, 4), round(share.interval.high, 4)
    (0.5, 0.2366, 0.7634)
    """
    from scipy.special import ndtri

    if not 0 <= having <= images:
        raise ValueError(f"expected from 0 to {images} images that have it, got {having}")
    if not images:
        return Estimate(math.nan, Interval(math.nan, math.nan, LEVEL, "wilson", 0, "image"), math.nan, 0, 0)
    share, z = having / images, float(ndtri((1 + LEVEL) / 2))
    middle = (share + z * z / (2 * images)) / (1 + z * z / images)
    reach = z * math.sqrt(share * (1 - share) / images + z * z / (4 * images * images)) / (1 + z * z / images)
    # At none and at all of them the bound is the share itself, which rounding would miss.
    low = 0.0 if having == 0 else middle - reach
    high = 1.0 if having == images else middle + reach
    interval = Interval(low, high, LEVEL, "wilson", images, "image")
    return Estimate(share, interval, math.sqrt(share * (1 - share) / images), 0, 0)


def estimate_mask_share(
    masks: Sequence[int], having: Sequence[bool], *, rng: np.random.Generator, resamples: int = 2000
) -> Estimate:
    """The share of masks that lie in an image that has it; masks of one image are resampled together.

    `masks` counts the masks of each image, `having` says whether the image has it.

    >>> estimate_mask_share([1, 2, 1], [False, True, False], rng=np.random.default_rng(0), resamples=50).value
    0.5
    """
    counts = np.asarray(masks, np.float64)
    sums = np.stack([counts * np.asarray(having, bool), counts], axis=1)
    return bootstrap_score(sums, ratio, rng=rng, resamples=resamples, level=LEVEL, range=(0.0, 1.0), resampled="image")


@dataclass(frozen=True)
class Coverage:
    """One training image: its salient pixels, and how many of them are of a training class; `share` is K."""

    image: str
    salient: int
    covered: int
    classes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """K in [0, 1]; NaN without salient pixels."""
        return self.covered / self.salient if self.salient else math.nan


@dataclass(frozen=True)
class Selection:
    """Images kept and dropped, in the given order, with the median of K and the images that have no K."""

    median: float
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    without_salience: tuple[str, ...]


def count_coverage(training: NDArray[np.bool_], salient: NDArray[np.bool_]) -> tuple[int, int]:
    """Salient pixels, and salient pixels of training classes, of two (H, W) masks.

    >>> count_coverage(np.array([[True, False]]), np.array([[True, True]]))
    (2, 1)
    """
    if training.shape != salient.shape:
        raise ValueError(f"expected masks of one shape, got training {training.shape} and salient {salient.shape}")
    return int(np.count_nonzero(salient)), int(np.count_nonzero(training & salient))


def select_images(rows: Sequence[Coverage]) -> Selection:
    """Drop the images whose K lies below the median; the median of an even count is the mean of the middle two.

    >>> select_images([Coverage("a", 4, 4), Coverage("b", 4, 1)]).kept
    ('a',)
    """
    shares = [row.share for row in rows if row.salient]
    median = float(np.median(shares)) if shares else math.nan
    dropped = {row.image for row in rows if row.salient and row.share < median}
    kept, gone = (tuple(row.image for row in rows if (row.image in dropped) is out) for out in (False, True))
    return Selection(median, kept, gone, tuple(row.image for row in rows if not row.salient))


def leave_out_classes(rows: Sequence[Coverage], test: Sequence[str]) -> tuple[str, ...]:
    """The images that hold no test class.

    An oracle: in a fair one-shot setting the test classes are not known at training time.

    >>> leave_out_classes([Coverage("a", 1, 1, ("cat",)), Coverage("b", 1, 1, ("cat", "car"))], ["car"])
    ('a',)
    """
    return tuple(row.image for row in rows if not set(test) & set(row.classes))


BATCH = 8


@dataclass(frozen=True)
class LabelledImage:
    """An image and its tokens: one per class that has pixels in it. `classes` are the names, in the tokens' order."""

    image: str
    tokens: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True)
class OpenedImages:
    """A source, its images with their classes, and those that cannot be read, sorted by id."""

    source: ClassMaskSource
    images: list[LabelledImage]
    unread: tuple[FailedImage, ...]


def open_images(paths: Mapping[str, Path], labels: Path | None, split: str | None) -> OpenedImages:
    """All images of the data, or those of a VOC devkit's list."""
    source, listed = open_source(paths, labels, split)
    unread = sorted(list_unreadable_images(source, listed), key=lambda failure: failure.image)
    return OpenedImages(source, list_labelled_images(source, listed), tuple(unread))


def list_labelled_images(source: ClassMaskSource, images: Iterable[str] | None = None) -> list[LabelledImage]:
    """Images with their classes, sorted by id: all, or those of `images` that can be read, even without a class."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for token in source.tokens():
        found[source.image_of(token)].append(token)
    chosen = sorted(set(found) if images is None else set(images) - set(source.unreadable()))
    return [LabelledImage(image, tuple(found[image]), tuple(map(source.class_of, found[image]))) for image in chosen]


def select_training_images(images: Sequence[LabelledImage], split: ClassSplit) -> list[LabelledImage]:
    """The images that hold at least one training class.

    >>> images = [LabelledImage("a", ("1_a",), ("cat",)), LabelledImage("b", ("2_b",), ("car",))]
    >>> [one.image for one in select_training_images(images, ClassSplit(("cat",), ("car",), ""))]
    ['a']
    """
    return [one for one in images if set(split.training) & set(one.classes)]


def read_training_mask(source: ClassMaskSource, image: LabelledImage, split: ClassSplit) -> NDArray[np.bool_]:
    """The union (H, W) of the masks of all training classes of an image."""
    tokens = [token for token, name in zip(image.tokens, image.classes, strict=True) if name in split.training]
    return np.asarray(np.logical_or.reduce([source.read_mask(token).mask for token in tokens]), dtype=np.bool_)


def measure_coverage(
    source: ClassMaskSource,
    images: Sequence[LabelledImage],
    split: ClassSplit,
    salient: SaliencyMaskCache,
    advance: Callable[[int, int], None],
) -> tuple[list[Coverage], list[FailedImage]]:
    """Coverage of every image, and those that cannot be read; `advance(done, failed)` is called after every batch."""
    rows: list[Coverage] = []
    unread: list[FailedImage] = []
    for start in range(0, len(images), BATCH):
        batch, failed = images[start : start + BATCH], 0
        read: list[tuple[LabelledImage, NDArray[np.uint8], NDArray[np.bool_]]] = []
        for one in batch:
            try:
                read.append((one, source.read_image(one.tokens[0]), read_training_mask(source, one, split)))
            except DataError as error:
                unread.append(FailedImage(one.image, error.what))
                failed += 1
        for (one, _, training), mask in zip(read, salient.masks([image for _, image, _ in read]), strict=True):
            rows.append(Coverage(one.image, *count_coverage(training, mask), one.classes))
        advance(len(batch), failed)
    return rows, unread
