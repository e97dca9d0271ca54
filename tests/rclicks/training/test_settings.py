"""The published settings, and the learning rate over the steps."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.rclicks.training.settings import TrainingSettings, compute_learning_rate


def test_the_defaults_are_the_published_ones():
    settings = TrainingSettings()
    assert (settings.epochs, settings.batch, settings.lr, settings.warm_up) == (20, 16, 0.01, 0.1)
    assert (settings.size, settings.sigma, settings.flip, settings.clip) == (416, 5, True, None)


@given(st.integers(1, 500), st.floats(0, 0.9))
def test_the_rate_rises_to_its_peak_and_falls_along_a_cosine(steps, warm_up):
    settings = TrainingSettings(warm_up=warm_up)
    rates = [compute_learning_rate(settings, step, steps) for step in range(steps)]
    warm_up_steps = int(warm_up * steps)
    assert all(0 < rate <= 0.01 for rate in rates)
    assert rates[warm_up_steps] == 0.01
    assert rates[:warm_up_steps] == sorted(rates[:warm_up_steps])
    assert rates[warm_up_steps:] == sorted(rates[warm_up_steps:], reverse=True)
    halfway = warm_up_steps + (steps - warm_up_steps) // 2
    if (steps - warm_up_steps) % 2 == 0:
        assert math.isclose(rates[halfway], 0.005)


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"lr": 0.0}, {"warm_up": 1.0}, {"clip": 0.0}])
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(OptionError):
        TrainingSettings(**wrong)


def test_a_grid_too_small_for_the_last_stage_is_refused():
    with pytest.raises(OptionError, match="a grid of 63 pixels") as refused:
        TrainingSettings(size=63)
    assert "size is at least 64" in str(refused.value)
    assert TrainingSettings(size=64).size == 64


@pytest.mark.parametrize(
    "wrong",
    [
        {"sigma": -1.0}, {"sigma": math.nan}, {"backbone_rate": math.nan}, {"backbone_rate": -0.1}, {"lr": math.inf},
        {"mask_sigma": "bogus"}, {"precision": "bogus"},
    ],
)  # fmt: skip
def test_errors_name_the_invalid_setting(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        TrainingSettings(**wrong)
