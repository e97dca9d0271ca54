"""One batch of prompts asked on behalf of an instance."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from hardlook.clicks.instance import Instance
from hardlook.errors import HardlookError, ModelError
from hardlook.models.roles import Clicks, Prompted


def ask(prompts: list[Clicks], instance: Instance) -> Generator[list[Clicks], list[Prompted], list[Prompted]]:
    """Yield the prompts, take the answers and check them: one bool mask (H, W) a prompt.

    An error that the driver throws in for a failed call leaves here with the instance's name.

    >>> frame = np.ones((2, 2), bool)
    >>> asking = ask([Clicks(np.zeros((1, 2), np.float32), frame[0, :1])],
    ...              Instance("mine", "cat", np.zeros((2, 2, 3), np.uint8), frame, ~frame))
    >>> len(next(asking))
    1
    >>> asking.send([])
    Traceback (most recent call last):
    ...
    hardlook.errors.ModelError: the segmenter: expected 1 answers, got 0
      unit: cat
    """
    try:
        answers = yield prompts
    except HardlookError as error:
        raise error.at(unit=instance.name) from error
    if len(answers) != len(prompts):
        raise ModelError(f"the segmenter: expected {len(prompts)} answers, got {len(answers)}", unit=instance.name)
    for answer in answers:
        mask = getattr(answer, "mask", None)
        shape, kind = getattr(mask, "shape", ""), getattr(mask, "dtype", type(mask).__name__)
        if mask is None or shape != instance.shape or kind != np.bool_:
            got = f"{kind} {shape}" if mask is not None else f"a {type(answer).__name__} without a mask"
            raise ModelError(
                f"the segmenter: expected answers with bool masks {instance.shape}, got {got}",
                unit=instance.name,
                remedy="`hardlook check promptable-segmenter MODEL` says what does not fit",
            )
    return answers
