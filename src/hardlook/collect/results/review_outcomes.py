"""What reviews decide about candidate images, how far reviewers agree, and the kept images as a dataset.

A claim is kept if enough people reviewed it and all accepted it; with fewer reviews than the study wants it is
undecided, and otherwise rejected. Kept images are copied next to their manifest, not linked, so that the dataset stays
as it is when the candidates change. If a candidate is gone or has changed since the review, the study's own picture is
used and counted.
"""

from __future__ import annotations

import csv
import io
import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import hash_picture
from hardlook.collect.study.tasks import ReviewTask
from hardlook.data.concept_context import MANIFEST
from hardlook.data.images import read_image
from hardlook.data.object_instances.instance import limit_image
from hardlook.errors import DataError, HardlookError, OptionError
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.stats import bootstrap_score, ratio
from hardlook.harness.stats.agreement import cohen_kappa, fleiss_kappa_interval, krippendorff_alpha_interval
from hardlook.randomness import generator
from hardlook.report.json_values import to_json_value

Outcome = Literal["kept", "rejected", "undecided"]

OUTCOMES: tuple[Outcome, ...] = ("kept", "rejected", "undecided")

RESAMPLES = 2000


@dataclass(frozen=True)
class ReviewedClaim:
    """A claim and how many people accepted and declined it; `wanted` reviews decide.

    >>> task = ReviewTask("t1", "s", "a.jpg", "cat", "snow", "images/a.jpg")
    >>> [ReviewedClaim(task, *counts, wanted=2).outcome for counts in ((2, 0), (1, 1), (1, 0), (0, 2))]
    ['kept', 'rejected', 'undecided', 'rejected']
    """

    task: ReviewTask
    accepted: int
    declined: int
    wanted: int

    @property
    def reviews(self) -> int:
        """People who reviewed it."""
        return self.accepted + self.declined

    @property
    def outcome(self) -> Outcome:
        """What the reviews decide."""
        if self.reviews < self.wanted:
            return "undecided"
        return "rejected" if self.declined else "kept"

    @property
    def disputed(self) -> bool:
        """Whether people differ about it."""
        return bool(self.accepted and self.declined)


def count_reviews(study: Study, answers: pl.DataFrame) -> tuple[ReviewedClaim, ...]:
    """Every claim of the study in its order; `answers` has one row per review: task, subject, and value (0 or 1)."""
    tasks = [task for task in study.tasks if isinstance(task, ReviewTask) and not task.training]
    # Task ids are the same in all studies; subjects are not.
    answered = set(answers.select("task", "subject").unique().iter_rows())
    unknown = sorted(answered - {(task.id, task.subject) for task in tasks})
    if unknown:
        what = f"answers to {len(unknown)} tasks that are not of this study, such as {unknown[0][1]}"
        raise DataError(what, file=study.path, remedy="name the database of this study with --database")
    counted = answers.group_by("task").agg(pl.col("value").sum().alias("yes"), pl.len().alias("all"))
    counts = {task: (yes, total) for task, yes, total in counted.iter_rows()}
    found = []
    for task in tasks:
        yes, total = counts.get(task.id, (0, 0))
        found.append(ReviewedClaim(task, yes, total - yes, study.settings.target_answers))
    return tuple(found)


def count_verdicts(claims: Iterable[ReviewedClaim]) -> NDArray[np.int64]:
    """How many accepted and declined each claim that has two reviews or more, (claims, 2)."""
    return np.array([[one.accepted, one.declined] for one in claims if one.reviews > 1], np.int64).reshape(-1, 2)


