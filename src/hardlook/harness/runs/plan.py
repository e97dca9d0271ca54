"""A run before it starts: its units, its batches, and everything that its records depend on.

What the records depend on is kept as a flat table of parts. Its hash marks every record; the table lets an error name
the option that changed.
"""

from __future__ import annotations

import contextlib
import difflib
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from hardlook import fingerprints
from hardlook.cloud.addresses import name_addresses
from hardlook.cloud.data_copies import fetch_options
from hardlook.errors import ChangedRun, DataError, ModelError, OptionError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.options import BenchmarkOptions, fields_that_change, is_unset_addition
from hardlook.harness.runs.batches import Batches, IndexedUnits, make_batches
from hardlook.harness.runs.evaluation import Job, Worker, is_out_of_memory, prepare_batch
from hardlook.models.identity import ModelIdentity, hash_code, identify
from hardlook.models.object_identity import identify_given
from hardlook.models.registry import find

# Libraries whose version can change a network's predictions, by the extra that installs them.
_LIBRARIES = {
    "torch": ("torch",),
    "onnx": ("onnxruntime",),
    "litert": ("ai-edge-litert",),
    "hf": ("torch", "transformers"),
}

LARGEST_BATCH = 512

# Among more ids than this, the nearest are searched among those with the same prefix.
MAX_COMPARED = 20_000

# A larger batch size must process this many times as many units per second to be preferred.
MIN_SPEEDUP = 1.1


@dataclass(frozen=True)
class Plan:
    """All units of a run, their batches, and what their records depend on (`parts`)."""

    job: Job
    benchmark: Benchmark
    options: BenchmarkOptions
    units: IndexedUnits
    batches: Batches
    parts: Mapping[str, Any]
    identity: ModelIdentity | None
    model_code: str = ""
    """Hash of the model's code, also where the model gives a fingerprint of its own."""
    model_object: str = ""
    """What was hashed of a model that was given as an object, in words."""

    @property
    def answers(self) -> str:
        """The fingerprint that marks the records of this plan."""
        return fingerprints.hash_value(self.parts)


def list_units(benchmark: Benchmark, options: BenchmarkOptions) -> IndexedUnits:
    """List the units and check that there are some and that their ids are unique."""
    options = fetch_options(options)
    with _paused_garbage_collection():
        units = benchmark.list_units(options)
    if not units:
        raise DataError(
            f"benchmark {benchmark.card.name!r} finds no units in this data",
            remedy="check --data, --gt and --pred against the benchmark's page in docs/",
        )
    return IndexedUnits(units)


def find_units(units: Iterable[Unit], ids: Sequence[str]) -> list[Unit]:
    """The units with these ids, in their order; an error names the nearest where there is no such unit."""
    known = {unit.id: unit for unit in units}
    for wanted in ids:
        if wanted not in known:
            near = find_nearest_ids(wanted, list(known))
            raise OptionError(
                f"--unit {wanted}: this is none of the {len(known)} units", remedy=f"the nearest are: {', '.join(near)}"
            )
    return [known[wanted] for wanted in dict.fromkeys(ids)]


def find_nearest_ids(wanted: str, ids: Sequence[str], most: int = 5) -> list[str]:
    """The known ids most similar to an unknown one.

    >>> find_nearest_ids("scene-01", ["street-12", "scene-0001"])[0]
    'scene-0001'
    """
    some, start = list(ids), len(wanted)
    while len(some) > MAX_COMPARED and start > 0:
        if alike := [one for one in ids if one.startswith(wanted[:start])]:
            some = alike
            break
        start -= 1
    return difflib.get_close_matches(wanted, some[:MAX_COMPARED], n=most, cutoff=0) or some[:most]


