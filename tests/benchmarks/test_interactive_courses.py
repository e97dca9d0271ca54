"""The script that times courses together and one by one runs on a processor, and both ways give the same masks."""

import re
import sys
from types import SimpleNamespace

import pytest
import torch

import interactive_courses
from hardlook.networks.interactive.checkpoints import fit_to_noise
from hardlook.networks.interactive.simpleclick import SimpleClick


def make_small(family, size, seed):
    torch.manual_seed(seed)
    network = SimpleClick(patch=16, width=8, depth=1, heads=2, side=32, pyramid=(4, 4, 4, 4), head_width=4)
    fit_to_noise(network)
    return network


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["interactive_courses.py", *words])
    monkeypatch.setattr(interactive_courses, "build_random", make_small)
    interactive_courses.main()


def test_the_ratio_stands_beside_its_target(monkeypatch, capsys, one_thread):
    run(monkeypatch, "--family", "simpleclick", "--courses", "3", "--picture", "60", "80", "--repeats", "1")
    printed = capsys.readouterr().out
    assert re.search(r"3 courses, float32 on cpu: .* [\d.]+ times as fast \(target 5, on a GPU\)", printed)
    differ, flipped = re.search(r"differ by (\S+) at most, (\S+) % of", printed).groups()
    assert float(differ) < 1e-5 and float(flipped) == 0


def test_calls_before_graphs_are_replayed_are_not_measured(monkeypatch):
    """The third one records a graph and takes longest."""
    clock, left = [0.0], [20.0, 10.0, 90.0, 1.0, 2.0, 6.0]

    def predict(courses):
        clock[0] += left.pop(0)
        return [SimpleNamespace(probabilities=torch.zeros(1))]

    monkeypatch.setattr(interactive_courses.time, "perf_counter", lambda: clock[0])
    predictor = SimpleNamespace(open=lambda picture, device: SimpleNamespace(predict=predict))
    args = SimpleNamespace(device="cpu", precision="float32")
    milliseconds, _ = interactive_courses.measure(predictor, None, [None], True, 3, args)
    assert milliseconds == 2000
    assert not left


def test_precisions_of_a_gpu_are_refused_on_a_processor(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, "--precision", "bfloat16")
    assert "pass --device cuda" in capsys.readouterr().err
