"""`run`: every training of a study, one after the other or side by side, tested when it is finished.

Needs torch, numpy, safetensors and Fabric. A training and its weights are those of `hardlook train` with the same
settings. Killed at any moment, the same command goes on: a training resumes in its folder, and `results.jsonl` holds
only whole lines of finished trainings.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hardlook.errors import OptionError, RunError
from hardlook.networks.few_shot.catalogue import find_method, list_methods
from hardlook.training.checkpoint import load_weights, read_weights, replace_file
from hardlook.training.devices import open_fabric
from hardlook.training.few_shot import (
    EpisodeRows,
    FewShotData,
    StoredEpisodes,
    build_method,
    read_trained,
    train_few_shot,
)
from hardlook.training.recipes import Recipe, change_recipe, find_recipe, parse_budget
from zoo.answering import test_method
from zoo.study import MODES, TASK_PARTS, Study, TestSet, format_correlation

RESULTS, TRAININGS = "results.jsonl", "trainings"
TOKENS = "vit-small"  # the backbone of methods that need tokens


@dataclass(frozen=True)
class Settings:
    """What all trainings share.

    `validations` 0 keeps the last weights, unvalidated. `tasks` 0 tests on all tasks, no `sets` on all test sets.
    `changes` are KEY=VALUE or METHOD:KEY=VALUE of recipes.
    """

    study: Path
    out: Path
    backbone: str = "conv64f"
    budget: str = "300000images"
    device: str = "cpu"
    precision: str = "float32"
    threads: int = 1
    validations: int = 10
    tasks: int = 0
    sets: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    def choose_sets(self) -> tuple[str, ...]:
        """The test sets to test on; an error where the study has none of that name."""
        held = Study(self.study).sets
        if absent := set(self.sets) - set(held):
            raise OptionError(f"the study has no test set {min(absent)!r}", remedy=f"it has {', '.join(held)}")
        return self.sets or held


@dataclass(frozen=True, order=True)
class Training:
    """One training: seeds first, so that a study that is stopped has all methods with few seeds."""

    seed: int
    method: str
    correlation: float
    backbone: str

    @property
    def name(self) -> str:
        """Its folder."""
        return f"{self.backbone}-{self.method}-{format_correlation(self.correlation)}-{self.seed}"


class TimeUp(Exception):
    """The minutes are over; what was saved stays."""


def list_trainings(
    settings: Settings,
    *,
    only: Sequence[str] = ("*",),
    without: Sequence[str] = (),
    correlations: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[Training]:
    """The trainings of a study; methods that need tokens have a backbone of their own."""
    study = Study(settings.study)
    entries = [one for one in list_methods() if any(fnmatch(one.name, pattern) for pattern in only)]
    entries = [one for one in entries if not any(fnmatch(one.name, pattern) for pattern in without)]
    if not entries:
        known = ", ".join(one.name for one in list_methods())
        raise OptionError(f"no method is named {' or '.join(only)}", remedy=f"there are {known}")
    for given, held in ((correlations, study.correlations), (seeds, study.seeds)):
        if absent := set(given or ()) - set(held):
            raise OptionError(f"the study has no {min(absent)}", remedy=f"it has {', '.join(map(str, held))}")
    return sorted(
        Training(seed, one.name, correlation, TOKENS if one.facts.get("inputs") == "tokens" else settings.backbone)
        for one in entries
        for correlation in correlations or study.correlations
        for seed in (seeds if seeds is not None else study.seeds)
    )


def make_recipe(settings: Settings, training: Training) -> Recipe:
    """The method's recipe with the shape of the study's tasks and the changes of the settings.

    Stages share the budget equally: by their recipes' epochs, which are meant for twelve times as many images, some
    would have a fiftieth of it for the classes.
    """
    card = Study(settings.study).card
    entry = find_method(training.method)
    changes: dict[str, Any] = {name: card[name] for name in ("ways", "shots", "queries")}
    if len(entry.stages) > 1:
        changes["shares"] = (1,) * len(entry.stages)
    for text in settings.changes:
        key, sign, value = text.partition("=")
        method, _, key = key.rpartition(":")
        if not sign:
            raise OptionError(f"--set {text}", remedy="KEY=VALUE or METHOD:KEY=VALUE")
        if not method or fnmatch(training.method, method):
            changes[key] = value
    return change_recipe(find_recipe(training.method, training.backbone, entry.stages), changes)


def read_data(study: Study, training: Training, *, validated: bool = True) -> FewShotData:
    """Images and tasks of a training, with those of its validation or without."""
    arrays = study.read_training(training.correlation, training.seed)
    modes = [name.partition("/")[0] for name in arrays if name.endswith("/support")]
    rows = {mode: EpisodeRows(*(arrays[f"{mode}/{part}"].astype(np.int64) for part in TASK_PARTS)) for mode in modes}
    name = format_correlation(training.correlation)
    training_rows = rows.pop("train")
    held = _read_pixels(study.folder, "val") if validated and "val" in study.card["pixels"] else None
    return FewShotData(
        _read_pixels(study.folder, f"train-{name}"),
        arrays["labels"].astype(np.int64),
        tuple(map(str, arrays["classes"])),
        StoredEpisodes(training_rows),
        held,
        rows if held is not None else {},
        study.card["training"][name],
    )


@lru_cache(maxsize=4)
def _read_pixels(folder: Path, name: str) -> Any:
    return Study(folder).read_pixels(name)


@lru_cache(maxsize=4)
def _read_test(folder: Path, name: str) -> TestSet:
    return Study(folder).read_test(name)


def train_and_test(settings: Settings, training: Training, deadline: float = 0.0) -> list[dict[str, Any]]:
    """One line per test set and mode; raises `TimeUp` after the deadline, in seconds of `time.time()`."""
    study = Study(settings.study)
    recipe = make_recipe(settings, training)
    folder = settings.out / TRAININGS / training.name

    def check_time(*_: int) -> None:
        if deadline and time.time() > deadline:
            raise TimeUp

    check_time()
    data = read_data(study, training, validated=settings.validations > 0)
    fabric: Any = open_fabric(settings.device, precision=settings.precision)  # type: ignore[arg-type]
    fabric.launch(
        lambda opened: train_few_shot(
            data,
            recipe,
            folder,
            opened,
            seed=training.seed,
            size=study.card["image_size"],
            budget=parse_budget(settings.budget),
            precision=settings.precision,
            validations=max(settings.validations, 1),
            show_progress=check_time,
        )
    )
    trained = read_trained(folder)
    before = time.perf_counter()
    network = build_method(recipe, classes=len(data.classes), size=study.card["image_size"], seed=training.seed)
    load_weights(network, read_weights(folder), file=folder)
    common = {
        "method": training.method,
        "family": find_method(training.method).family,
        "backbone": training.backbone,
        "correlation": training.correlation,
        "seed": training.seed,
        "budget": settings.budget,
        "precision": settings.precision,
        "device": settings.device,
        "image_size": study.card["image_size"],
        "ways": recipe.ways,
        "shots": recipe.shots,
        "queries": recipe.queries,
        "images": sum(stage["images"] for stage in trained.card["stages"]),
        "stages": {stage["stage"]: stage["images"] for stage in trained.card["stages"]},
        "steps": trained.card["steps"],
        "parameters": trained.card["parameters"],
        "selected": trained.card["selected"],
        "train_seconds": trained.card["seconds"],
    }
    lines = []
    for name in settings.choose_sets():
        given = _read_test(study.folder, name)
        if settings.tasks:
            shorter = {mode: tasks.first(settings.tasks) for mode, tasks in given.tasks.items()}
            given = TestSet(given.name, given.images, given.context, shorter)
        for mode, counts in test_method(
            network, given, size=study.card["image_size"], device=settings.device, check_time=check_time
        ):
            lines.append({**common, "set": name, "mode": mode, **counts})
    seconds = round(time.perf_counter() - before, 3)
    return [{**line, "test_seconds": seconds} for line in lines]


def _work(settings: Settings, training: Training, deadline: float) -> list[dict[str, Any]] | None:
    """In a process of its own: the lines of a training, one with an error where it failed, None where time was up."""
    torch.set_num_threads(settings.threads)
    try:
        return train_and_test(settings, training, deadline)
    except TimeUp:
        return None
    except Exception as error:  # one method's fault is a line in the results and does not end a night's work
        place = {"method": training.method, "backbone": training.backbone, "correlation": training.correlation}
        return [{**place, "seed": training.seed, "error": f"{type(error).__name__}: {error}"}]
    finally:
        if settings.device.startswith("cuda"):
            torch.cuda.empty_cache()  # the processes beside this one share the memory


def run(
    settings: Settings,
    *,
    only: Sequence[str] = ("*",),
    without: Sequence[str] = (),
    correlations: Sequence[float] | None = None,
    seeds: Sequence[int] | None = None,
    workers: int = 1,
    minutes: float = 0.0,
    retry: bool = False,
) -> int:
    """Train and test what has no result yet; how many trainings are left."""
    listed = list_trainings(settings, only=only, without=without, correlations=correlations, seeds=seeds)
    Study(settings.study).check_files()
    # A wrong setting is an error before the first training and no failure of each.
    open_fabric(settings.device, precision=settings.precision)  # type: ignore[arg-type]
    if (images := parse_budget(settings.budget).images) > (held := Study(settings.study).card["budget"]):
        what = f"--budget {images}images: the study has training tasks for {held} images"
        raise OptionError(what, remedy=f"prepare it with --budget {images}")
    for training in listed:
        make_recipe(settings, training)
    settings.out.mkdir(parents=True, exist_ok=True)
    results = settings.out / RESULTS
    done = read_finished(results, len(settings.choose_sets()) * len(MODES), retry)
    todo = [one for one in listed if one not in done]
    deadline = time.time() + 60 * minutes if minutes else 0.0
    started, finished, failed = time.time(), 0, 0
    print(f"{len(listed)} trainings, {len(listed) - len(todo)} of them done before", flush=True)
    for training, lines in _run_side_by_side(settings, todo, workers, deadline):
        if lines is None:
            continue
        append_lines(results, lines)
        finished += 1
        failed += "error" in lines[0]
        left = (time.time() - started) / finished * (len(todo) - finished)
        print(f"[{finished}/{len(todo)}] {training.name}: {_describe(lines)}; {_minutes(left)} left", flush=True)
    if failed:
        print(f"{failed} trainings failed: `--retry` tries them again, `report` lists them", flush=True)
    return len(todo) - finished


def _run_side_by_side(
    settings: Settings, todo: Sequence[Training], workers: int, deadline: float
) -> Iterator[tuple[Training, list[dict[str, Any]] | None]]:
    if workers == 1:
        for training in todo:
            yield training, _work(settings, training, deadline)
        return
    # A fresh interpreter per process: CUDA does not survive a fork.
    os.environ.setdefault("OMP_NUM_THREADS", str(settings.threads))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: dict[Future[Any], Training] = {}
        rest = iter(todo)
        while True:
            while len(waiting) < workers and (following := next(rest, None)) is not None:
                waiting[pool.submit(_work, settings, following, deadline)] = following
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                try:
                    lines = future.result()
                except BrokenProcessPool as error:
                    what = "a process of the study was killed, perhaps for want of memory"
                    raise RunError(what, remedy="give the command again, with fewer --workers") from error
                yield waiting.pop(future), lines


def read_finished(path: Path, lines_each: int, retry: bool = False) -> set[Training]:
    """The trainings whose lines are all there; lines of others, and an unfinished last one, are removed.

    A training that failed counts as finished unless `retry`.
    """
    if not path.is_file():
        return set()
    groups: dict[Training, list[str]] = {}
    failed = set()
    for text in path.read_text(encoding="utf-8").split("\n"):
        try:
            line = json.loads(text)
            training = Training(line["seed"], line["method"], line["correlation"], line["backbone"])
        except (ValueError, KeyError, TypeError):
            continue  # cut off by a kill
        groups.setdefault(training, []).append(text)
        if "error" in line:
            failed.add(training)
    kept = {one for one, texts in groups.items() if len(texts) == lines_each or (one in failed and not retry)}
    replace_file(path, "".join(f"{text}\n" for one in groups if one in kept for text in groups[one]).encode())
    return kept


def append_lines(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Add lines, on disk when this returns."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        stream.flush()
        os.fsync(stream.fileno())


def _describe(lines: Sequence[dict[str, Any]]) -> str:
    if "error" in lines[0]:
        return str(lines[0]["error"]).splitlines()[0][:200]
    first = lines[0]
    words = [
        f"{line['mode']} {sum(line['correct']) / (len(line['correct']) * line['ways'] * line['queries']):.3f}"
        for line in lines
        if line["set"] == first["set"]
    ]
    return f"{', '.join(words)} ({first['train_seconds']:.0f} s + {first['test_seconds']:.0f} s)"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
