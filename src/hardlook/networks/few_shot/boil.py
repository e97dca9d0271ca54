"""BOIL. Oh et al., BOIL: Towards Representation Change for Few-shot Learning, ICLR 2021."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.inner_loops import LinearClassifier, adapt_and_score, embed_tasks
from hardlook.networks.few_shot.method import Episodes, FewShotMethod


class Boil(FewShotMethod):
    """MAML whose inner loop moves the body and not the head: `steps` steps at `inner_rate`.

    `test` chooses how queries are scored: `update` after the steps, `directly` without them, `nil` by the cosine with
    the class means of features that were not adapted. In the released code the head moves with the rate of the body,
    because the rule that names it never applies, and the mean loss of a batch is divided by its number of tasks once
    more: `released=True` does the same. As in MAML the queries of a task share the statistics of their batch:
    transductive.
    """

    transductive = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        ways: int = 5,
        inner_rate: float = 0.5,
        steps: int = 1,
        first_order: bool = False,
        test: Literal["update", "directly", "nil"] = "update",
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.classifier = LinearClassifier(channels, ways)
        self.inner_rate, self.steps, self.first_order = inner_rate, steps, first_order
        self.test, self.released = test, released
        self.fixed_ways = test != "nil"  # class means need no head

    def forward(self, images: Tensor) -> Tensor:
        """(n, ways) scores of images without adaptation."""
        return self.classifier(self.emb_func(images))  # type: ignore[no-any-return]

    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        if not self.training and self.test == "nil":
            return self.score_by_means(episodes)
        return adapt_and_score(
            self,
            episodes,
            steps=self.steps if self.training or self.test == "update" else 0,
            rates=lambda name: 0.0 if name.startswith("classifier.") and not self.released else self.inner_rate,
            first_order=self.first_order or not self.training,
        )

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the queries after the steps."""
        loss, scores = super().loss(episodes)
        return loss / len(episodes) if self.released else loss, scores

    def score_by_means(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) cosines with class means; supports and queries of a task are batches of their own."""
        support = embed_tasks(self.emb_func, episodes.support.flatten(1, 2))
        means = support.view(*episodes.support.shape[:3], -1).mean(2)
        query = embed_tasks(self.emb_func, episodes.query)
        return functional.cosine_similarity(query[:, :, None], means[:, None], dim=-1)
