"""Goldens of FC-CLIP: filling with factors and added constants, and arrays of which parts are stored."""

import re
from fnmatch import fnmatchcase

import numpy as np
import torch
from goldens import DIFFERENCES, rule_value

CLIP_PREFIX = "backbone.clip_model."


def find_rule(golden, name):
    """Factor and added constant of the entry of that full name."""
    factor = 1.0
    for words, value in golden.facts["fill"]["factors"].items():
        words = re.sub(r" \(.*\)$", "", words)
        start, _, ends = words.partition(" ending in ")
        if fnmatchcase(name, start) and (not ends or name.endswith(tuple(ends.split(" or ")))):
            factor *= value
    return factor, golden.facts["fill"]["added_after"].get(name, 0.0)


def fill_module(build, golden, prefix=""):
    """The module that `build` makes, filled by the rule with the golden's factors and constants, for evaluation.

    `prefix` leads to the module in the network.
    """
    with torch.device("meta"):  # without the time of random numbers
        module = build()
    state = {}
    for name, value in module.state_dict().items():
        if value.dtype == torch.int64:
            state[name] = torch.zeros((), dtype=torch.int64)
            continue
        factor, added = find_rule(golden, prefix + name)
        filled = rule_value(prefix + name, tuple(value.shape))
        if factor != 1 or added:
            filled = filled * factor + added
        state[name] = torch.from_numpy(np.asarray(filled, np.float32))
    module.load_state_dict(state, assign=True)
    return module.eval().requires_grad_(False)


def check_names(module, golden, prefix=""):
    """Names, shapes and order are those of the golden's table, or of the part of it that `prefix` leads to."""
    own = [(prefix + name, tuple(value.shape)) for name, value in module.state_dict().items()]
    assert own == [(name, shape) for name, shape in golden.parameters().items() if name.startswith(prefix)]


def check_array(golden, key, got, *, rows=None, tolerance=1e-4, exact=1e-9):
    """What is stored of the array `key` equals `got`: chosen values, statistics, shape, in its own precision.

    `tolerance` and `exact` are shares of the largest value, of float32 and of float64 arrays. `rows` (queries, bool)
    are those that count of an array (1, queries, C).
    """
    arrays = golden.arrays
    values = got.detach().to(torch.float64).cpu().numpy()
    double = got.dtype == torch.float64 and f"{key}_f64" in arrays
    allowed = exact if double else tolerance
    expected = arrays[f"{key}_f64" if double else key].astype(np.float64)
    counted = np.ones(values.shape, bool)
    if rows is not None:
        counted &= np.asarray(rows).reshape(1, -1, 1)
    largest = np.abs(expected).max()
    if f"{key}_shape" in arrays:
        assert values.shape == tuple(arrays[f"{key}_shape"]), key
    if f"{key}_stats" in arrays and rows is None:
        largest = arrays[f"{key}_stats"][2]
        found = np.array([values.mean(), values.std(), np.abs(values).max()])
        # The spread may be that of a sample or of a population.
        wrong = np.abs(found - arrays[f"{key}_stats"]).max() / largest
        assert wrong <= max(allowed, 1 / values.size), f"{golden.name} {key}_stats: {found}"
    if f"{key}_idx" in arrays:
        values, counted = (one.reshape(-1)[arrays[f"{key}_idx"]] for one in (values, counted))
    wrong = np.abs(values.reshape(expected.shape) - expected)[counted.reshape(expected.shape)].max() / largest
    if double:
        DIFFERENCES[golden.name] = max(DIFFERENCES.get(golden.name, 0.0), float(wrong))
    assert wrong <= allowed, f"{golden.name} {key}: {wrong:.2e} of the largest value"


def read_bits(golden, key, shape):
    """Bools of that shape from packed bits."""
    count = int(np.prod(shape))
    return np.unpackbits(golden.arrays[f"{key}_bits"])[:count].reshape(shape).astype(bool)
