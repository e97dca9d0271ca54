"""`hardlook bias select`: a training list whose salient things are labelled (SGTSS), and what it keeps and drops."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hardlook.commands import grammar, study_flags
from hardlook.commands.bias import inputs
from hardlook.commands.printing import print_json
from hardlook.errors import DataError, OptionError
from hardlook.export.plain_values import json_text

if TYPE_CHECKING:
    from hardlook.bias.class_folds import ClassSplit
    from hardlook.bias.salient_masks import SalientMasks
    from hardlook.bias.selection import Coverage, Selection
    from hardlook.bias.selection_summary import SelectionSummary
    from hardlook.bias.training_images import LabelledImage, Unread
    from hardlook.data.class_masks import ClassMasks

KEPT_LIST, DROPPED_LIST, LEAVE_OUT_LIST = "kept.txt", "dropped.txt", "leave-out.txt"


@dataclass(frozen=True)
class SelectStudy:
    """All that the page and the lists are made from; `left_out` is None where it was not asked for."""

    source: ClassMasks
    images: Sequence[LabelledImage]
    split: ClassSplit
    rows: Sequence[Coverage]
    unread: Sequence[Unread]
    selection: Selection
    summary: SelectionSummary
    left_out: tuple[str, ...] | None
    salient: SalientMasks
    model: str

    @property
    def listed(self) -> int:
        """How many images there are, readable or not."""
        return len({one.image for one in self.images} | {one.image for one in self.unread})


def select(
    data: study_flags.Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for the lists, selection.html and selection.json.")],
    saliency: Annotated[str, typer.Option("--saliency", help="A saliency model.")] = "u2netp",
    saliency_arg: Annotated[
        list[str] | None, typer.Option("--saliency-arg", help="KEY=VALUE for the saliency model; repeatable.")
    ] = None,
    fold: Annotated[int | None, typer.Option("--fold", min=0, help="The fold that is tested; others train.")] = None,
    classes: Annotated[
        str | None, typer.Option("--classes", help="Training classes by name, instead of --fold: a,b,c.")
    ] = None,
    folds: inputs.Folds = 4,
    split: study_flags.Split = None,
    labels: study_flags.Labels = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Also write the list without any test class (an oracle).")
    ] = False,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
    quiet: study_flags.Quiet = False,
) -> None:
    """Keep the training images whose salient region is of training classes; drop those below the median.

    Writes kept.txt and dropped.txt, one image id a line, which any trainer can read. Exit 3 when an image could not
    be read.

    [bold]Example[/bold]

      hardlook bias select --data voc=VOC2012 --split train --saliency u2netp --fold 0 --out selection
    """
    from hardlook.bias.class_folds import split_of_fold, split_of_training

    if (fold is None) == (classes is None):
        raise OptionError("expected one of --fold and --classes", remedy="--fold 0, or --classes cat,dog")
    opened = inputs.open_images(data, labels, split)
    source = opened.source
    if fold is not None:
        chosen = split_of_fold(source.classes, fold, folds)
    else:
        names = [name.strip() for name in (classes or "").split(",") if name.strip()]
        chosen = split_of_training(source.classes, names)
    args = grammar.pairs(saliency_arg, "--saliency-arg")
    study = study_selection(opened, chosen, saliency, args, leave_out=leave_out, seed=seed, quiet=quiet)
    document = write_selection(study, out, {name: str(path) for name, path in opened.paths.items()})
    if as_json:
        print_json(document)
    else:
        typer.echo(document["in_words"])
        typer.echo(f"\nlists: {out / KEPT_LIST}, {out / DROPPED_LIST}\npage: {out / 'selection.html'}")
    inputs.end_with(study.unread, out / "selection.json")


def study_selection(
    opened: inputs.OpenedImages,
    split: ClassSplit,
    model: str,
    args: dict[str, str],
    *,
    leave_out: bool,
    seed: int,
    quiet: bool,
) -> SelectStudy:
    """Find what is salient in every training image and apply the rule."""
    from hardlook.bias import selection as rule
    from hardlook.bias.salient_masks import SalientMasks, default_folder
    from hardlook.bias.selection_summary import summarise_selection
    from hardlook.bias.training_images import measure_coverage, training_images
    from hardlook.models.identity import identify
    from hardlook.models.registry import build
    from hardlook.runs.progress import Silent, progress_for

    source, images = opened.source, opened.images
    training = training_images(images, split)
    if not images and opened.unread:
        first = opened.unread[0]
        raise DataError(f"no image could be read; the first: {first.reason}", unit=first.image, remedy="check --data")
    if not training:
        raise DataError("no image holds a training class", remedy=f"the training classes: {', '.join(split.training)}")
    built = build(model, role="saliency", args=args)
    identity = identify(built, name=model, role="saliency", args=args).fingerprint()
    salient = SalientMasks(built, identity, default_folder())
    if quiet:
        rows, unread = measure_coverage(source, training, split, salient, Silent().advance)
    else:
        with progress_for(len(training), 0) as progress:
            rows, unread = measure_coverage(source, training, split, salient, progress.advance)
    if not rows:
        raise DataError(f"no image could be read; the first: {unread[0].reason}", unit=unread[0].image)
    selected = rule.select(rows)
    summary = summarise_selection(rows, selected, split, seed=seed)
    left = rule.leave_out(rows, split.test) if leave_out else None
    return SelectStudy(source, images, split, rows, (*opened.unread, *unread), selected, summary, left, salient, model)


def write_selection(study: SelectStudy, out: Path, paths: dict[str, str]) -> dict[str, Any]:
    """Write the lists, the table, the page and the numbers; return the numbers."""
    from hardlook.commands.bias.select_page import selection_document, selection_page
    from hardlook.runs.folder import write_whole

    document = selection_document(study, paths)
    lists = {KEPT_LIST: study.selection.kept, DROPPED_LIST: study.selection.dropped}
    if study.left_out is not None:
        lists[LEAVE_OUT_LIST] = study.left_out
    for name, images in lists.items():
        write_whole(out / name, "".join(f"{image}\n" for image in images))
    write_whole(out / "selection.csv", _table(study))
    write_whole(out / "selection.json", json_text(document))
    write_whole(out / "selection.html", selection_page(study, document))
    return document


def _table(study: SelectStudy) -> str:
    kept = set(study.selection.kept)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("image", "K", "salient_pixels", "covered_pixels", "kept"))
    for row in study.rows:
        share = f"{row.share:.6f}" if row.salient else ""
        writer.writerow((row.image, share, row.salient, row.covered, int(row.image in kept)))
    return text.getvalue()
