"""The page and the document of `hardlook clicks train`: a curve per metric, every epoch, and heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hardlook.errors import HardlookError
from hardlook.harness.rounding import format_fixed
from hardlook.harness.runs.folder import write_atomically
from hardlook.harness.scorecard import note_to_json
from hardlook.harness.sections import CurveChart, Example, Gallery, Line, Picture, Section, Table
from hardlook.metrics.regions import crop_around
from hardlook.rclicks.click_maps.colours import draw_heat_map
from hardlook.rclicks.click_models.clickability import Clickability
from hardlook.rclicks.training.loop import TrainingResult
from hardlook.rclicks.training.settings import TrainingSettings
from hardlook.rclicks.training.split import TrainingSplit, TrainingStem
from hardlook.rclicks.training.target_maps import click_map
from hardlook.rclicks.user_clicks.loading import build_left_out_section, describe_missing_masks, describe_unread
from hardlook.rclicks.user_clicks.readings import TRAINING, reading_table
from hardlook.report.formatting import format_count
from hardlook.report.json_values import dump_json

SHOWN = 8


def write_training(
    settings: TrainingSettings,
    device: str,
    split: TrainingSplit,
    result: TrainingResult,
    out: Path,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the page and the numbers; return the numbers."""
    import hardlook
    from hardlook.report.page import render_study

    words = describe_training(result, split)
    document = {
        "schema": "hardlook.clicks-training/1",
        "hardlook": hardlook.__version__,
        "settings": dict(given),
        "in_words": words,
        "best_epoch": result.best_epoch,
        "checkpoint": result.checkpoint.name,
        "history": [asdict(record) for record in result.history],
        "left_out": [note_to_json(note) for note in split.left_out],
        "unread": [{"stem": key, "why": why} for key, why in split.unread],
    }
    count = len(split.validation)
    places = np.linspace(0, count - 1, min(SHOWN, count)).round().astype(int).tolist()
    shown = [split.validation[place] for place in places]
    page = render_study(
        build_sections(result, split, shown, words, settings.mask_sigma),
        title="A clickability network",
        summary="A network that says where people click, trained on click maps.",
        provenance={name: document[name] for name in ("schema", "hardlook", "settings")},
        pictures=draw_samples(shown, result.checkpoint, settings, device),
    )
    write_atomically(out / "training.json", dump_json(document))
    write_atomically(out / "page.html", page)
    return document


def describe_training(result: TrainingResult, split: TrainingSplit) -> list[str]:
    """The main results in sentences."""
    best, first = result.history[result.best_epoch - 1], result.history[0]
    who = "simulated people" if split.planted else "people"
    words = [
        f"Trained on the clicks of {who} on {format_count(len(split.training), 'stem')}, validated on "
        f"{len(split.validation)} of other images. Epoch {best.epoch} of {len(result.history)} is the best by SIM: "
        f"{format_fixed(best.validation['sim'], 3)}, after {format_fixed(first.validation['sim'], 3)} in the first "
        "epoch; its KL is "
        f"{format_fixed(best.validation['kl'], 3)} nats and its NSS {format_fixed(best.validation['nss'], 2)}."
    ]
    words += describe_missing_masks(split.left_out)
    return [*words, describe_unread(split.unread, "used")] if split.unread else words


def build_sections(
    result: TrainingResult, split: TrainingSplit, shown: Sequence[TrainingStem], words: Sequence[str], mask_sigma: str
) -> list[Section]:
    """What the page shows."""
    epochs = [float(record.epoch) for record in result.history]
    kl, sim, nss = (
        Line("validation", epochs, [record.validation[name] for record in result.history])
        for name in ("kl", "sim", "nss")
    )
    loss = Line("training", epochs, [record.train_loss for record in result.history])
    shared = "What the two maps share, 0 to 1; higher is better"
    charts = [
        CurveChart(
            "Loss",
            "KL of the network's map from the click map, in nats; lower is better. Training is the mean over the "
            "epoch's steps, with dropped parts; validation comes after the epoch.",
            [loss, kl],
            "epoch",
            "KL",
        ),
        CurveChart("SIM", f"{shared}. The best epoch is chosen by it.", [sim], "epoch", "SIM"),
        CurveChart(
            "NSS", "The map at people's clicks in standard deviations; higher is better.", [nss], "epoch", "NSS"
        ),
    ]
    caption = "People's clicks; the click map made from them, which the network is to match; its own map of the region."
    gallery = Gallery("Validation samples", caption, [Example(one.source.key, "") for one in shown])
    rows: list[tuple[str | float, ...]] = []
    for record in result.history:
        fits = (record.validation[name] for name in ("kl", "sim", "nss"))
        best = "best" if record.epoch == result.best_epoch else ""
        rows.append((record.epoch, record.lr, record.train_loss, *fits, record.seconds, best))
    columns = ("epoch", "last lr", "training KL", "KL", "SIM", "NSS", "seconds", "kept")
    table = Table("Training and validation", "KL, SIM and NSS are of the validation samples.", columns, rows, 4)
    readings = reading_table({"mask-sigma": mask_sigma}, TRAINING)
    return [
        Section("What this means", "\n\n".join(words), charts),
        Section("Every epoch", "", (table,)),
        Section("Heat maps", "All by the best epoch's network. Brighter is likelier.", (gallery,)),
        build_left_out_section("What was left out, and which readings ran", split.left_out, readings),
    ]


def draw_samples(
    shown: Sequence[TrainingStem], checkpoint: Path, settings: TrainingSettings, device: str
) -> dict[str, Sequence[Picture] | str]:
    """Clicks, target map and predicted map of each sample, or the reason why there are none."""
    network = Clickability(path=checkpoint, device=device)
    found: dict[str, Sequence[Picture] | str] = {}
    for sample in shown:
        try:
            image, target, error, clicks = sample.read()
            wanted = click_map(clicks, error, sigma=settings.sigma, reading=settings.mask_sigma)
        except HardlookError as reason:
            found[sample.source.key] = str(reason)
            continue
        predicted = network.click_map(image, target, error, True) * error
        close = crop_around(error)
        positive = bool((error & target).any())
        points = [(x, y, positive) for x, y in close.moved(clicks)]
        found[sample.source.key] = [
            Picture("clicks", close.cut(image), mask=close.cut(error), points=points, ordered=False),
            Picture("click map", close.cut(draw_heat_map(image, wanted))),
            Picture("network", close.cut(draw_heat_map(image, predicted))),
        ]
    return found
