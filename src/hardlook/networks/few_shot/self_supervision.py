"""ProtoNet with self-supervised tasks beside its episodes: SSFSL and BF3S.

Su, Maji and Hariharan, When Does Self-supervision Improve Few-shot Learning?, ECCV 2020 (SSFSL: rotation, jigsaw,
both). Gidaris et al., Boosting Few-Shot Visual Learning with Self-Supervision, ICCV 2019 (BF3S: all rotations).
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hardlook.networks.few_shot.method import Episodes, cross_entropy
from hardlook.networks.few_shot.protonet import ProtoNet
from hardlook.networks.few_shot.skd import rotate
from hardlook.randomness import generator

TILES, PERMUTATIONS = 3, 35


def choose_permutations(count: int = PERMUTATIONS, tiles: int = TILES**2) -> np.ndarray[Any, np.dtype[np.int64]]:
    """(count, tiles) permutations that are far apart: each next one differs most from those before it."""
    candidates = np.stack([generator(0, "jigsaw", number).permutation(tiles) for number in range(2000)])
    chosen = [np.arange(tiles)]
    apart = np.full(len(candidates), tiles)
    for _ in range(count - 1):
        apart = np.minimum(apart, (candidates != chosen[-1]).sum(1))
        chosen.append(candidates[int(apart.argmax())])
    return np.stack(chosen)


def shuffle_tiles(images: Tensor, orders: Tensor) -> Tensor:
    """Images (n, C, h, w) whose 3 x 3 tiles are put in the order of `orders` (n, 9); edges that do not fit are cut."""
    height, width = (side // TILES for side in images.shape[2:])
    tiles = (
        images[:, :, : TILES * height, : TILES * width].unfold(2, height, height).unfold(3, width, width).flatten(2, 3)
    )
    places = orders[:, None, :, None, None].expand(-1, images.shape[1], -1, height, width)
    grid = torch.unflatten(tiles.gather(2, places), 2, (TILES, TILES))
    return grid.permute(0, 1, 2, 4, 3, 5).reshape(*images.shape[:2], TILES * height, TILES * width)


class SelfSupervisedProtoNet(ProtoNet):
    """SSFSL: ProtoNet plus `weight` times the loss of a task that needs no labels, on all images of the episodes.

    `task` is rotation (by which of four angles was the image turned), jigsaw (in which of 35 orders are its tiles) or
    both. The paper passes tiles through the network one by one; here the shuffled image is one input. No released code
    was compared.
    """

    def __init__(
        self,
        backbone: nn.Module | None = None,
        *,
        channels: int = 64,
        task: Literal["rotation", "jigsaw", "both"] = "rotation",
        weight: float = 0.5,
    ) -> None:
        super().__init__(backbone)
        self.task, self.weight = task, weight
        if task != "jigsaw":
            self.rotation = nn.Linear(channels, 4)
        if task != "rotation":
            self.jigsaw = nn.Linear(channels, PERMUTATIONS)
            self.register_buffer("orders", torch.from_numpy(choose_permutations()), persistent=False)

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """The loss of the episodes plus that of the self-supervised task."""
        loss, scores = super().loss(episodes)
        images = torch.cat([episodes.support.flatten(1, 2), episodes.query], 1).flatten(0, 1)
        if self.task != "jigsaw":
            loss = loss + self.weight * self.rotation_loss(images)
        if self.task != "rotation":
            loss = loss + self.weight * self.jigsaw_loss(images)
        return loss, scores

    def rotation_loss(self, images: Tensor) -> Tensor:
        """Each image turned by one angle, drawn from torch's generator."""
        angles = torch.randint(4, (len(images),), device=images.device)
        turned = torch.stack([rotate(images, quarters) for quarters in range(4)])
        place = torch.arange(len(images), device=images.device)
        return functional.cross_entropy(self.rotation(self.emb_func(turned[angles, place])), angles)

    def jigsaw_loss(self, images: Tensor) -> Tensor:
        """Each image with its tiles in one order, drawn from torch's generator."""
        numbers = torch.randint(PERMUTATIONS, (len(images),), device=images.device)
        shuffled = shuffle_tiles(images, self.get_buffer("orders")[numbers])
        if shuffled.shape != images.shape:
            shuffled = functional.interpolate(shuffled, images.shape[2:], mode="bilinear", align_corners=False)
        return functional.cross_entropy(self.jigsaw(self.emb_func(shuffled)), numbers)


class Bf3s(SelfSupervisedProtoNet):
    """BF3S: every image in all four rotations, each of which is predicted. No released code was compared."""

    def rotation_loss(self, images: Tensor) -> Tensor:
        """Cross-entropy of the four rotations of every image."""
        turned = torch.cat([rotate(images, quarters) for quarters in range(4)])
        angles = torch.arange(4, device=images.device).repeat_interleave(len(images))
        return functional.cross_entropy(self.rotation(self.emb_func(turned)), angles)


