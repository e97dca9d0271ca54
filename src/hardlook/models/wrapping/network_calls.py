"""Calling a network of any kind with numpy arrays: torch modules, TorchScript, exported programs, ONNX, functions.

>>> calls = NetworkCalls(lambda images: images.mean(axis=(2, 3)))
>>> calls(np.ones((2, 3, 4, 5), np.float32)).shape, calls.arrays, calls.libraries
((2, 3), 'numpy', ())
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, ModelError, OptionError
from hardlook.extras import require
from hardlook.models.torch_inference import Precision, exact_inference
from hardlook.networks.loading import open_onnx

Arrays = Literal["torch", "numpy"]

Named = Mapping[str, NDArray[Any]]
"""Inputs of a network by name; the name is empty where there is one input, which has none."""

_ONNX_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
_ONNX_NAMES = ("boxes", "logits", "out", "last_hidden_state", "pooler_output", "class_queries_logits", "image_embeds")
# How far modules are looked for behind a function, and among how many objects.
_REFERENCE_DEPTH, _MAX_REFERENCES = 5, 300
_FILES = ".onnx for ONNX, .pt2 for torch.export, any other ending (.pt, .ts) for TorchScript"


class NetworkCalls:
    """A network on its device, called with arrays; what it answers is given back as it is.

    `network` is a torch module, an exported program, a function, or the path of a file. A torch module is moved to
    `device` where one is given. It is in evaluation mode during a call, and then as it was before.
    """

    def __init__(
        self,
        network: Any,
        *,
        device: str | None = None,
        precision: Precision = "float32",
        arrays: Arrays | None = None,
    ) -> None:
        self.network = Path(network).expanduser() if isinstance(network, str | Path) else network
        self.kind = _find_kind(self.network)
        if arrays is not None and arrays not in get_args(Arrays):
            raise OptionError(f"arrays is {arrays!r}", remedy=f"one of {', '.join(get_args(Arrays))}")
        if arrays is not None and self.kind != "function" and arrays != self._default_arrays():
            raise OptionError(f"arrays={arrays!r} is for functions, and this is {_NAMES[self.kind]}")
        self.arrays: Arrays = arrays or self._default_arrays()
        self.precision = precision
        self.device = self._choose_device(device)
        _check_precision(precision, self.device)
        self._open()  # an unreadable file is an error now, not in the middle of a run

    @property
    def weights_files(self) -> tuple[Path, ...]:
        """The file that the network is read from; none for a network in memory."""
        return (self.network,) if isinstance(self.network, Path) else ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """Names of the installed distributions whose version can change the network's answers, sorted."""
        found = {"onnxruntime"} if self.kind == "onnx" else {"torch"} if self.arrays == "torch" else set()
        parts = [self.network, *(inner for module in self._modules() for inner in module.modules())]
        packages = {_package_of(part) for part in parts if not isinstance(part, Path)}
        return tuple(sorted(found | {name for package in packages for name in find_distributions(package)}))

    @property
    def input_shape(self) -> tuple[int | None, ...]:
        """Lengths of the first input's axes as far as a file fixes them, None for the others; empty if unknown."""
        if self.kind == "onnx":
            shape = self._open().get_inputs()[0].shape
        elif self.kind == "export":
            shape = _read_export_shape(self._open_program())
        else:
            return ()
        return tuple(length if isinstance(length, int) else None for length in shape)

    def __call__(self, *inputs: NDArray[Any] | None, method: str = "", named: Named | None = None) -> Any:
        """What the network, or its `method`, answers to arrays by position and by name."""
        given, by_name = _split_unnamed(inputs, named or {})
        if self.kind == "onnx":
            return self._run_onnx(given, by_name)
        target = self._open()
        function = getattr(target, method) if method else target
        given, by_name = _fit_names(function, given, by_name)
        if self.arrays == "numpy":
            with evaluation_mode(self._modules()):
                return self._call_with_arrays(function, given, by_name)
        with exact_inference(self.precision), evaluation_mode(self._modules()):
            tensors = [self._to_tensor(value) for value in given]
            return function(*tensors, **{name: self._to_tensor(value) for name, value in by_name.items()})

    def __getstate__(self) -> dict[str, Any]:
        """The attributes; TorchScript and exported programs in memory, which do not pickle, as bytes of a file."""
        state = dict(self.__dict__)
        if saving := self._choose_saving():
            buffer = io.BytesIO()
            saving.save(self.network, buffer)
            state["network"] = _FileBytes(buffer.getvalue())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The attributes of another process."""
        self.__dict__.update(state)
        if isinstance(self.network, _FileBytes):
            torch, file = require("torch", extra="torch"), io.BytesIO(self.network)
            exported = self.kind == "export"
            self.network = torch.export.load(file) if exported else torch.jit.load(file, map_location=self.device)

    def _choose_saving(self) -> Any:
        """The part of torch that writes the network to a file; None for what pickles."""
        torch = sys.modules.get("torch")
        if torch is None or isinstance(self.network, Path):
            return None
        return torch.export if self.kind == "export" else torch.jit if _is_script(self.network) else None

    def _default_arrays(self) -> Arrays:
        if self.kind == "function":
            return "torch" if _refers_to_torch(self.network) else "numpy"
        return "numpy" if self.kind == "onnx" else "torch"

    def _choose_device(self, device: str | None) -> str:
        if self.arrays == "numpy":
            if device not in (None, "cpu"):
                raise ModelError(f"{_NAMES[self.kind]} runs on the CPU, not on {device!r}", remedy="leave device out")
            return "cpu"
        torch = require("torch", extra="torch")
        tensors = [tensor for module in self._modules() for tensor in _list_tensors(module)]
        if self.kind == "export" and not isinstance(self.network, Path):
            tensors = [*self.network.state_dict.values()]
        if device is None:
            return str(tensors[0].device) if tensors else "cpu"
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            what = f"torch cannot use the device {device!r}: {str(error).splitlines()[0]}"
            raise ModelError(what, remedy="device=cpu, or a torch built for it") from error
        for module in self._modules():
            module.to(device)
        return str(device)

    def _open(self) -> Any:
        """The object to call; for a file an open network, of which a process keeps the last few."""
        if isinstance(self.network, Path):
            return _open_file(self.network, _stamp_file(self.network), self.kind, self.device)
        return _open_export(self.network) if self.kind == "export" else self.network

    def _open_program(self) -> Any:
        if isinstance(self.network, Path):
            return _read_program(self.network, _stamp_file(self.network))
        return self.network

    def _modules(self) -> list[Any]:
        """The torch modules that are called."""
        if self.kind == "module":
            return [self.network]
        return _find_modules(self.network) if self.kind == "function" else []

    def _to_tensor(self, value: Any) -> Any:
        import torch

        if not isinstance(value, np.ndarray):  # no previous mask, or texts
            return value
        # A copy where the array is read-only, as those that several units share: a network may write to its input.
        tensor = torch.from_numpy(np.require(value, requirements=["C", "W"])).to(self.device)
        return tensor.to(self._float_type()) if tensor.is_floating_point() else tensor

    def _float_type(self) -> Any:
        import torch

        tensors = (tensor for module in self._modules() for tensor in _list_tensors(module))
        return next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), torch.float32)

    def _call_with_arrays(self, function: Any, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        try:
            return function(*given, **named)
        except (TypeError, AttributeError) as error:
            error.add_note("hardlook: the function is given numpy arrays; pass arrays='torch' for torch tensors")
            raise

    def _run_onnx(self, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        session = self._open()
        wanted = session.get_inputs()
        feed = dict(zip((entry.name for entry in wanted), given, strict=False))
        feed |= {entry.name: named[entry.name] for entry in wanted if entry.name in named}
        if lacking := [entry.name for entry in wanted if feed.get(entry.name) is None]:
            what = f"the network has an input {lacking[0]!r}, and there is nothing to give it"
            raise ModelError(what, file=self.network, remedy="export a network of images alone")
        for entry in wanted:
            dtype = _ONNX_TYPES.get(entry.type, feed[entry.name].dtype)
            feed[entry.name] = np.ascontiguousarray(feed[entry.name], dtype)
        names = [entry.name for entry in session.get_outputs()]
        answers = session.run(names, feed)
        return dict(zip(names, answers, strict=True)) if set(names) & set(_ONNX_NAMES) else tuple(answers)


class _FileBytes(bytes):
    """The file of a network."""


_NAMES = {
    "module": "a torch module",
    "export": "an exported program",
    "onnx": "an ONNX file",
    "script": "a TorchScript file",
    "function": "a function",
}


def _find_kind(network: Any) -> str:
    if isinstance(network, Path):
        if not network.is_file():
            raise DataError("the network's file does not exist", file=network, remedy=f"give {_FILES}")
        return {".onnx": "onnx", ".pt2": "export"}.get(network.suffix.lower(), "script")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(network, torch.nn.Module):
        return "module"
    if torch is not None and isinstance(network, torch.export.ExportedProgram):
        return "export"
    if callable(network):
        return "function"
    kind = f"{type(network).__module__}.{type(network).__qualname__}"
    raise OptionError(f"a {kind} cannot be called", remedy=f"give a torch module, a function, or a file: {_FILES}")


def _check_precision(precision: str, device: str) -> None:
    if precision not in get_args(Precision):
        raise OptionError(f"precision is {precision!r}", remedy=f"one of {', '.join(get_args(Precision))}")
    if precision != "float32" and not device.startswith("cuda"):
        raise OptionError(f"precision {precision} is for a GPU", remedy="device=cuda, or precision=float32")


@contextlib.contextmanager
def evaluation_mode(modules: Sequence[Any]) -> Iterator[None]:
    """The torch modules in evaluation mode; afterwards each of their parts is as it was."""
    training = [part for module in modules for part in module.modules() if part.training]
    if not training:
        yield
        return
    try:
        for module in modules:
            module.eval()
        yield
    finally:
        for part in training:
            part.training = True


def _stamp_file(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@functools.lru_cache(maxsize=4)
def _open_file(path: Path, stamp: tuple[int, ...], kind: str, device: str) -> Any:
    """An open network of a file; it is kept here and not in the model, so that models pickle and stay comparable."""
    if kind == "onnx":
        # One thread: sums of floats, and so answers, must not depend on the machine's cores.
        return open_onnx(path, 1, remedy="give an .onnx file")
    torch = require("torch", extra="torch")
    if kind == "export":
        program = _read_program(path, stamp)
        if device != "cpu":
            program = require("torch.export.passes", extra="torch").move_to_device_pass(program, device)
        return program.module()
    try:
        return torch.jit.load(path, map_location=device).eval()
    except (RuntimeError, ValueError, OSError) as error:
        what = f"not a TorchScript file: {str(error).strip().splitlines()[0]}"
        remedy = f"save it by torch.jit.save, or give the network itself; endings: {_FILES}"
        raise ModelError(what, file=path, remedy=remedy) from error


@functools.lru_cache(maxsize=4)
def _read_program(path: Path, stamp: tuple[int, ...]) -> Any:
    torch = require("torch", extra="torch")
    try:
        return torch.export.load(path)
    except Exception as error:  # zip files, schemas and pickles each raise errors of their own
        lines = str(error).strip().splitlines() or [type(error).__name__]
        remedy = "save it by torch.export.save"
        raise ModelError(f"not a file of torch.export: {lines[0]}", file=path, remedy=remedy) from error


@functools.lru_cache(maxsize=4)
def _open_export(program: Any) -> Any:
    return program.module()


def _read_export_shape(program: Any) -> Sequence[Any]:
    names = program.graph_signature.user_inputs
    shapes = [node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    return shapes[0] if shapes else ()


def _split_unnamed(inputs: Sequence[Any], named: Named) -> tuple[list[Any], dict[str, Any]]:
    unnamed = [value for name, value in named.items() if not name]
    return [*inputs, *unnamed], {name: value for name, value in named.items() if name}


def _fit_names(function: Any, given: list[Any], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Inputs as the function takes them: of an image processor's values only those that it has parameters for."""
    if not named:
        return given, named
    try:
        known = inspect.signature(getattr(function, "forward", function)).parameters
    except (TypeError, ValueError):  # compiled
        return given, named
    kept = {name: value for name, value in named.items() if name in known}
    # A network that calls its images something else.
    images = named.get("pixel_values") if "pixel_values" not in known else None
    return ([*given, images] if images is not None else given), kept


