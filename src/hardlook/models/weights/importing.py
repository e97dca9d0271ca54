"""Published weights from files: a checkpoint folder of a few-shot backbone, from `.pth`, `.pt` or `.safetensors`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.extras import require

if TYPE_CHECKING:
    from hardlook.networks.loading import KeyDifferences


@dataclass(frozen=True)
class ImportedWeights:
    """The checkpoint folder that was written, and which tensors the file lacked and which were left out."""

    folder: Path
    differences: KeyDifferences


def import_weights(
    file: str | Path, backbone: str, out: str | Path | None = None, *, image_size: int = 84
) -> ImportedWeights:
    """Make a checkpoint folder of published weights: an encoder for learners, a start for `hl.train`.

    Pickled code is never run. Prefixes of whole methods (module., emb_func.) are removed, heads left out.

    Args:
        file: Weights of a few-shot backbone or method: .pth, .pt or .safetensors.
        backbone: The backbone that they are of, such as `resnet12`.
        out: The folder to write; by default `weights/BACKBONE`.
        image_size: Pixels that it was trained on.
    """
    require("torch", extra="torch")
    from hardlook.training import imported_weights

    folder = Path("weights") / backbone if out is None else Path(out)
    found = imported_weights.import_weights(Path(file).expanduser(), backbone, folder, image_size=image_size)
    return ImportedWeights(folder, found)
