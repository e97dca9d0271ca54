"""Published weights of backbones and one-shot networks: read without unpickling, freed of prefixes, made a checkpoint.

>>> sorted(strip_prefixes({"module.emb_func.layer1.weight": torch.ones(1), "module.head.bias": torch.ones(1)}))
['layer1.weight']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hardlook.errors import ModelError
from hardlook.networks.backbones import build_backbone
from hardlook.networks.loading import KeyDifferences, check_keys, check_types, load_state_dict
from hardlook.training.checkpoint import is_checkpoint, read_card, read_weights, write_checkpoint

PARALLEL = "module."
CONTAINERS = (PARALLEL, "_orig_mod.")
"""What a network in `DataParallel`, or compiled by torch, puts before all of its names."""

BACKBONES = ("emb_func.", "encoder.", "backbone.", "feature.")
"""What stands before a backbone's names in the state dict of a whole method, in toolkits in use."""


def strip_prefixes(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The backbone's tensors alone, by the backbone's own names; heads beside a backbone are left out."""
    return split_backbone(state)[0]


def split_backbone(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The backbone's tensors by the backbone's own names, and the names of what is beside it, such as a head."""
    names = _unwrap_names(state)
    for prefix in BACKBONES:
        inside = {name.removeprefix(prefix): value for name, value in names.items() if name.startswith(prefix)}
        if inside:
            return _unwrap_names(inside), tuple(name for name in names if not name.startswith(prefix))
    return names, ()


def _unwrap_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors by the names that they had before the network was put into such as `DataParallel`."""
    names = dict(state)
    while shared := [prefix for prefix in CONTAINERS if names and all(name.startswith(prefix) for name in names)]:
        names = {name.removeprefix(shared[0]): value for name, value in names.items()}
    return names


def read_backbone_weights(path: Path) -> dict[str, Tensor]:
    """The backbone's tensors of a checkpoint folder, or of a weights file."""
    return strip_prefixes(read_weights(path) if is_checkpoint(path) else load_state_dict(path).state)


def import_weights(
    file: Path, backbone: str, out: Path, *, image_size: int = 84, options: Mapping[str, Any] | None = None
) -> KeyDifferences:
    """Write a checkpoint folder of a backbone from a weights file; what was missing in it and what was left over.

    Counts of batches that inference never reads may be missing. Where anything else is, or a shape differs, nothing is
    written and the error lists it; surplus tensors are left out and reported.
    """
    network = build_backbone(backbone, **dict(options or {}))
    loaded = load_state_dict(file)
    state, beside = split_backbone(loaded.state)
    differences = check_keys(network, state)
    differences = replace(differences, unexpected=(*differences.unexpected, *beside))
    needed = [key for key in differences.missing if not key.endswith("num_batches_tracked")]
    if needed or differences.misshapen:
        what = f"the weights are none of {backbone}: {differences}"
        raise ModelError(what, file=file, remedy="name the backbone that they are of with --as")
    check_types(network, state, file=file)
    network.load_state_dict({key: value for key, value in state.items() if key in network.state_dict()}, strict=False)
    card = {
        "kind": "backbone",
        "backbone": backbone,
        "backbone_options": dict(options or {}),
        "image_size": image_size,
        "stored_size": round(image_size * 96 / 84),
        "parameters": sum(one.numel() for one in network.parameters()),
        "imported": {"file": file.name, "sha256": loaded.sha256},
        "missing": list(differences.missing),
        "unexpected": list(differences.unexpected),
        "selected": {"by": "import", "step": 0},
        "finished": True,
    }
    with torch.no_grad():
        write_checkpoint(out, network.state_dict(), card)
    return differences


def import_network(file: Path, name: str, backbone: str, out: Path) -> KeyDifferences:
    """Write the checkpoint folder of a one-shot network from its published file; it must fit tensor by tensor."""
    from hardlook.networks.one_shot.checkpoints import load_published
    from hardlook.networks.one_shot.evaluation import INPUT_RULES
    from hardlook.training.one_shot_recipes import find_one_shot_recipe

    network, loaded = load_published(file, name, backbone)
    classes = getattr(network, "classifier", None)
    recipe = find_one_shot_recipe(name, backbone)
    if name in INPUT_RULES:
        recipe = replace(recipe, size=INPUT_RULES[name].size)
    card = {
        "kind": "one-shot",
        "method": name,
        "backbone": backbone,
        "parameters": sum(one.numel() for one in network.parameters()),
        "image_size": recipe.size,
        "identity": {
            "recipe": recipe.to_json(),
            "classes": [f"class {number}" for number in range(1, classes.out_channels if classes is not None else 1)],
        },
        "imported": {"file": file.name, "sha256": loaded.sha256},
        "selected": {"by": "import", "step": 0},
        "finished": True,
    }
    with torch.no_grad():
        write_checkpoint(out, network.state_dict(), card)
    return check_keys(network, {key.removeprefix(PARALLEL): value for key, value in loaded.state.items()})


def build_from_card(card: Mapping[str, Any]) -> torch.nn.Module:
    """The backbone that a card of kind `backbone` describes, with random weights."""
    return build_backbone(card["backbone"], **card["backbone_options"])


def describe_import(differences: KeyDifferences) -> list[str]:
    """What was missing and what was left over, in lines."""
    return [
        f"missing: {', '.join(differences.missing) or 'none'}",
        f"unexpected, left out: {', '.join(differences.unexpected) or 'none'}",
    ]


__all__ = [
    "build_from_card",
    "describe_import",
    "import_network",
    "import_weights",
    "read_backbone_weights",
    "read_card",
    "split_backbone",
    "strip_prefixes",
]
