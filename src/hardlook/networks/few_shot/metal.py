"""MeTAL. Baik et al., Meta-Learning with Task-Adaptive Loss Function for Few-Shot Learning, ICCV 2021."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.inner_loops import LinearClassifier, embed_tasks
from hardlook.networks.few_shot.method import Episodes, FewShotMethod
from hardlook.networks.precision import full_precision

Layers = tuple[Tensor, Tensor, Tensor, Tensor]


class LossLayer(nn.Module):
    """Weights and bias of a linear layer, under the names of published files."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(nn.init.xavier_uniform_(torch.empty(outputs, inputs)))
        self.bias = nn.Parameter(torch.zeros(outputs))


class LossNetwork(nn.Module):
    """Per inner step two linear layers that turn states (tasks, n, inputs) into a loss per task."""

    def __init__(self, inputs: int, steps: int) -> None:
        super().__init__()
        made = {
            f"step{step}": nn.ModuleDict({"linear1": LossLayer(inputs, inputs), "linear2": LossLayer(inputs, 1)})
            for step in range(steps)
        }
        self.layer_dict = nn.ModuleDict(made)

    def layers(self, step: int) -> Layers:
        """Weights and biases of both layers of a step."""
        named = dict(self.layer_dict[f"step{step}"].named_parameters())
        first, second = (f"linear{number}." for number in (1, 2))
        return named[f"{first}weights"], named[f"{first}bias"], named[f"{second}weights"], named[f"{second}bias"]


class LossAdapter(nn.Module):
    """A scale and a shift for each weight and bias of a step's loss network, from a task's state (tasks, inputs)."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.multiplier_bias = nn.Parameter(torch.zeros(4))
        self.offset_bias = nn.Parameter(torch.zeros(4))
        self.linear1 = nn.Linear(inputs, inputs)
        self.linear2 = nn.Linear(inputs, 8)

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Scales and shifts (tasks, 4)."""
        scales, shifts = self.linear2(functional.relu(self.linear1(state))).chunk(2, -1)
        return 1 + self.multiplier_bias * scales, self.offset_bias * shifts


class LossAdapters(nn.Module):
    """One adapter per inner step."""

    def __init__(self, inputs: int, steps: int) -> None:
        super().__init__()
        self.loss_adapter = nn.ModuleList(LossAdapter(inputs) for _ in range(steps))


class Metal(FewShotMethod):
    """An inner loop on the last layer whose loss is learned: cross-entropy of the support plus two networks.

    One network sees the support (state, scores, labels), the other the queries (state, scores, negative entropy): the
    method is transductive. Both are adapted to the task. The paper adapts all layers, the released code and this one
    the last. A state has the means of the weights as they are at that step; in the released code it has those of the
    start: `released=True`.
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
        released: bool = False,
    ) -> None:
        super().__init__(backbone)
        self.inner_rate, self.steps, self.test_steps, self.released = inner_rate, steps, test_steps, released
        self.classifier = LinearClassifier(channels, ways)
        most = max(steps, test_steps)
        # State of the support: its loss and the means of weight and bias; of a query: these means and its entropy.
        self.meta_loss = LossNetwork(3 + 2 * ways, most)
        self.meta_query_loss = LossNetwork(3 + ways, most)
        self.meta_loss_adapter = LossAdapters(3, most)
        self.meta_query_loss_adapter = LossAdapters(3 + ways, most)

    @full_precision
    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores after the inner loop."""
        weight, bias = self.adapt(features)
        return features.query @ weight.mT + bias[:, None]

    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores of images, by the statistics of the batch at hand.

        In the inner loop supports and queries are one batch, for the scores the queries alone.
        """
        support, sizes = episodes.support.flatten(1, 2), episodes.support.shape[:3]
        both = embed_tasks(self.emb_func, torch.cat([support, episodes.query], 1))
        shown, asked = both[:, : support.shape[1]], both[:, support.shape[1] :]
        weight, bias = self.adapt(replace(episodes, support=shown.reshape(*sizes, -1), query=asked))
        return embed_tasks(self.emb_func, episodes.query) @ weight.mT + bias[:, None]

    @full_precision
    def adapt(self, features: Episodes) -> tuple[Tensor, Tensor]:
        """Weight (tasks, ways, d) and bias (tasks, ways) after the inner loop, whose gradients are kept in training."""
        tasks = len(features)
        support, query = features.support.flatten(1, 2), features.query
        labels = features.support_labels()
        targets = functional.one_hot(labels, features.ways).to(support.dtype).expand(tasks, -1, -1)
        linear = self.classifier.linear
        with torch.enable_grad():
            start = torch.stack([linear.weight.mean(), linear.bias.mean()]).expand(tasks, -1)
            weight, bias = linear.weight.expand(tasks, -1, -1), linear.bias.expand(tasks, -1)
            for step in range(self.steps if self.training else self.test_steps):
                means = torch.stack([weight.mean((1, 2)), bias.mean(1)], 1)
                means = start if self.released and step else means
                shown, asked = (part @ weight.mT + bias[:, None] for part in (support, query))
                loss = self.support_loss(shown, targets, means, step) + self.query_loss(asked, means, step)
                moves = torch.autograd.grad(loss.sum(), (weight, bias), create_graph=self.training)
                weight, bias = weight - self.inner_rate * moves[0], bias - self.inner_rate * moves[1]
        return weight, bias

    def support_loss(self, scores: Tensor, targets: Tensor, means: Tensor, step: int) -> Tensor:
        """(tasks,) cross-entropy of the support plus its learned loss; `means` (tasks, 2) of weight and bias."""
        plain = -(scores.log_softmax(-1) * targets).sum(-1).mean(-1)
        state = _standardise(torch.cat([plain[:, None], means], 1), (1,))
        scales, shifts = self.meta_loss_adapter.loss_adapter[step](state)
        joined = torch.cat([state[:, None].expand(-1, scores.shape[1], -1), scores, targets], -1)
        return plain + _apply(_standardise(joined, (1, 2)), self.meta_loss.layers(step), scales, shifts)

    def query_loss(self, scores: Tensor, means: Tensor, step: int) -> Tensor:
        """(tasks,) learned loss of the queries."""
        logs = scores.log_softmax(-1)
        certainty = (logs.exp() * logs).sum(-1, keepdim=True)
        joined = torch.cat([means[:, None].expand(-1, scores.shape[1], -1), scores, certainty], -1)
        states = _standardise(joined, (1, 2))
        scales, shifts = self.meta_query_loss_adapter.loss_adapter[step](states.mean(1))
        return _apply(states, self.meta_query_loss.layers(step), scales, shifts)


def _standardise(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    return (values - values.mean(axes, keepdim=True)) / (values.std(axes, keepdim=True) + 1e-12)


def _apply(states: Tensor, layers: Layers, scales: Tensor, shifts: Tensor) -> Tensor:
    """(tasks,) mean output of two linear layers, scaled and shifted per task, on states (tasks, n, inputs)."""

    def adapted(number: int) -> Tensor:
        shape = [-1] + [1] * layers[number].ndim
        return layers[number] * scales[:, number].reshape(shape) + shifts[:, number].reshape(shape)

    hidden = functional.relu(states @ adapted(0).mT + adapted(1)[:, None])
    return (hidden @ adapted(2).mT + adapted(3)[:, None]).mean((1, 2))
