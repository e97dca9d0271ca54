"""The units that runs have in common, and whether the runs can be compared at all.

Models are compared on their shared units only. The list of units and the data behind it have fingerprints in
`run.json`: where they agree, the units are the same. Otherwise the intersection of the unit ids is taken, and units of
one run only are counted and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hardlook.errors import OptionError, RunError
from hardlook.harness.options import fields_that_change
from hardlook.harness.scorecard import merge_readings

if TYPE_CHECKING:
    import polars as pl

    from hardlook.harness.runs.scoring import ScoredRun

EXAMPLES = 5

# Options that change the intervals, not the scores.
INTERVAL_OPTIONS = {"resamples", "level", "interval"}

# The suffix in `run.json` of the names of data whose every byte was hashed.
EVERY_BYTE = " (every byte)"


@dataclass(frozen=True, eq=False)
class SharedUnits:
    """The units that every run has a record of, and what the runs do not share.

    There are `count`. `ids` are sorted, and None where runs are read in chunks. `answered` counts the units of each
    model, `only` those that not all models have, with a few of them in `examples`. `same_list` and `same_data` say
    whether fingerprints agree; `changed` names the data whose fingerprints differ.
    """

    count: int
    ids: pl.Series | None
    answered: Mapping[str, int]
    only: Mapping[str, int]
    examples: Mapping[str, tuple[str, ...]]
    same_list: bool
    same_data: bool
    changed: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether all runs answered the same units of the same data."""
        return self.same_list and self.same_data and not any(self.only.values())

    def describe(self) -> list[str]:
        """Sentences: which units are compared, then warnings."""
        n = self.count
        if self.same:
            return [f"Same units: every model answered the same {n:,} units of the same data, by fingerprint."]
        listed = "The list of units is the same" if self.same_list else "The lists of units differ"
        lines = [f"{listed}; {n:,} units have an answer of every model, and only these are compared."]
        for model, count in self.only.items():
            if count:
                named = ", ".join(f"`{unit}`" for unit in self.examples[model])
                more = ", ..." if count > len(self.examples[model]) else ""
                lines.append(
                    f"{count:,} of the {self.answered[model]:,} units of {model} are left out ({named}{more})."
                )
        if not self.same_data:
            lines.append(
                f"Warning: the units have the same names, but their data differ by fingerprint "
                f"({', '.join(self.changed)}). The differences may be those of the data."
            )
        return lines


def find_shared_units(runs: Sequence[ScoredRun], models: Sequence[str]) -> SharedUnits:
    """The units of all runs; it is an error where there is none in common."""
    ids = [run.records["unit"] for run in runs]
    shared = ids[0]
    for mine in ids[1:]:
        shared = shared if shared.equals(mine) else shared.filter(shared.is_in(mine.implode()))
    alone = [mine.filter(~mine.is_in(shared.implode())).sort() for mine in ids]
    examples = [tuple(rest.head(EXAMPLES)) for rest in alone]
    return _describe_shared(runs, models, shared.sort(), list(map(len, ids)), list(map(len, alone)), examples)


def _describe_shared(
    runs: Sequence[ScoredRun],
    models: Sequence[str],
    shared: pl.Series | int,
    answered: Sequence[int],
    alone: Sequence[int],
    examples: Sequence[tuple[str, ...]],
) -> SharedUnits:
    count = shared if isinstance(shared, int) else len(shared)
    if not count:
        first = [named[0] if named else "" for named in examples]
        raise RunError(
            f"the runs have no unit in common: {models[0]} has units such as {first[0]!r}, "
            f"{models[1]} such as {first[1]!r}",
            remedy="compare runs of the same data and the same options",
        )
    changed = _find_changed_data(runs)
    return SharedUnits(
        count=count,
        ids=None if isinstance(shared, int) else shared,
        answered=dict(zip(models, answered, strict=True)),
        only=dict(zip(models, alone, strict=True)),
        examples=dict(zip(models, examples, strict=True)),
        same_list=len({_get_parts(run).get("units") for run in runs}) == 1,
        same_data=not changed,
        changed=changed,
    )


class SharedChunks:
    """The rows that tables have of the same units, read together in chunks, in the order of the units.

    `tables` are read in chunks of any length, none empty. What is counted, and `describe` says, is complete once all
    chunks were taken.
    """

    def __init__(self, tables: Sequence[Iterable[pl.DataFrame]]) -> None:
        self.tables, self.count = tables, 0
        self.answered, self.alone = [0] * len(tables), [0] * len(tables)
        self.examples: list[tuple[str, ...]] = [()] * len(tables)

    def __iter__(self) -> Iterator[list[pl.DataFrame]]:
        """Yield tables of the same units, one for each table."""
        import polars as pl

        chunks, nothing = [iter(table) for table in self.tables], pl.DataFrame(schema={"unit": pl.String()})
        waiting = [next(one, nothing) for one in chunks]
        while all(map(len, waiting)):
            # Up to the first of the last units, every table has been read.
            last = min(rows["unit"][-1] for rows in waiting)
            ends = [int(rows["unit"].search_sorted(last, side="right")) for rows in waiting]
            heads = [rows[:end] for rows, end in zip(waiting, ends, strict=True)]
            if len(shared := self._count(heads)):
                yield [take_shared_rows(rows, shared) for rows in heads]
            waiting = [rows[end:] for rows, end in zip(waiting, ends, strict=True)]
            waiting = [rows if len(rows) else next(one, rows) for rows, one in zip(waiting, chunks, strict=True)]
        # One table has no more units: the rest of the others is theirs alone.
        for place, (rows, rest) in enumerate(zip(waiting, chunks, strict=True)):
            for left in (rows, *rest):
                self._count_alone(place, left["unit"])

    def _count(self, heads: Sequence[pl.DataFrame]) -> pl.Series:
        """The units that all heads have; the others are counted."""
        shared = heads[0]["unit"]
        for rows in heads[1:]:
            mine = rows["unit"]
            shared = shared if shared.equals(mine) else shared.filter(shared.is_in(mine.implode()))
        for place, rows in enumerate(heads):
            self.answered[place] += len(shared)
            if len(rows) > len(shared):
                self._count_alone(place, rows["unit"].filter(~rows["unit"].is_in(shared.implode())))
        self.count += len(shared)
        return shared

    def _count_alone(self, place: int, units: pl.Series) -> None:
        self.answered[place] += len(units)
        self.alone[place] += len(units)
        self.examples[place] = (*self.examples[place], *units.head(EXAMPLES))[:EXAMPLES]

    def describe(self, runs: Sequence[ScoredRun], models: Sequence[str]) -> SharedUnits:
        """The units of all runs whose records these are; it is an error where there is none in common."""
        return _describe_shared(runs, models, self.count, self.answered, self.alone, self.examples)


