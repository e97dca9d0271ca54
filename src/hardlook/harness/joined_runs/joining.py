"""Join runs on disjoint units into one run, such as the runs of the models of four folds.

The joined run has the records and failures of its parts and is read like any other. Its `run.json` has the content of
the parts' `run.json` under `joined`. The folders of the parts are not changed, and are needed no more.

>>> import tempfile
>>> from hardlook.harness.runs.launch import launch
>>> folder = Path(tempfile.mkdtemp())
>>> for fold in (0, 1):
...     given = {"scenes": 24, "tiers": "3", "folds": (fold,), "resamples": 0}
...     done = launch("toss", model="whole-image", given=given, out=folder / f"fold{fold}")
>>> joined = join_runs([folder / "fold0", folder / "fold1"], folder / "both")
>>> [row["options"]["folds"] for row in joined.manifest["joined"]], sorted(joined.records["fold"].unique())
([[0], [1]], [0, 1])
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hardlook
from hardlook import fingerprints
from hardlook.errors import ChangedRun, HardlookError, OptionError, RunError, RunWarning
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.checked_json import format_checked_json
from hardlook.harness.joined_runs.merged_settings import check_same_settings, merge_models, merge_options, merge_parts
from hardlook.harness.options import fields_that_change, parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RUN_SCHEMA, RunFolder, make_folder, suggest_repair, write_atomically
from hardlook.harness.runs.plan import list_units
from hardlook.harness.runs.record_store import (
    FAILURE_COLUMNS,
    find_contradicting_units,
    list_parts,
    read_all_records,
    read_failures,
    read_part,
    write_failures,
    write_part,
)
from hardlook.harness.runs.scoring import EXAMPLES, ScoredRun, score_run
from hardlook.harness.runs.sessions import claim_run, code_fingerprint, list_sessions, set_other_records_aside

if TYPE_CHECKING:
    import polars as pl

# Of a part's run.json the joined run keeps all but these.
_NOT_KEPT = ("schema", "sessions", "checksum", "joined")


def join_runs(folders: Sequence[Path], out: Path, *, new: bool = False) -> ScoredRun:
    """Join finished runs into the folder `out` and score them together; the same call again makes the same run.

    Runs with units in common or with different settings are an error that names two of them. `new` sets another run in
    `out` aside.
    """
    runs, target = [RunFolder(folder) for folder in folders], RunFolder(out)
    if len({folder.resolve() for folder in folders}) < max(len(folders), 2):
        raise OptionError("at least two different runs are needed", remedy="give the folders of several runs")
    if out.resolve() in {folder.resolve() for folder in folders}:
        raise OptionError("--out is one of the runs to join", file=out, remedy="choose a new folder for --out")
    manifests = [run.read_manifest() for run in runs]
    benchmark = _find_common_benchmark(folders, manifests)
    check_same_settings(benchmark, folders, manifests)
    units, notes = _collect_units(runs, manifests, benchmark)
    document = _make_manifest(benchmark, runs, manifests, units, notes)
    check_target(target, document["answers"]["fingerprint"], new=new)
    make_folder(out)
    with claim_run(target):
        if not target.exists():
            set_other_records_aside(target, document["answers"]["fingerprint"])
        _copy_records(runs, manifests, target, benchmark, document["answers"]["fingerprint"])
        write_atomically(target.manifest_path, format_checked_json(document))
        write_failures(target, document["answers"]["fingerprint"])
    scored = score_run(target)
    write_atomically(target.scores_path, scored.scorecard.to_json())
    return scored


def check_target(target: RunFolder, answers: str | None = None, *, new: bool = False) -> None:
    """Raise an error where the folder holds something else than a joined run; `answers` is the joined fingerprint."""
    if new and target.exists():
        with claim_run(target):
            target.set_aside()
    target.check_is_run_folder()
    stored = target.read_manifest() if target.exists() else None
    if stored and not (stored.get("joined") and answers in (None, stored["answers"]["fingerprint"])):
        what = (
            "the folder holds a run that was joined from others" if stored.get("joined") else "the folder holds a run"
        )
        raise ChangedRun(what, file=target.path, remedy="choose another --out, or add --new to set that run aside")


def _find_common_benchmark(folders: Sequence[Path], manifests: Sequence[Mapping[str, Any]]) -> Benchmark:
    kinds = [f"{manifest['benchmark']['name']} {manifest['benchmark']['version']}" for manifest in manifests]
    for folder, kind in zip(folders, kinds, strict=True):
        if kind != kinds[0]:
            what = f"the runs are of different benchmarks: {kinds[0]} in {folders[0]}, {kind} in {folder}"
            raise OptionError(what, file=folder, remedy="join runs of one benchmark and version")
    benchmark = find_benchmark(manifests[0]["benchmark"]["name"])
    if benchmark.card.version != manifests[0]["benchmark"]["version"]:
        what = f"the runs were made by {kinds[0]}, this is version {benchmark.card.version}"
        raise RunError(
            what, file=folders[0], remedy="join them with the hardlook version in run.json, or run them again"
        )
    return benchmark


def _collect_units(
    runs: Sequence[RunFolder], manifests: Sequence[Mapping[str, Any]], benchmark: Benchmark
) -> tuple[pl.Series, list[dict[str, Any]]]:
    """The units of all runs, and a note on those that two processes answered differently.

    Runs that are unfinished, or that share a unit, are an error.
    """
    import polars as pl

    frames, contradicting = [], []
    for place, (run, manifest) in enumerate(zip(runs, manifests, strict=True)):
        answers = manifest["answers"]["fingerprint"]
        answered, others = read_all_records(run, benchmark.schema, answers, ["unit"])
        if others:
            what = f"{sum(others.values())} records here are of another model, other data or another version"
            raise RunError(what, file=next(iter(others)), remedy=suggest_repair(run.path))
        once = answered.unique()
        if len(once) < len(answered):
            every, _ = read_all_records(run, benchmark.schema, answers, benchmark.schema.light)
            contradicting += find_contradicting_units(every)
        own = pl.concat([once, read_failures(run, answers).select("unit")])
        if missing := manifest["units"] - len(own):
            what = f"the run is not finished: {missing} of its {manifest['units']} units are not answered yet"
            raise RunError(what, file=run.path, remedy="repeat its `hardlook run`: it resumes")
        frames.append(own.with_columns(run=pl.lit(place)))
    every = pl.concat(frames)
    shared = every.filter(pl.col("unit").is_duplicated()).sort("unit", "run")
    if len(shared):
        unit = shared["unit"][0]
        one, two = (runs[place].path for place in shared.filter(pl.col("unit") == unit)["run"][:2])
        both = shared.filter(pl.col("run").is_in([shared["run"][0], shared["run"][1]]))["unit"].is_duplicated().sum()
        raise OptionError(
            f"{one} and {two} have {both // 2} units in common",
            file=two,
            unit=unit,
            remedy="join runs on different units, such as those of different folds; compare runs on the same units",
        )
    if not contradicting:
        return every["unit"], []
    why = "two processes answered them differently (the model is not deterministic); the first answer counts"
    note = {"what": "second answers", "count": len(contradicting), "why": why, "examples": contradicting[:EXAMPLES]}
    return every["unit"], [note]


def _make_manifest(
    benchmark: Benchmark,
    runs: Sequence[RunFolder],
    manifests: Sequence[Mapping[str, Any]],
    units: pl.Series,
    notes: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    options, digest = _choose_options(benchmark, merge_options(benchmark, manifests), units)
    model = merge_models(manifests)
    parts = merge_parts(manifests, options, model, digest)
    codes = {str(manifest.get("code", {}).get("fingerprint"))[:8] for manifest in manifests}
    if len(codes) > 1:
        what = f"the runs were made by different versions of the code of hardlook ({', '.join(sorted(codes))})"
        warnings.warn(what, RunWarning, stacklevel=4)
    return {
        "schema": RUN_SCHEMA,
        "benchmark": dict(manifests[0]["benchmark"]),
        "model": model,
        "options": options,
        "seed": manifests[0].get("seed"),
        "units": len(units),
        "left_out": [*merge_notes([manifest.get("left_out", []) for manifest in manifests]), *notes],
        "batch_size": manifests[0]["batch_size"],
        "answers": {"fingerprint": fingerprints.hash_value(parts), "parts": parts},
        "code": {"hardlook": hardlook.__version__, "fingerprint": code_fingerprint()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "sessions": [row for run, one in zip(runs, manifests, strict=True) for row in list_sessions(run, dict(one))],
        "joined": [row for run, manifest in zip(runs, manifests, strict=True) for row in _list_parts(run, manifest)],
    }


def _choose_options(benchmark: Benchmark, merged: dict[str, Any], units: pl.Series) -> tuple[dict[str, Any], str]:
    """The options of one run with all these units, and the fingerprint of its list of units.

    Where the units are all that the data have, options such as `folds` are as in a run of all folds: then the joined
    run is ranked beside such runs. Where no options list exactly these units, the merged ones stay.
    """
    fields = benchmark.options.model_fields
    chosen = [name for name in fields_that_change(benchmark.options, "units") if isinstance(merged[name], list)]
    whole = {**merged, **{name: None for name in chosen if fields[name].default is None}}
    for options in ([whole] if whole != merged else []) + [merged]:
        try:
            listed = list_units(benchmark, parse_options(benchmark.options, options))
        except (HardlookError, OSError):
            continue
        if len(listed) == len(units) and listed.mark([units]).all():
            return options, listed.fingerprint
    return merged, fingerprints.hash_value(sorted(units.to_list()))


def _list_parts(run: RunFolder, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of `joined` that a run brings: its own parts, where it was joined itself."""
    if manifest.get("joined"):
        return list(manifest["joined"])
    kept = {name: value for name, value in manifest.items() if name not in _NOT_KEPT}
    return [{"folder": str(run.path), **kept}]


