"""The quality report of a clicks study as numbers (`report.json`) and in words; ids stay out of both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

import hardlook
from hardlook.collect.results.answer_classes import CLASSES, VALID
from hardlook.collect.results.click_comparisons import TEXT
from hardlook.collect.results.collected_clicks import NO_RULES, CollectedClicks
from hardlook.report.numerals import counted, numeral

SCHEMA = "hardlook.collected-clicks/1"


def clicks_document(collected: CollectedClicks, files: tuple[str, ...]) -> dict[str, Any]:
    """All numbers of the report; nothing in it depends on when it was made."""
    study, judged = collected.study, collected.judged
    previews = collected.previews
    return {
        "schema": SCHEMA,
        "hardlook": hardlook.__version__,
        "study": {
            "title": study.settings.title,
            "kind": study.settings.kind,
            "fingerprint": study.fingerprint,
            "round": study.made.get("round", 1),
            "modes": list(study.settings.modes),
            "devices": list(study.settings.devices),
            "batch_size": study.settings.batch_size,
            "least_inside": study.settings.least_inside,
            "click_radius": study.settings.click_radius,
        },
        "mode": collected.mode,
        "all_clicks": collected.all_clicks,
        "readings": {"wd": collected.wd},
        "in_words": words(collected),
        "answers": {"all": judged.answers.height, **collected.answer_classes},
        "batches": {"all": judged.batches.height, **collected.batch_classes},
        "written": {
            "clicks": len(collected.table),
            "clipped": collected.table.clipped,
            "previews": len(previews.table) if previews else None,
            "previews_left_out": previews.left_out if previews else None,
        },
        "judged_otherwise": {"answers": judged.changed_answers, "batches": judged.changed_batches},
        "rules": {"from": collected.rules_from, **_without_ids(collected)},
        "excluded": {str(collected.numbers[one]): why for one, why in collected.excluded.items()},
        "unknown_participants": len(collected.unknown),
        "participants": _rows(collected.quality.drop("participant")),
        "images": _rows(collected.images.drop("item")),
        "pc_against_mobile": collected.devices_told,
        "modes_against_text": collected.modes_told,
        "left_out_of_study": list(study.made.get("left_out", ())),
        "files": list(files),
    }


def words(collected: CollectedClicks) -> list[str]:
    """The report in a few sentences."""
    judged, answers = collected.judged, collected.answer_classes
    total = judged.answers.height
    if not total:
        return ["There are no answers yet. The files have their columns and no rows."]
    active = collected.quality.filter(pl.col("answers") > 0).height
    left = ", ".join(f"{numeral(answers[name], 0)} {name}" for name in CLASSES if name != VALID and answers[name])
    told = [
        f"{counted(total, 'answer')} of {counted(active, 'participant')}: {numeral(answers[VALID], 0)} valid"
        + (f"; left out: {left}." if left else "; none left out.")
    ]
    if collected.all_clicks:
        told.append(f"clicks.csv holds {counted(len(collected.table), 'click')}, invalid ones too.")
    if len(collected.study.settings.modes) > 1 and collected.mode is None:
        told.append("clicks.csv holds the clicks of all display modes together; `--mode NAME` takes those of one.")
    if collected.previews and collected.previews.twins:
        stems = counted(len(collected.previews.twins), "full stem")
        told.append(
            f"{stems} of several datasets {'is' if len(collected.previews.twins) == 1 else 'are'} left out of "
            f"previews.csv, with {counted(collected.previews.left_out, 'click')}: a mode cannot tell them apart."
        )
    if judged.changed_answers or judged.changed_batches:
        told.append(
            f"{counted(judged.changed_answers, 'answer')} and "
            f"{counted(judged.changed_batches, 'batch', 'batches')} are judged otherwise than when they came in: "
            "settings or masks have changed since."
        )
    if collected.rules_from != NO_RULES:
        people = counted(len(collected.excluded), "participant")
        told.append(f"Rules of exclusion from {collected.rules_from} leave out {people}.")
    if collected.unknown:
        told.append(f"The rules name {counted(len(collected.unknown), 'participant')} that the study does not know.")
    return [*told, *_compared(collected)]


def _compared(collected: CollectedClicks) -> list[str]:
    told = []
    for mode, row in collected.devices_told.items():
        shown = f" ({mode})" if len(collected.devices) > 1 else ""
        told.append(f"PC against mobile{shown}: {_verdict(row)}")
    for mode, row in collected.modes_told.items():
        told.append(f"{mode} against {TEXT}: {_verdict(row)}")
    return told


def _verdict(row: Mapping[str, Any]) -> str:
    if not row["stems"]:
        return "no image has ten clicks of both."
    ks, pl1, wd = (row[name]["value"] for name in ("ks", "pl1", "wd"))
    return f"alike on {100 * ks:.0f} % of {counted(row['stems'], 'image')} by KS, PL1 {pl1:.3f}, WD {wd:.3f}."


def _without_ids(collected: CollectedClicks) -> dict[str, Any]:
    rules = collected.rules.set_rules()
    if "participants" in rules:
        named = (collected.numbers.get(name, name) for name in rules["participants"] if name not in collected.unknown)
        rules["participants"] = sorted({str(name) for name in named}, key=int)
    return rules


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]
