import builtins
import sys

import pytest

from hardlook.metrics import confusion, panoptic


@pytest.mark.parametrize(
    ("module", "kernel", "plain"),
    [
        (confusion, "kernels.confusion", confusion.count_pairs_numpy),
        (panoptic, "kernels.segment_overlaps", panoptic.count_overlaps_numpy),
    ],
)
def test_the_plain_version_counts_where_numba_is_absent(monkeypatch, module, kernel, plain):
    imports = builtins.__import__

    def without_numba(name, *rest):
        if name == "numba":
            raise ImportError(name)
        return imports(name, *rest)

    assert module._fastest_count() is not plain
    for name in ("numba", "hardlook.metrics.kernels.compiled", f"hardlook.metrics.{kernel}"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(builtins, "__import__", without_numba)
    assert module._fastest_count.__wrapped__() is plain
