"""`prepare`: contexts planted into Caltech101, images decoded once, all tasks drawn; on a machine with all of hardlook.

Planting, splits, tasks and the order of queries are those of `hardlook data plant-contexts`, `hardlook train` and
`hardlook run metacoco`, called here and not repeated: the folder `planted-CORRELATION` inside the study holds
`zoo.csv`, a manifest with which these commands give the same numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.harness.runs.progress import open_progress
from hardlook.metacoco.contexts.planting import MANIFEST, PlantingOptions, plant_contexts, write_manifest
from hardlook.metacoco.evaluation import shuffle_queries
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.tasks.checking import check_tasks
from hardlook.metacoco.tasks.drawing import draw_tasks
from hardlook.metacoco.tasks.eligibility import find_eligible_classes
from hardlook.metacoco.training.data import DataOptions, decode_images, prepare_data, stored_size
from hardlook.metacoco.units import load_images, make_source
from hardlook.training.recipes import change_recipe, find_recipe
from zoo.study import (
    MODES,
    PART_BYTES,
    TASK_PARTS,
    Pixels,
    format_correlation,
    write_arrays,
    write_card,
    write_pixels,
)

EXCLUDED = ("elephant", "dalmatian", "electric_guitar", "Faces", "Faces_easy")
"""Classes of Caltech101 that PACS has too: neither trained nor validated on."""

TOGETHER = ("Faces", "Faces_easy")
"""The same photographs, whole and cut out: they belong into one split."""


@dataclass(frozen=True)
class Plan:
    """What is prepared; `tasks` are test tasks per mode, `budget` the images of the longest training.

    Contexts have half their `strength`: at 1 a network of few trainings answers by context alone, whatever the method.
    """

    caltech: Path
    pacs: Path | None
    contexts: tuple[str, ...] = ("snow", "dusk", "fog")
    correlations: tuple[float, ...] = (0.0, 0.9)
    seeds: tuple[int, ...] = (0, 1, 2)
    image_size: int = 84
    ways: int = 5
    shots: int = 5
    queries: int = 10
    tasks: int = 600
    validation_tasks: int = 100
    budget: int = 300_000
    planting_seed: int = 0
    strength: float = 0.5
    excluded: tuple[str, ...] = EXCLUDED


def prepare(plan: Plan, out: Path, *, part_bytes: int = PART_BYTES, progress: bool = True) -> dict[str, Any]:
    """Write the study; what was planted before is used again."""
    out.mkdir(parents=True, exist_ok=True)
    manifests = {one: plant(plan, one, out, progress) for one in plan.correlations}
    pixels: dict[str, list[str]] = {}
    facts: dict[str, Any] = {}
    held: Pixels | None = None
    for correlation, manifest in manifests.items():
        name = format_correlation(correlation)
        for seed in plan.seeds:
            data = _prepare_training(plan, manifest, seed)
            if seed == plan.seeds[0]:
                pixels[f"train-{name}"] = write_pixels(out, f"train-{name}", data.images, part_bytes)
                facts[name] = data.facts
            held = _check_same(held, data.validation_images, manifest)
            drawn = data.draw(np.arange(-(-plan.budget // (plan.ways * (plan.shots + plan.queries)))))
            arrays: dict[str, NDArray[Any]] = {"labels": data.labels, "classes": np.array(data.classes)}
            for mode, rows in (("train", drawn), *data.validation.items()):
                arrays |= {f"{mode}/{part}": getattr(rows, part).astype(np.int32) for part in TASK_PARTS}
            write_arrays(out / f"training-{name}-{seed}.npz", arrays)
    if held is not None:
        pixels["val"] = write_pixels(out, "val", held, part_bytes)
    sets = {}
    roots = {"caltech101": next(iter(manifests.values())), **({"pacs": plan.pacs} if plan.pacs else {})}
    for name, root in roots.items():
        images, sets[name] = _prepare_test(
            plan, root, out / f"test-{name}.npz", split="test" if name != "pacs" else None
        )
        pixels[f"test-{name}"] = write_pixels(out, f"test-{name}", images, part_bytes)
    given = {key: value for key, value in asdict(plan).items() if key not in ("caltech", "pacs")}
    card = {**given, "modes": list(MODES), "stored_size": stored_size(plan.image_size), "pixels": pixels}
    card |= {"sets": sets, "training": facts}
    write_card(out, card)
    return card


def plant(plan: Plan, correlation: float, out: Path, progress: bool = True) -> Path:
    """Plant contexts with this correlation; the manifest without the excluded classes in train and val."""
    folder = out / f"planted-{format_correlation(correlation)}"
    options = PlantingOptions(plan.contexts, correlation=correlation, strength=plan.strength, seed=plan.planting_seed)
    with open_progress(not progress) as start:
        plant_contexts(plan.caltech, folder, options, progress=start)
    with (folder / MANIFEST).open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    splits = {concept: split for _, concept, _, split, *_ in rows}
    apart = {splits[name] for name in TOGETHER if name in splits}
    if len(apart) > 1:
        what = f"{' and '.join(TOGETHER)} show the same photographs and are in two splits: {', '.join(sorted(apart))}"
        raise DataError(what, file=folder, remedy="plant with another --planting-seed")
    kept = [row for row in rows if row[3] == "test" or row[1] not in plan.excluded]
    path = folder / "zoo.csv"
    write_manifest(path, header, kept)
    return path


def _prepare_training(plan: Plan, manifest: Path, seed: int) -> Any:
    recipe = change_recipe(
        find_recipe("protonet", "conv64f", ("episodes",)),
        {"ways": plan.ways, "shots": plan.shots, "queries": plan.queries},
    )
    options = DataOptions(manifest, validation_tasks=plan.validation_tasks)
    return prepare_data(options, recipe, size=plan.image_size, seed=seed)


def _check_same(before: Pixels | None, now: Pixels | None, manifest: Path) -> Pixels | None:
    if before is not None and (now is None or not np.array_equal(before, now)):
        raise DataError("the validation images differ between correlations", file=manifest, remedy="plant again")
    return now


def _prepare_test(plan: Plan, root: Path, path: Path, *, split: str | None) -> tuple[Pixels, dict[str, Any]]:
    """Write a test set's tasks; its images, and what there is of it."""
    options = MetaCocoOptions(
        data={"root": root}, split=split, modes=MODES, ways=(plan.ways,), shots=(plan.shots,), queries=plan.queries
    )
    source = make_source(options)
    images = load_images(source)
    table = images.table
    eligible = find_eligible_classes(table, MODES, plan.ways, plan.shots, plan.queries)
    eligible.require()
    arrays: dict[str, NDArray[Any]] = {"context": table.context.astype(np.int32)}
    numbers = np.arange(plan.tasks)
    for mode in MODES:
        drawn = draw_tasks(eligible, mode, numbers, seed=source.seed)
        check_tasks(drawn, table)
        arrays |= {f"{mode}/{part}": getattr(drawn, part).astype(np.int32) for part in ("support", "query")}
        arrays[f"{mode}/context"] = drawn.support_context.astype(np.int32)
        arrays[f"{mode}/order"] = shuffle_queries(drawn, source.seed).astype(np.int32)
        arrays[f"{mode}/keys"] = np.array([f"{plan.ways}way-{plan.shots}shot-{number}" for number in numbers])
    write_arrays(path, arrays)
    facts = {
        "images": len(table),
        "classes": [table.concepts[one] for one in eligible.classes],
        "contexts": list(table.contexts),
        "fingerprint": images.fingerprint,
    }
    return decode_images(images, stored_size(plan.image_size)), facts


def describe(card: dict[str, Any], out: Path) -> Sequence[str]:
    """What was prepared, in lines."""
    sizes = {path.name: path.stat().st_size for path in out.glob("*.npz")}
    lines = [
        f"{name}: {len(one['classes'])} classes in tasks, {one['images']} images" for name, one in card["sets"].items()
    ]
    lines += [
        f"training at correlation {name}: {one['classes']} classes, {one['images']} images"
        for name, one in card["training"].items()
    ]
    whole, largest = sum(sizes.values()) / 2**20, max(sizes.values()) / 2**20
    return [*lines, f"{len(sizes)} files, {whole:.0f} MiB, the largest {largest:.0f} MiB: {out}"]