def take_shared_rows(table: pl.DataFrame, units: pl.Series) -> pl.DataFrame:
    """The rows of a table by unit that are those of `units`, in their order."""
    if table["unit"].equals(units):
        return table
    shared = units.alias("unit").to_frame()
    return shared.join(table, on="unit", how="left", maintain_order="left").select(table.columns)


def check_comparable(runs: Sequence[ScoredRun], models: Sequence[str]) -> None:
    """Raise an error for runs of different benchmarks or versions, and for runs that are scored differently."""
    if len(runs) < 2:
        raise OptionError(
            f"a comparison needs at least two runs, got {len(runs)}", remedy="give the folders of several runs"
        )
    by_model = dict(zip(models, runs, strict=True))
    kinds = {model: f"{run.benchmark.card.name} {run.benchmark.card.version}" for model, run in by_model.items()}
    if len(set(kinds.values())) > 1:
        raise OptionError(
            f"the runs are of different benchmarks: {_join(kinds)}", remedy="compare runs of one benchmark and version"
        )
    for name in sorted(fields_that_change(type(runs[0].options), "scores") - INTERVAL_OPTIONS - {"reading"}):
        values = {model: _text(getattr(run.options, name)) for model, run in by_model.items()}
        if len(set(values.values())) > 1:
            flag = name.replace("_", "-")
            raise OptionError(
                f"the runs are scored with different --{flag}: {_join(values)}",
                remedy=f"score one of them again: the same `hardlook run` command with another --{flag}",
            )
    chosen = [
        {one.name: one.value for one in merge_readings(run.benchmark.readings(run.options), run.scorecard.readings)}
        for run in runs
    ]
    for name in sorted({name for readings in chosen for name in readings}):
        values = {model: readings.get(name, "none") for model, readings in zip(models, chosen, strict=True)}
        if len(set(values.values())) > 1:
            raise OptionError(
                f"the runs are of different readings of {name}: {_join(values)}",
                remedy=f"choose one for all with --reading {name}={next(iter(values.values()))}",
            )


def describe_differing_settings(runs: Sequence[ScoredRun], models: Sequence[str]) -> list[str]:
    """A sentence for each option or inner model that changes the answers and is not the same in all runs."""
    lines = []
    parts = [_get_parts(run) for run in runs]
    names = {name for part in parts for name in part}
    settings = {name: name.removeprefix("option ") for name in names if name.startswith("option ")}
    settings |= {
        name: name.removeprefix("data ") for name in names if name.startswith("data ") and name.endswith(" model")
    }
    for name, word in sorted(settings.items(), key=lambda item: item[1]):
        values = {model: _text(part.get(name)) for model, part in zip(models, parts, strict=True)}
        if not _is_about_answers(word) and len(set(values.values())) > 1:
            lines.append(f"The runs differ in `{word}`: {_join(values)}.")
    return lines


def _find_changed_data(runs: Sequence[ScoredRun]) -> tuple[str, ...]:
    """Names of the data whose fingerprints differ; predictions and models always differ and do not count."""
    parts = [_get_parts(run) for run in runs]
    words = {name.removeprefix("data ") for part in parts for name in part if name.startswith("data ")}
    data = {word for word in words if not word.endswith(" model") and not _is_about_answers(word)}
    changed = []
    for name in sorted({word.removesuffix(EVERY_BYTE) for word in data}):
        known = [(part.get(f"data {name}"), part.get(f"data {name}{EVERY_BYTE}")) for part in parts]
        # Data hashed by samples in one run and by every byte in the other count as changed: it cannot be known.
        if len(set(known)) > 1:
            changed.append(name)
    return tuple(changed)


def _is_about_answers(name: str) -> bool:
    """Whether a setting is about predictions: their location, their label numbers, whether they are kept."""
    return name.startswith("pred") or name == "keep_predictions"


def _get_parts(run: ScoredRun) -> Mapping[str, Any]:
    parts: Mapping[str, Any] = run.manifest["answers"].get("parts", {})
    return parts


def _join(values: Mapping[str, str]) -> str:
    return "; ".join(f"{model}: {value}" for model, value in values.items())


def _text(value: object) -> str:
    return "none" if value is None else str(value)
