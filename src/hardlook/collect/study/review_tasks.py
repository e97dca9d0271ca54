"""Candidate images to be reviewed: each is said to show a concept in a context, and people say whether it does.

This is how MetaCoCo's images were made: two people each, kept when both accept. A task is a claim, an image with a
concept and a context. A participant judges each claim once, and may well see a picture again under another context:
that is another question, and the second answer owes nothing to the first.

>>> import tempfile
>>> settings = StudySettings(kind="review", title="Planted", devices=("any",), target_answers=2, training_tasks=1)
>>> study = review_study(Path(tempfile.mkdtemp()), None, settings, scenes=3)
>>> [(task.id, task.training, task.answer) for task in study.tasks]
[('t000001', False, None), ('t000002', False, None), ('t000003', False, None), ('training-0', True, 1)]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hardlook
from hardlook.collect.study.folder import Study, make_study
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.planted_claims import TRAINING, rendered, write_planted_claims
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import ReviewTask
from hardlook.collect.study.unfinished import remove_leftovers, unfinished
from hardlook.data.concept_context_rows import ConceptContextImage, read_rows
from hardlook.data.object_instances.left_out import LeftOutNotes
from hardlook.data.object_instances.longest_side import limited_image
from hardlook.errors import OptionError
from hardlook.fingerprint import of_data
from hardlook.models.roles import Image
from hardlook.randomness import generator

SCHEMA = "hardlook.study-made/1"
CANDIDATES = "candidates"
Moved = Callable[[int, int], None]


def review_study(
    path: Path,
    candidates: Path | None,
    settings: StudySettings,
    *,
    at_most: int | None = None,
    scenes: int = 24,
    seed: int = 0,
    progress: Callable[[int, int], Moved] | None = None,
) -> Study:
    """A study of every claim in `candidates`, a folder `[split/]concept/context/image` or a manifest.

    None stands for `scenes` of the planted world, which are written into the study, some claims of them false.
    `at_most` draws that many by `seed`. An image that cannot be read is an error that names it. `progress` starts a
    bar over (claims, done).
    """
    notes, tasks = LeftOutNotes(""), list[ReviewTask]()
    listed = None if candidates is None else read_rows(candidates)
    with unfinished(path):
        if candidates is None or listed is None:
            candidates = path / CANDIDATES
            write_planted_claims(candidates, scenes=scenes, seed=seed)
            listed = read_rows(candidates)
        rows = _drawn(_once(listed, notes), at_most, seed, notes)
        moved = progress(len(rows), 0) if progress else (lambda units, failed: None)
        shown = name = ""
        for row in rows:
            if row.name != name:
                shown, name = write_picture(path, "images", shown_pixels(row.read())), row.name
            tasks.append(_task(row, shown, f"t{len(tasks) + 1:06d}"))
            moved(1, 0)
        tasks += _training(path, settings.training_tasks)
        remove_leftovers(path, [task.image for task in tasks])
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "hardlook": hardlook.__version__,
            "tasks": len(rows),
            "images": len({row.name for row in rows}),
            "data": {"candidates": _place(candidates, path), "fingerprint": of_data(candidates)},
            "at_most": at_most,
            "seed": seed,
            "left_out": [asdict(note) for note in notes.listed()],
        }
        return make_study(path, settings, tasks, made=document)


def shown_pixels(image: Image) -> Image:
    """What people see of an image (H, W, 3): all of it, at most 2048 pixels a side."""
    return limited_image(image)


def claim(name: str, concept: str, context: str) -> str:
    """The subject of a task: nobody gets the same claim twice.

    >>> claim("a/b.jpg", "cat", "snow") == claim("a", "b.jpg/cat", "snow")
    False
    """
    return json.dumps([name, concept, context], ensure_ascii=False)


def _task(row: ConceptContextImage, image: str, name: str) -> ReviewTask:
    subject = claim(row.name, row.concept, row.context)
    return ReviewTask(name, subject, row.name, row.concept, row.context, image, row.split or "")


def _once(rows: Sequence[ConceptContextImage], notes: LeftOutNotes) -> list[ConceptContextImage]:
    found: dict[str, ConceptContextImage] = {}
    for row in rows:
        if found.setdefault(claim(row.name, row.concept, row.context), row) is not row:
            notes.add("rows of the manifest", "the same image, concept and context stand in it twice", row.name)
    return list(found.values())


def _drawn(
    rows: list[ConceptContextImage], at_most: int | None, seed: int, notes: LeftOutNotes
) -> list[ConceptContextImage]:
    if at_most is None or at_most >= len(rows):
        return rows
    if at_most < 1:
        raise OptionError(f"at most {at_most} candidates", remedy="ask for one or more")
    drawn = set(generator(seed, "review", "candidates").choice(len(rows), at_most, replace=False).tolist())
    for place, row in enumerate(rows):
        if place not in drawn:
            notes.add("candidates not drawn", f"at most {at_most} were asked for", row.name)
    return [rows[place] for place in sorted(drawn)]


def _training(path: Path, count: int) -> list[ReviewTask]:
    """Planted scenes, claims about which are true or false beyond doubt."""
    tasks = []
    for place in range(count):
        one = TRAINING[place % len(TRAINING)]
        name = f"training-{place}"
        image = write_picture(path, "images", rendered(one, place), lossless=True)
        concept, context = one.said
        tasks.append(ReviewTask(name, name, name, concept, context, image, training=True, answer=one.answer))
    return tasks


def _place(candidates: Path, study: Path) -> str:
    """Where the candidates' folder is: relative to the study where it lies inside, else in full."""
    folder = (candidates if candidates.is_dir() else candidates.parent).resolve()
    return folder.relative_to(study.resolve()).as_posix() if folder.is_relative_to(study.resolve()) else str(folder)
