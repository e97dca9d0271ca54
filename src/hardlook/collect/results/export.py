"""Export of a study's results to files: a clicks study here, reviews and ratings in their own modules."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from hardlook.collect.results.clicks import CollectedClicks, collect_clicks, list_all_clicks, write_pixel_clicks
from hardlook.collect.results.clicks_report import ClickGalleries, build_document, build_sections
from hardlook.collect.results.ratings import export_ratings
from hardlook.collect.results.reviews import export_review
from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import PREVIOUS_MASKS
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.folder import write_atomically
from hardlook.metrics.click_sets import WassersteinReading
from hardlook.report.page import render_study

if TYPE_CHECKING:
    from hardlook.collect.results.exclusion_rules import ExclusionRules
    from hardlook.collect.store.store import Store

REPORT, PAGE = "report.json", "page.html"

CLICKS, PREVIEWS, EVERY = "clicks.csv", "previews.csv", "every-click.csv"

PARTICIPANTS, IMAGES = "participants.csv", "images.csv"


def export_study(
    study: Study,
    store: Store,
    out: Path,
    rules: ExclusionRules | None = None,
    *,
    mode: str | None = None,
    all_clicks: bool = False,
    wd: WassersteinReading = "released",
    advance: Callable[[int], None] = lambda tasks: None,
) -> dict[str, Any]:
    """Write the results of a study of any kind into a folder and return the content of report.json.

    Files of an earlier export are replaced. Without `rules` those of the dashboard apply; `mode` and `all_clicks`
    choose clicks of a clicks study, `wd` is the reading of its WD.
    """
    _check_folder(study, out)
    kind = study.settings.kind
    if kind == "clicks":
        collected = collect_clicks(study, store, rules, mode=mode, all_clicks=all_clicks, wd=wd, advance=advance)
        return write_clicks_study(collected, out)
    given = [flag for flag, value in (("mode", mode), ("all-clicks", all_clicks)) if value]
    if given:
        raise OptionError(f"--{', --'.join(given)} with a study of kind {kind}", remedy="these are for clicks studies")
    return (export_review if kind == "review" else export_ratings)(study, store, out, rules)


def write_clicks_study(collected: CollectedClicks, out: Path) -> dict[str, Any]:
    """Write all files of a clicks study; return the document of report.json."""
    study, answers, previews = collected.study, collected.validated.answers, collected.previews
    masks = study.file(PREVIOUS_MASKS)
    optional = {PREVIEWS: previews is not None, PREVIOUS_MASKS: masks.is_dir()}
    listed = (CLICKS, PREVIEWS, EVERY, PARTICIPANTS, IMAGES, PREVIOUS_MASKS, REPORT, PAGE)
    document = build_document(collected, [name for name in listed if optional.get(name, True)])
    galleries = ClickGalleries(collected)
    page = render_study(
        build_sections(collected, galleries),
        title=f"{study.settings.title}: what was collected",
        kind="Quality report",
        summary="Clicks of people: how good they are, and whether crowds differ.",
        provenance={name: document[name] for name in ("schema", "hardlook", "study", "readings", "rules", "files")},
        pictures=galleries.pictures,
    )
    # Only now, when nothing can fail any more: a folder holds all files of one export, this one or the one before.
    out.mkdir(parents=True, exist_ok=True)
    write_pixel_clicks(out / CLICKS, collected.table)
    if previews:
        write_pixel_clicks(out / PREVIEWS, previews.table)
    every = list_all_clicks(study, answers, collected.excluded, collected.numbers, collected.mode)
    write_atomically(out / EVERY, every.write_csv())
    why = pl.col("participant").replace_strict(collected.excluded, default="", return_dtype=pl.String)
    people = collected.quality.with_columns(why.alias("excluded")).drop("participant")
    write_atomically(out / PARTICIPANTS, people.write_csv())
    write_atomically(out / IMAGES, collected.images.drop("item").write_csv())
    if masks.is_dir():
        shutil.copytree(masks, out / PREVIOUS_MASKS, dirs_exist_ok=True)
    write_atomically(out / REPORT, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_atomically(out / PAGE, page)
    return document


def _check_folder(study: Study, out: Path) -> None:
    """Raise an error for the study's own folder, and for one with the results of another study."""
    if out.resolve() == study.path.resolve():
        raise OptionError("--out is the study's own folder", remedy="choose another, such as a folder inside it")
    study.refuse_own_file(out)
    try:
        fingerprint = json.loads((out / REPORT).read_text(encoding="utf-8"))["study"]["fingerprint"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    if fingerprint != study.fingerprint:
        raise DataError("the folder holds the results of another study", file=out, remedy="choose another --out")
