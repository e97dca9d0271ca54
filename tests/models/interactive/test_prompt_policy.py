"""Which masks a prompt policy asks for, and what it says of itself."""

from __future__ import annotations

import itertools

import pytest

from hardlook.errors import OptionError
from hardlook.models.interactive.prompt_policy import PromptPolicy


@pytest.mark.parametrize(
    ("multimask", "asked"), [("always", [True] * 4), ("first", [True, False, False, False]), ("never", [False] * 4)]
)
def test_clicks_at_which_three_masks_are_asked_for(multimask, asked) -> None:
    policy = PromptPolicy(multimask)
    assert [policy.several(clicks) for clicks in (1, 2, 3, 20)] == asked


def test_the_default_is_the_benchmark_s() -> None:
    assert PromptPolicy() == PromptPolicy(multimask="always", previous=True)


def test_every_policy_has_words_of_its_own() -> None:
    words = [
        PromptPolicy(multimask, previous).words()
        for multimask, previous in itertools.product(("always", "first", "never"), (True, False))
    ]
    assert len(set(words)) == 6
    assert all(sentence.endswith(".") and sentence.count(".") == 1 for sentence in words)


def test_policies_that_cannot_be() -> None:
    with pytest.raises(OptionError, match="always, first, never"):
        PromptPolicy(multimask="sometimes")
    with pytest.raises(OptionError, match="true or false"):
        PromptPolicy(previous="yes")
