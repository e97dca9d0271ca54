"""`hl.serve`: the explorer of runs, in the background of a notebook or a script."""

from __future__ import annotations

import warnings
import webbrowser
from collections.abc import Collection
from pathlib import Path

from hardlook.cloud.run_folders import open_run
from hardlook.errors import DataError, RunWarning
from hardlook.report.explorer.app import Explorer


def serve(
    folder: str | Path,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    open_browser: bool = False,
    benchmarks: Collection[str] = (),
) -> Explorer:
    """Serve an explorer of all runs below a folder: filter, sort, open units, compare models. It needs the extra `web`.

    It serves in the background until `stop()`, the end of a `with` block or of the process; a script ends with
    `hl.serve("runs").wait()`, which waits for Ctrl-C.

    Args:
        folder: A folder with runs, at any depth, or one run.
        port: The port; 0 takes a free one.
        host: The address to listen on; anything but this machine's own is open to others.
        open_browser: Open the first page in a browser.
        benchmarks: `package.module:attribute` of benchmarks of your own.
    """
    explorer = open_explorer(folder, port=port, host=host, benchmarks=benchmarks)
    for text in (*explorer.notes, *explorer.warnings):
        warnings.warn(text, RunWarning, stacklevel=2)
    explorer.start()
    if open_browser:
        webbrowser.open(explorer.address)
    return explorer


def open_explorer(
    folder: str | Path, *, port: int = 0, host: str = "127.0.0.1", benchmarks: Collection[str] = ()
) -> Explorer:
    """An explorer that listens and is not yet served."""
    place = open_run(folder)
    if not place.is_dir():
        raise DataError("there is no such folder", file=place, remedy="give a folder with runs")
    return Explorer(place, port=port, host=host, benchmarks=benchmarks)
