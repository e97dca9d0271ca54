"""The images that a review kept, copied beside their manifest, so that the folder is a dataset of its own.

Copies and not links: a dataset that changes when somebody tidies the candidates is none. Where a candidate is gone,
or is no longer what people saw, the study's own picture takes its place and is counted.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hardlook.collect.results.review_verdicts import Reviewed
from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import picture_digest
from hardlook.collect.study.review_tasks import shown_pixels
from hardlook.collect.study.tasks import ReviewTask
from hardlook.data.concept_context_rows import MANIFEST
from hardlook.data.images import read_image
from hardlook.errors import HardlookError, OptionError
from hardlook.runs.folder import write_whole

IMAGES = "images"
_CLAIM = ("path", "concept", "context", "split")


@dataclass(frozen=True)
class KeptImages:
    """How many images were copied, and the names of those that had to come out of the study's own pictures."""

    copied: int
    from_study: tuple[str, ...]


def candidates_folder(study: Study) -> Path:
    """Where the candidates were when the study was made."""
    return study.path / str(study.made["data"]["candidates"])


def write_kept(study: Study, kept: Sequence[Reviewed], out: Path) -> KeptImages:
    """Write `manifest.csv` and the images that it names; an image of several claims is copied once."""
    root = candidates_folder(study)
    if out.resolve() == root.resolve():
        raise OptionError("the export would replace the candidates' manifest", remedy="give another folder as --out")
    placed: dict[str, str] = {}
    from_study = []
    for one in kept:
        if one.task.name in placed:
            continue
        source = root / one.task.name
        if not is_what_was_shown(source, one.task):
            source = study.file(one.task.image)
            from_study.append(one.task.name)
        placed[one.task.name] = _place(one.task, source.suffix)
        _copy(source, out / placed[one.task.name])
    rows = [(placed[one.task.name], one.task.concept, one.task.context, one.task.split) for one in kept]
    write_table(out / MANIFEST, _CLAIM, rows)
    return KeptImages(len(placed), tuple(from_study))


def write_others(path: Path, claims: Sequence[Reviewed]) -> None:
    """Write claims that were not kept: their names among the candidates, and who said what."""
    rows = [
        (one.task.name, one.task.concept, one.task.context, one.task.split, one.accepted, one.declined)
        for one in claims
    ]
    write_table(path, (*_CLAIM, "accepted", "declined"), rows)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a csv file, whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def is_what_was_shown(source: Path, task: ReviewTask) -> bool:
    """Whether a file still holds the pixels that people judged: the picture's name is their hash."""
    try:
        return picture_digest(shown_pixels(read_image(source))) == PurePosixPath(task.image).stem
    except HardlookError:
        return False


def _place(task: ReviewTask, suffix: str) -> str:
    """A place below `images/`: the candidate's own name where that leads nowhere else."""
    name = PurePosixPath(task.name)
    if name.is_absolute() or ".." in name.parts or "\\" in task.name:
        return f"{IMAGES}/{task.id}{suffix}"
    return f"{IMAGES}/{name}" if name.suffix.lower() == suffix.lower() else f"{IMAGES}/{name}{suffix}"


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.part")
    shutil.copyfile(source, beside)
    beside.replace(target)
