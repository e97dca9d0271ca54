"""ANIL. Raghu et al., Rapid Learning or Feature Reuse? Towards Understanding the Effectiveness of MAML, ICLR 2020."""

from __future__ import annotations

from torch import Tensor, nn

from hardlook.networks.few_shot.inner_loops import LinearClassifier, adapt_linear
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision


class Anil(FewShotMethod):
    """MAML whose inner loop moves the last layer only; features come from one forward pass of the whole episode.

    At test time batch normalisation uses its running statistics. The released code does so for the first episode only,
    since its adaptation leaves the backbone in training mode: `released=True` does the same.
    """

    fixed_ways = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        ways: int = 5,
        inner_rate: float = 0.01,
        steps: int = 5,
        test_steps: int = 10,
        first_order: bool = False,
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.classifier = LinearClassifier(channels, ways)
        self.inner_rate, self.steps, self.test_steps = inner_rate, steps, test_steps
        self.first_order, self.released = first_order, released

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        weight, bias = adapt_linear(
            features.support.flatten(1, 2),
            features.support_labels(),
            self.classifier.linear.weight,
            self.classifier.linear.bias,
            steps=self.steps if self.training else self.test_steps,
            rate=self.inner_rate,
            first_order=self.first_order,
        )
        return features.query @ weight.mT + bias[:, None]

    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores of images."""
        scores = super().classify(episodes)
        if self.released:
            self.emb_func.train()
        return scores
