"""The tables of the open metrics' paper as presets, from `presets.toml`.

>>> [(preset.name, preset.table, len(preset.parts)) for preset in list_presets("open-miou")]
[('cross-dataset', 'Table 4', 5)]
>>> [preset.name for preset in (*list_presets("open-pq"), *list_presets("open-ap"))]
['panoptic', 'known-unknown', 'measures', 'instances', 'base-novel-masks', 'base-novel-boxes']
>>> dict(list_presets("open-miou")[0].find_part("ade20k-847").options)
{'variant': 'corrected', 'measure': 'path', 'labels': 'ade847'}
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from hardlook.harness.presets import Preset, PresetPart


def list_presets(benchmark: str) -> tuple[Preset, ...]:
    """The presets of a benchmark, in the order of the paper's tables."""
    return tuple(preset for preset in _read_presets() if preset.benchmark == benchmark)


@cache
def _read_presets() -> tuple[Preset, ...]:
    text = files("hardlook.open_vocabulary").joinpath("presets.toml").read_text(encoding="utf-8")
    presets = []
    for row in tomllib.loads(text)["preset"]:
        shared = row.pop("options")
        parts = tuple(
            PresetPart(part["data"], part["dataset"], {**shared, **part["options"]}) for part in row.pop("part")
        )
        presets.append(Preset(parts=parts, **{**row, "published": tuple(row["published"])}))
    return tuple(presets)
