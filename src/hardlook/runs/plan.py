"""A run before it starts: its units, its batch layout, and everything that its answers depend on.

What the answers depend on is kept as a flat table of parts. Its hash marks every record; the table itself lets a
changed option be named instead of a changed hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from hardlook import fingerprint
from hardlook.contract.benchmark import Benchmark, Unit
from hardlook.contract.options import BenchmarkOptions, fields_that_change
from hardlook.errors import ChangedRun, DataError, HardlookError, ModelError
from hardlook.models.identity import ModelIdentity, identify
from hardlook.models.registry import find
from hardlook.runs.batches import Batch, lay_out
from hardlook.runs.worker import Job, Worker

# Libraries whose version can change a network's answers, by the extra that brings them.
_LIBRARIES = {
    "torch": ("torch",),
    "onnx": ("onnxruntime",),
    "litert": ("ai-edge-litert",),
    "hf": ("torch", "transformers"),
}


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
    out: Path | None = None,
) -> Plan:
    """Lay out the batches and collect what the answers depend on; `out` is no part of any data it may lie in."""
    card = here.benchmark.card
    identity = None
    if here.model is not None:
        identity = identify(here.model, name=job.model, role=card.role, args=job.model_args)
    parts: dict[str, Any] = {
        "benchmark": f"{card.name} {card.version}",
        "batch size": batch_size,
        "threads": job.threads,
        "units": fingerprint.of_value([unit.id for unit in units]),
    }
    sources = here.benchmark.sources(options)
    for name in sorted(fields_that_change(type(options), "units") | fields_that_change(type(options), "answers")):
        # Paths may change while the data stay the same: their fingerprints stand for them.
        if name != "data" and name not in sources:
            parts[f"option {name}"] = options.model_dump(mode="json")[name]
    for name, source in sources.items():
        mode = " (every byte)" if full_fingerprint and isinstance(source, Path) else ""
        parts[f"data {name}{mode}"] = _fingerprint(name, source, full_fingerprint, out)
    if identity is not None:
        parts.update(_model_parts(identity))
    batches = lay_out(units, batch_size, whole_groups=card.whole_groups)
    return Plan(job, here.benchmark, options, units, batches, parts, identity)


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


def _model_parts(identity: ModelIdentity) -> dict[str, Any]:
    parts = {f"model {key}": value for key, value in asdict(identity).items()}
    # A weights file is known by its hash and a device by its kind: where they are does not count.
    parts["model args"] = {
        name: value for name, value in identity.args.items() if Path(str(value)).name not in identity.weights
    }
    parts["model args"].pop("device", None)
    parts["model device"] = identity.device.split(":")[0]
    try:
        extra = find(identity.name).card.extra
    except ModelError:
        extra = ""
    for library in _LIBRARIES.get(extra, ()):
        parts[f"library {library}"] = metadata.version(library)
    return parts


def _plain(value: Any) -> str:
    return fingerprint.of_value(value)


def _fingerprint(name: str, source: Path | str, full: bool, out: Path | None) -> str:
    if isinstance(source, str):
        return source
    try:
        return fingerprint.of_data(source, full=full, without=out)
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file or folder", file=source, remedy="check the path") from None
