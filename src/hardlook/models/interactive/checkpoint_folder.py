"""A folder of published checkpoints: which model and size each file is, recognised by the tensors in it.

Only names and shapes are read; nothing that a file names is imported or executed. CFR-ICL publishes SimpleClick's
network with other weights, so that only the file's name can tell it: one with `icl` or `cfr` as a word is CFR-ICL's.

>>> tell_cascade("cocolvis_icl_vit_huge.pth"), tell_cascade("cocolvis_vit_huge.pth"), tell_cascade("focalclick.pth")
(True, False, False)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.extras import require

if TYPE_CHECKING:
    from torch import Tensor

    from hardlook.networks.interactive.checkpoints import Checkpoint

SUFFIXES = (".pth", ".pt", ".pth.tar", ".safetensors")
UNUSUAL = "of no published size"
_SAM_SIZES = {768: "vit_b", 1024: "vit_l", 1280: "vit_h"}
_SAM_KIN = ("sam", "sam-hq", "sam2")


@dataclass(frozen=True)
class FoundCheckpoint:
    """A checkpoint file: the model that runs it, its size and what decided; `name` is unique in its folder."""

    path: Path
    model: str
    size: str
    name: str
    note: str = ""

    @property
    def arguments(self) -> dict[str, str]:
        """The model's argument that names the file."""
        return {"path" if self.model in _SAM_KIN else "weights": str(self.path)}

    def __str__(self) -> str:
        return f"{self.path.name}: {self.model} {self.size}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True)
class CheckpointFolder:
    """The checkpoints below a folder, the reasons why other files with their endings are none, and how many more."""

    folder: Path
    found: tuple[FoundCheckpoint, ...]
    refused: Mapping[str, str]
    others: int = 0

    def describe(self) -> list[str]:
        """One line that counts, and one per file."""
        counts = [f"{len(self.found)} checkpoints"]
        if self.refused:
            counts.append(f"{len(self.refused)} files that are not recognised")
        if self.others:
            counts.append(f"{self.others} other files, without {', '.join(SUFFIXES)}")
        return [
            f"{self.folder}: {'; '.join(counts)}",
            *(f"  {one}" for one in self.found),
            *(f"  not recognised: {name}: {why}" for name, why in self.refused.items()),
        ]


def find_checkpoints(folder: Path) -> CheckpointFolder:
    """All checkpoints below a folder, by name; an error where there is none."""
    if not folder.is_dir():
        raise OptionError(
            "this is no folder", file=folder, remedy="give the folder that holds the checkpoint files as --checkpoints"
        )
    # A link that leads nowhere is no file, but is to be named.
    files = sorted(path for path in folder.rglob("*") if path.is_file() or not path.exists())
    named = [path for path in files if path.name.lower().endswith(SUFFIXES)]
    if not named:
        raise OptionError(
            f"there is no checkpoint in this folder, no file that ends in {', '.join(SUFFIXES)}"
            + (f" among its {len(files)} files" if files else ""),
            file=folder,
            remedy="put the published files there; docs/interactive-checkpoints.md lists them",
        )
    found: list[FoundCheckpoint] = []
    refused: dict[str, str] = {}
    for path in named:
        try:
            found.append(identify_checkpoint(path))
        except HardlookError as error:
            refused[path.relative_to(folder).as_posix()] = error.what
    if not found:
        raise OptionError(
            "no file of this folder is a checkpoint that is known here: "
            + "; ".join(f"{name}: {why}" for name, why in refused.items()),
            file=folder,
            remedy="give published files; docs/interactive-checkpoints.md lists them",
        )
    return CheckpointFolder(folder, _name_apart(found, folder), refused, len(files) - len(named))


def identify_checkpoint(path: Path) -> FoundCheckpoint:
    """The model and the size of a file; an error for one that none of the models can run."""
    from hardlook.networks.interactive.checkpoints import read_outline

    require("torch", extra="torch")
    return identify_outline(read_outline(path))


