"""A training from the words of its options to its finished folder: device, threads, processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from hardlook.errors import OptionError
from hardlook.training.devices import open_fabric
from hardlook.training.folder import Trained, read_trained


def find_folder(out: str | Path) -> Path:
    """The folder of a training, which may not be there yet; an error where a file is in its place."""
    folder = Path(out).expanduser()
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    if there.is_file():
        raise OptionError("this is a file, not a folder", file=there, remedy="choose a folder for --out")
    return folder


@contextmanager
def open_training(
    device: str, *, devices: int = 1, strategy: str = "auto", precision: str = "float32", threads: int
) -> Iterator[Any]:
    """A Fabric, as of `open_fabric`; on a processor with so many `threads` in the block, on which weights depend."""
    # Only a launch needs these libraries, not a loop that users write.
    from hardlook.threads import pinned_threads

    fabric: Any = open_fabric(device, precision=precision, devices=devices, strategy=strategy)  # type: ignore[arg-type]
    with pinned_threads(threads) if device == "cpu" else nullcontext():
        yield fabric


def launch_training(fabric: Any, folder: Path, train: Callable[[Any], None]) -> tuple[Trained, int]:
    """Call `train(fabric)` in every process; the training in the folder, and the number of this process."""

    def work(opened: Any) -> int:
        train(opened)
        return int(opened.global_rank)

    rank = int(fabric.launch(work))
    return read_trained(folder), rank
