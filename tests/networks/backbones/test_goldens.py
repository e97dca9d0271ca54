"""Backbones equal released ones: parameter names, outputs in evaluation and training mode, running statistics.

A backbone is built from the arguments of the released code that its golden lists.
"""

import json
import math

import numpy as np
import pytest
import torch
from goldens import fill, goldens_folder, plus, read_golden, standard_normal

from hardlook.networks.backbones import build_backbone


def translate_conv(given):
    slope = given.get("negative_slope", 0.2) if given.get("leaky_relu") else 0.0
    output = "vectors" if given.get("is_flatten") else "maps"
    return {"output": output, "slope": slope, "last_pool": given.get("last_pool", True)}


def translate_conv64f(given):
    found = translate_conv(given)
    found["pool_third"] = given.get("maxpool_last2", True)
    return found | {"running_statistics": given.get("use_running_statistics", True)}


def translate_pooled(given):
    """Networks that are pooled unless they are told not to."""
    return {"output": "vectors" if given.get("avg_pool", True) else "maps"}


def translate_resnet12(given):
    rate = {"drop_rate": given["drop_rate"]} if "drop_rate" in given else {}
    return translate_pooled(given) | rate | {"pool_last_two": given.get("maxpool_last2", True), "window": 5}


def translate_vit(given):
    names = {"embed_dim": "width", "depth": "depth", "num_heads": "heads", "mlp_ratio": "ratio", "patch_size": "patch"}
    return {"output": "tokens"} | {names[key]: value for key, value in given.items() if key in names}


# Golden: our name, and our options for the arguments of the released code.
BACKBONES = {
    "conv32f": ("conv32f", translate_conv),
    "conv64f": ("conv64f", translate_conv64f),
    "r2d2_embedding": (
        "r2d2-embedding",
        lambda given: {"last_activation": given.get("retain_last_activation", False)},
    ),
    "resnet12": ("resnet12", translate_resnet12),
    "resnet12_bdc": ("resnet12-bdc", lambda given: {"r": given.get("reduce_dim", 640)}),
    "resnet12_mtl": ("resnet12-mtl", lambda given: {"scaled": given.get("MTL", False)}),
    "resnet12_wolsc": ("resnet12-no-last-shortcut", translate_resnet12),
    "resnet18": (
        "resnet18",
        lambda given: translate_pooled(given) | {"last_stride": given.get("last_block_stride", 2)},
    ),
    "resnet18_bdc": ("resnet18-bdc", lambda given: {"r": given.get("reduce_dim", 640)}),
    "vit_class_aware": ("vit-small", translate_vit),
    "wrn28_10": (
        "wrn-28-10",
        lambda given: (
            translate_pooled(given)
            | {"pooling": "max", "depth": given.get("depth", 28), "widening": given.get("widen_factor", 10)}
        ),
    ),
}
# These take seconds per image in float64: float32.
SLOW = {"wrn28_10", "resnet12_mtl"}


def list_options():
    """Goldens and their cases; empty where there are no goldens, so that the tests skip."""
    found = []
    for name in BACKBONES:
        try:
            path = goldens_folder("few_shot") / f"backbone_{name}.json"
        except BaseException as error:  # pytest.skip outside of a test
            if type(error).__name__ != "Skipped":
                raise
            continue
        if path.is_file():
            found += [(name, case) for case in json.loads(path.read_text())["options"]]
    return found


def build(golden, case, dtype):
    name, translate = BACKBONES[golden.name.removeprefix("backbone_")]
    backbone = build_backbone(name, **translate(golden.facts["options"][case]["arguments"]))
    special = {key: plus(1) for key in backbone.state_dict() if key.endswith("mtl_weight")}
    if "bdc" in name:
        positions = 100 if name == "resnet12-bdc" else 196
        start = math.log(1 / (2 * positions))
        special["bdc_pool.temperature"] = lambda key, shape: start + 0.1 * standard_normal(key, shape)
    return fill(backbone, special=special).to(dtype).eval()


def choose_tolerance(golden, key, dtype):
    """That of float64 where both are."""
    return 1e-8 if dtype == torch.float64 and f"{key}_f64" in golden.arrays else 1e-4


@pytest.mark.parametrize(("name", "case"), list_options())
def test_a_backbone_equals_the_released_one(name, case):
    golden = read_golden("few_shot", f"backbone_{name}")
    dtype = torch.float32 if name in SLOW else torch.float64
    backbone = build(golden, case, dtype)
    if case == next(iter(golden.facts["options"])):  # the parameters listed are those of the first case
        golden.check_names(backbone)
    prefix, stages = f"{case}/stage_", {}
    for key in golden.arrays.files:
        if key.startswith(prefix) and not key.endswith("_index"):
            keep = lambda module, given, got, key=key: stages.__setitem__(key, got)  # noqa: E731
            backbone.get_submodule(key.removeprefix(prefix)).register_forward_hook(keep)
    images = golden.images(golden.facts["input"]["seed"], golden.facts["input"]["shape"], dtype)
    with torch.no_grad():
        got = backbone(images)
    golden.check(f"{case}/out", got, tolerance=choose_tolerance(golden, f"{case}/out", dtype))
    for key, values in stages.items():
        golden.check(key, values, tolerance=1e-4)  # stored in float32


@pytest.mark.parametrize("name", BACKBONES)
def test_batch_statistics_and_running_statistics_of_training(name):
    golden = read_golden("few_shot", f"backbone_{name}")
    cases = [case for case in golden.facts["options"] if f"{case}/train_out" in golden.arrays]
    if not cases:
        pytest.skip("no golden in training mode")
    dtype = torch.float32 if name in SLOW else torch.float64
    backbone = build(golden, cases[0], dtype).train()
    for module in backbone.modules():
        for rate in ("dropout", "rate", "p"):
            if isinstance(getattr(module, rate, None), float):
                setattr(module, rate, 0.0)
    given = golden.facts["train_mode"]
    with torch.no_grad():
        got = backbone(golden.images(given["input_seed"], given["input_shape"], dtype))
    key = f"{cases[0]}/train_out"
    golden.check(key, got, tolerance=choose_tolerance(golden, key, dtype))
    state = backbone.state_dict()
    stored = [key for key in golden.arrays.files if key.startswith("train_after/") and not key.endswith("_index")]
    for key in stored:
        values = state[key.removeprefix("train_after/")]
        if golden.arrays[key].size < values.numel():  # a subset, at the positions of the README's rule
            rng = np.random.Generator(np.random.PCG64(99))
            values = values[np.sort(rng.choice(values.numel(), golden.arrays[key].size, replace=False))]
        golden.check(key, values, tolerance=1e-5)  # stored in float32
