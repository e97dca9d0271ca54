"""What must be alike for two runs to be ranked together: units, data, settings and readings.

What belongs to the method itself (the model, stored predictions, the encoder of a few-shot learner) may differ.

>>> one, other = {"units": "a", "option rounds": 20}, {"units": "a", "option rounds": 8}
>>> differences(other, one)
('other settings than the first run: rounds=8',)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hardlook.leaderboards.run_files import GatheredRun

Settings = Mapping[str, Any]
# Options that change neither units nor what is asked of a model, and paths, for which fingerprints stand.
_FREE = {"resamples", "level", "compare", "keep_predictions", "prompts_a_call", "reading", "data", "gt", "gt_masks"}
# Parts of the method, by the role of the model under test.
_METHOD = {"few-shot-learner": {"encoder", "encoder_args", "encoder model"}}


def settings_of(run: GatheredRun, role: str) -> Settings:
    """Everything that has to be alike, as a flat table."""
    own = _METHOD.get(role, set())
    parts = run.manifest["answers"].get("parts", {})
    found: dict[str, Any] = {"units": parts.get("units", "")}
    for name, value in parts.items():
        what = name.removeprefix("data ")
        if name.startswith("data ") and not what.startswith("pred") and what not in own:
            found[name] = value
    for name, value in run.manifest["options"].items():
        if name not in _FREE | own and not name.startswith("pred"):
            found[f"option {name}"] = value
    for reading in run.scorecard.readings:
        found[f"reading {reading.name}"] = reading.value
    return found


def differences(settings: Settings, first: Settings) -> tuple[str, ...]:
    """How settings differ from those of the first run, in words; what only one of the two tells is not compared."""
    differing = [name for name in settings if name in first and _plain(settings[name]) != _plain(first[name])]
    flags = []
    if "units" in differing:
        flags.append("other units than the first run")
    else:
        if names := _named(differing, "data "):
            flags.append(f"other data than the first run: {', '.join(names)}")
        if names := _named(differing, "option "):
            told = ", ".join(f"{name}={_word(settings[f'option {name}'])}" for name in names)
            flags.append(f"other settings than the first run: {told}")
    if names := _named(differing, "reading "):
        told = ", ".join(f"{name}={settings[f'reading {name}']}" for name in names)
        flags.append(f"other readings than the first run: {told}")
    return tuple(flags)


def first_run(settings: Sequence[Settings]) -> int:
    """The run that the others are held against: the earliest of the largest group of alike runs.

    >>> first_run([{"units": "b"}, {"units": "a"}, {"units": "a"}])
    1
    """
    groups: dict[str, list[int]] = {}
    for index, one in enumerate(settings):
        groups.setdefault(_plain(one), []).append(index)
    return max(groups.values(), key=lambda group: (len(group), -group[0]))[0]


def _named(names: Sequence[str], start: str) -> list[str]:
    return [name.removeprefix(start) for name in names if name.startswith(start)]


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
