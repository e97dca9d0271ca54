"""Prompts put together into forward passes.

Which masks a prompt policy asks for, and what it says of itself.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.models.interactive.prompts import PromptPolicy, group_prompts
from hardlook.models.roles import Clicks


def prompt(clicks: int, answered: bool, number: int) -> Clicks:
    points = np.full((clicks, 2), number, np.float32)
    return Clicks(points, np.arange(clicks) % 2 == 0, f"state {number}" if answered else None)


KINDS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12)


@given(KINDS, st.booleans(), st.sampled_from(["always", "first", "never"]), st.integers(1, 5))
def test_groups_are_of_one_kind_and_lose_nobody(kinds, previous, multimask, batch) -> None:
    prompts = [prompt(*kind, number) for number, kind in enumerate(kinds)]
    policy = PromptPolicy(multimask, previous)
    groups = group_prompts(prompts, policy, batch)
    assert sorted(place for group in groups for place in group.places) == list(range(len(prompts)))
    for group in groups:
        chosen = [prompts[place] for place in group.places]
        assert len(chosen) <= batch
        assert group.points.shape == (len(chosen), len(chosen[0].points), 2)
        for one, points, labels in zip(chosen, group.points, group.labels, strict=True):
            assert np.array_equal(one.points, points) and np.array_equal(one.positive, labels == 1)
        answers = tuple(one.state for one in chosen if one.state is not None) if previous else ()
        assert group.states == answers and len(answers) in (0, len(chosen))
        assert group.several == policy.several(len(chosen[0].points))


@pytest.mark.parametrize(
    ("multimask", "asked"), [("always", [True] * 4), ("first", [True, False, False, False]), ("never", [False] * 4)]
)
def test_clicks_at_which_three_masks_are_asked_for(multimask, asked) -> None:
    policy = PromptPolicy(multimask)
    assert [policy.several(clicks) for clicks in (1, 2, 3, 20)] == asked


def test_the_default_is_the_benchmark_s() -> None:
    assert PromptPolicy() == PromptPolicy(multimask="always", previous=True)


def test_every_policy_has_its_own_description() -> None:
    words = [
        PromptPolicy(multimask, previous).describe()
        for multimask, previous in itertools.product(("always", "first", "never"), (True, False))
    ]
    assert len(set(words)) == 6
    assert all("." not in sentence for sentence in words)


def test_policies_that_cannot_be() -> None:
    with pytest.raises(OptionError, match="always, first, never"):
        PromptPolicy(multimask="sometimes")
    with pytest.raises(OptionError, match="true or false"):
        PromptPolicy(previous="yes")
