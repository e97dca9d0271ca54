"""GNN. Garcia and Bruna, Few-Shot Learning with Graph Neural Networks, ICLR 2018."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes, FewShotMethod


class Adjacency(nn.Module):
    """Edges (n, v, v) between nodes (n, v, d), from the absolute differences of their features."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        widths = (inputs, 2 * hidden, 2 * hidden, hidden, hidden)
        for before, after in itertools.pairwise(widths):
            layers += [nn.Conv2d(before, after, 1), nn.BatchNorm2d(after), nn.LeakyReLU()]
        self.layers = nn.Sequential(*layers, nn.Conv2d(hidden, 1, 1))

    def forward(self, nodes: Tensor) -> Tensor:
        """Each row sums to 1; a node has no edge to itself."""
        apart = (nodes[:, :, None] - nodes[:, None]).abs().permute(0, 3, 1, 2)
        weights = self.layers(apart)[:, 0]
        itself = torch.eye(nodes.shape[1], dtype=torch.bool, device=nodes.device)
        return torch.softmax(weights.masked_fill(itself, float("-inf")), -1)


class GraphConvolution(nn.Module):
    """A linear layer of each node beside the mean of its neighbours, batch-normalised where `norm` is set."""

    def __init__(self, inputs: int, outputs: int, *, norm: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * inputs, outputs)
        self.norm = nn.BatchNorm1d(outputs) if norm else None

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Nodes (n, v, outputs)."""
        made = self.linear(torch.cat([nodes, edges @ nodes], -1))
        return made if self.norm is None else self.norm(made.flatten(0, 1)).unflatten(0, made.shape[:2])  # type: ignore[no-any-return]


class Gnn(FewShotMethod):
    """A graph of the supports, with their labels, and one query; two layers of learned edges, then the query's label.

    Each layer adds its output to the features of the nodes. `width` numbers describe an image, `hidden` the inside of
    the networks that weigh edges. Queries do not see each other. No released code was compared.
    """

    fixed_ways = True

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 512,
        ways: int = 5,
        layers: int = 2,
        width: int = 128,
        hidden: int = 96,
    ) -> None:
        super().__init__(backbone)
        self.fc = nn.Sequential(nn.Linear(channels, width), nn.BatchNorm1d(width))
        width = width + ways
        self.edges, self.convolutions = nn.ModuleList(), nn.ModuleList()
        for _ in range(layers):
            self.edges.append(Adjacency(width, hidden))
            self.convolutions.append(GraphConvolution(width, hidden // 2, norm=True))
            width += hidden // 2
        self.last_edges, self.last = Adjacency(width, hidden), GraphConvolution(width, ways, norm=False)

    def score(self, features: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        tasks, queries = features.query.shape[:2]
        images = torch.cat([features.support.flatten(1, 2), features.query], 1)
        codes = self.fc(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        count = features.ways * features.shots
        known = functional.one_hot(features.support_labels(), features.ways).to(codes.dtype)
        shown = torch.cat([codes[:, :count], known.expand(tasks, -1, -1)], -1)
        # The label of a query is unknown: the same share for every class.
        unknown = codes.new_full((tasks, queries, features.ways), 1 / features.ways)
        asked = torch.cat([codes[:, count:], unknown], -1)
        nodes = torch.cat([asked[:, :, None], shown[:, None].expand(-1, queries, -1, -1)], 2).flatten(0, 1)
        for edges, convolution in zip(self.edges, self.convolutions, strict=True):
            nodes = torch.cat([nodes, functional.leaky_relu(convolution(nodes, edges(nodes)))], -1)
        return self.last(nodes, self.last_edges(nodes))[:, 0].unflatten(0, (tasks, queries))  # type: ignore[no-any-return]
