"""Class negative bias: how often a test class stands as background in the images that a model is trained on.

Two readings of "percent distractors":
- `paper`: of the images that hold a training class, the share that holds the test class too;
- `released`: the same over training masks, an image counting once for each training class in it. One-shot training
  draws a class and then an image of it, so this is how often the class is seen as background. The published numbers
  follow it: counted from the published file of statistics they agree within half a point for all classes, those of
  the `paper` reading within 2.4.

>>> images = [("cat",), ("cat", "car"), ("dog", "cat", "car"), ("car",)]
>>> shares = distractor_shares(images, {"car": ("cat", "dog")})
>>> shares["car"].paper.value, shares["car"].released.value
(0.6666666666666666, 0.75)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hardlook.bias.shares import share_of, share_of_masks
from hardlook.randomness import generator
from hardlook.stats import Estimate

Reading = Literal["paper", "released"]
READINGS: tuple[Reading, ...] = ("paper", "released")


@dataclass(frozen=True)
class DistractorShare:
    """How a test class stands in the training set: counts of images and of masks, and of those that hold it."""

    images: int
    images_with: int
    masks: int
    masks_with: int
    paper: Estimate
    released: Estimate

    def share(self, reading: Reading) -> Estimate:
        """The share under a reading, in [0, 1]; NaN when there is no training image."""
        return self.paper if reading == "paper" else self.released


def distractor_shares(
    images: Iterable[Sequence[str]],
    training_of: Mapping[str, Sequence[str]],
    *,
    seed: int = 0,
    resamples: int = 2000,
) -> dict[str, DistractorShare]:
    """The share of each test class, from the classes of every image.

    `training_of` gives, for each test class, the classes that are trained on where it is tested. Intervals are over
    images: Wilson's for `paper`, a bootstrap for `released`.
    """
    held = [frozenset(classes) for classes in images]
    found = {}
    for name, training in training_of.items():
        trained = frozenset(training)
        counts = [(count, name in classes) for classes in held if (count := len(classes & trained))]
        masks, having = [count for count, _ in counts], [inside for _, inside in counts]
        released = share_of_masks(masks, having, rng=generator(seed, "distractors", name), resamples=resamples)
        found[name] = DistractorShare(
            images=len(counts),
            images_with=sum(having),
            masks=sum(masks),
            masks_with=sum(count for count, inside in counts if inside),
            paper=share_of(sum(having), len(counts)),
            released=released,
        )
    return found
