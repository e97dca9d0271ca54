"""Paths among a stored run's options: those that were given relative to the folder where the run was started.

>>> import tempfile
>>> started = Path(tempfile.mkdtemp())
>>> (started / "truth").mkdir()
>>> manifest = {"directory": str(started), "options": {"gt": "truth", "pred": "elsewhere", "seed": 3}}
>>> located = locate_options(manifest, BenchmarkOptions)
>>> located["gt"] == str(started / "truth"), located["pred"], located["seed"]
(True, 'elsewhere', 3)
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hardlook.errors import HardlookError
from hardlook.harness.options import BenchmarkOptions

DIRECTORY = "directory"
"""The key of `run.json` under which the folder of the run's command stands; runs before 0.2.0 have none."""


def locate_options(manifest: Mapping[str, Any], kind: type[BenchmarkOptions]) -> dict[str, Any]:
    """The options of `run.json` with relative paths as absolute ones, where they exist below the run's directory.

    Where they do not (the run was moved, or is an earlier one), they stay relative to the current folder.
    """
    directory = manifest.get(DIRECTORY)
    if not isinstance(directory, str):
        return dict(manifest["options"])

    def locate(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: locate(one, name) for key, one in value.items()}
        if not _is_relative_path(value, name, kind):
            return value
        return str(Path(directory, value)) if Path(directory, value).exists() else value

    return {name: locate(value, name) for name, value in manifest["options"].items()}


def explain_missing_path(error: HardlookError, options: BenchmarkOptions) -> HardlookError:
    """The error with a remedy that says where the run was started, if it names a relative path that is not here."""
    for name, value in options.model_dump(mode="json").items():
        for one in value.values() if isinstance(value, dict) else (value,):
            if _is_relative_path(one, name, type(options)) and not Path(one).exists():
                if repr(one) in error.what or one == error.file:
                    what = f"the run names {one} relative to the folder in which it was started"
                    remedy = f"{what}: type the command there"
                    return type(error)(error.what, file=error.file, unit=error.unit, remedy=remedy)
    return error


def _is_relative_path(value: Any, name: str, kind: type[BenchmarkOptions]) -> bool:
    if not isinstance(value, str) or not value or "\n" in value or "://" in value or name not in kind.model_fields:
        return False
    # Options such as --labels take a name or a file; names have neither an ending nor a folder.
    takes_path = "Path" in repr(kind.model_fields[name].annotation)
    return not Path(value).is_absolute() and (takes_path or "/" in value or bool(Path(value).suffix))