def merge_notes(every: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Notes on what was left out: equal ones once, those of the same kind with their counts added.

    >>> note = {"what": "images", "count": 2, "why": "absent", "examples": ["a"]}
    >>> [row["count"] for row in merge_notes([[note], [note, {**note, "count": 3, "examples": ["b"]}]])]
    [5]
    """
    found: dict[tuple[str, str, bool], dict[str, Any]] = {}
    seen: list[Mapping[str, Any]] = []
    for row in [row for rows in every for row in rows]:
        if row in seen:
            continue
        seen.append(row)
        key = (row["what"], row["why"], bool(row.get("kept")))
        if known := found.get(key):
            known["count"] += row["count"]
            known["examples"] = [*known["examples"], *row["examples"]][:EXAMPLES]
        else:
            found[key] = dict(row)
    return list(found.values())


def _copy_records(
    runs: Sequence[RunFolder],
    manifests: Sequence[Mapping[str, Any]],
    target: RunFolder,
    benchmark: Benchmark,
    answers: str,
) -> None:
    """Write the records, failures and sessions of all runs into the joined folder, with its fingerprint."""
    import polars as pl

    schema = benchmark.schema
    for run, manifest in zip(runs, manifests, strict=True):
        mine, seen = pl.col("answers") == manifest["answers"]["fingerprint"], pl.Series("unit", [], pl.String)
        for part in list_parts(run.records_path):
            frame = read_part(part, [*schema.polars_schema(), "answers"], schema.defaults()).filter(mine)
            # Of a unit with two records the first counts, here as in its own run.
            frame = frame.filter(~pl.col("unit").is_in(seen.implode())).unique(
                "unit", keep="first", maintain_order=True
            )
            seen = pl.concat([seen, frame["unit"]])
            if len(frame):
                write_part(frame.with_columns(answers=pl.lit(answers)), target.records_path)
        for part in list_parts(run.failure_parts_path):
            frame = read_part(part, FAILURE_COLUMNS).filter(mine)
            if len(frame):
                write_part(frame.with_columns(answers=pl.lit(answers)), target.failure_parts_path)
        for path in sorted(run.sessions_path.glob("*.json")):
            write_atomically(target.sessions_path / path.name, path.read_bytes())
