"""A study of reviews: candidate images that supposedly show a concept in a context, and people say whether they do.

This is how MetaCoCo's images were selected: two people review each, and it is kept when both accept. A task is a claim:
an image with a concept and a context. A participant reviews each claim once, and may see an image again under another
context: that is another question. Without candidates the images are scenes of the planted world, of which it is known
whether the claim is true.

>>> import tempfile
>>> settings = StudySettings(kind="review", title="Planted", devices=("any",), target_answers=2, training_tasks=1)
>>> study = make_review_study(Path(tempfile.mkdtemp()), None, settings, scenes=3)
>>> [(task.id, task.training, task.answer) for task in study.tasks]
[('t000001', False, None), ('t000002', False, None), ('t000003', False, None), ('training-0', True, 1)]
"""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hardlook.collect.study.folder import (
    Progress,
    Study,
    make_study,
    mark_unfinished,
    remove_stale_pictures,
    start_progress,
)
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import CHECK_SUBJECT, ReviewTask, count_checks
from hardlook.data.concept_context import ConceptContextImage, list_images
from hardlook.data.left_out import LeftOutNotes
from hardlook.data.object_instances.instance import limit_image
from hardlook.errors import OptionError
from hardlook.fingerprints import hash_data
from hardlook.randomness import generator
from hardlook.report.formatting import format_count
from hardlook.world.layouts import CONCEPT_SPLITS, save_image
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import render_scene
from hardlook.world.scene import describe_scene
from hardlook.world.vocabulary import CONTEXTS, sibling_of

CANDIDATES = "candidates"
_FALSE_EVERY = 4  # one of this many claims of a planted study is false
_TRAINING_SEED, _TRAINING_SIZE = 20_240_902, (320, 240)


@dataclass(frozen=True)
class Claim:
    """What a scene of the planted world actually shows and what is claimed of it, each (concept, context)."""

    actual: tuple[str, str]
    claimed: tuple[str, str]

    @property
    def answer(self) -> Literal[0, 1]:
        """1 where the claim is true."""
        return 1 if self.actual == self.claimed else 0


# False claims are obviously false; the first is true, as most candidates are.
TRAINING = (
    Claim(("cat", "beach"), ("cat", "beach")),
    Claim(("car", "winter"), ("duck", "winter")),
    Claim(("house", "night"), ("house", "meadow")),
    Claim(("apple", "street"), ("apple", "street")),
    Claim(("bus", "winter"), ("bus", "beach")),
    Claim(("owl", "night"), ("owl", "night")),
)


def make_review_study(
    path: Path,
    candidates: Path | None,
    settings: StudySettings,
    *,
    at_most: int | None = None,
    scenes: int = 24,
    seed: int = 0,
    progress: Progress | None = None,
) -> Study:
    """Make a study of every claim in `candidates`, a folder `[split/]concept/context/image` or a manifest.

    None means `scenes` of the planted world, which are written into the study, with some false claims. `at_most`
    draws that many claims by `seed`. An image that cannot be read is an error that names it.
    """
    notes, tasks = LeftOutNotes(""), list[ReviewTask]()
    listed = None if candidates is None else list_images(candidates)
    with mark_unfinished(path):
        if candidates is None or listed is None:
            candidates = path / CANDIDATES
            write_planted_claims(candidates, scenes=scenes, seed=seed)
            listed = list_images(candidates)
        rows = _draw_claims(_remove_duplicates(listed, notes), at_most, seed, notes)
        advance = start_progress(progress, len(rows))
        image = name = ""
        for row in rows:
            if row.name != name:
                image, name = write_picture(path, "images", limit_image(row.read())), row.name
            subject, id = format_subject(row.name, row.concept, row.context), f"t{len(tasks) + 1:06d}"
            tasks.append(ReviewTask(id, subject, row.name, row.concept, row.context, image, row.split or ""))
            advance(1, 0)
        training = [_write_training_task(path, index) for index in range(settings.training_tasks)]
        checks = []
        for index in range(count_checks(settings)):
            task = _write_training_task(path, len(training) + index)
            checks.append(replace(task, id=f"check-{index}", subject=f"{CHECK_SUBJECT}{index}", training=False))
        tasks += training
        remove_stale_pictures(path, [*tasks, *checks])
        made = {
            "tasks": len(rows),
            "images": len({row.name for row in rows}),
            "data": {"candidates": _format_location(candidates, path), "fingerprint": hash_data(candidates)},
            "at_most": at_most,
            "seed": seed,
            "left_out": [asdict(note) for note in notes.summarize()],
        }
        return make_study(path, settings, tasks, made=made, checks=checks)


