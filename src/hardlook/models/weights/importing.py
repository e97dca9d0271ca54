"""Published weights from files, `.pth`, `.pt` or `.safetensors`: checkpoint folders of backbones and networks."""

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
    """Make a checkpoint folder of published weights: an encoder for learners and a start for `hl.train`, or a network.

    Pickled code is never run. Prefixes of whole methods (module., emb_func.) are removed; heads are left out of
    backbones, and a network must fit tensor by tensor.

    Args:
        file: Weights of a few-shot backbone or method, or of a one-shot network: .pth, .pt or .safetensors.
        backbone: What they are of: a backbone such as `resnet12`, or network and backbone, such as `pfenet-resnet50`.
        out: The folder to write; by default `weights/BACKBONE`.
        image_size: Pixels that it was trained on.
    """
    require("torch", extra="torch")
    from hardlook.networks.one_shot.catalogue import list_networks
    from hardlook.training import imported_weights

    folder = Path("weights") / backbone if out is None else Path(out)
    network, _, under = backbone.partition("-")
    if network in (entry.name for entry in list_networks()):
        differences = imported_weights.import_network(Path(file).expanduser(), network, under or "resnet50", folder)
        return ImportedWeights(folder, differences)
    found = imported_weights.import_weights(Path(file).expanduser(), backbone, folder, image_size=image_size)
    return ImportedWeights(folder, found)
