"""Goldens of released networks: parameters and inputs made by rules, outputs compared with stored arrays.

`HARDLOOK_GOLDENS` names another folder of the same layout, `HARDLOOK_GOLDEN_SALT` the salt of its parameters.
"""

import hashlib
import json
import math
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

REPOSITORY = Path(__file__).resolve().parents[2]
SALT = os.environ.get("HARDLOOK_GOLDEN_SALT", "shared:")
# Name of what was compared -> largest relative difference, for the summary at the end of a test session.
DIFFERENCES = {}


def find_folder(part):
    """Where the goldens `part`, such as few_shot, would be."""
    shared = Path(os.environ.get("HARDLOOK_TEST_DATA", REPOSITORY.parent / "shared"))
    return Path(os.environ.get("HARDLOOK_GOLDENS", shared / "reference" / "networks")) / part


def goldens_folder(part):
    """The folder of goldens `part`, such as few_shot; skips with the reason where there is none."""
    folder = find_folder(part)
    if not folder.is_dir():
        pytest.skip(f"no goldens at {folder}; set HARDLOOK_GOLDENS to the folder that holds {part}/")
    return folder


@cache
def read_golden(part, name):
    """The golden `name` of a part: its JSON and its arrays."""
    folder = goldens_folder(part)
    path = folder / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"no golden {path}")
    return Golden(name, json.loads(path.read_text()), np.load(folder / f"{name}.npz"))


def rule_value(name, shape, salt=None):
    """The value of the entry `name` by the fill rule, float64 before the cast."""
    words = hashlib.sha256(((SALT if salt is None else salt) + name).encode()).digest()[:8]
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(words, "little")))
    if len(shape) >= 2:
        return rng.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
    if name.endswith(("running_var", "weight")):
        return rng.uniform(0.5, 1.5, shape)
    return 0.1 * rng.standard_normal(shape)


def standard_normal(name, shape):
    """The standard normal of the rule's generator, for entries that have a rule of their own."""
    words = hashlib.sha256((SALT + name).encode()).digest()[:8]
    return np.random.Generator(np.random.PCG64(int.from_bytes(words, "little"))).standard_normal(shape)


def fill(module, *, prefix="", special=None):
    """Fill every entry of a module's state dict by the rule under `prefix` + its name; returns the module.

    `special` maps a name without the prefix to a function (name, shape) -> values, used in place of the rule.
    """
    state = module.state_dict()
    for name, value in state.items():
        if value.dtype in (torch.int64, torch.int32):
            value.zero_()
            continue
        make = (special or {}).get(name, rule_value)
        filled = np.asarray(make(prefix + name, tuple(value.shape))).astype(np.float32)
        value.copy_(torch.from_numpy(filled).to(value.dtype).reshape(value.shape))
    module.load_state_dict(state)
    return module


def plus(constant):
    """A special rule: constant + the rule's value."""
    return lambda name, shape: constant + rule_value(name, shape)


