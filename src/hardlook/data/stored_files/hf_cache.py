"""Datasets of the Hugging Face hub that are on this machine already; nothing is downloaded.

`load_dataset` leaves Arrow files in `HF_DATASETS_CACHE` (`HF_HOME/datasets`), in a folder
`OWNER___NAME/CONFIG/VERSION/HASH`; `snapshot_download` leaves the Parquet files of a repository in `HF_HUB_CACHE`
(`HF_HOME/hub`), in a folder `datasets--OWNER--NAME/snapshots/REVISION`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hardlook.errors import DataError

_ID = re.compile(r"[\w.-]+(/[\w.-]+){0,2}")
_TABLES = (".arrow", ".parquet")
_MAX_LISTED = 8


def find_dataset(path: Path) -> Path:
    """The path itself where it exists; else the folder in the cache of the hub's dataset of that name.

    A name is OWNER/NAME, NAME, or one of these and /CONFIG where several configurations are cached.
    """
    if path.exists():
        return path
    name = path.as_posix()
    if path.is_absolute() or not _ID.fullmatch(name):
        raise DataError("there is no such file or folder of a dataset", file=path, remedy="check the path")
    datasets, hub = list_cache_folders()
    found = _find_tables(datasets, name) or _find_snapshots(hub, name)
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(str(one) for one in found[:_MAX_LISTED])
        what = f"the cache has several datasets {name}"
        raise DataError(what, file=path, remedy=f"give {name}/CONFIG, or the folder itself: {listed}")
    what = f"there is no such file or folder, and no dataset {name} in the cache ({datasets}, {hub})"
    remedy = "check the path; or let datasets.load_dataset fetch it once: hardlook does not download datasets"
    raise DataError(what, file=path, remedy=remedy)


def list_cache_folders() -> tuple[Path, Path]:
    """The folders of the caches: of prepared datasets, and of the files of the hub."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    home = Path(os.environ.get("HF_HOME") or cache / "huggingface").expanduser()
    datasets = Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets").expanduser()
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    return datasets, hub


def _find_tables(cache: Path, name: str) -> list[Path]:
    """The folders with the Arrow files of a dataset, one for each configuration and version."""
    parts = name.split("/")
    choices = [(_to_folder(parts[:2]), parts[2:]), (_to_folder(parts[:1]), parts[1:])]
    for folder, rest in choices:
        if len(rest) > 1 or not (cache / folder).is_dir():
            continue
        inside = cache / folder / rest[0] if rest else cache / folder
        found = {one.parent for depth in ("*", "*/*", "*/*/*") for one in inside.glob(f"{depth}/*.arrow")}
        if found:
            return sorted(found)
    return []


def _to_folder(parts: list[str]) -> str:
    # The cache spells names as Python's modules: SceneParse150 is scene_parse150.
    spelt = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", parts[-1])).lower()
    return "___".join([*parts[:-1], spelt])


def _find_snapshots(cache: Path, name: str) -> list[Path]:
    """The folder of the newest revision of a repository, or of one configuration in it, if it holds tables."""
    parts = name.split("/")
    for owner_and_name, rest in ((parts[:2], parts[2:]), (parts[:1], parts[1:])):
        repository = cache / f"datasets--{'--'.join(owner_and_name)}"
        if len(rest) > 1 or not repository.is_dir():
            continue
        main = repository / "refs" / "main"
        # A revision is a hash; anything else would lead to another folder.
        revision = main.read_text(encoding="utf-8", errors="replace").strip() if main.is_file() else ""
        snapshots = [repository / "snapshots" / revision] if re.fullmatch(r"[0-9a-f]{40}", revision) else []
        snapshots = snapshots or sorted((repository / "snapshots").glob("*"))
        folders = [snapshot / rest[0] if rest else snapshot for snapshot in snapshots]
        found = {_top(one, folder) for folder in folders for one in folder.glob("**/*") if one.suffix in _TABLES}
        if found:
            return sorted(found)
    return []


def _top(file: Path, snapshot: Path) -> Path:
    """The folder that is given to the reader, which looks into a folder and its `data`."""
    return snapshot if file.parent in (snapshot, snapshot / "data") else file.parent
