"""easyfsl's few-shot methods, the judge of our transductive learners; tests skip where it is not installed.

It is installed without its dependencies, like lvis: its methods need torch alone, but its package imports names of
torchvision for encoders that are not used here.
"""

import sys
from types import ModuleType

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if "torchvision" not in sys.modules:
    try:
        import torchvision  # noqa: F401
    except ImportError:
        names = ("torchvision", "torchvision.models", "torchvision.models.resnet")
        stand_ins = [ModuleType(name) for name in names]
        for name in ("BasicBlock", "Bottleneck", "conv1x1", "conv3x3"):
            setattr(stand_ins[-1], name, type(name, (torch.nn.Module,), {}))
        with pytest.MonkeyPatch.context() as patch:
            for name, module in zip(names, stand_ins, strict=True):
                patch.setitem(sys.modules, name, module)
            methods = pytest.importorskip("easyfsl.methods", reason="easyfsl is not installed (make test installs it)")
    else:
        methods = pytest.importorskip("easyfsl.methods", reason="easyfsl is not installed (make test installs it)")


def classify(method, episode):
    """(queries, ways) scores of an easyfsl method in float64; its supports are sorted by class as ours are."""
    support, query = (torch.from_numpy(rows.astype(np.float64)) for rows in (episode.support, episode.query))
    torch.set_default_dtype(torch.float64)  # LaplacianShot makes a graph of the default type
    try:
        with torch.no_grad():
            method.process_support_set(support, torch.from_numpy(episode.support_labels))
            return method(query).numpy()
    finally:
        torch.set_default_dtype(torch.float32)
