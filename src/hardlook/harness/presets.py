"""Presets: the tables of a paper as runs with options that could be written out by hand.

A preset has a part for each dataset of the table. The part's options are defaults: an option that is given counts. What
a preset is lies in a table of the system that has it; `BenchmarkCard.presets` lists them.

>>> part = PresetPart("voc", "PAS-20", {"labels": "voc20"})
>>> preset = Preset("small", "open-miou", "Table 4", "mIoU", (part,), ("Table 4, PAS-20",))
>>> expand_preset([preset], {"preset": "small/voc", "level": 0.9})
{'labels': 'voc20', 'preset': 'small/voc', 'level': 0.9}
>>> print(*describe_presets([preset]))
Preset small (Table 4, mIoU):
  hardlook run open-miou --data voc=PATH --labels voc20
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hardlook.errors import OptionError

SEPARATOR = "/"


@dataclass(frozen=True)
class PresetPart:
    """One run: the name of its data, which is also that of its folder, the paper's name for it, and its options."""

    data: str
    dataset: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Preset:
    """A table of a paper as runs of one benchmark.

    `published` are beginnings of the sources of the published rows that stand beside the runs (`Table 4`); `note` is
    what the paper leaves open.
    """

    name: str
    benchmark: str
    table: str
    title: str
    parts: tuple[PresetPart, ...]
    published: tuple[str, ...]
    note: str = ""

    def find_part(self, data: str) -> PresetPart:
        """The part of that data; an `OptionError` lists the parts where there is none."""
        found = next((part for part in self.parts if part.data == data), None)
        if found is None:
            names = ", ".join(part.data for part in self.parts)
            raise OptionError(f"--preset {self.name} has no data {data!r}", remedy=f"give --data NAME=PATH of {names}")
        return found

    def name_part(self, part: PresetPart) -> str:
        """What `--preset` calls the part alone, such as `cross-dataset/ade20k`."""
        return f"{self.name}{SEPARATOR}{part.data}"


def find_preset(presets: Sequence[Preset], name: str) -> tuple[Preset, PresetPart | None]:
    """The preset of a name, and its part where the name has one (`cross-dataset/ade20k`)."""
    wanted, _, data = name.partition(SEPARATOR)
    found = next((preset for preset in presets if preset.name == wanted), None)
    if found is None:
        names = [preset.name for preset in presets]
        near = difflib.get_close_matches(wanted, names, n=2) or names
        remedy = f"one of {', '.join(near)}" if names else "leave it out"
        raise OptionError(f"--preset {name}: there is no such preset", remedy=remedy)
    return found, found.find_part(data) if data else None


def expand_preset(presets: Sequence[Preset], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options with those of the preset's part where they are not given.

    The name of a preset alone means the part whose data is given, or its only part.
    """
    name = given.get("preset")
    if not isinstance(name, str) or not name:
        return dict(given)
    preset, part = find_preset(presets, name)
    if part is None:
        data = given.get("data")
        names = list(data) if isinstance(data, Mapping) else []
        if len(names) == 1 and not given.get("gt"):
            part = preset.find_part(str(names[0]))
        elif len(preset.parts) == 1:
            part = preset.parts[0]
        else:
            addresses = ", ".join(map(preset.name_part, preset.parts))
            raise OptionError(f"--preset {name} is several runs", remedy=f"name one of them: {addresses}")
    chosen = {key: value for key, value in given.items() if value is not None}
    return {**part.options, **chosen, "preset": preset.name_part(part)}


def format_part(preset: Preset, part: PresetPart) -> str:
    """The command that is this part without the preset, but for the model and the folder."""
    words = [f"--data {part.data}=PATH"]
    for name, value in part.options.items():
        text = ",".join(value) if isinstance(value, list | tuple) else str(value)
        words.append(f"--{name.replace('_', '-')} {shlex.quote(text)}")
    return f"hardlook run {preset.benchmark} {' '.join(words)}"


def describe_presets(presets: Sequence[Preset]) -> list[str]:
    """Every preset with its table, and below it the commands that it stands for."""
    return [
        "\n".join(
            [f"Preset {one.name} ({one.table}, {one.title}):", *(f"  {format_part(one, part)}" for part in one.parts)]
        )
        for one in presets
    ]
