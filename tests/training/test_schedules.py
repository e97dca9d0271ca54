"""Learning rates by hand and against torch's schedulers."""

import pytest
import torch

from hardlook.errors import OptionError
from hardlook.training.schedules import Schedule, compute_rate


def rates(schedule, *, steps, epochs, lr=0.1):
    return [compute_rate(schedule, lr, step, steps=steps, epochs=epochs) for step in range(steps)]


@pytest.mark.parametrize(
    ("schedule", "build"),
    [
        (Schedule("step", gamma=0.5, every=3), lambda one: torch.optim.lr_scheduler.StepLR(one, 3, 0.5)),
        (
            Schedule("multi-step", gamma=0.1, milestones=(2, 7)),
            lambda one: torch.optim.lr_scheduler.MultiStepLR(one, [2, 7], 0.1),
        ),
        (Schedule("cosine"), lambda one: torch.optim.lr_scheduler.CosineAnnealingLR(one, 10)),
        (Schedule("constant"), lambda one: torch.optim.lr_scheduler.ConstantLR(one, 1.0)),
    ],
)
def test_one_step_per_epoch_is_torchs_scheduler(schedule, build):
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler, wanted = build(optimiser), []
    for _ in range(10):
        wanted.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    assert rates(schedule, steps=10, epochs=10) == pytest.approx(wanted)


def test_a_budget_moves_milestones_with_the_stage():
    schedule = Schedule("multi-step", gamma=0.1, milestones=(60, 80))
    found = rates(schedule, steps=10, epochs=100, lr=1.0)
    assert found == pytest.approx([1.0] * 6 + [0.1] * 2 + [0.01] * 2)


def test_a_warm_up_rises_linearly_and_joins_the_schedule():
    found = rates(Schedule("constant", warm_up=2), steps=20, epochs=10, lr=1.0)
    assert found[:5] == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0])
    assert rates(Schedule("cosine", warm_up=5), steps=10, epochs=10, lr=1.0)[4:6] == pytest.approx([1.0, 1.0])


def test_what_is_no_schedule_is_refused():
    with pytest.raises(OptionError, match="no schedule 'steps'"):
        Schedule("steps")
    with pytest.raises(OptionError, match="epochs between"):
        Schedule("step")
