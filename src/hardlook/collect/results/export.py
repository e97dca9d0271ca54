"""What came in as files: a clicks study here, reviews and ratings by their own modules."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from hardlook.collect.results.clicks_file import every_click, write_whole_numbers
from hardlook.collect.results.collected_clicks import CollectedClicks, collect_clicks
from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import PREVIOUS
from hardlook.errors import DataError, OptionError
from hardlook.metrics.click_distances import WassersteinReading
from hardlook.runs.folder import write_whole

if TYPE_CHECKING:
    from hardlook.collect.results.exclusions import ExclusionRules
    from hardlook.collect.store.store import Store

REPORT, PAGE = "report.json", "page.html"
CLICKS, PREVIEWS, EVERY = "clicks.csv", "previews.csv", "every-click.csv"
PARTICIPANTS, IMAGES = "participants.csv", "images.csv"


@dataclass(frozen=True)
class ExportReport:
    """What was written: `document` is that of report.json, `words` say it in sentences."""

    folder: Path
    document: Mapping[str, Any]

    @property
    def words(self) -> list[str]:
        """The report in a few sentences."""
        return list(self.document.get("in_words", ()))


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
) -> ExportReport:
    """Write the results of a study of any kind into a folder; files of an earlier export are replaced.

    Without `rules` those of the dashboard run; `mode` and `all_clicks` choose clicks of a clicks study,
    whose WD has the reading `wd`.
    """
    _refuse_folder(study, out)
    kind = study.settings.kind
    if kind == "clicks":
        collected = collect_clicks(study, store, rules, mode=mode, all_clicks=all_clicks, wd=wd, advance=advance)
        return ExportReport(out, write_clicks_study(collected, out))
    given = [flag for flag, value in (("mode", mode), ("all-clicks", all_clicks)) if value]
    if given:
        raise OptionError(f"--{', --'.join(given)} with a study of kind {kind}", remedy="these are for clicks studies")
    if kind == "review":
        from hardlook.collect.results.review import export_review

        return ExportReport(out, export_review(study, store, out, rules))
    from hardlook.collect.results.ratings import export_ratings

    return ExportReport(out, export_ratings(study, store, out, rules))


def write_clicks_study(collected: CollectedClicks, out: Path) -> dict[str, Any]:
    """Write all files of a clicks study; return the document of report.json."""
    from hardlook.collect.results.click_gallery import ClickGalleries
    from hardlook.collect.results.clicks_report import clicks_document
    from hardlook.collect.results.quality_page import quality_sections
    from hardlook.report.page import render_study

    study, answers = collected.study, collected.judged.answers
    masks = study.file(PREVIOUS)
    copied = masks.is_dir()
    files = (CLICKS, *((PREVIEWS,) if collected.previews else ()), EVERY, PARTICIPANTS, IMAGES)
    document = clicks_document(collected, (*files, *((PREVIOUS,) if copied else ()), REPORT, PAGE))
    galleries = ClickGalleries(collected)
    sections = quality_sections(collected, galleries)
    page = render_study(
        sections,
        title=f"{study.settings.title}: what was collected",
        kind="Quality report",
        summary="Clicks of people: how good they are, and whether crowds differ.",
        provenance={name: document[name] for name in ("schema", "hardlook", "study", "readings", "rules", "files")},
        pictures=galleries.pictures,
    )
    # Everything that can fail is done: a folder has all files of one export or those of the one before.
    out.mkdir(parents=True, exist_ok=True)
    write_whole_numbers(out / CLICKS, collected.table)
    if collected.previews:
        write_whole_numbers(out / PREVIEWS, collected.previews.table)
    every = every_click(study, answers, collected.excluded, collected.numbers, collected.mode)
    write_whole(out / EVERY, every.write_csv())
    why = pl.col("participant").replace_strict(collected.excluded, default="", return_dtype=pl.String)
    people = collected.quality.with_columns(why.alias("excluded")).drop("participant")
    write_whole(out / PARTICIPANTS, people.write_csv())
    write_whole(out / IMAGES, collected.images.drop("item").write_csv())
    if copied:
        shutil.copytree(masks, out / PREVIOUS, dirs_exist_ok=True)
    write_whole(out / REPORT, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_whole(out / PAGE, page)
    return document


def _refuse_folder(study: Study, out: Path) -> None:
    """Two studies in one folder would mix, and a study's own folder is no place for its results."""
    if out.resolve() == study.path.resolve():
        raise OptionError("--out is the study's own folder", remedy="choose another, such as a folder inside it")
    try:
        there = json.loads((out / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    other = there.get("study") if isinstance(there, dict) else None
    printed = other.get("fingerprint") if isinstance(other, dict) else None
    if printed not in (None, study.fingerprint):
        raise DataError("the folder holds the results of another study", file=out, remedy="choose another --out")
