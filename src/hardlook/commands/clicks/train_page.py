"""The page of `hardlook clicks train`: the curve of every epoch, and heat maps of validation samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardlook.clicks.training.click_maps import click_map
from hardlook.commands.clicks.joined_clicks import unmasked_in_words
from hardlook.commands.clicks.map_colours import heat
from hardlook.commands.clicks.readings import TRAINING, reading_rows
from hardlook.commands.clicks.unread_stems import unread_in_words
from hardlook.contract.sections import CurveChart, Example, Gallery, Line, Picture, Section, Table
from hardlook.errors import HardlookError
from hardlook.models.click_models.clickability.click_model import Clickability
from hardlook.regions.close_ups import close_up
from hardlook.report.numerals import counted

if TYPE_CHECKING:
    from hardlook.clicks.training.loop import Trained
    from hardlook.commands.clicks.clicked_sources import TrainingStem
    from hardlook.commands.clicks.train import TrainingPlan
    from hardlook.commands.clicks.training_samples import TrainingSplit

SHOWN = 8


def training_in_words(trained: Trained, split: TrainingSplit) -> list[str]:
    """What came of it."""
    best, first = trained.history[trained.best_epoch - 1], trained.history[0]
    who = "simulated people" if split.planted else "people"
    words = [
        f"Trained on the clicks of {who} on {counted(len(split.training), 'stem')}, validated on "
        f"{len(split.validation)} of other images. Epoch {best.epoch} of {len(trained.history)} is the best by SIM: "
        f"{best.validation['sim']:.3f}, after {first.validation['sim']:.3f} in the first epoch; its KL is "
        f"{best.validation['kl']:.3f} nats and its NSS {best.validation['nss']:.2f}."
    ]
    words += unmasked_in_words(split.left_out)
    return [*words, unread_in_words(split.unread, "used")] if split.unread else words


def training_sections(
    trained: Trained, split: TrainingSplit, shown: Sequence[TrainingStem], words: Sequence[str], mask_sigma: str
) -> list[Section]:
    """What the page shows."""
    epochs = [float(record.epoch) for record in trained.history]
    losses = CurveChart(
        "Loss",
        "KL of the network's map from the click map, in nats; lower is better. Training is the mean over the epoch's "
        "steps, with dropped parts; validation comes after the epoch.",
        [
            Line("training", epochs, [record.train_loss for record in trained.history]),
            Line("validation", epochs, [record.validation["kl"] for record in trained.history]),
        ],
        "epoch",
        "KL",
    )
    fits = [
        CurveChart(title, meaning, [Line("validation", epochs, values)], "epoch", title)
        for title, meaning, values in (
            (
                "SIM",
                "What the two maps share, 0 to 1; higher is better. The best epoch is chosen by it.",
                [record.validation["sim"] for record in trained.history],
            ),
            (
                "NSS",
                "The map at people's clicks in standard deviations; higher is better.",
                [record.validation["nss"] for record in trained.history],
            ),
        )
    ]
    gallery = Gallery(
        "Validation samples",
        "People's clicks; the click map made from them, which the network is to match; its own map of the region.",
        [Example(one.source.key, "") for one in shown],
    )
    left = [(note.what, note.count, note.why, ", ".join(note.examples)) for note in split.left_out]
    out = [Table("Left out", "", ("what", "count", "why", "for example"), left)] if left else []
    read = Table("Readings", "", ("name", "value", "meaning"), reading_rows({"mask-sigma": mask_sigma}, TRAINING))
    return [
        Section("What this means", "\n\n".join(words), (losses, *fits)),
        Section("Every epoch", "", (_epochs(trained),)),
        Section("Heat maps", "All by the best epoch's network. Brighter is likelier.", (gallery,)),
        Section("What was left out, and which readings ran", "" if left else "Nothing was left out.", (*out, read)),
    ]


def choose_shown(split: TrainingSplit) -> list[TrainingStem]:
    """Validation samples, evenly over their list."""
    count = len(split.validation)
    places = np.linspace(0, count - 1, min(SHOWN, count)).round().astype(int).tolist()
    return [split.validation[place] for place in places]


def training_pictures(
    shown: Sequence[TrainingStem], checkpoint: Path, plan: TrainingPlan
) -> dict[str, Sequence[Picture] | str]:
    """Clicks, target map and predicted map of each sample, or the reason why there are none."""
    network = Clickability(path=checkpoint, device=plan.device)
    found: dict[str, Sequence[Picture] | str] = {}
    for sample in shown:
        try:
            image, target, error, clicks = sample.read()
            wanted = click_map(clicks, error, sigma=plan.settings.sigma, reading=plan.settings.mask_sigma)
        except HardlookError as reason:
            found[sample.source.key] = str(reason)
            continue
        predicted = network.click_map(image, target, error, True) * error
        close = close_up(error)
        positive = bool((error & target).any())
        points = [(x, y, positive) for x, y in close.moved(clicks)]
        found[sample.source.key] = [
            Picture("clicks", close.cut(image), mask=close.cut(error), points=points, ordered=False),
            Picture("click map", close.cut(heat(image, wanted))),
            Picture("network", close.cut(heat(image, predicted))),
        ]
    return found


def _epochs(trained: Trained) -> Table:
    rows = [
        (
            record.epoch,
            record.lr,
            record.train_loss,
            record.validation["kl"],
            record.validation["sim"],
            record.validation["nss"],
            record.seconds,
            "best" if record.epoch == trained.best_epoch else "",
        )
        for record in trained.history
    ]
    columns = ("epoch", "last lr", "training KL", "KL", "SIM", "NSS", "seconds", "kept")
    return Table("Training and validation", "KL, SIM and NSS are of the validation samples.", columns, rows, 4)
