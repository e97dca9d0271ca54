"""Prompts put together into forward passes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hardlook.models.interactive.alike_prompts import alike
from hardlook.models.interactive.prompt_policy import PromptPolicy
from hardlook.models.roles import Clicks


def prompt(clicks: int, answered: bool, number: int) -> Clicks:
    points = np.full((clicks, 2), number, np.float32)
    return Clicks(points, np.arange(clicks) % 2 == 0, f"state {number}" if answered else None)


KINDS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12)


@given(KINDS, st.booleans(), st.sampled_from(["always", "first", "never"]), st.integers(1, 5))
def test_groups_are_of_one_kind_and_lose_nobody(kinds, previous, multimask, batch) -> None:
    prompts = [prompt(*kind, number) for number, kind in enumerate(kinds)]
    policy = PromptPolicy(multimask, previous)
    groups = alike(prompts, policy, batch)
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
