"""A run before it starts: its units, its batch layout, and everything that its answers depend on.

What the answers depend on is kept as a flat table of parts. Its hash marks every record; the table itself lets a
changed option be named instead of a changed hash.

The batch layout: which units are answered together, fixed by the list of units and the batch size alone.

The layout never depends on what is already done, on workers or on order of arrival: a network's last bits may
differ between layouts, and a resumed run must equal an uninterrupted one.

>>> units = [Unit("a1", 0, "a"), Unit("b1", 0, "b"), Unit("a2", 0, "a"), Unit("c1", 0, "c")]
>>> [[unit.id for unit in batch] for batch in make_batches(units, 3)]
[['a1', 'a2', 'b1'], ['c1']]

Who worked on a run: one small file a process, gathered into `run.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from hardlook import fingerprints
from hardlook.errors import ChangedRun, DataError, HardlookError, ModelError, OptionError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.options import BenchmarkOptions, fields_that_change
from hardlook.harness.runs.evaluation import Job, Worker
from hardlook.models.identity import ModelIdentity, identify
from hardlook.models.registry import find

Batch = tuple[Unit, ...]


def make_batches(units: Sequence[Unit], batch_size: int, *, whole_groups: bool = False) -> list[Batch]:
    """Pack units into batches of at most `batch_size`, groups in order of appearance and whole where they fit.

    With `whole_groups` a group is never split: one that is larger than `batch_size` is a batch of its own.

    >>> [len(batch) for batch in make_batches([Unit(f"a{i}", 0, "a") for i in range(5)], 2, whole_groups=True)]
    [5]
    """
    groups: dict[str, list[Unit]] = {}
    for position, unit in enumerate(units):
        groups.setdefault(unit.group or f"\0{position}", []).append(unit)
    batches: list[Batch] = []
    current: list[Unit] = []
    for group in groups.values():
        step = len(group) if whole_groups else batch_size
        for start in range(0, len(group), step):
            piece = group[start : start + step]
            if current and len(current) + len(piece) > batch_size:
                batches.append(tuple(current))
                current = []
            current.extend(piece)
    if current:
        batches.append(tuple(current))
    return batches


def batches_of_shard(batches: Sequence[Batch], shard: tuple[int, int]) -> list[Batch]:
    """The batches of shard i of N (i from 1): every N-th, so that shards finish at about the same time."""
    index, count = shard
    if not 1 <= index <= count:
        raise OptionError(f"--shard {index}/{count}: the first number runs from 1 to the second")
    return list(batches[index - 1 :: count])


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
        return fingerprints.of_value(self.parts)


def list_units(benchmark: Benchmark, options: BenchmarkOptions) -> Sequence[Unit]:
    """The units, checked: some at all, every id once."""
    units = benchmark.list_units(options)
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
        "units": fingerprints.of_value([unit.id for unit in units]),
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
    batches = make_batches(units, batch_size, whole_groups=card.whole_groups)
    return Plan(job, here.benchmark, options, units, batches, parts, identity)


def check_unchanged(stored: Mapping[str, Any], plan: Plan, where: Path) -> None:
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
    return fingerprints.of_value(value)


def _fingerprint(name: str, source: Path | str, full: bool, out: Path | None) -> str:
    if isinstance(source, str):
        return source
    try:
        return fingerprints.of_data(source, full=full, without=out)
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file or folder", file=source, remedy="check the path") from None


_VERSIONED = ("numpy", "scipy", "opencv-python-headless", "polars", "torch", "onnxruntime", "transformers", "ray")
