"""What to build tiers from, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.commands.build.inputs import NamedModel

if TYPE_CHECKING:
    from hardlook.commands.build.inputs import OpenedData
    from hardlook.data.class_masks import ClassMasks
    from hardlook.tiers.memberships import Memberships


@dataclass(frozen=True)
class BuildPlan:
    """`attributes` is a ready table, in place of the first two models; `memberships` stand for the thresholds."""

    opened: OpenedData
    encoder: NamedModel
    saliency: NamedModel | None = None
    supervised: NamedModel | None = None
    attributes: Path | None = None
    memberships: Memberships | None = None
    fss: ClassMasks | None = None
    resembling: frozenset[str] = frozenset()
    resembling_reading: str = ""
    folds: int = 4
    seed: int = 0
    name: str = "own"

    def model_facts(self) -> dict[str, Any]:
        """The identity of each model by its role."""
        named = (("saliency", self.saliency), ("supervised", self.supervised), ("encoder", self.encoder))
        return {role: model.facts() for role, model in named if model is not None}


def membership_facts(memberships: Memberships | None, used: int = 0) -> dict[str, Any] | None:
    """Which lists the partitions come from, and how many of their masks were used."""
    if memberships is None:
        return None
    return {
        "lists": dict(memberships.lists),
        "masks": len(memberships.partitions),
        "masks_used": used,
        "supports_without_a_partition": list(memberships.unplaced),
    }
