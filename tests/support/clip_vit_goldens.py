"""Goldens of SAN, CAT-Seg and the regions of OVSeg: filling with factors, images, parts of arrays, hooks."""

import numpy as np
import torch
from goldens import DIFFERENCES, fill, rule_value


def check_table(network, golden):
    """Names, shapes and order of a network's state dict are those of a golden's table."""
    own = [(name, tuple(value.shape)) for name, value in network.state_dict().items()]
    assert own == list(golden.parameters().items())


def fill_network(network, golden, constants=()):
    """Check the table, then fill by the rule with the golden's factors and set values; `constants` stay."""
    check_table(network, golden)
    kept = {name: value.clone() for name, value in network.state_dict().items() if name in constants}
    special = {name: lambda name, shape: kept[name].numpy() for name in constants}
    for name, factor in golden.facts["fill"].get("factors", {}).items():
        special[name] = lambda name, shape, factor=factor: (
            rule_value(name, shape).astype(np.float32) * np.float32(factor)
        )
    for name, value in golden.facts["fill"].get("set_to", {}).items():
        special[name] = lambda name, shape, value=value: np.full(shape, value)
    return fill(network, special=special).eval().requires_grad_(False)


def read_image(golden, case, dtype):
    """The image (1, 3, H, W) of a case, values from 0 to 255."""
    if f"{case}/image" in golden.arrays:
        image = golden.arrays[f"{case}/image"]
    else:
        blocks, size = golden.arrays[f"{case}/image_blocks"], golden.facts["cases"][case]["image_size"]
        image = blocks.repeat(size[0] // blocks.shape[1], 1).repeat(size[1] // blocks.shape[2], 2)
    return torch.from_numpy(image)[None].to(dtype)


def check_array(golden, key, got, *, tolerance=1e-5, absolute=0.0, exact=1e-9):
    """What is stored of the array `key` equals `got` within a share of its largest value, or `absolute`.

    The float64 array is compared, within `exact`, where there is one and `got` is float64.
    """
    entry = golden.facts["arrays"].get(key, {})
    shape = tuple(entry.get("shape", golden.arrays[key].shape))
    assert tuple(got.shape) == shape, f"{golden.name} {key}: {tuple(got.shape)} for {shape}"
    values = got.detach().to(torch.float64).cpu().numpy().reshape(-1)
    largest = max(entry.get("absmax", float(np.abs(golden.arrays[key]).max())), 1e-30)
    if "subset" in entry:
        values = values[(7919 * np.arange(entry["subset"]) + 13) % values.size]
    rounding = (entry.get("max_abs_f32_minus_f64") or 0.0) / largest if got.dtype == torch.float64 else 0.0
    for name, allowed in ((key, max(tolerance, absolute / largest) + rounding), (f"{key}_f64", exact)):
        if name not in golden.arrays or (name != key and got.dtype != torch.float64):
            continue
        difference = float(np.abs(values - golden.arrays[name].astype(np.float64).reshape(-1)).max()) / largest
        if name != key:
            DIFFERENCES[golden.name] = max(DIFFERENCES.get(golden.name, 0.0), difference)
        assert difference <= allowed, f"{golden.name} {name}: {difference:.2e} of the largest value"


def list_keys(golden, case):
    """The arrays of a case that a network computes, by name, in the order of the file."""
    inputs = ("image", "image_blocks", "text", "text_first_last", "tokens")
    names = (name.removeprefix(f"{case}/") for name in golden.arrays if name.startswith(f"{case}/"))
    return [name for name in names if name not in inputs and not name.endswith("_f64")]


class Watch:
    """Keeps the outputs of named modules while it is open: `found[name]` is the list of them.

    `found[name, "input"]` is the list of their first inputs.
    """

    def __init__(self, network, names):
        self.found = {name: [] for name in names} | {(name, "input"): [] for name in names}
        self._hooks = []
        for name in names:

            def keep(module, given, output, name=name):
                self.found[name].append(output)
                self.found[name, "input"].append(given[0])

            self._hooks.append(network.get_submodule(name).register_forward_hook(keep))

    def __enter__(self):
        return self.found

    def __exit__(self, *error):
        for hook in self._hooks:
            hook.remove()