class JigsawProtoNet(SelfSupervisedProtoNet):
    """SSFSL with jigsaws."""

    @classmethod
    def build(cls, backbone: nn.Module, **facts: Any) -> Self:
        """The method on a backbone, as the training loop makes it."""
        return super().build(backbone, **{"task": "jigsaw", **facts})


class RotationAndJigsawProtoNet(SelfSupervisedProtoNet):
    """SSFSL with rotations and jigsaws."""

    @classmethod
    def build(cls, backbone: nn.Module, **facts: Any) -> Self:
        """The method on a backbone, as the training loop makes it."""
        return super().build(backbone, **{"task": "both", **facts})


class LabelAugmentedProtoNet(ProtoNet):
    """SLA: class and rotation as one label; scores are means over the four rotations of a query.

    Lee, Hwang and Shin, Self-supervised Label Augmentation via Input Transformations, ICML 2020. No released code was
    compared.
    """

    def embed_turned(self, episodes: Episodes) -> Episodes:
        """Features of the episodes in four rotations: ways are (way, angle) pairs, queries (angle, query) pairs."""
        support = torch.stack([rotate_all(episodes.support, quarters) for quarters in range(4)], 2).flatten(1, 2)
        query = torch.stack([rotate_all(episodes.query, quarters) for quarters in range(4)], 1).flatten(1, 2)
        return self.embed(Episodes(support, query))

    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores, those of (way, angle) for the query turned by that angle, over angles."""
        joint = self.score(self.embed_turned(episodes)).log_softmax(-1)
        return self._aggregate(joint, episodes)

    def _aggregate(self, joint: Tensor, episodes: Episodes) -> Tensor:
        parts = joint.reshape(len(episodes), 4, -1, episodes.ways, 4)
        return torch.as_tensor(parts.diagonal(dim1=1, dim2=4).mean(-1))

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the joint labels of all turned queries."""
        joint = self.score(self.embed_turned(episodes))
        labels = episodes.require_labels()
        turned = torch.stack([4 * labels + quarters for quarters in range(4)], 1).flatten(1, 2)
        return cross_entropy(joint, turned), self._aggregate(joint.log_softmax(-1), episodes)


class TreeProtoNet(ProtoNet):
    """HTS: an image is the root of a tree whose leaves are its rotations; a gated cell joins their features.

    Zhang et al., Tree Structure-Aware Few-Shot Image Classification via Hierarchical Aggregation, ECCV 2022. The cell
    is a child-sum tree LSTM with one gate per leaf; rotations are predicted beside the episodes (`weight`). No released
    code was compared.
    """

    def __init__(self, backbone: nn.Module | None = None, *, channels: int = 64, weight: float = 0.5) -> None:
        super().__init__(backbone)
        self.root, self.leaves = nn.Linear(channels, 3 * channels), nn.Linear(channels, 3 * channels, bias=False)
        self.forget = nn.Linear(2 * channels, channels)
        self.rotation = nn.Linear(channels, 4)
        self.weight = weight

    def join(self, features: Tensor) -> Tensor:
        """(n, channels) features of trees, from those of an image and its three rotations (4, n, channels)."""
        root, leaves = features[0], features[1:]
        gate_in, gate_out, value = (self.root(root) + self.leaves(leaves.sum(0))).chunk(3, -1)
        gates = self.forget(torch.cat([root.expand_as(leaves), leaves], -1)).sigmoid()
        cell = gate_in.sigmoid() * value.tanh() + (gates * leaves).sum(0)
        # The root stays visible: a tree without leaves is its image.
        return torch.as_tensor(root + gate_out.sigmoid() * cell.tanh())

    def _encode(self, episodes: Episodes) -> tuple[Episodes, Tensor]:
        images = torch.cat([episodes.support.flatten(1, 2), episodes.query], 1).flatten(0, 1)
        turned = self.emb_func(torch.cat([rotate(images, quarters) for quarters in range(4)])).unflatten(0, (4, -1))
        joined = torch.unflatten(self.join(turned), 0, (len(episodes), -1))
        count = episodes.ways * episodes.shots
        support = torch.unflatten(joined[:, :count], 1, (episodes.ways, episodes.shots))
        return Episodes(support, joined[:, count:], episodes.labels), turned

    def classify(self, episodes: Episodes) -> Tensor:
        """(tasks, queries, ways) scores."""
        return self.score(self._encode(episodes)[0])

    def loss(self, episodes: Episodes) -> tuple[Tensor, Tensor]:
        """The loss of the episodes plus that of predicting the rotations."""
        features, turned = self._encode(episodes)
        scores = self.score(features)
        angles = torch.arange(4, device=turned.device).repeat_interleave(turned.shape[1])
        rotation = functional.cross_entropy(self.rotation(turned.flatten(0, 1)), angles)
        return cross_entropy(scores, episodes.require_labels()) + self.weight * rotation, scores


def rotate_all(images: Tensor, quarters: int) -> Tensor:
    """Images (..., C, h, w) turned by a number of quarters."""
    return rotate(images.flatten(0, -4), quarters).reshape(images.shape)
