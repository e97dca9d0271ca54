"""A run before it starts: its units, its batch layout, and everything that its answers depend on.

What the answers depend on is kept as a flat table of parts. Its hash marks every record; the table itself lets a
changed option be named instead of a changed hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hardlook import fingerprint
from hardlook.contract.benchmark import Benchmark, Unit
from hardlook.contract.options import BenchmarkOptions, fields_that_change
from hardlook.errors import ChangedRun, DataError, HardlookError
from hardlook.models.identity import ModelIdentity, identify
from hardlook.runs.batches import Batch, lay_out
from hardlook.runs.worker import Job, Worker

# Paths may change while the data stay the same: their fingerprints stand for them.
_PATH_OPTIONS = {"data", "gt", "pred"}


@dataclass(frozen=True)
class Plan:
    """All units of a run and what their answers depend on."""

    job: Job
    benchmark: Benchmark
    options: BenchmarkOptions
    units: Sequence[Unit]
    batches: Sequence[Batch]
    parts: Mapping[str, Any]
    identity: ModelIdentity | None

    @property
    def answers(self) -> str:
        """The fingerprint that marks the records of this plan."""
        return fingerprint.of_value(self.parts)


def list_units(benchmark: Benchmark, options: BenchmarkOptions) -> Sequence[Unit]:
    """The units, checked: some at all, every id once."""
    units = benchmark.units(options)
    if not units:
        raise DataError(
            f"benchmark {benchmark.card.name!r} finds no units in this data",
            remedy="check --data, --gt and --pred against the benchmark's page in docs/",
        )
    seen: set[str] = set()
    for unit in units:
        if unit.id in seen:
            raise HardlookError(f"benchmark {benchmark.card.name!r} has two units with one id", unit=unit.id)
        seen.add(unit.id)
    return units


def make_plan(
    job: Job,
    here: Worker,
    options: BenchmarkOptions,
    units: Sequence[Unit],
    *,
    batch_size: int,
    full_fingerprint: bool = False,
) -> Plan:
    """Lay out the batches and collect what the answers depend on."""
    card = here.benchmark.card
    identity = None
    if here.model is not None:
        identity = identify(here.model, name=job.model, role=card.role, args=job.model_args)
    parts: dict[str, Any] = {"benchmark": f"{card.name} {card.version}", "batch size": batch_size}
    for name in sorted(fields_that_change(type(options), "units") | fields_that_change(type(options), "answers")):
        if name not in _PATH_OPTIONS:
            parts[f"option {name}"] = options.model_dump(mode="json")[name]
    for name, source in here.benchmark.sources(options).items():
        parts[f"data {name}"] = _fingerprint(name, source, full_fingerprint)
    parts["units"] = fingerprint.of_value([unit.id for unit in units])
    if identity is not None:
        parts.update({f"model {key}": value for key, value in asdict(identity).items()})
    return Plan(job, here.benchmark, options, units, lay_out(units, batch_size), parts, identity)


def refuse_changes(stored: Mapping[str, Any], plan: Plan, where: Path) -> None:
    """Refuse to continue a run whose answers depended on something else, and say on what."""
    lines = []
    for name in sorted(set(stored) | set(plan.parts)):
        before, now = stored.get(name, "nothing"), plan.parts.get(name, "nothing")
        if _plain(before) != _plain(now):
            lines.append(f"  {name}: {before} in the folder, {now} now")
    if lines:
        raise ChangedRun(
            "this folder holds a run with other units or answers:\n" + "\n".join(lines),
            file=where,
            remedy="use another --out, or --new to set the old run aside and start again",
        )


def _plain(value: Any) -> str:
    return fingerprint.of_value(value)


def _fingerprint(name: str, source: Path | str, full: bool) -> str:
    if isinstance(source, str):
        return source
    try:
        return fingerprint.of_data(source, full=full)
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file or folder", file=source, remedy="check the path") from None
