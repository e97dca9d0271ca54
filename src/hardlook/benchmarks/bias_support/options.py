"""What the support study can be told."""

from __future__ import annotations

from typing import ClassVar

from hardlook.benchmarks.one_shot_pairs.study_lists import StudyOptions


class BiasSupportOptions(StudyOptions):
    """Options of `hardlook bias support`."""

    command: ClassVar[str] = "hardlook bias support"
