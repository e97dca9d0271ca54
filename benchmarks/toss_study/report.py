"""What the study found: scores with intervals, what each selection of training images changes, and support ablations.

Every number is read from the run folders; nothing here is computed that `hardlook` does not compute for any run.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hardlook as hl
from hardlook.toss.published import read_numbers
from toss_study.plan import SELECTIONS

SCORES = ("lca", "hca", "scs", "salient", "non-salient")
PRINTED = {"simpropnet": "Baseline", "rpmm": "RPMM", "pfenet": "PFENet", "repri": "RePRI", "hsnet": "HSNet"}
"""The rows of TOSS's table 4: networks trained at full scale, on all published pairs."""


def find_published(network: str, score: str) -> float | None:
    """What the paper prints for a network, as a share; None where it prints nothing.

    >>> find_published("pfenet", "lca")
    0.5975
    """
    if network not in PRINTED or score not in ("lca", "hca", "scs"):
        return None
    return read_numbers().scores[PRINTED[network]][score]


def list_runs(study: Path, kind: str) -> dict[str, Any]:
    """The finished runs of a benchmark by the name of their training."""
    folders = sorted((study / "runs").glob(f"*-{kind}"))
    return {folder.name.removesuffix(f"-{kind}"): hl.load(folder) for folder in folders if is_finished(folder)}


def is_finished(folder: Path) -> bool:
    """Whether the run has its scores."""
    return (folder / "scores.json").is_file()


def list_scores(runs: dict[str, Any]) -> list[dict[str, Any]]:
    """A row per run and score: value, interval, number of pairs, and the published value where there is one."""
    rows = []
    for name, run in runs.items():
        for score in (one for one in SCORES if one in run.scores):
            found = run.scores[score]
            printed = find_published(name.split("-")[0], score)
            rows.append(
                {"training": name, "score": score, "value": found.value, "low": found.low, "high": found.high,
                 "pairs": found.n, "published": printed}
            )  # fmt: skip
    return rows


def compare_selections(runs: dict[str, Any]) -> list[dict[str, Any]]:
    """Paired differences of each remedy from the training on all images, per network and score."""
    rows = []
    networks = dict.fromkeys(name.split("-")[0] for name in runs)
    for network in networks:
        base = runs.get(f"{network}-{SELECTIONS[0]}-seed0")
        for selection in SELECTIONS[1:]:
            other = runs.get(f"{network}-{selection}-seed0")
            if base is None or other is None:
                continue
            compared = hl.compare(base, other, names=("all", selection))
            for row in compared.differences.iter_rows(named=True):
                rows.append({"network": network, "selection": selection, **row})
    return rows


def list_ablations(runs: dict[str, Any]) -> list[dict[str, Any]]:
    """Every headline score of the bias studies."""
    rows = []
    for name, run in runs.items():
        for score, found in run.scores.items():
            rows.append({"training": name, "score": score, "value": found.value, "low": found.low, "high": found.high})
    return rows


def write_report(study: Path, docs: Path | None) -> str:
    """Write the tables as CSV beside the study and, where `docs` is given, there; the scores as text."""
    toss = list_runs(study, "toss")
    tables = {
        "scores": list_scores(toss),
        "selections": compare_selections(toss),
        "support": list_ablations(list_runs(study, "support")),
        "saliency": list_ablations(list_runs(study, "saliency")),
    }
    for name, rows in tables.items():
        text = format_csv(rows)
        (study / f"{name}.csv").write_text(text)
        if docs is not None and rows:
            (docs / f"toss-study-{name}.csv").write_text(text)
    if len(toss) > 1:
        ranked = hl.compare(*toss.values(), names=list(toss), out=study / "comparison")
        tables["ranking"] = list(ranked.ranking.iter_rows(named=True))
    return "\n".join(
        f"{row['training']:32} {row['score']:12} {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        for row in tables["scores"]
    )


def format_csv(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as CSV; empty without any."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()})
    return text.getvalue()
