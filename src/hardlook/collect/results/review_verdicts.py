"""What people made of candidate images: who accepted which claim, what that decides, and how far they agree.

A claim is kept when everybody accepted it and enough people did; with fewer reviews than the study wants it is
undecided, and otherwise rejected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ReviewTask
from hardlook.errors import DataError
from hardlook.randomness import generator
from hardlook.stats import Estimate, bootstrap_score, ratio
from hardlook.stats.agreement import cohen_kappa, fleiss_kappa_interval, krippendorff_alpha_interval

Outcome = Literal["kept", "rejected", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("kept", "rejected", "undecided")
RESAMPLES = 2000


@dataclass(frozen=True)
class Reviewed:
    """A claim and how many people accepted and declined it; `wanted` reviews decide.

    >>> task = ReviewTask("t1", "s", "a.jpg", "cat", "snow", "images/a.jpg")
    >>> [Reviewed(task, *counts, wanted=2).outcome for counts in ((2, 0), (1, 1), (1, 0), (0, 2))]
    ['kept', 'rejected', 'undecided', 'rejected']
    """

    task: ReviewTask
    accepted: int
    declined: int
    wanted: int

    @property
    def reviews(self) -> int:
        """People who judged it."""
        return self.accepted + self.declined

    @property
    def outcome(self) -> Outcome:
        """Which of the three files it is in."""
        if self.reviews < self.wanted:
            return "undecided"
        return "rejected" if self.declined else "kept"

    @property
    def disputed(self) -> bool:
        """Whether people differ about it."""
        return bool(self.accepted and self.declined)


@dataclass(frozen=True)
class Agreement:
    """How far people agree on the `claims` that two or more of them judged; values are NaN where undefined.

    `percent` is the share of pairs of reviews that are alike, in [0, 1]; `fleiss` and `alpha` allow for chance.
    `cohen` is given where the same two people judged all of these claims, else None.
    """

    claims: int
    percent: Estimate
    fleiss: Estimate
    alpha: Estimate
    cohen: float | None


def reviewed_claims(study: Study, answers: pl.DataFrame) -> tuple[Reviewed, ...]:
    """Every claim of the study in its order; `answers` has a row a review: task, subject, and value (0 or 1)."""
    tasks = [task for task in study.tasks if isinstance(task, ReviewTask) and not task.training]
    # Ids are alike in all studies; what was claimed is not.
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
        found.append(Reviewed(task, yes, total - yes, study.settings.target_answers))
    return tuple(found)


def agreement_of(claims: tuple[Reviewed, ...], answers: pl.DataFrame) -> Agreement | None:
    """Agreement over the claims that have two reviews or more, None without any.

    Claims about one image are resampled together. `answers` has the columns participant, task and value.
    """
    judged = [one for one in claims if one.reviews > 1]
    counts = np.array([[one.accepted, one.declined] for one in judged], np.int64).reshape(-1, 2)
    if not judged:
        return None
    people = counts.sum(1)
    alike = (counts * (counts - 1)).sum(1)
    images = [one.task.name for one in judged]

    def rng() -> np.random.Generator:
        return generator(0, "review", "agreement")

    pairs = np.column_stack([alike, people * (people - 1)]).astype(np.float64)
    return Agreement(
        len(judged),
        bootstrap_score(pairs, ratio, rng=rng(), clusters=images, resamples=RESAMPLES, resampled="image"),
        fleiss_kappa_interval(counts, rng=rng(), clusters=images, resamples=RESAMPLES, resampled="image"),
        krippendorff_alpha_interval(
            ratings_of(counts), "nominal", rng=rng(), clusters=images, resamples=RESAMPLES, resampled="image"
        ),
        _cohen(answers.filter(pl.col("task").is_in([one.task.id for one in judged]))),
    )


def reviewers(answers: pl.DataFrame) -> pl.DataFrame:
    """A row a participant: reviews, accepted (share), alike (share of others' reviews of the same claims), reaction_ms.

    Shares are in [0, 1]; `alike` is null where nobody else judged the same.
    """
    others = answers.select("task", pl.col("participant").alias("other"), pl.col("value").alias("said"))
    beside = answers.join(others, on="task").filter(pl.col("participant") != pl.col("other"))
    alike = beside.group_by("participant").agg((pl.col("value") == pl.col("said")).mean().alias("alike"))
    own = answers.group_by("participant").agg(
        pl.len().alias("reviews"), pl.col("value").mean().alias("accepted"), pl.col("reaction_ms").median()
    )
    return own.join(alike, on="participant", how="left").select(
        "participant", "reviews", "accepted", "alike", "reaction_ms"
    )


def ratings_of(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The (places, claims) table of reviews, NaN where there is none, from (claims, 2) accepted and declined.

    Alpha asks what was said of a unit, not by whom: so a crowd needs no row each.

    >>> ratings_of(np.array([[2, 0], [1, 2]])).tolist()
    [[1.0, 1.0], [1.0, 0.0], [nan, 0.0]]
    """
    most = int(counts.sum(1).max(initial=0))
    place = np.arange(most)[:, None]
    accepted, people = counts[:, 0], counts.sum(1)
    return np.where(place < accepted, 1.0, np.where(place < people, 0.0, math.nan))


def _cohen(answers: pl.DataFrame) -> float | None:
    if answers["participant"].n_unique() != 2:
        return None
    table = answers.pivot("participant", index="task", values="value").drop("task").drop_nulls()
    one, other = (table[name].to_numpy() for name in table.columns)
    return cohen_kappa(one, other)
