"""The ImageNet weights `resnet50-imagenet`: those of Keras for TensorFlow.js, as tensors with torchvision's names.

They fit `build_backbone("resnet50-keras", classes=1000)` of `hardlook.networks.one_shot.backbones`, which has Keras's
strides, biases and constants.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardlook.errors import DataError
from hardlook.extras import require
from hardlook.models.weights.install import locate_weights
from hardlook.reading import reading

if TYPE_CHECKING:
    from torch import Tensor

NAME = "resnet50-imagenet"
REMEDY = f"hardlook weights install {NAME}"
ENTRIES = {
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
PLACES = {
    ("res", "1"): "downsample.0",
    ("bn", "1"): "downsample.1",
    **{(kind, f"2{letter}"): f"{ours}{number}" for kind, ours in (("res", "conv"), ("bn", "bn"))
       for number, letter in enumerate("abc", start=1)},
}  # fmt: skip


def read_resnet50() -> dict[str, Tensor]:
    """The installed weights by name, float32, with the layer `fc` of 1,000 classes; an error says how to install.

    They are in the order of the network's state dict, by which networks with names of their own take them.
    """
    torch = require("torch", extra="torch")
    from hardlook.networks.one_shot.backbones import build_backbone

    found = {}
    for name, values in read_shards(locate_weights(NAME)["model.json"]).items():
        turned = values.transpose(3, 2, 0, 1) if values.ndim == 4 else values.T
        found[rename(name)] = torch.from_numpy(np.array(turned, order="C"))
    with torch.device("meta"):
        names = build_backbone("resnet50-keras", classes=1000).state_dict()
    return {name: found[name] for name in names if not name.endswith("num_batches_tracked")}


def read_shards(description: Path) -> dict[str, np.ndarray]:
    """The arrays of a TensorFlow.js model by name, from its `model.json` and the shards beside it."""
    with reading(description, "not the description of a TensorFlow.js model", remedy=REMEDY):
        (group,) = json.loads(description.read_text(encoding="utf-8"))["weightsManifest"]
        listed = [(str(one["name"]), tuple(map(int, one["shape"])), str(one["dtype"])) for one in group["weights"]]
        content = b"".join((description.parent / Path(path).name).read_bytes() for path in group["paths"])
    wanted = 4 * sum(math.prod(shape) for _, shape, _ in listed)
    if wanted != len(content) or any(kind != "float32" for _, _, kind in listed):
        what = f"the shards hold {len(content)} bytes, not {wanted} of float32 as model.json says"
        raise DataError(what, file=description, remedy=REMEDY)
    values, found, start = np.frombuffer(content, "<f4"), {}, 0
    for name, shape, _ in listed:
        found[name] = values[start : start + math.prod(shape)].reshape(shape)
        start += math.prod(shape)
    return found


def rename(name: str) -> str:
    """Torchvision's name of an entry.

    >>> rename("res2a_branch2b/kernel"), rename("bn5c_branch2c/moving_mean"), rename("res4a_branch1/bias")
    ('layer1.0.conv2.weight', 'layer4.2.bn3.running_mean', 'layer3.0.downsample.0.bias')
    """
    layer, entry = name.split("/")
    ends = {"conv1": "conv1", "bn_conv1": "bn1", "fc1000": "fc"}
    if layer in ends:
        return f"{ends[layer]}.{ENTRIES[entry]}"
    parts = re.fullmatch(r"(res|bn)(\d)([a-z])_branch(1|2[abc])", layer)
    if parts is None:
        raise DataError(f"{name} is no entry of Keras's ResNet50", remedy=REMEDY)
    kind, stage, block, branch = parts.groups()
    return f"layer{int(stage) - 1}.{ord(block) - ord('a')}.{PLACES[kind, branch]}.{ENTRIES[entry]}"
