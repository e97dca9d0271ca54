"""The normalised focal loss against a literal formula, and what is not differentiated in it."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hardlook.training.interactive.losses import (  # noqa: E402
    compute_interactive_loss,
    masked_cross_entropy,
    normalised_focal_loss,
)


def make_case(seed=0):
    rng = np.random.default_rng(seed)
    logits = torch.tensor(3 * rng.standard_normal((2, 1, 4, 5)), dtype=torch.float64)
    return logits, torch.tensor(rng.random((2, 4, 5)) < 0.4), torch.tensor(rng.random((2, 4, 5)) < 0.8)


def compute_literally(logits, target, valid, weights_of=None):
    """Pixel by pixel, as the paper's facts say; `weights_of` are logits that the normalisation is taken from."""
    total = 0.0
    for sample in range(len(logits)):
        pixels = [(row, column) for row in range(4) for column in range(5) if valid[sample, row, column]]

        def hardness(source, row, column, sample=sample):
            chance = 1 / (1 + np.exp(-float(source[sample, 0, row, column])))
            return (1 - chance if target[sample, row, column] else chance) ** 2, chance

        scale = len(pixels) / sum(hardness(logits if weights_of is None else weights_of, *one)[0] for one in pixels)
        for row, column in pixels:
            weight, chance = hardness(logits, row, column)
            right = chance if target[sample, row, column] else 1 - chance
            total += -0.5 * scale * weight * np.log(right) / len(pixels)
    return total / len(logits)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_loss_is_that_of_the_formula(seed):
    case = make_case(seed)
    assert float(normalised_focal_loss(*case)) == pytest.approx(compute_literally(*case), rel=1e-5)


def test_pixels_without_a_label_do_not_count():
    logits, target, valid = make_case()
    changed = torch.where(valid[:, None], logits, logits + 9)
    for loss in (normalised_focal_loss, masked_cross_entropy):
        assert float(loss(logits, target, valid)) == pytest.approx(float(loss(changed, target, valid)), rel=1e-6)


def test_the_normalisation_is_not_differentiated():
    logits, target, valid = make_case()
    given = logits.clone().requires_grad_()
    normalised_focal_loss(given, target, valid).backward()
    at = tuple(int(index) for index in torch.nonzero(valid)[3])
    place = (at[0], 0, *at[1:])
    moved = [logits.clone() for _ in range(2)]
    for sign, one in zip((1, -1), moved, strict=True):
        one[place] += sign * 1e-4
    up, down = (compute_literally(one, target, valid, weights_of=logits) for one in moved)
    assert float(given.grad[place]) == pytest.approx((up - down) / 2e-4, rel=1e-3)


def test_auxiliary_logits_weigh_two_fifths():
    logits, target, valid = make_case()
    alone = compute_interactive_loss({"instances": logits}, target, valid)
    both = compute_interactive_loss({"instances": logits, "instances_aux": logits}, target, valid)
    assert float(both - alone) == pytest.approx(0.4 * float(masked_cross_entropy(logits, target, valid)))
