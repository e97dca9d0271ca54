"""`hardlook bias negatives`: what standing as background in training costs a class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import grammar, study_flags
from hardlook.commands.bias import inputs
from hardlook.commands.printing import print_json
from hardlook.errors import OptionError
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.bias.distractors import Reading
    from hardlook.bias.negatives import Association, ClassNegatives
    from hardlook.bias.training_images import Unread


@dataclass(frozen=True)
class NegativesStudy:
    """One row a class, and how its distractor share goes with `measured` ("drop", "one-shot IoU", "" for nothing)."""

    rows: Sequence[ClassNegatives]
    images: int
    reading: Reading
    measured: str
    association: Association | None
    model: str
    pairs: str
    unread: Sequence[Unread] = ()

    def values(self) -> list[float]:
        """The measurement of each class, NaN where there is none."""
        chosen = [row.drop if self.measured == "drop" else row.one_shot for row in self.rows]
        return [float("nan") if one is None else one.value for one in chosen]


def negatives(
    data: study_flags.Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for negatives.html and negatives.json.")],
    split: study_flags.Split = None,
    labels: study_flags.Labels = None,
    folds: inputs.Folds = 4,
    run: study_flags.Run = None,
    attributes: Annotated[
        Path | None, typer.Option("--attributes", help="attributes.csv or test_stats.csv: supervised IoU an image.")
    ] = None,
    reading: Annotated[
        list[str] | None, typer.Option("--reading", help="distractors=paper (of images) or released (of masks).")
    ] = None,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
) -> None:
    """Set the share of training images in which a class stands as background against how much it loses.

    Without --run the one-shot IoU is that of the table's column oss_perf; without either only shares are shown.

    [bold]Example[/bold]

      hardlook bias negatives --data voc=VOC2012 --run runs/toss --attributes attributes.csv --out negatives
    """
    study = study_negatives(
        data, labels, split, folds, run, attributes, reading_of(grammar.pairs(reading, "--reading")), seed
    )
    document = write_negatives(study, out, seed)
    if as_json:
        print_json(document)
    else:
        typer.echo(f"{document['in_words']}\n\npage: {out / 'negatives.html'}")
    inputs.end_with(study.unread, out / "negatives.json")


def reading_of(given: dict[str, str]) -> Reading:
    """The reading of percent distractors that was asked for."""
    from hardlook.bias.distractors import READINGS

    unknown = sorted(set(given) - {"distractors"})
    if unknown:
        raise OptionError(f"--reading {unknown[0]}: there is no such reading", remedy="it has: distractors")
    value = given.get("distractors", READINGS[0])
    for known in READINGS:
        if value == known:
            return known
    raise OptionError(f"--reading distractors={value}: no such value", remedy=f"one of {', '.join(READINGS)}")


def study_negatives(
    data: list[str] | None,
    labels: Path | None,
    split: str | None,
    folds: int,
    run: Path | None,
    attributes: Path | None,
    reading: Reading,
    seed: int,
) -> NegativesStudy:
    """Count, read and correlate."""
    from hardlook.bias.attribute_file import attribute_frame
    from hardlook.bias.class_folds import fold_of, split_of_fold
    from hardlook.bias.distractors import distractor_shares
    from hardlook.bias.negatives import associate, class_negatives

    opened = inputs.open_images(data, labels, split)
    source, images = opened.source, opened.images
    tested = fold_of(source.classes, folds)
    training = {name: split_of_fold(source.classes, fold, folds).training for name, fold in tested.items()}
    shares = distractor_shares((one.classes for one in images), training, seed=seed)
    answers, model = inputs.read_run(run) if run else (None, "")
    table = attribute_frame(attributes) if attributes else None
    rows = class_negatives(shares, tested, answers, table, seed=seed)
    measured = ""
    if any(row.drop for row in rows):
        measured = "drop"
    elif any(row.one_shot for row in rows):
        measured = "one-shot IoU"
    if answers is None and measured:
        model = f"the one-shot model of {attributes.name}" if attributes else ""
    pairs = answers.pairs if answers else "images of the table"
    found = NegativesStudy(rows, len(images), reading, measured, None, model, pairs, opened.unread)
    if not measured:
        return found
    x = [row.distractors.share(reading).value for row in rows]
    return replace(found, association=associate(x, found.values(), seed=seed, key=measured))


def write_negatives(study: NegativesStudy, out: Path, seed: int) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    from hardlook.commands.bias.negatives_page import negatives_document, negatives_page
    from hardlook.runs.folder import write_whole

    document = negatives_document(study, seed)
    write_whole(out / "negatives.json", json_text(document))
    write_whole(out / "negatives.html", negatives_page(study, document))
    return document
