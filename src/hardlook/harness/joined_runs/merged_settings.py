"""The settings of runs that are joined: those that must be the same, and how the others become one.

Runs may differ in which units they have: in options that are lists (`--folds 0` and `--folds 1`), in their data, and in
the weights of their model. An argument that holds the number of the run's fold becomes a template:

>>> find_fold_template(["nets/fold0/best.pth", "nets/fold1/best.pth"], [0, 1])
'nets/fold{fold}/best.pth'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hardlook.errors import OptionError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.options import BenchmarkOptions, fields_that_change, parse_options, takes_several

FOLD = "{fold}"
"""Stands for the number of a fold in a model's arguments."""

Manifest = Mapping[str, Any]
Difference = tuple[str, object, object]

# Parts that are compared on their own, or that change no more than the last bits of an answer.
_MERGED = ("units", "batch size", "joined", "model args", "model weights", "model source")


def check_same_settings(benchmark: Benchmark, folders: Sequence[Path], manifests: Sequence[Manifest]) -> None:
    """Raise an error that names two runs and all settings in which they differ."""
    for folder, manifest in zip(folders[1:], manifests[1:], strict=True):
        found = [
            *_compare_options(benchmark, manifests[0], manifest),
            *_compare_models(manifests[0], manifest),
            *_compare_parts(benchmark, manifests[0], manifest),
        ]
        if found:
            lines = [f"  {name}: {first} in {folders[0]}, {other} in {folder}" for name, first, other in found]
            raise OptionError(
                "the runs have different settings:\n" + "\n".join(lines),
                file=folder,
                remedy="run one of them again with the settings of the other; for options that only change scores "
                "`hardlook score` suffices. `hardlook compare` compares runs of different models",
            )


def merge_options(benchmark: Benchmark, manifests: Sequence[Manifest]) -> dict[str, Any]:
    """The options of the joined run as JSON: lists are united, and data of one name and two paths are numbered."""
    every = [_read_options(benchmark, manifest) for manifest in manifests]
    merged: dict[str, Any] = {}
    for name in _list_selections(benchmark):
        values = [getattr(options, name) for options in every]
        merged[name] = None if None in values else tuple(dict.fromkeys(item for value in values for item in value))
        if all(isinstance(item, int) for item in merged[name] or ()) and name != "shots":
            merged[name] = merged[name] and tuple(sorted(merged[name]))
    data: dict[str, Path] = {}
    for options in every:
        given = {**options.data, **({"gt": options.gt} if options.gt and options.gt != every[0].gt else {})}
        for name, path in given.items():
            number, free = 2, name
            while data.get(free, path) != path:
                free, number = f"{name}-{number}", number + 1
            data[free] = path
    return every[0].model_copy(update={**merged, "data": data}).model_dump(mode="json")


def merge_models(manifests: Sequence[Manifest]) -> dict[str, Any] | None:
    """The model of the joined run: arguments that differ as a template of the fold, else all of their values."""
    runs = [run for manifest in manifests for run in _list_runs(manifest)]
    models = [run["model"] for run in runs]
    if models[0] is None:
        return None
    args = dict(models[0].get("args") or {})
    for name in args:
        values = [model["args"].get(name) for model in models]
        if len(set(map(str, values))) > 1:
            template = find_fold_template(list(map(str, values)), _list_run_folds(runs))
            args[name] = template or ", ".join(dict.fromkeys(map(str, values)))
    weights: dict[str, str] = {}
    for model in models:
        for name, digest in (model.get("weights") or {}).items():
            number, free = 2, name
            while weights.get(free, digest) != digest:
                free, number = f"{name} ({number})", number + 1
            weights[free] = digest
    sources = list(dict.fromkeys(str(model.get("source", "")) for model in models))
    return {**models[0], "args": args, "weights": weights, "source": ", ".join(sources)}


def merge_parts(
    manifests: Sequence[Manifest], options: Mapping[str, Any], model: Mapping[str, Any] | None, units: str
) -> dict[str, Any]:
    """What the records of the joined run depend on, as in `answers.parts` of `run.json`."""
    every = [manifest["answers"].get("parts", {}) for manifest in manifests]
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for parts in every for name in parts):
        values = [parts[name] for parts in every if name in parts]
        distinct = [value for place, value in enumerate(values) if value not in values[:place]]
        merged[name] = distinct[0] if len(distinct) == 1 or name == "batch size" else distinct
        if name.startswith("data "):
            merged[name] = distinct[0]
            merged |= {f"{name}-{number}": value for number, value in enumerate(distinct[1:], 2)}
        if name.startswith("option "):
            merged[name] = options.get(name.removeprefix("option "))
        elif model is not None and name.removeprefix("model ") in ("args", "weights", "source") and len(distinct) > 1:
            merged[name] = model[name.removeprefix("model ")]
    joined = [one for manifest in manifests for one in _list_fingerprints(manifest)]
    return {**merged, "units": units, "joined": joined}