class Golden:
    """One network's goldens."""

    def __init__(self, name, facts, arrays):
        self.name, self.facts, self.arrays = name, facts, arrays

    def parameters(self, case=None):
        """Names and shapes as listed, of a case or of the whole file."""
        found = self.facts["parameters"] if case is None else self.facts["cases"][case]["parameters"]
        if isinstance(found, str):  # "as in case ..."
            found = self.facts["cases"][found.removeprefix("as in case ")]["parameters"]
        return {name: tuple(shape) for name, shape in found}

    def check_names(self, module, case=None, *, extra=()):
        """The module has the listed names and shapes, and no others but `extra`."""
        own = {name: tuple(value.shape) for name, value in module.state_dict().items() if name not in extra}
        assert own == self.parameters(case)

    def episode(self, case, dtype=torch.float64):
        """Support (1, ways, shots, ...) and query (1, ways * queries, ...) of a case, class-major."""
        given = self.facts["cases"][case]["input"]
        shape, way, shot, query = (given[key] for key in ("shape_of_one", "way", "shot", "query"))
        rng = np.random.Generator(np.random.PCG64(given["seed"]))
        centres = rng.standard_normal((way, *shape))
        noise = rng.standard_normal((way, shot + query, *shape))
        weight = max(0.15, 4 / math.sqrt(math.prod(shape)))
        x = (weight * centres[:, None] + noise).astype(np.float32)
        np.testing.assert_allclose(x.reshape(-1)[:8], given["first8"], rtol=1e-6)
        assert abs(float(x.astype(np.float64).sum()) - given["sum"]) < 1e-2
        x = torch.from_numpy(x).to(dtype)
        return x[None, :, :shot].clone(), x[None, :, shot:].flatten(1, 2).clone()

    def images(self, seed, shape, dtype=torch.float64):
        """Images by the rule of the README."""
        x = np.random.Generator(np.random.PCG64(seed)).standard_normal(shape).astype(np.float32)
        return torch.from_numpy(x).to(dtype)

    def check(self, key, got, *, tolerance=1e-8, spread=None):
        """The array `key` (with `_f64` for float64 results) equals `got` within `tolerance` of its largest value.

        `spread` is a share of the spread of scores over classes (last axis) that a difference may reach, too.
        """
        got = got.detach()
        name = f"{key}_f64" if got.dtype == torch.float64 and f"{key}_f64" in self.arrays else key
        expected = self.arrays[name].astype(np.float64)
        values = got.to(torch.float64).cpu().numpy()
        if f"{key}_index" in self.arrays:
            values = values.reshape(-1)[self.arrays[f"{key}_index"]].reshape(expected.shape)
        values = values.reshape(expected.shape)
        largest = max(float(np.abs(expected).max()), 1e-30)
        difference = float(np.abs(values - expected).max()) / largest
        DIFFERENCES[self.name] = max(DIFFERENCES.get(self.name, 0.0), difference if name.endswith("_f64") else 0.0)
        assert difference <= tolerance, f"{self.name} {name}: {difference:.2e} of the largest value"
        if spread is not None:
            width = float(np.median(expected.max(-1) - expected.min(-1)))
            assert float(np.abs(values - expected).max()) <= spread * width, f"{self.name} {name}: beyond the spread"

    def check_value(self, case, key, got, *, tolerance=1e-8):
        """The number `key` among the values of a case, in float64 where it is given."""
        found = self.facts["cases"][case]
        expected = found.get("values_f64", found["values"]).get(key, found["values"].get(key))
        difference = abs(float(got) - expected) / max(abs(expected), 1e-30)
        if tolerance <= 1e-6:  # float64
            DIFFERENCES[self.name] = max(DIFFERENCES.get(self.name, 0.0), difference)
        assert difference <= tolerance, f"{self.name} {case} {key}: {float(got)} for {expected}"

    def check_gradients(self, case, module, *, tolerance=1e-8, without=()):
        """Norms of the gradients of every listed parameter, and the stored gradients themselves."""
        norms = self.facts["cases"][case].get("grad_norm_f64") or self.facts["cases"][case]["grad_norm"]
        named = dict(module.named_parameters())
        largest = max(map(abs, norms.values()), default=0.0)
        for name, norm in norms.items():
            if name in without:
                continue
            gradient = named[name].grad
            got = 0.0 if gradient is None else float(gradient.norm())
            assert abs(got - norm) <= tolerance * max(abs(norm), 1e-6 * largest) + 1e-12, (
                f"{self.name} {case} gradient of {name}: norm {got} for {norm}"
            )
            # A bias before batch normalisation has no gradient but rounding.
            if f"{case}/grad:{name}" in self.arrays and gradient is not None and norm > 1e-9 * largest:
                self.check(f"{case}/grad:{name}", gradient, tolerance=max(tolerance, 1e-8))