@contextlib.contextmanager
def _paused_garbage_collection() -> Iterator[None]:
    """While a million units are made, looking through them for unreachable cycles takes longer than making them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def choose_batch_size(worker: Worker, units: Sequence[Unit], *, clock: Callable[[], float] = time.perf_counter) -> int:
    """The batch size for this model on this machine: the benchmark's own on a processor, else measured.

    A killed run loses at most the batch that each worker was at, so a model that takes seconds for a unit says
    `units_per_batch = 1`; that attribute is never exceeded.

    On a GPU sizes are doubled while units per second grow by a tenth and memory suffices. The choice depends on the
    machine, so it is written into `run.json` and kept on resume.
    """
    default = min(worker.benchmark.card.batch_size, getattr(worker.model, "units_per_batch", LARGEST_BATCH))
    if not str(getattr(worker.model, "device", "cpu")).startswith("cuda"):
        return default
    read = prepare_batch(worker.benchmark, units[:LARGEST_BATCH])
    if read.short_of_memory:
        return default
    prepared = read.units
    best, best_rate, size = 1, 0.0, 1
    largest = min(len(prepared), getattr(worker.model, "units_per_batch", LARGEST_BATCH))
    while size <= largest:
        try:
            worker.benchmark.evaluate(prepared[:size], worker.model)  # warm-up
            start = clock()
            worker.benchmark.evaluate(prepared[:size], worker.model)
        except (Exception, SystemExit) as error:
            if is_out_of_memory(error):
                break
            # The run itself records a bad unit; here it only ends the search.
            return min(best, default)
        rate = size / max(clock() - start, 1e-9)
        if rate < best_rate * MIN_SPEEDUP:
            break
        best, best_rate, size = size, rate, size * 2
    return best


def make_plan(
    job: Job,
    worker: Worker,
    options: BenchmarkOptions,
    units: Sequence[Unit],
    *,
    batch_size: int,
    full_fingerprint: bool = False,
    out: Path | None = None,
) -> Plan:
    """Make the batches and collect what the records depend on; `out` is left out of data folders that contain it."""
    card = worker.benchmark.card
    indexed = units if isinstance(units, IndexedUnits) else IndexedUnits(units)
    identity, model_code, model_object = None, "", ""
    if job.given_model is not None:
        identity, model_code, model_object = identify_given(worker.model, name=job.model, role=card.role)
    elif worker.model is not None:
        identity = identify(worker.model, name=job.model, role=card.role, args=job.model_args)
        has_own = callable(getattr(worker.model, "fingerprint", None))
        model_code = hash_code(type(worker.model)) if has_own else identity.source
    parts: dict[str, Any] = {
        "benchmark": f"{card.name} {card.version}",
        "batch size": batch_size,
        "threads": job.threads,
        "units": indexed.fingerprint,
    }
    sources = worker.benchmark.sources(options)
    for name in sorted(fields_that_change(type(options), "units") | fields_that_change(type(options), "answers")):
        # Paths may change while the data stay the same: their fingerprints stand for them.
        if name != "data" and name not in sources and not is_unset_addition(options, name):
            parts[f"option {name}"] = name_addresses(options.model_dump(mode="json")[name])
    for name, source in sources.items():
        parts[f"data {name}"] = _fingerprint(name, source, full_fingerprint, out)
    if identity is not None:
        parts.update(_model_parts(identity, worker.model))
    batches = make_batches(indexed, batch_size, whole_groups=card.whole_groups)
    return Plan(job, worker.benchmark, options, indexed, batches, parts, identity, model_code, model_object)


def check_unchanged(
    stored: Mapping[str, Any], plan: Plan, where: Path, suggest: Callable[[], str] = lambda: "start again with --new"
) -> None:
    """Raise an error that lists the differences where the stored run has other parts than this plan.

    `suggest` says what to type to run the plan nevertheless.
    """
    lines = []
    for name in sorted(set(stored) | set(plan.parts)):
        before, now = stored.get(name, "nothing"), plan.parts.get(name, "nothing")
        if fingerprints.hash_value(before) != fingerprints.hash_value(now):
            lines.append(f"  {name}: {before} in the folder, {now} now")
            if name.startswith("data ") and str(now).startswith("xxh3:") and ":" not in str(before):
                lines.append("    (version 0.1 hashed only the ends of files; now every byte counts)")
    if lines:
        raise ChangedRun(
            "this folder holds a run with other units or answers:\n" + "\n".join(lines),
            file=where,
            remedy=f"use another --out; or, {suggest()}",
        )


def _model_parts(identity: ModelIdentity, model: object) -> dict[str, Any]:
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
    for library in sorted({*_LIBRARIES.get(extra, ()), *getattr(model, "libraries", ())}):
        parts[f"library {library}"] = metadata.version(library)
    return parts


def _fingerprint(name: str, source: Path | str, full: bool, out: Path | None) -> str:
    if isinstance(source, str):
        return source
    try:
        return fingerprints.hash_data(source, use_cache=not full, without=out)
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file or folder", file=source, remedy="check the path") from None
