"""How a SAM-like model is prompted: the number of masks per click, the use of earlier answers, and prompts in batches.

Papers differ on the first two, so both are options, and the report says which ran. The default is that of RClicks
(three masks at every click, the previous logits given back).

>>> PromptPolicy(multimask="first").several(1), PromptPolicy(multimask="first").several(2)
(True, False)
>>> PromptPolicy("never", previous=False).describe()
'One mask at every click; previous logits not given back'

Prompts with the same number of clicks can be answered in one forward pass.

>>> one = Clicks(np.array([[3, 4]], np.float32), np.array([True]))
>>> two = Clicks(np.array([[3, 4], [8, 8]], np.float32), np.array([True, False]))
>>> [(group.places, group.points.shape) for group in group_prompts([one, two, one], PromptPolicy(), batch=64)]
[((0, 2), (2, 1, 2)), ((1,), (1, 2, 2))]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.roles import Clicks, Prompted

Multimask = Literal["always", "first", "never"]

_MASKS = {
    "always": "Three masks at every click, the one with the highest predicted IoU",
    "first": "Three masks at the first click, the one with the highest predicted IoU, one mask afterwards",
    "never": "One mask at every click",
}


@dataclass(frozen=True)
class PromptPolicy:
    """How many masks are requested, and whether the previous logits are given back.

    `multimask`: at which clicks the model proposes three masks, of which the one with the highest predicted IoU is
    taken; at the others it gives one. `previous`: whether the low-resolution logits of the mask taken at the click
    before are part of the prompt.

    >>> PromptPolicy(multimask="often")
    Traceback (most recent call last):
    ...
    hardlook.errors.OptionError: no prompt policy has multimask='often'
      remedy: multimask is one of always, first, never
    """

    multimask: Multimask = "always"
    previous: bool = True

    def __post_init__(self) -> None:
        if self.multimask not in get_args(Multimask):
            remedy = f"multimask is one of {', '.join(get_args(Multimask))}"
            raise OptionError(f"no prompt policy has multimask={self.multimask!r}", remedy=remedy)
        if not isinstance(self.previous, bool):
            remedy = "previous is true or false, not a text"
            raise OptionError(f"no prompt policy has previous={self.previous!r}", remedy=remedy)

    def several(self, clicks: int) -> bool:
        """Whether three masks are requested for a prompt with so many clicks (from 1)."""
        return self.multimask == "always" or (self.multimask == "first" and clicks <= 1)

    def describe(self) -> str:
        """One sentence for reports, without a full stop."""
        return f"{_MASKS[self.multimask]}; previous logits {'' if self.previous else 'not '}given back"


@dataclass(frozen=True)
class PromptGroup:
    """Prompts with the same number of clicks n, all with or all without an earlier answer.

    `places` are their indices among all prompts; `points` (P, n, 2) float32 in pixels of the image; `labels` (P, n)
    int64, 1 for positive and 0 for negative; `states` of the P earlier answers, or empty; `several`: whether three
    masks are wanted; `boxes` (P, 4) float32 in pixels of the image, None without boxes.
    """

    places: tuple[int, ...]
    points: NDArray[np.float32]
    labels: NDArray[np.int64]
    states: tuple[Any, ...]
    several: bool
    boxes: NDArray[np.float32] | None = None

    def scaled(self, along_x: float, along_y: float) -> NDArray[np.float32]:
        """The points in pixels of the network's input, multiplied in float64 as SAM does."""
        return np.asarray(self.points * np.array([along_x, along_y]), np.float32)

    def scaled_boxes(self, along_x: float, along_y: float) -> NDArray[np.float32] | None:
        """The boxes in pixels of the network's input, None without boxes."""
        if self.boxes is None:
            return None
        return np.asarray(self.boxes * np.array([along_x, along_y, along_x, along_y]), np.float32)


def answer_in_groups(
    prompts: Sequence[Clicks], policy: PromptPolicy, batch: int, answer: Callable[[PromptGroup], Iterable[Prompted]]
) -> list[Prompted]:
    """One answer per prompt, in their order; `answer` gets groups of at most `batch` prompts."""
    answers: dict[int, Prompted] = {}
    for group in group_prompts(prompts, policy, batch):
        answers.update(zip(group.places, answer(group), strict=True))
    return [answers[place] for place in range(len(prompts))]


def group_prompts(prompts: Sequence[Clicks], policy: PromptPolicy, batch: int) -> list[PromptGroup]:
    """Groups of at most `batch` prompts, in order of their first prompt; every prompt is in one of them.

    A box counts as a click where the policy asks for how many there are.
    """
    groups: dict[tuple[int, bool, bool], list[int]] = {}
    for place, prompt in enumerate(prompts):
        with_state = policy.previous and prompt.state is not None
        groups.setdefault((len(prompt.points), with_state, prompt.box is not None), []).append(place)
    return [
        PromptGroup(
            places=tuple(places),
            points=np.stack([np.asarray(prompts[place].points, np.float32).reshape(-1, 2) for place in places]),
            labels=np.stack([np.asarray(prompts[place].positive, np.int64).reshape(-1) for place in places]),
            states=tuple(prompts[place].state for place in places) if with_state else (),
            several=policy.several(count + with_box),
            boxes=np.stack([np.asarray(prompts[place].box, np.float32) for place in places]) if with_box else None,
        )
        for (count, with_state, with_box), members in groups.items()
        for places in (members[start : start + batch] for start in range(0, len(members), batch))
    ]