def identify_outline(outline: Checkpoint) -> FoundCheckpoint:
    """The model and the size of a checkpoint whose tensors need no values."""
    path, name = outline.path, _get_stem(outline.path)
    if "image_encoder.trunk.pos_embed_window" in outline.state:
        from hardlook.models.interactive.sam2 import ONLY_IN_21, find_size

        require("transformers", extra="hf")
        version = "2.1" if any(one.startswith(ONLY_IN_21) for one in outline.state) else "2"
        return FoundCheckpoint(path, "sam2", f"{version} {find_size(outline.state, path).name}", name)
    if "image_encoder.pos_embed" in outline.state:
        require("transformers", extra="hf")
        width = outline.state["image_encoder.pos_embed"].shape[-1]
        high = "mask_decoder.hf_token.weight" in outline.state
        return FoundCheckpoint(path, "sam-hq" if high else "sam", _SAM_SIZES.get(width, UNUSUAL), name)
    if any(one.startswith("image_encoder.layers.") for one in outline.state):
        _check_mobile_sam(outline)
        return FoundCheckpoint(path, "mobile-sam", "vit_tiny", name)
    return _identify_network(outline, name)


def tell_cascade(name: str) -> bool:
    """Whether a file with SimpleClick's network is CFR-ICL's, by its name."""
    return bool({"icl", "cfr"} & set(re.split(r"[^a-z]+", name.lower())))


def _identify_network(outline: Checkpoint, name: str) -> FoundCheckpoint:
    from hardlook.networks.interactive.checkpoints import check_outline

    family, note = outline.family, ""
    network = check_outline(outline)
    if family == "simpleclick":
        family = "cfr-icl" if tell_cascade(outline.path.name) else family
        note = f"SimpleClick's network; {family} by the file's name"
    halved = "-s1" if getattr(network, "halved", False) else ""  # FocalClick's S1, of the same tensors as S2
    return FoundCheckpoint(outline.path, family, _name_size(outline) + halved, name, note)


def _name_size(outline: Checkpoint) -> str:
    """The published size that the shapes have; HRNet-18 without a previous mask is called `hrnet18 baseline`."""
    state, family = outline.state, outline.family
    if family in ("cdnet", "gpcis"):
        return {"cdnet": "resnet34", "gpcis": "resnet50"}[family]
    if family in ("simpleclick", "adaptiveclick"):
        from hardlook.networks.interactive.plain_vit import VIT_SIZES, read_backbone

        shape = read_backbone(outline.arguments, state)
        same = (
            size
            for size, one in VIT_SIZES.items()
            if all(shape[key] == one[key] for key in ("patch", "width", "depth"))
        )
        return next(same, UNUSUAL)
    if "feature_extractor.cls_head.weight" not in state:
        width = state["feature_extractor.backbone.patch_embed1.proj.weight"].shape[0]
        return {32: "segformerb0", 64: "segformerb3"}.get(width, UNUSUAL)
    return _name_hrnet(state)


def _name_hrnet(state: Mapping[str, Tensor]) -> str:
    from hardlook.networks.interactive.ritm import SIZES

    shape = (
        state["feature_extractor.stage2.0.branches.0.0.conv1.weight"].shape[0],
        state["feature_extractor.cls_head.weight"].shape[1] // 2,
        "feature_extractor.layer1.2.conv1.weight" not in state,
    )
    sizes = {(one["width"], one["ocr_width"], one.get("small", False)): name for name, one in SIZES.items()}
    baseline = " baseline" if state["maps_transform.0.weight"].shape[1] == 2 else ""
    return sizes.get(shape, UNUSUAL) + baseline


def _check_mobile_sam(outline: Checkpoint) -> None:
    import torch

    from hardlook.models.interactive.mobile_sam import build_network
    from hardlook.networks.loading import check_keys

    with torch.device("meta"):
        network = build_network()
    if differences := check_keys(network, outline.state):
        raise ModelError(
            f"the tensors do not fit MobileSAM: {differences}", file=outline.path, remedy="give mobile_sam.pt"
        )


def _get_stem(path: Path) -> str:
    """The file's name without the ending."""
    ending = max((one for one in SUFFIXES if path.name.lower().endswith(one)), key=len, default="")
    return path.name[: len(path.name) - len(ending)] or path.name


def _name_apart(found: list[FoundCheckpoint], folder: Path) -> tuple[FoundCheckpoint, ...]:
    """Checkpoints whose stems are the same get names of their whole paths, since each has a run folder of its name."""
    # Folded, as some file systems do not tell capitals.
    counts = Counter(one.name.casefold() for one in found)
    return tuple(
        one if counts[one.name.casefold()] == 1 else replace(one, name="-".join(one.path.relative_to(folder).parts))
        for one in found
    )
