"""`hl.calibrate`: vary the faults of planted models, and see whether the scores follow them."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hardlook.api.inline import Figure, draw_inline_table
from hardlook.harness.calibration import Calibration, build_calibration_section
from hardlook.harness.calibration import calibrate as run_calibration
from hardlook.harness.registry import find_benchmark
from hardlook.harness.rounding import format_fixed
from hardlook.harness.sections import Gallery, Table
from hardlook.models.families.downloads import forbid_downloads


@dataclass(frozen=True)
class CalibrationResult:
    """The result of `hl.calibrate`; `document` is the content of `calibration.json`, `page` the file if written."""

    calibration: Calibration = field(repr=False)
    page: Path | None = None

    @property
    def passed(self) -> bool:
        """Whether every score follows the faults that it is meant to measure, and no other."""
        return self.calibration.passed

    @cached_property
    def document(self) -> dict[str, Any]:
        """The calibration as JSON values."""
        return build_document(self.calibration)

    def __repr__(self) -> str:
        lines = [
            f"{row['dial']}: {row['score']} {'moves' if row['moves'] else 'stays flat'}, "
            f"range {format_fixed(row['range'], 3)}: "
            f"{'as meant' if row['as_meant'] else 'NOT AS MEANT'}"
            for row in self.document["dials"]
        ]
        return "\n".join([f"Calibration of {self.calibration.benchmark}", *lines])

    def _repr_html_(self) -> str:
        columns = ("dial", "model", "score", "moves", "spearman", "range", "as_meant")
        table = draw_inline_table(columns, [[row[name] for name in columns] for row in self.document["dials"]])
        blocks = build_calibration_section(self.calibration).blocks
        charts = [Figure(block.title, block) for block in blocks if not isinstance(block, Table | Gallery)]
        title = f"<p><b>Calibration of {html.escape(self.calibration.benchmark)}</b>"
        return f"{title}: {'as meant' if self.passed else 'NOT as meant'}</p>{table}" + "".join(
            chart._repr_html_() for chart in charts
        )


def calibrate(
    benchmark: str, *, settings: int = 6, out: str | Path | None = None, offline: bool = False, **options: Any
) -> CalibrationResult:
    """Show that a benchmark measures what it says, on planted models whose faults are known.

    Args:
        benchmark: A benchmark's name.
        settings: How many settings of each fault, from 0 to 1.
        out: A folder for `calibration.html` and `calibration.json`; without it nothing is written.
        offline: Download no weights.
        **options: The benchmark's options.
    """
    with forbid_downloads(offline):
        calibration = run_calibration(benchmark, options, [step / (settings - 1) for step in range(settings)])
    if out is None:
        return CalibrationResult(calibration)
    write_calibration(calibration, Path(out))
    return CalibrationResult(calibration, Path(out) / "calibration.html")


def build_document(calibration: Calibration) -> dict[str, Any]:
    """The calibration as JSON."""
    return {
        "schema": "hardlook.calibration/1",
        "benchmark": calibration.benchmark,
        "passed": calibration.passed,
        "dials": [
            {
                "dial": curve.dial.name,
                "model": curve.dial.model,
                "score": curve.dial.score,
                "moves": curve.dial.moves,
                "settings": list(curve.settings),
                "values": [score.value for score in curve.scores],
                "spearman": curve.spearman,
                "range": curve.score_range,
                "as_meant": calibration.is_as_expected(curve),
            }
            for curve in calibration.curves
        ],
    }


def write_calibration(calibration: Calibration, out: Path) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    from hardlook.report.page import write_study

    card, document = find_benchmark(calibration.benchmark).card, build_document(calibration)
    return write_study(
        out,
        "calibration",
        document,
        [build_calibration_section(calibration)],
        kind="Calibration",
        title=f"Calibration: {card.title}",
        summary="Planted models have faults that can be turned up. A score that measures a fault must follow it, "
        "and must not follow what it is not meant to measure.",
        provenance=document,
    )
