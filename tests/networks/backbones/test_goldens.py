"""Backbones equal released ones: parameter names, outputs in evaluation and training mode, running statistics."""

import math

import numpy as np
import pytest
import torch
from goldens import fill, plus, read_golden, standard_normal

from hardlook.networks.backbones import build_backbone

# Golden: our name and options, for each of its cases.
CASES = {
    "conv32f": {"flat": ("conv32f", {})},
    "conv64f": {
        "flat": ("conv64f", {}),
        "map": ("conv64f", {"output": "maps"}),
        "map_leaky": ("conv64f-leaky", {"output": "maps"}),
        "map21_nopool": ("conv64f", {"output": "maps", "last_pool": False, "pool_third": False}),
        "map10": ("conv64f", {"output": "maps", "last_pool": False}),
    },
    "r2d2_embedding": {"flat": ("r2d2-embedding", {}), "flat_lastact": ("r2d2-embedding", {"last_activation": True})},
    "resnet12": {
        "pool_flat": ("resnet12", {}),
        "map": ("resnet12", {"output": "maps"}),
        "map_flat": ("resnet12", {"output": "maps"}),
        "map21": ("resnet12", {"output": "maps", "pool_last_two": False}),
    },
    "resnet12_bdc": {"r32": ("resnet12-bdc", {"r": 32})},
    "resnet12_mtl": {"pool_flat": ("resnet12-mtl", {})},
    "resnet12_wolsc": {"pool_flat": ("resnet12-no-last-shortcut", {})},
    "resnet18": {
        "pool_flat": ("resnet18", {}),
        "map": ("resnet18", {"output": "maps"}),
        "map_stride1": ("resnet18", {"output": "maps", "last_stride": 1}),
    },
    "resnet18_bdc": {"r32": ("resnet18-bdc", {"r": 32})},
    "vit_class_aware": {"tokens": ("vit-small", {"output": "tokens"})},
    "wrn28_10": {
        "pool_flat": ("wrn-28-10", {"pooling": "max"}),
        "map": ("wrn-28-10", {"output": "maps"}),
    },
}
# These take seconds per image in float64: one case, float32.
SLOW = {"wrn28_10", "resnet12_mtl"}


def build(golden, case, dtype):
    name, options = CASES[golden.name.removeprefix("backbone_")][case]
    backbone = build_backbone(name, **options)
    golden.check_names(backbone)
    special = {key: plus(1) for key in backbone.state_dict() if key.endswith("mtl_weight")}
    if "bdc" in name:
        positions = 100 if name == "resnet12-bdc" else 196
        start = math.log(1 / (2 * positions))
        special["bdc_pool.temperature"] = lambda key, shape: start + 0.1 * standard_normal(key, shape)
    return fill(backbone, special=special).to(dtype).eval()


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, cases in CASES.items() for case in cases])
def test_a_backbone_equals_the_released_one(name, case):
    golden = read_golden("few_shot", f"backbone_{name}")
    dtype = torch.float32 if name in SLOW else torch.float64
    backbone = build(golden, case, dtype)
    images = golden.images(golden.facts["input"]["seed"], golden.facts["input"]["shape"], dtype)
    with torch.no_grad():
        got = backbone(images)
    golden.check(f"{case}/out", got, tolerance=1e-4 if name in SLOW else 1e-8)


@pytest.mark.parametrize("name", [name for name in CASES if name != "wrn28_10"])
def test_batch_statistics_and_running_statistics_of_training(name):
    golden = read_golden("few_shot", f"backbone_{name}")
    case = next(iter(CASES[name]))
    if f"{case}/train_out" not in golden.arrays:
        pytest.skip("no golden in training mode")
    dtype = torch.float32 if name in SLOW else torch.float64
    backbone = build(golden, case, dtype).train()
    for module in backbone.modules():
        for rate in ("dropout", "rate", "p"):
            if isinstance(getattr(module, rate, None), float):
                setattr(module, rate, 0.0)
    given = golden.facts["train_mode"]
    with torch.no_grad():
        got = backbone(golden.images(given["input_seed"], given["input_shape"], dtype))
    golden.check(f"{case}/train_out", got, tolerance=1e-4 if name in SLOW else 1e-8)
    state = backbone.state_dict()
    stored = [key for key in golden.arrays.files if key.startswith("train_after/") and not key.endswith("_index")]
    for key in stored:
        values = state[key.removeprefix("train_after/")]
        if golden.arrays[key].size < values.numel():  # a subset, at the positions of the README's rule
            rng = np.random.Generator(np.random.PCG64(99))
            values = values[np.sort(rng.choice(values.numel(), golden.arrays[key].size, replace=False))]
        golden.check(key, values, tolerance=1e-5)  # stored in float32
