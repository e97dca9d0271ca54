"""Compile all kernels in Triton's language for GPUs that this machine need not have.

`python tools/compile_kernels.py` prints a row per kernel and architecture: shared memory, registers and spilled bytes.
Every variant is compiled that the trials launch before a GPU uses the kernels (`try_kernels`), by Triton's own compiler
and assembler; nothing runs. Exit status 1: a kernel does not compile, or takes more shared memory than a block has on
that architecture.

`python tools/compile_kernels.py --run` tries all kernels on the GPU of this machine, as a process does before it uses
them, and prints seconds or what is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

SHARED_MEMORY = {80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 120: 99}
"""KiB that a block of threads may have: A100, RTX 30, RTX 40, H100 and H200, B200, RTX 50."""


class NoDevice:
    """What Triton asks the driver of a GPU while it compiles."""

    def __init__(self, architecture: int) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget("cuda", architecture, 32)

    def get_current_target(self) -> Any:
        """The architecture."""
        return self._target

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        """The usual one."""
        return 0


def fill_empty() -> AbstractContextManager[Any]:
    """Tensors that are made for a kernel to write are 0: it does not run, and a pixel's number, say, is read later."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Filled(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
            result = function(*given, **(named or {}))
            return result.zero_() if function in (torch.empty, torch.empty_like, torch.Tensor.new_empty) else result

    return Filled()


def list_trials(architecture: int, where: Any = None) -> dict[str, Callable[[], Any]]:
    """The trial of every module that has kernels, by the module's name.

    Kernels for sizes and settings that no trial has are not compiled here.
    """
    import torch

    from hardlook.networks.interactive.gpu import convolutions as gpu_convolutions
    from hardlook.networks.interactive.gpu import norms as gpu_norms
    from hardlook.networks.kernels import fused_layers, fused_norm, split_products, task_kernels
    from hardlook.training.images import fused_augmentation

    here = where or torch.device("cpu")
    trials: dict[str, Callable[[], Any]] = {
        "fused_augmentation": lambda: fused_augmentation.find_kernel(here),
        "fused_layers": lambda: fused_layers.find_kernels(here),
        "fused_norm": lambda: fused_norm.find_kernels(here),
        "gpu_convolutions": lambda: gpu_convolutions.load_kernels(here),
        "gpu_norms": lambda: gpu_norms.load_kernels(here),
    }
    if architecture == 90:  # for Hopper's GPUs alone
        trials["split_products"] = lambda: split_products.find_kernels(here)
    for dtype, rounds in ((torch.bfloat16, True), (torch.float32, False), (torch.float32, True)):
        name = f"task_kernels {str(dtype).removeprefix('torch.')}{' rounded' if rounds else ''}"
        trials[name] = lambda dtype=dtype, rounds=rounds: task_kernels.find_operations(here, dtype, 64, rounds)
    return trials


def run_trials() -> bool:
    """Try all kernels on the GPU of this machine; whether all passed."""
    import warnings

    import torch

    passed = True
    where = torch.device("cuda", torch.cuda.current_device())
    architecture = 10 * torch.cuda.get_device_capability(where)[0]
    for name, trial in list_trials(architecture, where).items():
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            kernels = trial()
        reasons = [str(one.message) for one in found] or [
            "no Triton, a GPU before Ampere, or the kernels are switched off"
        ]
        passed = passed and kernels is not None
        print(f"{name:<30}", f"{time.perf_counter() - started:.1f} s" if kernels is not None else "; ".join(reasons))
    return passed


def compile_all(architecture: int) -> list[dict[str, Any]]:
    """A row for every kernel that the trials launch, and for every trial that ends in an error."""
    import torch
    import triton
    from triton.runtime.jit import JITFunction

    from hardlook.networks.kernels import triton_kernels

    triton.runtime.driver.set_active(NoDevice(architecture))
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    run = JITFunction.run
    trial = ""

    def compile_only(self: Any, *given: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = run(self, *given, grid=grid, warmup=True, **options)
        if kernel.hash not in seen:
            seen.add(kernel.hash)
            rows.append({"trial": trial, "kernel": self.fn.__name__, **measure(kernel)})
        return kernel

    JITFunction.run = compile_only
    # Nothing has run, so there is nothing to compare. Modules take these by name, so before they are imported.
    triton_kernels.try_kernels = lambda build, where, what="": build()  # type: ignore[assignment, return-value]
    triton_kernels.check_close = lambda *given: None  # type: ignore[assignment]
    # The same kernels as of larger trials, in whose time torch would compute what nobody looks at.
    from hardlook.networks.kernels import split_products, task_kernels

    task_kernels.TRIED, split_products.TRIED = (3, 21, 20), (20, 72)
    for trial, launch in list_trials(architecture).items():
        try:
            with torch.no_grad(), fill_empty():
                launch()
        except Exception as error:  # Triton's compiler has many kinds
            rows.append({"trial": trial, "error": f"{type(error).__name__}: {error}"})
    limit = SHARED_MEMORY[architecture] * 1024
    for row in rows:
        if row.get("shared", 0) > limit:
            row["error"] = f"{row['shared']} bytes of shared memory, a block has {limit}"
    return rows


def measure(kernel: Any) -> dict[str, Any]:
    """Shared memory, registers and spilled bytes of a compiled kernel."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(kernel.asm["cubin"])
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(path)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {name: int(value) for name, value in re.findall(r"(REG|STACK):(\d+)", text)}
    return {
        "warps": kernel.metadata.num_warps,
        "shared": kernel.metadata.shared,
        "registers": found["REG"],
        "spilled": found["STACK"],
    }


def main() -> None:
    """Read the arguments, compile, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = sorted(SHARED_MEMORY)
    parser.add_argument("--architectures", nargs="+", type=int, choices=kinds, default=kinds, metavar="SM")
    parser.add_argument("--json", action="store_true", help="print rows as JSON, one list per architecture")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--run", action="store_true", help="try all kernels on the GPU of this machine")
    chosen = parser.parse_args()
    if chosen.run:
        import torch

        if not torch.cuda.is_available():
            sys.exit("torch finds no NVIDIA GPU on this machine; without --run the kernels are compiled for others")
        sys.exit(0 if run_trials() else 1)
    if chosen.one:
        print(json.dumps(compile_all(chosen.one)))
        return
    # A process each: Triton keeps what it knows of a driver. Without its interpreter, whatever the environment says.
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    failed, results = False, {}
    for architecture in chosen.architectures:
        command = [sys.executable, __file__, "--one", str(architecture)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        rows = results[architecture] = json.loads(done.stdout.splitlines()[-1])
        failed = failed or not rows or any("error" in row for row in rows)
        if chosen.json:
            continue
        for row in rows:
            what = row.get("error") or (
                f"{row['warps']} warps, {row['shared'] / 1024:.0f} KiB shared, {row['registers']} registers, "
                f"{row['spilled']} bytes spilled"
            )
            print(f"sm_{architecture}  {row['trial']:<26} {row.get('kernel', ''):<20} {what}")
    if chosen.json:
        print(json.dumps(results))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
