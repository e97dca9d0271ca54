"""What differs between runs of RClicks that are read together, and what of them is not used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.commands.clicks.joined_runs import ClickRun, JoinedRuns

# Which options of a run say how it was clicked on, in words.
SETTINGS = {
    "clicks": "click model",
    "clicks_args": "arguments of the click model",
    "groups": "groups",
    "group_rule": "group rule",
    "rounds": "rounds",
    "perfect": "rule after a perfect mask",
    "seed": "seed",
}
SHIFTING = ("click model", "arguments of the click model", "groups", "group rule")
PEOPLE = "people"


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same in all runs, with its value in each of them."""

    setting: str
    values: tuple[str, ...]


def differences(runs: Sequence[ClickRun]) -> tuple[Difference, ...]:
    """The settings that differ, in a fixed order."""
    told = [(words, tuple(_text(run.options.get(name)) for run in runs)) for name, words in SETTINGS.items()]
    told.append((PEOPLE, tuple(_people(run) for run in runs)))
    return tuple(Difference(setting, values) for setting, values in told if len(set(values)) > 1)


def differences_in_words(joined: JoinedRuns) -> list[str]:
    """Sentences on unfinished runs, on settings that differ, and on clicks of people that do not count."""
    words = []
    for run in joined.runs:
        if len(run.table) < run.planned:
            have = "has" if len(run.table) == 1 else "have"
            answered = f"{len(run.table)} of its {counted(run.planned, 'instance')} {have} an answer"
            words.append(f"The run {run.name} is not finished: {answered}.")
    found = differences(joined.runs)
    if found:
        told = (f"{one.setting} ({', '.join(_each(joined, one.values))})" for one in found)
        words.append(f"The runs differ in {'; '.join(told)}.")
    if joined.by_groups and any(one.setting in SHIFTING for one in found):
        words[-1] += " The groups' clicks count here, so this shifts their spreads."
    if joined.by_groups and any(joined.clicked):
        words.append(_dropped(joined))
    return words


def _dropped(joined: JoinedRuns) -> str:
    total = len(joined.units)
    if all(count == total for count in joined.clicked):
        why = f"they are of different people ({', '.join(_each(joined, [run.table.whose for run in joined.runs]))})"
    else:
        have = ", ".join(_each(joined, [f"{count} of {total}" for count in joined.clicked]))
        why = f"not every run has two or more of them on every instance ({have})"
    return f"People's clicks are not used, since {why}: those of the groups count instead."


def _each(joined: JoinedRuns, values: Sequence[str]) -> list[str]:
    return [f"{run.name}: {value}" for run, value in zip(joined.runs, values, strict=True)]


def _people(run: ClickRun) -> str:
    # A file is known by its content: one file may lie at two places, and change at one.
    return f"{Path(run.options['user_clicks']).name} {run.people_file[:8]}" if run.people_file else run.table.whose


def _text(value: object) -> str:
    return "none" if value in (None, "") else str(value)
