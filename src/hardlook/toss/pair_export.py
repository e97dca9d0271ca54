"""The pairs of a run as files, for models that do not run in Python: images, masks of the supports, and a table.

| file | content |
|---|---|
| `pairs.csv` | per unit the files of its query, supports and masks, its fold and class, and the file to answer with |
| `images/` | PNG, 8 bits per channel; the moved queries of L1 and the black supports of L6 too |
| `masks/` | PNG, 255 where a support shows the class, else 0 |
| `export.json` | the benchmark and its options |

An image that many pairs share is written once. Stored answers are masks in the folder of `--pred`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.options import BenchmarkOptions, fields_that_change
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.runs.plan import list_units
from hardlook.harness.runs.progress import NoProgress
from hardlook.toss.evaluation import make_context
from hardlook.toss.pairs import OneShotPair

SCHEMA = "hardlook.pairs/1"
COLUMNS = ("unit", "query", "supports", "masks", "fold", "class_id", "class", "training_classes", "answer")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ExportedPairs:
    """What was written: how many units and files, and the units whose files could not be read, with the reason."""

    units: int
    images: int
    masks: int
    failed: dict[str, str]


@dataclass
class _Files:
    """The files of one kind: each content has one name, known by what it was made from."""

    folder: Path
    names: dict[object, str] = field(default_factory=dict)
    taken: dict[str, object] = field(default_factory=dict)

    def find(self, key: object, stem: str, make: Callable[[], NDArray[np.uint8]]) -> str:
        """The file of `key`, such as `images/2008_000002.png`; it is made and written the first time."""
        if key not in self.names:
            safe, number = _UNSAFE.sub("-", stem), 2
            while self.taken.setdefault(name := safe if number == 2 else f"{safe}-{number - 1}", key) != key:
                number += 1
            path = self.folder / f"{name}.png"
            if not path.exists():
                write_atomically(path, _encode_png(make()))
            self.names[key] = f"{self.folder.name}/{name}.png"
        return self.names[key]


def export_pairs(
    benchmark: Benchmark,
    options: BenchmarkOptions,
    out: Path,
    show_progress: Callable[[int, int], Any] | None = None,
) -> ExportedPairs:
    """Write the pairs of a benchmark on one-shot pairs into a folder; the same call again completes it."""
    units = list_units(benchmark, options)
    _claim_folder(out, benchmark, options)
    images, masks = _Files(out / "images"), _Files(out / "masks")
    rows, failed = [], {}
    with show_progress(len(units), 0) if show_progress else NoProgress() as progress:
        for unit in units:
            try:
                rows.append(_write_unit(benchmark, unit, images, masks))
            except (DataError, OSError) as error:
                failed[unit.id] = str(error)
            progress.advance(1, 0)
    write_atomically(out / "pairs.csv", _format_table(rows))
    return ExportedPairs(len(rows), len(images.names), len(masks.names), failed)


def _claim_folder(out: Path, benchmark: Benchmark, options: BenchmarkOptions) -> None:
    """Write `export.json`; an error where the folder holds other pairs or other files."""
    kept = fields_that_change(type(options), "units") | fields_that_change(type(options), "answers")
    chosen = options.model_dump(mode="json", include=kept - {"keep_predictions", "pred", "gt"})
    document = {"schema": SCHEMA, "benchmark": benchmark.card.name, "version": benchmark.card.version}
    text = json.dumps({**document, "options": chosen}, indent=1) + "\n"
    about = out / "export.json"
    if out.exists() and not out.is_dir():
        raise OptionError("--out is a file", file=out, remedy="give a folder")
    if about.is_file():
        if about.read_text(encoding="utf-8") != text:
            raise OptionError("the folder holds other pairs", file=about, remedy="give another --out")
    elif out.is_dir() and any(out.iterdir()):
        raise OptionError("the folder holds other files", file=out, remedy="give an empty or a new folder for --out")
    write_atomically(about, text)


def _write_unit(benchmark: Benchmark, unit: Unit, images: _Files, masks: _Files) -> tuple[str, ...]:
    """Write the files of a unit that are not written yet; its row of the table."""
    pair: OneShotPair = unit.payload
    read: list[OneShotPair] = []

    def prepared() -> OneShotPair:
        # Most units share all their files with earlier ones, and are not read at all.
        if not read:
            read.append(benchmark.prepare(unit).payload)
        return read[0]

    settings = pair.settings
    source, sized = settings.source, (settings.key, settings.size)
    condition = pair.slices.get("condition", "") if settings.saliency else ""
    image = source.image_of(pair.query)
    changes = [f"xf{pair.transform}"] if pair.transform else []
    changes += [str(condition)] if condition == "suppressed" else []
    # A transform depends on the mask of the token's class too.
    query = images.find(
        (*sized, pair.query if pair.transform else image, *changes),
        "-".join([*changes, pair.query if pair.transform else image]),
        lambda: _require(prepared().image),
    )
    supports, shown = [], []
    for place, token in enumerate(pair.supports):
        blank_image, blank_mask = pair.content in ("no image", "nothing"), pair.content in ("no mask", "nothing")
        name = source.image_of(token)
        supports.append(
            images.find(
                (*sized, name, *(["black"] if blank_image else [])),
                f"black-{name}" if blank_image else name,
                lambda place=place: prepared().support[place].image,  # type: ignore[misc]
            )
        )
        shown.append(
            masks.find(
                (*sized, name if blank_mask else token, *(["empty"] if blank_mask else [])),
                f"empty-{name}" if blank_mask else token,
                lambda place=place: prepared().support[place].mask.astype(np.uint8) * 255,  # type: ignore[misc]
            )
        )
    context = make_context(pair)
    return (
        unit.id,
        query,
        " ".join(supports),
        " ".join(shown),
        "" if context.fold is None else str(context.fold),
        "" if context.class_id is None else str(context.class_id),
        context.class_name or "",
        ";".join(context.training_classes or ()),
        f"{unit.id}.png",
    )


def _require(image: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    assert image is not None
    return image


def _encode_png(array: NDArray[np.uint8]) -> bytes:
    stored = array[..., ::-1] if array.ndim == 3 else array
    done, content = cv2.imencode(".png", np.ascontiguousarray(stored))
    if not done:
        raise DataError(f"an array of shape {array.shape} cannot be written as PNG", remedy="check the image")
    return content.tobytes()


def _format_table(rows: Sequence[tuple[str, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return text.getvalue()
