"""The benchmark's plain loop labels pixels as the models do, and all of it runs."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import open_vocabulary_networks  # noqa: E402
from hardlook.networks.open_vocabulary.cat_seg import _LinearAttention  # noqa: E402


def test_a_row_per_network_with_equal_labels(monkeypatch, capsys, one_thread):
    words = "bench --only san --size tiny --shorter 48 --count 2 --batch 2 --labels cat,dog"
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, 256, size, dtype="uint8") for size in ((30, 40, 3), (40, 30, 3))]
    monkeypatch.setattr(open_vocabulary_networks, "read_images", lambda folder, count: drawn[:count])
    monkeypatch.setattr(sys, "argv", words.split())
    open_vocabulary_networks.main()
    [row] = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert row[0] == "san" and float(row[4]) < 0.01


def test_the_plain_attention_over_all_words_is_that_of_the_network():
    torch.manual_seed(0)
    layer = _LinearAttention()
    given = torch.randn(4, 3, 128), torch.randn(4, 3, 128), (torch.randn(1, 1, 128), torch.randn(1, 1, 128)), 20
    torch.testing.assert_close(
        open_vocabulary_networks.attend_to_all(layer, *given), layer(*given), atol=1e-5, rtol=1e-4
    )
