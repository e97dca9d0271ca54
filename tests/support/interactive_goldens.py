"""Goldens of interactive networks: sampled arrays, fill factors, and courses of six clicks."""

import json

import numpy as np
import pytest
import torch
from goldens import DIFFERENCES, goldens_folder

from hardlook.networks.interactive.predictors import Course, Predictor


def read_arrays(name):
    """The arrays `name`.npz of the interactive goldens; skips with the reason where there are none."""
    path = goldens_folder("interactive") / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"no golden {path}")
    return np.load(path)


def read_facts(name):
    """The facts `name`.json of the interactive goldens, also of networks without arrays; skips where there are none."""
    path = goldens_folder("interactive") / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"no golden {path}")
    return json.loads(path.read_text())


def multiply(module, factors):
    """Multiply entries of a filled module: `factors` are pairs (predicate of name and value, factor)."""
    state = module.state_dict()
    with torch.no_grad():
        for name, value in state.items():
            for chooses, factor in factors:
                if chooses(name, value):
                    value.mul_(factor)
    return module


def check_array(golden, key, got, *, tolerance=2e-4):
    """The array `key` of a golden, whole or sampled, within `tolerance` of its largest value; the difference."""
    arrays, values = golden.arrays, got.detach().to(torch.float64).cpu().numpy()
    if f"{key}__values" in arrays:
        assert values.shape == tuple(arrays[f"{key}__shape"])
        stats = values.mean(), values.std(), values.min(), values.max()
        largest = max(abs(arrays[f"{key}__stats"][2]), abs(arrays[f"{key}__stats"][3]), 1e-30)
        np.testing.assert_allclose(stats, arrays[f"{key}__stats"], atol=tolerance * largest)
        expected, values = arrays[f"{key}__values"], values.reshape(-1)[arrays[f"{key}__flat_index"]]
    else:
        expected = arrays[key]
        assert values.shape == expected.shape, f"{golden.name} {key}: {values.shape} for {expected.shape}"
        largest = max(float(np.abs(expected.astype(np.float64)).max()), 1e-30)
    difference = float(np.abs(values - expected.astype(np.float64)).max()) / largest
    note_difference(golden.name, difference, got.dtype)
    assert difference <= tolerance, f"{golden.name} {key}: {difference:.2e} of the largest value"
    return difference


def note_difference(name, difference, dtype=torch.float32):
    """Keep the largest difference of a golden for the summary of `--goldens`."""
    key = name if dtype == torch.float64 else f"{name} (float32)"
    DIFFERENCES[key] = max(DIFFERENCES.get(key, 0.0), difference)


class Watched:
    """A network that keeps what it was called with."""

    def __init__(self, network, with_prev_mask=True):
        self.network, self.with_prev_mask, self.calls = network, with_prev_mask, []
        self.takes_sizes = getattr(network, "takes_sizes", False)

    def __call__(self, inputs, points, **sizes):
        self.calls.append((inputs, points))
        return self.network(inputs, points, **sizes)


def course_of(arrays, name):
    """The clicks (row, column, positive) of the trajectory `name`."""
    return [(int(row), int(column), bool(positive)) for row, column, positive in arrays[f"{name}.clicks"]]


def check_trajectory(arrays, name, image, network, settings, *, tolerance=1e-4):
    """Every stored step of a trajectory: crops, calls, points, previous mask and probabilities; the difference."""
    # Every fourth or eighth row and column is stored.
    stride = round(image.shape[0] / arrays[f"{name}.prob1"].shape[0])
    watched, clicks = Watched(network, getattr(network, "with_prev_mask", True)), course_of(arrays, name)
    opened, state, largest = Predictor(watched, settings).open(image), None, 0.0
    for count in range(1, len(clicks) + 1):
        before = len(watched.calls)
        (state,) = opened.predict([Course(clicks[:count], state)])
        inputs, points = watched.calls[-1]
        where = f"{name} click {count}"
        assert list(state.crop or (-1,) * 4) == arrays[f"{name}.roi"][count - 1].tolist(), where
        assert state.renewed == arrays[f"{name}.roi_changed"][count - 1], where
        assert len(watched.calls) - before == arrays[f"{name}.net_calls"][count - 1], where
        assert list(inputs.shape) == arrays[f"{name}.net_input_shape"][count - 1].tolist(), where
        np.testing.assert_allclose(points, arrays[f"{name}.points{count}"], atol=1e-4, err_msg=where)
        if inputs.shape[1] > 3:
            means = inputs[:, 3].mean((1, 2))
            np.testing.assert_allclose(means, arrays[f"{name}.prev_mean{count}"], atol=1e-4, err_msg=where)
        got, expected = state.probabilities[::stride, ::stride].numpy(), arrays[f"{name}.prob{count}"]
        assert got.shape == expected.shape, where
        largest = max(largest, float(np.abs(got - expected).max()))
        assert largest <= tolerance, f"{where}: probabilities differ by {largest:.2e}"
        assert abs(float(state.probabilities.mean()) - arrays[f"{name}.prob_mean"][count - 1]) <= tolerance, where
        # A pixel whose probability is the threshold may fall on either side.
        for level, area in zip((0.49, 0.5), arrays[f"{name}.area_049_050"][count - 1], strict=True):
            near = int(((state.probabilities - level).abs() <= tolerance).sum())
            assert abs(int((state.probabilities > level).sum()) - int(area)) <= near, where
    note_difference(name, largest)
    return largest
