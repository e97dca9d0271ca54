"""torchvision beside a torch of another build, for tests: the operators whose compiled versions do not load.

torchvision's wheels are compiled against the CUDA build of torch; beside the CPU build they do not import. `install`
waits for the first import of torchvision and then, only where its library does not load, defines `nms` in Python.
Networks, transforms and detectors work after that (torchvision has Python code for its other operators). Users' builds
match; the product does nothing of this.
"""

import importlib.abc
import importlib.machinery
import os
import sys
from pathlib import Path

_DEFINED = []  # torch forgets the operators of a library that is collected


def install():
    """Watch for the first import of torchvision in this process."""
    if "torchvision" not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def install_in_children():
    """The same in every Python that this process starts."""
    support = Path(__file__).parent
    paths = [str(support / "start_with_operators"), str(support), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name == "torchvision" else None
        if spec is not None:
            spec.loader = _Loader(spec.loader, Path(spec.origin).parent)
        return spec


class _Loader(importlib.abc.Loader):
    """torchvision's own loader, with the operators where they are missing."""

    def __init__(self, loader, folder):
        self.loader, self.folder = loader, folder

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        fits = _loads(self.folder)
        if not fits:
            _define_operators()
            # torchvision compiles its Python version of RoIAlign, which takes longer than a few images do.
            os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
        self.loader.exec_module(module)
        if not fits:
            # Its functions would refuse to call them.
            sys.modules["torchvision.extension"]._has_ops = lambda: True


def _loads(folder):
    import torch

    try:
        torch.ops.load_library(next(folder.glob("_C*.so")))
    except (OSError, StopIteration):
        return False
    return True


def _define_operators():
    import torch

    if _DEFINED:
        return
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.impl("nms", _suppress, "CPU")
    _DEFINED.append(library)


def _suppress(boxes, scores, threshold):
    """Places of the boxes (n, 4) that overlap no better one by more than the threshold, best first."""
    import torch

    order = scores.argsort(descending=True, stable=True)
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while len(order):
        best, rest = order[0], order[1:]
        kept.append(int(best))
        low, high = torch.maximum(boxes[best, :2], boxes[rest, :2]), torch.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = (high - low).clamp(min=0).prod(dim=1)
        order = rest[shared <= threshold * (areas[best] + areas[rest] - shared)]
    return torch.tensor(kept, dtype=torch.int64)