def _is_script(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.jit.ScriptModule)


def _list_tensors(module: Any) -> Iterator[Any]:
    yield from module.parameters()
    yield from module.buffers()


def _list_references(function: Any) -> list[Any]:
    """What a function uses: its object, a partial's arguments, its closure, and globals that its code names."""
    if isinstance(function, functools.partial):
        return [*_list_references(function.func), function.func, *function.args, *function.keywords.values()]
    if inspect.ismethod(function):
        held = getattr(function.__self__, "__dict__", {}).values()
        return [function.__self__, *held, *_list_references(function.__func__)]
    if inspect.isfunction(function):
        try:
            used = inspect.getclosurevars(function)
        except ValueError:  # a variable of the closure without a value yet
            return []
        return [*used.nonlocals.values(), *used.globals.values()]
    call = inspect.getattr_static(type(function), "__call__", None)
    used_by_class = _list_references(call) if inspect.isfunction(call) else []
    return [*getattr(function, "__dict__", {}).values(), *used_by_class]


def _find_modules(function: Any) -> list[Any]:
    """The torch modules that a function refers to, also by functions, objects and containers in between."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    found: list[Any] = []
    seen: set[int] = set()
    level = [function]
    for _ in range(_REFERENCE_DEPTH):
        values = [part for one in level for part in _list_parts(one)]
        level = []
        for value in values:
            if id(value) in seen or len(seen) >= _MAX_REFERENCES:
                continue
            seen.add(id(value))
            (found if isinstance(value, torch.nn.Module) else level).append(value)
    return found


def _list_parts(value: Any) -> list[Any]:
    """What a function, an object or a container refers to; nothing of modules, classes and functions of libraries."""
    if isinstance(value, Mapping | list | tuple | set):
        return list(itertools.islice(value.values() if isinstance(value, Mapping) else value, _MAX_REFERENCES))
    if value is None or isinstance(value, type | str | bytes | int | float | np.ndarray) or inspect.ismodule(value):
        return []
    if not inspect.isfunction(value):
        return _list_references(value)
    return [] if find_distributions(_package_of(value)) else [*_list_references(value), *_list_nested_globals(value)]


def _list_nested_globals(function: Any) -> list[Any]:
    """The globals that functions and comprehensions inside a function name."""
    codes = [function.__code__]
    for code in codes:
        codes += filter(inspect.iscode, code.co_consts)
    names = {name for code in codes[1:] for name in code.co_names}
    return [function.__globals__[name] for name in sorted(names) if name in function.__globals__]


def _refers_to_torch(function: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    return any(
        isinstance(value, torch.nn.Module | torch.Tensor) or _package_of(value) == "torch"
        for value in _list_references(function)
    )


def _package_of(value: Any) -> str:
    """The top-level package of a module, function or object."""
    name = getattr(value, "__name__", "") if inspect.ismodule(value) else getattr(value, "__module__", None)
    return str(name or type(value).__module__).partition(".")[0]


@functools.lru_cache(maxsize=256)
def find_distributions(package: str) -> tuple[str, ...]:
    """Names of the installed distributions that a top-level package belongs to; none for your own code.

    >>> find_distributions("numpy"), find_distributions("json")
    (('numpy',), ())
    """
    file = str(getattr(sys.modules.get(package), "__file__", None) or "")
    if "site-packages" not in file and "dist-packages" not in file:
        return ()
    try:
        return (str(metadata.distribution(package).metadata["Name"]).lower(),)
    except metadata.PackageNotFoundError:
        return tuple(sorted(name.lower() for name in metadata.packages_distributions().get(package, ())))
