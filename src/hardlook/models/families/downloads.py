"""Weights that may have to be downloaded: files on this machine first, downloads announced on stderr, none offline.

>>> describe_size(102_500_000), describe_size(None)
('102 MB', 'size unknown')
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from hardlook.errors import ModelError, shorten
from hardlook.extras import require

OFFLINE = "HARDLOOK_OFFLINE"
"""The environment variable that forbids downloads: any value but an empty one, 0, false or no. Workers inherit it."""


def is_offline() -> bool:
    """Whether downloads are forbidden, by `--offline`, `offline=True` or the environment variable."""
    return os.environ.get(OFFLINE, "").strip().lower() not in ("", "0", "false", "no")


@contextmanager
def forbid_downloads(offline: bool = True) -> Iterator[None]:
    """Downloads are forbidden inside, also in processes that are started there; without `offline` nothing changes."""
    before = os.environ.get(OFFLINE)
    if offline:
        os.environ[OFFLINE] = "1"
    try:
        yield
    finally:
        if offline and before is None:
            os.environ.pop(OFFLINE, None)
        elif offline and before is not None:
            os.environ[OFFLINE] = before


def announce_download(what: str, size: int | None, source: str, destination: Path | str = "") -> None:
    """Say on stderr what is fetched next: `what`, its `size` in bytes if known, from whom, and into which file.

    Call it before the download. Offline it raises a `ModelError` that names the file to get and where to put it.
    """
    if is_offline():
        put = f"put it at {destination}" if destination else "name the file or folder in place of the model"
        raise ModelError(
            f"{what} is not on this machine, and downloads are forbidden (--offline or {OFFLINE})",
            remedy=f"get it from {source} and {put}; or allow the download",
        )
    into = f" into {destination}" if destination else ""
    sys.stderr.write(f"downloading {what} ({describe_size(size)}) from {source}{into}\n")
    sys.stderr.flush()


def describe_size(size: int | None) -> str:
    """Bytes as a person reads them; "size unknown" for None."""
    if size is None:
        return "size unknown"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def fetch_from_hub(repository: str, names: Sequence[str], *, extra: str) -> Path:
    """The first of the files `names` that the repository of the Hugging Face hub has: from its cache, else downloaded.

    `repository` may end with @REVISION. `extra` installs the library that needs the file.
    """
    hub, constants = require("huggingface_hub", extra=extra), require("huggingface_hub.constants", extra=extra)
    identifier, _, revision = repository.partition("@")
    for name in names:
        cached = hub.try_to_load_from_cache(identifier, name, revision=revision or None)
        if isinstance(cached, str):
            return Path(cached)
    folder = Path(constants.HF_HUB_CACHE) / f"models--{identifier.replace('/', '--')}" / "snapshots"
    source = f"{constants.ENDPOINT}/{identifier}"
    size = None
    chosen = names[0]
    if not is_offline():
        chosen, size = _find_hub_file(hub, identifier, names, revision or None)
    announce_download(f"{chosen} of {identifier}", size, source, folder / (revision or "main") / chosen)
    try:
        return Path(hub.hf_hub_download(identifier, chosen, revision=revision or None))
    except Exception as error:  # errors of the hub and of its HTTP client share no parent
        raise _download_error(f"{chosen} of {identifier}", source, folder / (revision or "main"), error) from error


def fetch_url(url: str, size: int | None = None) -> Path:
    """The file of that address: from the cache of torch.hub, else downloaded; its hash is checked by torch.

    The hash is the part of the file's name after the last dash, as in `resnet50-11ad3fa6.pth`.
    """
    torch = require("torch", extra="torch")
    name = Path(urlparse(url).path).name
    path = Path(torch.hub.get_dir()) / "checkpoints" / name
    if path.is_file():
        return path
    announce_download(name, size, url, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    found = torch.hub.HASH_REGEX.search(name)
    try:
        torch.hub.download_url_to_file(url, str(path), found.group(1) if found else None, progress=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise _download_error(name, url, path, error) from error
    return path


def _find_hub_file(hub: Any, identifier: str, names: Sequence[str], revision: str | None) -> tuple[str, int | None]:
    """The first of the names that the repository has, and its size; where it cannot be asked, the first name."""
    missing = require("huggingface_hub.errors", extra="hf").EntryNotFoundError
    for name in names:
        try:
            known = hub.get_hf_file_metadata(hub.hf_hub_url(identifier, name, revision=revision), timeout=10)
        except missing:
            continue
        except Exception:  # the download itself says what is wrong
            break
        return name, known.size
    return names[0], None


def _download_error(what: str, source: str, path: Path, error: Exception) -> ModelError:
    reason = shorten((str(error).strip().splitlines() or [type(error).__name__])[0])
    return ModelError(
        f"{what} could not be downloaded from {source}: {reason}",
        remedy=f"check the connection, or get the file elsewhere and put it at {path}",
    )
