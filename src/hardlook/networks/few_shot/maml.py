"""MAML. Finn, Abbeel and Levine, Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks, ICML 2017."""

from __future__ import annotations

from torch import Tensor, nn

from hardlook.networks.few_shot.inner_loops import LinearClassifier, adapt_and_score
from hardlook.networks.few_shot.method import Episodes, FewShotMethod


class Maml(FewShotMethod):
    """Gradient steps on all parameters from a learned start, by the statistics of the batch at hand.

    `steps` in training, `test_steps` at test time, at the learning rate `inner_rate`. `first_order` takes the gradients
    of the steps as constants. The queries of a task are one batch, whose statistics they share: transductive.
    """

    transductive = True
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
    ) -> None:
        super().__init__(backbone)
        self.classifier = LinearClassifier(channels, ways)
        self.inner_rate, self.steps, self.test_steps, self.first_order = inner_rate, steps, test_steps, first_order

    def forward(self, images: Tensor) -> Tensor:
        """(n, ways) scores of images without adaptation."""
        return self.classifier(self.emb_func(images))  # type: ignore[no-any-return]

    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores after the inner loop."""
        return adapt_and_score(
            self,
            episodes,
            steps=self.steps if self.training else self.test_steps,
            rates=lambda name: self.inner_rate,
            first_order=self.first_order or not self.training,
        )
