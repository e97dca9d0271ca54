"""A study of ratings: pairs of labels, and pictures of a run, whose similarity under several measures people rate.

In a `fit` study each thing becomes one task per measure, since the measure's value is shown. All of these tasks have
one subject, and a participant gets each subject once: with two values of one pair people would compare the values. So
measures are compared on the same pairs, but by different people. In a `likeness` study no value is shown, and each
thing is one task; the values of the measures are kept in `made.json`.

>>> import tempfile
>>> plan = RatingPlan(measures=("path", "wup"), pairs=4)
>>> settings = StudySettings(kind="ratings", title="Pairs", devices=("any",), training_tasks=1)
>>> study = make_rating_study(Path(tempfile.mkdtemp()) / "study", plan, settings)
>>> len(study.items), len({item.subject for item in study.items}), len(study.training)
(8, 4, 1)
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.collect.study.folder import Study, check_no_study, make_study
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.settings import Question, StudySettings
from hardlook.collect.study.tasks import CHECK_SUBJECT, RatingTask, count_checks
from hardlook.data.left_out import LeftOutNote, LeftOutNotes
from hardlook.errors import OptionError, RunError
from hardlook.harness.records import Record
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.scoring import ScoredRun, score_run
from hardlook.harness.sections import Picture
from hardlook.open_vocabulary.label_similarity import find_labels
from hardlook.open_vocabulary.miou.scores import per_image_open_miou
from hardlook.open_vocabulary.record_columns import read_label_names
from hardlook.open_vocabulary.vocabulary import BACKGROUND
from hardlook.randomness import generator
from hardlook.report.pictures import LABEL_SHARE, check_picture, label_colour, tint_mask
from hardlook.report.pictures import list_labels as list_picture_labels
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.label_synsets import UnknownPolicy
from hardlook.similarity.labels import LabelSet, is_void_label, label_text
from hardlook.similarity.measures import compute_similarity, find_measure

if TYPE_CHECKING:
    from hardlook.open_vocabulary.miou.options import OpenMiouOptions

_BENCHMARK = "open-miou"

# One pair that the shown value fits and one that it does not; no measure gave it, so none is favoured.
_TRAINING_PAIRS = ((("apple", "pear"), 0.8), (("apple", "bridge"), 0.8))

# Labels of attention checks.
_CHECK_WORDS = ("apple", "bridge", "horse", "clock", "violin", "river", "chair")

# Pictures of label maps: pixels of the larger side per pixel of outline, text size relative to it and at least.
_SIDE_PER_OUTLINE, _TEXT_SHARE, _MIN_TEXT = 640, 1 / 24, 13
_WHITE, _BLACK = (255, 255, 255), (20, 20, 20)
Matrices = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class RatingPlan:
    """What is rated: `pairs` of the label set `labels`, and `pictures` of the run in the folder `run`.

    Without labels there are pairs of VOC's twenty, or none where a run is given. `sources` are vectors or model folders
    by measure. `unknown` as in `hardlook.similarity.measures`.
    """

    labels: str | None = None
    variant: str = "corrected"
    measures: tuple[str, ...] = ("path", "wup", "lin", "lesk")
    sources: Mapping[str, Path] = field(default_factory=dict)
    unknown: UnknownPolicy = "hypernym"
    pairs: int = 40
    run: Path | None = None
    pictures: int = 20
    seed: int = 0

    @property
    def label_set(self) -> str | None:
        """The labels to pair, if any."""
        return self.labels or (None if self.run else "voc20")


def make_rating_study(path: Path, plan: RatingPlan, settings: StudySettings) -> Study:
    """Sample pairs and pictures and write their study into the folder `path`; one that holds a study is an error."""
    check_no_study(path)
    _check_measures(plan)
    described: dict[str, Any] = {}
    similarities = partial(_compute_similarities, plan, described)
    pairs, pictures = SampledThings((), 0), SampledThings((), 0)
    if plan.label_set and plan.pairs:
        labels = load_label_set(plan.label_set, plan.variant)
        pairs = sample_pairs(labels, similarities(labels), plan.pairs, plan.seed)
    if plan.run and plan.pictures:
        pictures = sample_pictures(path, plan.run, similarities, plan.pictures, plan.seed)
    things = (*pairs.things, *pictures.things)
    if not things:
        raise OptionError("there is nothing to rate", remedy="ask for pairs, or pass a run with pictures")
    tasks = [*build_training_tasks(settings.training_tasks), *build_tasks(things, settings.question)]
    made = {
        "data": {"labels": plan.label_set, "variant": plan.variant, "run": plan.run and plan.run.name},
        "seed": plan.seed,
        "pairs": pairs.count(plan.pairs if plan.label_set else 0),
        "pictures": pictures.count(plan.pictures if plan.run else 0),
        "measures": described,
        "values": {thing.subject: dict(thing.values) for thing in things},
        "left_out": [asdict(note) for note in (*pairs.left_out, *pictures.left_out)],
    }
    return make_study(path, settings, tasks, made=made, checks=build_checks(settings))


def _check_measures(plan: RatingPlan) -> None:
    """Raise an error for unknown or repeated measures, and for sources of none of them, before anything is read."""
    for name in plan.measures:
        find_measure(name)
    if not plan.measures or len(set(plan.measures)) < len(plan.measures):
        raise OptionError(f"--measures {','.join(plan.measures)}: expected different measures", remedy="name each once")
    if unknown := sorted(set(plan.sources) - set(plan.measures)):
        raise OptionError(f"--source {unknown[0]}: this is none of the measures", remedy="add it to --measures")


def _compute_similarities(plan: RatingPlan, described: dict[str, Any], labels: LabelSet) -> Matrices:
    """The similarity of labels under each measure; `described` gets what `made.json` says of the measures.

    `treated` there holds the labels that a measure could not look up directly, and what was done about each.
    """
    found: dict[str, NDArray[np.float64]] = {}
    for name in plan.measures:
        result = compute_similarity(labels, name, source=plan.sources.get(name), unknown=plan.unknown, seed=plan.seed)
        found[name] = result.matrix
        measure = described.setdefault(name, {"treated": {}})
        treated = measure["treated"] | dict(result.treated)
        described[name] = {"description": result.description, "fingerprint": result.fingerprint, "treated": treated}
    return found


@dataclass(frozen=True)
class RatedThing:
    """A pair or a picture with the value in [0, 1] that each measure gives it; `labels` and `image` as in a task."""

    subject: str
    form: Literal["pair", "picture"]
    labels: tuple[str, ...]
    values: Mapping[str, float]
    image: str = ""


@dataclass(frozen=True)
class SampledThings:
    """What is rated, out of how many `candidates`, and what was left out."""

    things: tuple[RatedThing, ...]
    candidates: int
    left_out: tuple[LeftOutNote, ...] = ()

    def count(self, asked: int) -> dict[str, int]:
        """The numbers for `made.json`."""
        return {"asked": asked, "drawn": len(self.things), "of": self.candidates}


def sample_pairs(labels: LabelSet, matrices: Matrices, count: int, seed: int = 0) -> SampledThings:
    """Sample pairs of different labels, the same for all measures, with the values of each measure spread.

    `matrices` holds the (K, K) similarity of the set's K labels by measure. Labels without a meaning (`background`),
    and labels of the same wording, are left out: people could not tell what is meant.

    >>> voc = load_label_set("voc20")
    >>> drawn = sample_pairs(voc, {"path": compute_similarity(voc, "path").matrix}, 12)
    >>> len(drawn.things), drawn.candidates, drawn.left_out
    (12, 190, ())
    """
    words = [label_text(label) for label in labels]
    meaningful = [row for row, label in enumerate(labels) if not is_void_label(label)]
    kept = [row for row in meaningful if words.count(words[row]) == 1]
    notes = LeftOutNotes("")
    for row in sorted(set(range(len(labels))) - set(meaningful)):
        notes.add("labels", "they stand for no label", labels.names[row])
    for row in sorted(set(meaningful) - set(kept)):
        notes.add("labels", "another label reads alike", labels.names[row])
    if len(kept) < 2:
        raise OptionError(f"{labels.name} has {len(kept)} labels to pair", remedy="pass two labels at least")
    first, second = (np.array(kept)[rows] for rows in np.triu_indices(len(kept), k=1))
    values = np.stack([matrix[first, second] for matrix in matrices.values()])
    rng = generator(seed, "rating pairs", labels.name, labels.variant, count)
    things = []
    for at in sample_stratified(values, count, rng).tolist():
        a, b = int(first[at]), int(second[at])
        by_measure = {name: float(value) for name, value in zip(matrices, values[:, at], strict=True)}
        things.append(RatedThing(f"pair/{labels.names[a]}/{labels.names[b]}", "pair", (words[a], words[b]), by_measure))
    return SampledThings(tuple(things), len(first), notes.summarize())


def sample_pictures(
    folder: Path, run: Path, similarities: Callable[[LabelSet], Matrices], count: int, seed: int = 0
) -> SampledThings:
    """Sample images of the open-miou run in the folder `run`, and write them with the predicted labels to `folder`.

    `similarities` gives the (K, K) similarity of K labels by measure. An image's value under a measure is its open mIoU
    over the true labels in it, computed from the run's records. Images without a labelled pixel, or whose prediction
    the run did not keep, are left out.
    """
    scored = _open_run(run)
    options = cast("OpenMiouOptions", scored.options)
    sets = [load_label_set(name, options.variant) for name in (options.labels, options.pred_labels) if name]
    matrices = similarities(find_labels(read_label_names(scored.records), sets))
    values = np.stack([per_image_open_miou(scored.records, matrix) for matrix in matrices.values()])
    names: list[str] = scored.records["unit"].to_list()
    labelled = np.flatnonzero(np.isfinite(values).all(axis=0))
    rng = generator(seed, "rating pictures", scored.manifest["answers"]["fingerprint"], count)
    drawn = [int(labelled[at]) for at in sample_stratified(values[:, labelled], count, rng)]
    records = scored.whole_records([names[row] for row in drawn])
    units = {unit.id: unit for unit in scored.list_units() if unit.id in records}
    things = []
    for row in drawn:
        record = records[names[row]]
        pictures = scored.benchmark.pictures(units[names[row]], record)
        image = write_picture(folder, "images", draw_labels(pictures[-1]))
        by_measure = {name: float(value) for name, value in zip(matrices, values[:, row], strict=True)}
        things.append(RatedThing(f"picture/{names[row]}", "picture", describe_labels(record), by_measure, image))
    notes = LeftOutNotes("")
    for row in sorted(set(range(len(names))) - set(labelled.tolist())):
        notes.add("images", "no pixel of them is labelled", names[row])
    for name in scored.failures["unit"]:
        notes.add("images", "the run has no answer for them", name)
    return SampledThings(tuple(things), len(labelled), notes.summarize())


def _open_run(path: Path) -> ScoredRun:
    folder = RunFolder(path)
    benchmark = folder.read_manifest()["benchmark"]["name"]
    if benchmark != _BENCHMARK:
        what = f"this is a run of {benchmark}, which has no labels to rate"
        raise RunError(what, file=path, remedy=f"run {_BENCHMARK} first")
    # The intervals of its scores are not needed here.
    scored = score_run(folder, {"resamples": 0})
    options: Any = scored.options
    if options.gt and "images" not in options.data:
        remedy = "run it again with --data images=DIR"
        raise OptionError("the run has label maps but no images to show", file=path, remedy=remedy)
    if options.pred_words == "free":
        what = "the run has free words, and its images no list of labels in common"
        raise OptionError(what, file=path, remedy="rate a run whose predictions have labels")
    if not options.keep_predictions:
        raise OptionError("the run did not keep its predictions", file=path, remedy="run it again with them")
    return scored


def describe_labels(record: Record) -> tuple[str, ...]:
    r"""(true labels in one text, then each predicted label), by how many pixels each has, without the background.

    >>> describe_labels({"names": "cat\nsofa\ndog", "labels": 3, "cells": [2, 5, 6], "pixels": [9, 4, 1]})
    ('cat, sofa', 'dog', 'sofa')
    """
    names, width = str(record["names"]).split("\n"), int(record["labels"]) + 1
    cells = list(zip(record["cells"], record["pixels"], strict=True))
    true = _sort_by_area(names, [(cell // width, pixels) for cell, pixels in cells])
    predicted = _sort_by_area(names, [(cell % width, pixels) for cell, pixels in cells])
    return (", ".join(true) or BACKGROUND, *(predicted or [BACKGROUND]))


def _sort_by_area(names: Sequence[str], cells: Sequence[tuple[int, int]]) -> list[str]:
    sizes: Counter[str] = Counter()
    for label, pixels in cells:
        # The column after the last label means no label at all.
        if label < len(names) and names[label] != BACKGROUND:
            sizes[names[label]] += pixels
    return sorted(sizes, key=lambda name: (-sizes[name], name))


def sample_stratified(values: ArrayLike, count: int, rng: np.random.Generator, strata: int = 10) -> NDArray[np.int64]:
    """Sample `count` of n candidates, ascending, with the strata of every measure filled as evenly as possible.

    Most pairs of labels have little in common: in a uniform sample nearly all values would be low, and a measure that
    tells cat from dog would look like one that does not.

    `values` has shape (measures, n), finite. The distinct values of a measure are cut by their quantiles into `strata`
    classes (fewer where `count` or the distinct values are fewer), so that a rare value is as likely drawn as a common
    one. Candidates are taken one by one: always one whose strata hold fewest so far, summed over measures, at random
    among equals. All candidates where `count` is n or more.

    >>> alike = [[0.1] * 97 + [0.5, 0.8, 0.9]]
    >>> sample_stratified(alike, 4, np.random.default_rng(0))[-3:].tolist()
    [97, 98, 99]
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not len(table) or not np.isfinite(table).all() or count < 0:
        raise ValueError(f"values: expected finite numbers of shape (measures, n) and a count, got {table.shape}")
    n = table.shape[1]
    if count >= n:
        return np.arange(n)
    most = max(1, min(strata, count))
    classes = []
    for row in table:
        distinct, place = np.unique(row, return_inverse=True)
        classes.append(place * min(most, len(distinct)) // len(distinct))
    held = np.zeros((len(table), most), np.int64)
    lot, chosen = rng.permutation(n), np.zeros(n, np.bool_)
    for _ in range(count):
        loads = (counts[own] for counts, own in zip(held, classes, strict=True))
        load = sum(loads, np.where(chosen, n * len(table), 0))
        least = np.flatnonzero(load == load.min())
        taken = least[np.argmin(lot[least])]
        chosen[taken] = True
        for counts, own in zip(held, classes, strict=True):
            counts[own[taken]] += 1
    return np.flatnonzero(chosen)


def draw_labels(picture: Picture) -> NDArray[np.uint8]:
    """(H + legend, W, 3) uint8: the image with each label in its colour, and a legend of names below.

    Names wrap at the image's width. A picture without labels gets no legend.

    >>> bare = Picture("a", np.zeros((40, 90, 3), np.uint8), label_map=np.full((40, 90), -1, np.int32))
    >>> named = Picture("a", bare.image, label_map=np.zeros((40, 90), np.int32), label_names=["cat"])
    >>> draw_labels(bare).shape, draw_labels(named).shape[0] > 40
    ((40, 90, 3), True)
    """
    check_picture(picture)
    pixels = picture.image
    labels = list_picture_labels(picture)
    outline = max(1, round(max(pixels.shape[:2]) / _SIDE_PER_OUTLINE))
    # By position and not by number as in reports: pictures are seen one at a time, and their labels must differ.
    colours = {label: label_colour(place) for place, label in enumerate(labels)}
    for label, colour in colours.items():
        assert picture.label_map is not None
        pixels = tint_mask(pixels, picture.label_map == label, colour, LABEL_SHARE, outline)
    if not labels:
        return pixels
    return np.concatenate([pixels, _draw_legend([(picture.label_names[n], colours[n]) for n in labels], pixels)])


def _draw_legend(labels: list[tuple[str, tuple[int, int, int]]], above: NDArray[np.uint8]) -> NDArray[np.uint8]:
    from PIL import Image, ImageDraw, ImageFont

    height, width = above.shape[:2]
    size = max(_MIN_TEXT, round(max(height, width) * _TEXT_SHARE))
    font, line, gap = ImageFont.load_default(size=size), round(size * 1.5), round(size * 0.4)
    places, x, y = [], gap, 0
    for name, colour in labels:
        wide = size + gap + round(font.getlength(name)) + 2 * gap
        if x > gap and x + wide > width:
            x, y = gap, y + line
        places.append((name, colour, x, y))
        x += wide
    strip = Image.new("RGB", (width, y + line), _WHITE)
    pen = ImageDraw.Draw(strip)
    for name, colour, left, top in places:
        square = (left, top + round(size * 0.3), left + size, top + round(size * 1.3))
        pen.rectangle(square, fill=colour, outline=_BLACK)
        pen.text((left + size + gap, top + line / 2), name, fill=_BLACK, font=font, anchor="lm")
    return np.asarray(strip, np.uint8)


def build_tasks(things: Sequence[RatedThing], question: Question) -> list[RatingTask]:
    """The tasks of all things, in their order: one per measure for `fit`, one without a measure for `likeness`.

    >>> pair = RatedThing("pair/cat/dog", "pair", ("cat", "dog"), {"path": 0.2, "wup": 0.857})
    >>> [(task.id, task.measure, task.value) for task in build_tasks([pair], "fit")]
    [('t000001', 'path', 0.2), ('t000002', 'wup', 0.857)]
    >>> [(task.id, task.measure) for task in build_tasks([pair], "likeness")]
    [('t000001', '')]
    """
    tasks: list[RatingTask] = []
    for thing in things:
        shown = thing.values.items() if question == "fit" else [("", 0.0)]
        for measure, value in shown:
            number = f"t{len(tasks) + 1:06d}"
            tasks.append(RatingTask(number, thing.subject, thing.form, thing.labels, measure, value, thing.image))
    return tasks


def build_training_tasks(count: int) -> list[RatingTask]:
    """At most two pairs for the training round, one similar and one not, with values that no measure gave.

    >>> [task.labels for task in build_training_tasks(2)]
    [('apple', 'pear'), ('apple', 'bridge')]
    """
    return [
        RatingTask(f"training-{row}", f"training/{row}", "pair", labels, "", value, training=True)
        for row, (labels, value) in enumerate(_TRAINING_PAIRS[:count])
    ]


def build_checks(settings: StudySettings) -> list[RatingTask]:
    """Attention checks: a label and itself, with the value 1, and in turn, where values are shown, 0.

    >>> settings = StudySettings(kind="ratings", title="Pairs", devices=("any",), attention_checks=1, most_batches=2)
    >>> [(task.labels, task.value) for task in build_checks(settings)]
    [(('apple', 'apple'), 1.0), (('bridge', 'bridge'), 0.0)]
    """
    tasks = []
    for index in range(count_checks(settings)):
        word = _CHECK_WORDS[index % len(_CHECK_WORDS)]
        value = 0.0 if settings.question == "fit" and index % 2 else 1.0
        tasks.append(RatingTask(f"check-{index}", f"{CHECK_SUBJECT}{index}", "pair", (word, word), "", value))
    return tasks


def summarise_study(study: Study) -> dict[str, Any]:
    """What was made, as the document that `hardlook collect init ratings --json` prints."""
    made, settings = study.made, study.settings
    wanted = len(study.items) * settings.target_answers
    # A participant rates no subject twice, and no more than the batches allow.
    per_person = min(study.subjects, settings.batch_size * settings.most_batches)
    return {
        "study": str(study.path),
        "question": settings.question,
        "measures": list(made["measures"]),
        "pairs": made["pairs"],
        "pictures": made["pictures"],
        "tasks": len(study.items),
        "raters": settings.target_answers,
        "ratings_wanted": wanted,
        "participants_needed": -(-wanted // per_person),
        "treated": {name: measure["treated"] for name, measure in made["measures"].items()},
        "left_out": made["left_out"],
    }


def describe_study(document: Mapping[str, Any]) -> str:
    """The document of `summarise_study` as text for a terminal."""
    lines = [f"A study of ratings in {document['study']}: {document['tasks']} tasks, question {document['question']}."]
    for name in ("pairs", "pictures"):
        sampled = document[name]
        if sampled["drawn"]:
            lines.append(f"  {name}: {sampled['drawn']} of {sampled['of']}, under {', '.join(document['measures'])}")
    people = f"by {document['participants_needed']} people at least"
    lines.append(f"  wanted: {document['ratings_wanted']} ratings, {document['raters']} of each task, {people}")
    for name, treated in document["treated"].items():
        if treated:
            label, how = next(iter(treated.items()))
            lines.append(f"  {name}: {len(treated)} labels were not simply looked up, such as {label} ({how})")
    lines += [f"  left out: {row['count']} {row['what']}: {row['why']}" for row in document["left_out"]]
    return "\n".join([*lines, f"Next: {shlex.join(['hardlook', 'collect', 'serve', document['study']])}"])
