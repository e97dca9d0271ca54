"""Validation: a network that knows the truth, and one that knows nothing."""

import numpy as np
import pytest

from hardlook.clicks.training.samples import GridSamples
from hardlook.clicks.training.validation import validate
from hardlook.errors import RunError

torch = pytest.importorskip("torch")


class Fixed(torch.nn.Module):
    """Answers with the maps it was given, in order."""

    def __init__(self, maps):
        super().__init__()
        self.maps, self.asked = maps, 0

    def forward(self, images, masks):
        first, self.asked = self.asked, self.asked + len(images)
        return torch.from_numpy(np.stack(self.maps[first : self.asked]))


def test_the_truth_scores_best_and_an_even_map_nothing(scenes, brief):
    samples = GridSamples(scenes, brief)
    truth = validate(Fixed([samples[i].target for i in range(10)]), samples, device="cpu", batch=4)
    even = validate(Fixed([np.zeros((64, 64), np.float32)] * 10), samples, device="cpu", batch=4)
    assert truth["sim"] == pytest.approx(1, abs=1e-6)
    assert truth["kl"] == pytest.approx(0, abs=1e-3)
    assert truth["nss"] > 3
    assert even["nss"] == 0
    # SIM with an even map is the mass below the even level and that level elsewhere; KL is log cells less entropy.
    shares = [samples[i].target.astype(float) / samples[i].target.sum() for i in range(10)]
    assert even["sim"] == pytest.approx(np.mean([np.minimum(one, 1 / 4096).sum() for one in shares]))
    entropies = [-(one[one > 0] * np.log(one[one > 0])).sum() for one in shares]
    assert even["kl"] == pytest.approx(np.log(4096) - np.mean(entropies), abs=1e-3)


def test_maps_that_are_not_finite_are_no_result(scenes, brief):
    samples = GridSamples(scenes, brief)
    with pytest.raises(RunError, match="diverged"):
        validate(Fixed([np.full((64, 64), np.nan, np.float32)] * 10), samples, device="cpu", batch=4)
