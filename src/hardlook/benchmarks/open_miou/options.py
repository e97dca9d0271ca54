"""What open mIoU can be told."""

from __future__ import annotations

from hardlook.benchmarks.closed_miou.options import chosen_readings
from hardlook.benchmarks.open_labels.options import OpenLabelOptions, label_readings
from hardlook.benchmarks.semantic_images.options import SemanticOptions
from hardlook.contract.scorecard import Reading


class OpenMiouOptions(SemanticOptions, OpenLabelOptions):
    """Options of `hardlook run open-miou`."""


def all_readings(options: OpenMiouOptions) -> tuple[Reading, ...]:
    """Which classes the mean runs over, and what the similarity was made of."""
    return (*chosen_readings(options), *label_readings(options))
