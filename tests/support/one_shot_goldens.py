"""Goldens of one-shot segmentation networks: filling with factors, inputs, parts of arrays."""

import re

import numpy as np
import torch
from goldens import DIFFERENCES, fill, find_folder

PREFIX = "module."
BACKBONES = {"r50": "resnet50", "r101": "resnet101", "vgg16": "vgg16"}


def list_goldens(network):
    """The names of a network's goldens, such as pfenet_r50; that name where there is none, to be skipped."""
    found = sorted(path.stem for path in find_folder("one_shot").glob(f"{network}_*.json"))
    return [name for name in found if name.partition("_")[2] in BACKBONES] or [f"{network}_r50"]


def find_backbone(golden):
    """Our name of the backbone that a golden is named after; VGG16 of PFENet and RePRI has batch normalisation."""
    network, _, short = golden.name.partition("_")
    return "vgg16-bn" if short == "vgg16" and network in ("pfenet", "repri") else BACKBONES[short]


def find_prefix(golden):
    """What the names of a golden's parameters begin with, beyond those of the network: `module.` or nothing."""
    return PREFIX if all(name.startswith(PREFIX) for name in golden.parameters()) else ""


def find_classes(arrays):
    """The number of each episode's class within its fold, whichever that is."""
    (name,) = (name for name in arrays if name.startswith("class_index"))
    return arrays[name]


def fill_network(network, golden):
    """Check names, shapes and order against the golden's table, then fill by the rule with its factors."""
    prefix = find_prefix(golden)
    own = [(prefix + name, tuple(value.shape)) for name, value in network.state_dict().items()]
    assert own == list(golden.parameters().items())
    fill(network, prefix=prefix)
    for words, factor in golden.facts["fill"]["factors"]:
        ends = re.match("names ending in '(.*)'$", words)
        named = re.split(" and |, ", words)
        chosen = [name for name, _ in own if (name.endswith(ends[1]) if ends else name in named)]
        assert chosen, words
        for name in chosen:
            network.state_dict()[name.removeprefix(prefix)].mul_(torch.tensor(factor))
    return network


def read_inputs(golden, case, dtype):
    """Queries (B, 3, H, W), supports (B, K, 3, H, W), their labels (B, K, H, W) and those of the queries."""
    names = ("query_i8", "support_i8", "support_label", "query_label")
    query, support, shown, asked = (torch.from_numpy(golden.arrays[f"{case}.{name}"]) for name in names)
    return query.to(dtype) / 32, support.to(dtype) / 32, shown, asked


def check_array(golden, key, got, *, tolerance=1e-4, exact=1e-8, axis=1):
    """All that is stored of the array `key` equals `got`: whole, channels of `axis`, statistics, float64.

    `tolerance` and `exact` are shares of the largest value, of float32 and of float64 arrays.
    """
    values = got.detach().to(torch.float64).cpu().numpy()
    stored = [
        name for name in (key, f"{key}.sub", f"{key}.stat", f"{key}.shape", f"{key}.f64") if name in golden.arrays
    ]
    assert stored, f"{golden.name} has no array {key}"
    for name in stored:
        expected = golden.arrays[name].astype(np.float64)
        if name.endswith(".f64"):
            if got.dtype != torch.float64:
                continue
            found, allowed = values, exact
        elif name.endswith(".sub"):
            channels = np.unique(np.round(np.linspace(0, values.shape[axis] - 1, expected.shape[axis])).astype(int))
            found, allowed = values.take(channels, axis), tolerance
        elif name.endswith(".stat"):
            found = np.array([values.mean(), values.std(ddof=1), np.abs(values).max()])
            allowed = tolerance
        elif name.endswith(".shape"):
            found, allowed = np.array(values.shape), 0
        else:
            found, allowed = values, tolerance
        assert found.size == expected.size, f"{golden.name} {name}: {found.shape} for {expected.shape}"
        largest = max(float(np.abs(expected).max()), 1e-30)
        difference = float(np.abs(found.reshape(expected.shape) - expected).max()) / largest
        if name.endswith(".f64"):
            DIFFERENCES[golden.name] = max(DIFFERENCES.get(golden.name, 0.0), difference)
        assert difference <= allowed, f"{golden.name} {name}: {difference:.2e} of the largest value"


def list_cases(golden):
    """The cases that a golden has inputs for, such as shot1 and shot5."""
    return [name.removesuffix(".query_i8") for name in golden.arrays if name.endswith(".query_i8")]


def list_keys(golden, case):
    """The arrays of a case by the name under which `check_array` takes them, but for its inputs."""
    found = {re.sub(r"\.(sub|stat|shape|f64)$", "", name) for name in golden.arrays if name.startswith(f"{case}.")}
    return sorted(found - {f"{case}.{name}" for name in ("query_i8", "support_i8", "support_label", "query_label")})
