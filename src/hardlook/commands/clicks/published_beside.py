"""The paper's numbers for click models, devices and display modes, beside those found here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.benchmarks.rclicks.published_tables import CLICK_MODELS, DEVICES, DISPLAY_MODES
from hardlook.clicks.evaluation_summary import METRICS, GroupScores
from hardlook.contract.sections import Section, Table
from hardlook.data.object_instances import dataset_name

if TYPE_CHECKING:
    from hardlook.commands.clicks.evaluation_study import EvaluationStudy

_PDE = 1e5
HERE, PAPER = "here", "published"


def published_sections(study: EvaluationStudy, wd: str) -> list[Section]:
    """A section where a dataset or a display mode is one of the paper's; none else."""
    tables = [table for table in (_models(study), _devices(study), _modes(study)) if table.rows]
    if not tables:
        return []
    text = (
        "The published rows rest on all clicks of a dataset (of TETRIS on its 500 validation images), on 100 draws a "
        "stem and on WD over the box's diagonal. Rows of fewer stems, other click types or other readings stand "
        "beside them without being comparable. The paper's saliency model is a fixation network whose weights are not "
        "to be had."
    )
    if wd != "released":
        text += " WD ran in the paper's words here, so it is not comparable."
    return [Section("Beside the published numbers", text, tables)]


def _models(study: EvaluationStudy) -> Table:
    rows: list[tuple[str | float | int | None, ...]] = []
    found = study.slices.get("dataset", {})
    for dataset in [name for name in CLICK_MODELS if any(_has(groups, name) for groups in found.values())]:
        for model, groups in found.items():
            for group in groups:
                if group.group["dataset"] == dataset:
                    values = [group.scores[metric].value for metric in METRICS]
                    rows.append((dataset, model, HERE, group.stems, *values[:-1], values[-1] * _PDE))
        for model, one in CLICK_MODELS[dataset].items():
            rows.append((dataset, model, PAPER, None, one.ks, one.pl1, one.wd, one.nss, one.pde * _PDE))
    columns = ("dataset", "model", "from", "stems", "KS", "PL1", "WD", "NSS", "PDE x 1e5")
    return Table("Click models", "Tables 3 and 6 of the paper.", columns, rows)


def _devices(study: EvaluationStudy) -> Table:
    rows = [
        (name, group.stems, group.scores["ks"].value, DEVICES[name].ks)
        for group in study.devices
        if (name := group.group["dataset"]) in DEVICES
    ]
    return Table(
        "PC against mobile",
        "Table 8. Its WD and PL1 are wrong, since clicks on PCs entered as (x, x), and are left out here.",
        ("dataset", "stems", "KS here", "KS published"),
        rows,
    )


def _modes(study: EvaluationStudy) -> Table:
    published = {dataset_name(name): one for name, one in DISPLAY_MODES.items()}
    rows: list[tuple[str | float | int | None, ...]] = []
    for mode, group in study.mode_scores.items():
        if mode in published:
            here = (group.scores[metric].value for metric in ("ks", "pl1", "wd"))
            rows.append((mode, HERE, group.stems, *here))
            rows.append((mode, PAPER, None, published[mode].ks, published[mode].pl1, published[mode].wd))
    return Table("Display modes", "Table 1.", ("display mode", "from", "stems", "KS", "PL1", "WD"), rows)


def _has(groups: Sequence[GroupScores], dataset: str) -> bool:
    return any(group.group["dataset"] == dataset for group in groups)