def find_fold_template(values: Sequence[str], folds: Sequence[int | None]) -> str | None:
    """A text with `{fold}` that gives each value when its fold is filled in; None where there is none.

    >>> find_fold_template(["2020-0.pth", "2020-1.pth"], [0, 1])
    '2020-{fold}.pth'
    >>> find_fold_template(["a.pth", "b.pth"], [0, 1]) is None
    True
    """
    shared: dict[str, None] | None = None
    for value, fold in zip(values, folds, strict=True):
        if fold is None:
            return None
        pieces = value.split(str(fold))
        whole = [FOLD.join(pieces)] if len(pieces) > 1 else []
        single = [str(fold).join(pieces[:cut]) + FOLD + str(fold).join(pieces[cut:]) for cut in range(1, len(pieces))]
        candidates = dict.fromkeys([*whole, *single])
        shared = candidates if shared is None else {one: None for one in shared if one in candidates}
    return next(iter(shared or ()), None)


def _read_options(benchmark: Benchmark, manifest: Manifest) -> BenchmarkOptions:
    return parse_options(benchmark.options, dict(manifest["options"]))


def _list_selections(benchmark: Benchmark) -> list[str]:
    """The options that choose units and are lists: runs that differ in them have other units of one list."""
    fields = benchmark.options.model_fields
    return [name for name in fields_that_change(benchmark.options, "units") if takes_several(fields[name].annotation)]


def _compare_options(benchmark: Benchmark, first: Manifest, other: Manifest) -> Iterator[Difference]:
    one, two = _read_options(benchmark, first), _read_options(benchmark, other)
    free = {"data", *_list_selections(benchmark)}
    for name in benchmark.options.model_fields:
        values = getattr(one, name), getattr(two, name)
        is_path = all(isinstance(value, Path) for value in values)
        if name not in free and not is_path and values[0] != values[1]:
            yield f"--{name.replace('_', '-')}", *values


def _compare_models(first: Manifest, other: Manifest) -> Iterator[Difference]:
    one, two = first["model"], other["model"]
    if one is None or two is None:
        if one is not two:
            first_name, other_name = (model["name"] if model else "stored predictions" for model in (one, two))
            yield "--model", first_name, other_name
        return
    # The runs within a joined one are of one model already.
    found = [
        difference for run in _list_runs(other) for difference in _compare_models_of_runs(_list_runs(first)[0], run)
    ]
    yield from (difference for place, difference in enumerate(found) if difference not in found[:place])


def _compare_models_of_runs(first: Manifest, other: Manifest) -> Iterator[Difference]:
    one, two = first["model"], other["model"]
    if one["name"] != two["name"]:
        yield "--model", one["name"], two["name"]
        return
    own, others = one.get("args") or {}, two.get("args") or {}
    differing = [name for name in {**own, **others} if str(own.get(name)) != str(others.get(name))]
    folds = _list_run_folds([first, other])
    for name in differing:
        values = str(own.get(name)), str(others.get(name))
        are_weights = all(
            Path(value).name in (model.get("weights") or {}) for value, model in zip(values, (one, two), strict=True)
        )
        if not are_weights and find_fold_template(values, folds) is None:
            yield f"--model-arg {name}", *values
    # The fingerprint that a model gives itself may cover its weights; the hash of its code is then in the sessions.
    code = [_find_model_code(manifest) for manifest in (first, other)]
    if one.get("source") != two.get("source") and not (differing and code[0] and code[0] == code[1]):
        yield "the model's code", one.get("source"), two.get("source")


def _compare_parts(benchmark: Benchmark, first: Manifest, other: Manifest) -> Iterator[Difference]:
    one, two = first["answers"].get("parts", {}), other["answers"].get("parts", {})
    options = [_read_options(benchmark, manifest) for manifest in (first, other)]
    for name in one:
        if name not in two or one[name] == two[name] or name in _MERGED or name.startswith(("option ", "model name")):
            continue
        source = name.removeprefix("data ")
        paths = [settings.data.get(source) or getattr(settings, source, None) for settings in options]
        # Other data may have other units. Data of one path that have changed are another version of the same units.
        if name.startswith("data ") and all(isinstance(path, Path) for path in paths) and paths[0] != paths[1]:
            continue
        yield name, one[name], two[name]


def _list_run_folds(manifests: Sequence[Manifest]) -> list[int | None]:
    """The fold of each run that has one; None for the others."""
    every: list[list[int]] = [list(manifest["options"].get("folds") or []) for manifest in manifests]
    return [int(folds[0]) if len(folds) == 1 else None for folds in every]


def _list_runs(manifest: Manifest) -> list[Manifest]:
    """The runs that a joined run was made of, each with its own model; a run that was not joined is one of itself."""
    joined: list[Manifest] = manifest.get("joined") or []
    return [{**row, "sessions": manifest.get("sessions", [])} for row in joined] or [manifest]


def _find_model_code(manifest: Manifest) -> str:
    found = {str(row["model_code"]) for row in manifest.get("sessions", []) if row.get("model_code")}
    return found.pop() if len(found) == 1 else ""


def _list_fingerprints(manifest: Manifest) -> list[str]:
    return [str(row["answers"]["fingerprint"]) for row in manifest.get("joined", [])] or [
        str(manifest["answers"]["fingerprint"])
    ]