def _remove_duplicates(rows: Sequence[ConceptContextImage], notes: LeftOutNotes) -> list[ConceptContextImage]:
    found: dict[str, ConceptContextImage] = {}
    for row in rows:
        if found.setdefault(format_subject(row.name, row.concept, row.context), row) is not row:
            notes.add("rows of the manifest", "the same image, concept and context are listed twice", row.name)
    return list(found.values())


def _draw_claims(
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


def _format_location(candidates: Path, study: Path) -> str:
    """The path of the candidates' folder: relative to the study if it lies inside, else absolute."""
    folder = (candidates if candidates.is_dir() else candidates.parent).resolve()
    return folder.relative_to(study.resolve()).as_posix() if folder.is_relative_to(study.resolve()) else str(folder)


def format_subject(name: str, concept: str, context: str) -> str:
    """The subject of a task: no participant gets the same claim twice.

    >>> format_subject("a/b.jpg", "cat", "snow") == format_subject("a", "b.jpg/cat", "snow")
    False
    """
    return json.dumps([name, concept, context], ensure_ascii=False)


def _write_training_task(path: Path, index: int) -> ReviewTask:
    """A planted scene with nothing but its subject, and a claim that is clearly true or false."""
    one, name = TRAINING[index % len(TRAINING)], f"training-{index}"
    scene = describe_scene(_TRAINING_SEED, index, *one.actual, salient=True, distractors=0, size=_TRAINING_SIZE)
    image = write_picture(path, "images", render_scene(scene).image, lossless=True)
    return ReviewTask(name, name, name, *one.claimed, image, training=True, answer=one.answer)


def list_planted_claims(seed: int, scenes: int) -> list[Claim]:
    """A claim about each scene of a world; every fourth is false, in turns about the context and about the concept.

    >>> list_planted_claims(0, 8)[3].claimed == list_planted_claims(0, 8)[3].actual
    False
    """
    world = _world(seed, scenes)
    claims = []
    for index in range(scenes):
        actual = (world.concept(index), world.context(index))
        concept, context = actual
        turn, rest = divmod(index + 1, _FALSE_EVERY)
        if not rest and turn % 2:
            others = [place.name for place in CONTEXTS if place.name != context]
            context = others[int(generator(seed, "review", "claim", index).integers(len(others)))]
        elif not rest:
            concept = sibling_of(concept)
        claims.append(Claim(actual, (concept, context)))
    return claims


def write_planted_claims(folder: Path, *, scenes: int, seed: int = 0) -> None:
    """Write the pictures and a manifest of what is claimed of them; the truth is in neither."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for index, (one, scene) in enumerate(zip(list_planted_claims(seed, scenes), _world(seed, scenes), strict=True)):
        name = f"images/{index + 1:06d}.png"
        save_image(folder / name, scene.image)
        rows.append((name, *one.claimed, CONCEPT_SPLITS[one.claimed[0]]))
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("path", "concept", "context", "split"))
        writer.writerows(rows)


def _world(seed: int, scenes: int) -> PlantedWorld:
    return PlantedWorld(seed=seed, count=scenes, salient=True)


def summarise_study(study: Study) -> dict[str, Any]:
    """What was made, as the document that `hardlook collect init review --json` prints."""
    settings, made, tasks = study.settings, study.made, len(study.items)
    wanted, per_person = tasks * settings.target_answers, min(tasks, settings.batch_size * settings.most_batches)
    return {
        "study": str(study.path),
        "kind": settings.kind,
        "tasks": tasks,
        "images": made["images"],
        "training": len(study.training),
        "reviewers": settings.target_answers,
        "reviews_wanted": wanted,
        # No participant reviews a claim twice, so there must be as many people as reviews of one claim.
        "participants_needed": max(settings.target_answers, -(-wanted // per_person)),
        "left_out": made["left_out"],
        "next": shlex.join(["hardlook", "collect", "serve", str(study.path)]),
    }


def describe_study(document: Mapping[str, Any]) -> str:
    """The document of `summarise_study` as text for a terminal."""
    lines = [
        f"{format_count(document['tasks'], 'claim')} about {format_count(document['images'], 'image')}; "
        f"{format_count(document['reviews_wanted'], 'review')} wanted, {document['reviewers']} of each claim, by "
        f"{format_count(document['participants_needed'], 'participant')} or more."
    ]
    lines += [f"Left out: {note['count']} {note['what']} ({note['why']})." for note in document["left_out"]]
    return "\n".join([*lines, f"Next: {document['next']}"])