def count_alike_pairs(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Per claim the ordered pairs of reviews that are alike, and all pairs, (claims, 2), from counts as above.

    >>> count_alike_pairs(np.array([[2, 0], [1, 2]])).tolist()
    [[2.0, 2.0], [2.0, 6.0]]
    """
    people = counts.sum(1)
    return np.column_stack([(counts * (counts - 1)).sum(1), people * (people - 1)]).astype(np.float64)


def measure_agreement(claims: tuple[ReviewedClaim, ...], answers: pl.DataFrame) -> dict[str, Any] | None:
    """Agreement over the claims that have two reviews or more as JSON values, None without such claims.

    `percent` is the share of pairs of reviews that are alike, in [0, 1]; `fleiss` and `alpha` allow for chance;
    `cohen` is given if the same two people reviewed all of these claims. Undefined values are None. Claims about one
    image are resampled together. `answers` has the columns participant, task and value.
    """
    counts, reviewed = count_verdicts(claims), [one.task for one in claims if one.reviews > 1]
    if not reviewed:
        return None
    shared: dict[str, Any] = {
        "clusters": [task.name for task in reviewed],
        "resamples": RESAMPLES,
        "resampled": "image",
    }

    def rng() -> np.random.Generator:
        return generator(0, "review", "agreement")

    estimates = {
        "percent": bootstrap_score(count_alike_pairs(counts), ratio, rng=rng(), range=(0.0, 1.0), **shared),
        "fleiss": fleiss_kappa_interval(counts, rng=rng(), **shared),
        "alpha": krippendorff_alpha_interval(expand_counts(counts), "nominal", rng=rng(), **shared),
    }
    document: dict[str, Any] = {"claims": len(reviewed)}
    for name, estimate in estimates.items():
        document[name] = {"value": estimate.value, "low": estimate.interval.low, "high": estimate.interval.high}
    document["cohen"] = _compute_cohen_kappa(answers.filter(pl.col("task").is_in([task.id for task in reviewed])))
    plain: dict[str, Any] = to_json_value(document)
    return plain


def measure_reviewers(answers: pl.DataFrame) -> pl.DataFrame:
    """One row per participant: reviews, accepted (share), alike (share), reaction_ms.

    `alike` is the share of others' reviews of the same claims that agree, null if there are none. Shares are in [0, 1].
    """
    pairs = answers.join(answers, on="task", suffix="_other").filter(
        pl.col("participant") != pl.col("participant_other")
    )
    alike = pairs.group_by("participant").agg((pl.col("value") == pl.col("value_other")).mean().alias("alike"))
    own = answers.group_by("participant").agg(
        pl.len().alias("reviews"), pl.col("value").mean().alias("accepted"), pl.col("reaction_ms").median()
    )
    return own.join(alike, on="participant", how="left").select(
        "participant", "reviews", "accepted", "alike", "reaction_ms"
    )


def expand_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The (rows, claims) table of reviews, padded with NaN, from (claims, 2) counts of accepted and declined.

    Krippendorff's alpha depends on the ratings of a unit and not on who gave them, so rows need not be reviewers.

    >>> expand_counts(np.array([[2, 0], [1, 2]])).tolist()
    [[1.0, 1.0], [1.0, 0.0], [nan, 0.0]]
    """
    accepted, people = counts[:, 0], counts.sum(1)
    place = np.arange(people.max(initial=0))[:, None]
    return np.where(place < accepted, 1.0, np.where(place < people, 0.0, math.nan))


def _compute_cohen_kappa(answers: pl.DataFrame) -> float | None:
    if answers["participant"].n_unique() != 2:
        return None
    table = answers.pivot("participant", index="task", values="value").drop("task").drop_nulls()
    one, other = (table[name].to_numpy() for name in table.columns)
    return cohen_kappa(one, other)


_CLAIM = ("path", "concept", "context", "split")


def candidates_folder(study: Study) -> Path:
    """The candidates' folder when the study was made."""
    return study.path / str(study.made["data"]["candidates"])


def write_kept_images(study: Study, kept: Sequence[ReviewedClaim], out: Path) -> tuple[int, list[str]]:
    """Write `manifest.csv` and the images that it names; an image of several claims is copied once.

    Returns the number of images, and the names of those that are copies of the study's own pictures.
    """
    root = candidates_folder(study)
    if out.resolve() == root.resolve():
        raise OptionError("the export would replace the candidates' manifest", remedy="pass another folder as --out")
    placed: dict[str, str] = {}
    from_study = []
    for one in kept:
        if one.task.name in placed:
            continue
        source = root / one.task.name
        if not is_unchanged(source, one.task):
            source = study.file(one.task.image)
            from_study.append(one.task.name)
        placed[one.task.name] = _choose_path(one.task, source.suffix)
        _copy_file(source, out / placed[one.task.name])
    rows = [(placed[one.task.name], one.task.concept, one.task.context, one.task.split) for one in kept]
    _write_csv(out / MANIFEST, _CLAIM, rows)
    return len(placed), from_study


def write_claims(path: Path, claims: Sequence[ReviewedClaim]) -> None:
    """Write claims that were not kept, with their names among the candidates and their counts."""
    rows = [
        (one.task.name, one.task.concept, one.task.context, one.task.split, one.accepted, one.declined)
        for one in claims
    ]
    _write_csv(path, (*_CLAIM, "accepted", "declined"), rows)


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_atomically(path, text.getvalue())


def is_unchanged(source: Path, task: ReviewTask) -> bool:
    """Whether a file still holds the pixels that people reviewed: the picture's name is their hash."""
    try:
        return hash_picture(limit_image(read_image(source))) == PurePosixPath(task.image).stem
    except HardlookError:
        return False


def _choose_path(task: ReviewTask, suffix: str) -> str:
    """A path below `images/`: the candidate's own name unless that would lead outside."""
    name = PurePosixPath(task.name)
    if name.is_absolute() or ".." in name.parts or "\\" in task.name:
        return f"images/{task.id}{suffix}"
    return f"images/{name}" if name.suffix.lower() == suffix.lower() else f"images/{name}{suffix}"


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.part")
    shutil.copyfile(source, beside)
    beside.replace(target)
