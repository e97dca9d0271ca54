"""Folders of models in transformers' layout: a local one, one of the Hugging Face cache, or a download into it.

`hf:FOLDER` is a folder with `config.json`; any other name is a repository of the model hub, such as
`facebook/dinov2-small`, perhaps with a revision (`facebook/dinov2-small@v1.0`). What the cache holds is used as it is;
what must be downloaded is announced first, and offline it is an error. Code that a repository brings is never run.

>>> split_revision("facebook/dinov2-small@v1.0"), split_revision("facebook/dinov2-small")
(('facebook/dinov2-small', 'v1.0'), ('facebook/dinov2-small', 'main'))
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hardlook.errors import DataError, ModelError
from hardlook.extras import require
from hardlook.models.families.downloads import announce_download, forbid_downloads, is_offline
from hardlook.models.transformers_folder import WEIGHTS
from hardlook.reading import read_json

SETTINGS = ("*.json", "*.txt", "*.model")
"""Files of a repository beside the weights that a model may need; no code."""

_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")


def split_revision(name: str) -> tuple[str, str]:
    """A repository's name and its revision, `main` by default."""
    repository, _, revision = name.partition("@")
    return repository, revision or "main"


def read_model_config(name: str) -> dict[str, Any]:
    """The content of the model's `config.json`; of a repository that is not cached, this file alone is downloaded."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        path = folder / "config.json"
        if not path.is_file():
            raise DataError(
                "the folder has no config.json", file=folder, remedy="give a folder in transformers' layout"
            )
    else:
        repository, revision = _check_repository(name)
        cached = _find_cached(repository, revision)
        path = cached / "config.json" if cached else _download_config(repository, revision)
    config = read_json(path, what="not a readable configuration", remedy="download the model again")
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        _refuse_code(config, path)
        raise ModelError("the configuration names no model_type", file=path, remedy="give a model of transformers")
    return config


def find_model_folder(name: str) -> Path:
    """The folder with the model's files: as given, from the cache, or downloaded into it."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    repository, revision = _check_repository(name)
    cached = _find_cached(repository, revision)
    return cached if cached and _has_weights(cached) else _download_model(repository, revision)


def list_cached_models(pattern: str = "*") -> list[str]:
    """Names of the repositories in the cache whose configuration is there and whose name fits the pattern, sorted."""
    cache = _find_cache()
    found = (path for path in cache.glob("models--*") if any(path.glob("snapshots/*/config.json")))
    names = (path.name.removeprefix("models--").replace("--", "/") for path in found)
    return sorted(name for name in names if fnmatchcase(name, pattern))


def check_no_code(config: Mapping[str, Any], known: bool, where: Path | str) -> None:
    """Raise a `ModelError` for a model that transformers does not know and that brings its own code."""
    if not known:
        _refuse_code(config, where)


def _refuse_code(config: Any, where: Path | str) -> None:
    if isinstance(config, Mapping) and config.get("auto_map"):
        raise ModelError(
            "the model is defined by code in its repository, which is never run (trust_remote_code stays off)",
            file=where,
            remedy="load it in your own code and give the object to hl.wrap, or choose a model of transformers itself",
        )


def _check_repository(name: str) -> tuple[str, str]:
    repository, revision = split_revision(name)
    if not _REPOSITORY.fullmatch(repository) or ".." in repository:
        raise DataError(
            "the model's folder does not exist", file=name, remedy="give a folder, or hf:OWNER/NAME of a hub"
        )
    return repository, revision


def _find_cache() -> Path:
    # As huggingface_hub finds it, but read now: the library reads it once, when it is imported.
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or home / "hub").expanduser()


def _find_cached(repository: str, revision: str) -> Path | None:
    """The cached snapshot of a revision (a branch, a tag or a commit); None where its config.json is not there."""
    snapshot = _name_snapshot(repository, revision)
    return snapshot if (snapshot / "config.json").is_file() else None


def _name_snapshot(repository: str, revision: str) -> Path:
    """The folder of a revision in the cache, which need not exist: of a branch that is not cached, by its own name."""
    folder = _find_cache() / f"models--{repository.replace('/', '--')}"
    named = folder / "refs" / revision
    commit = named.read_text(encoding="utf-8").strip() if named.is_file() else revision
    return folder / "snapshots" / commit


def _has_weights(folder: Path) -> bool:
    return any((folder / name).is_file() for name in WEIGHTS)


def _download_config(repository: str, revision: str) -> Path:
    source = _find_endpoint()
    where = f"{source}/{repository}"
    _announce(f"config.json of {repository}", None, where, _name_snapshot(repository, revision) / "config.json")
    with _hub_calls(repository, source) as hub:
        return Path(hub.hf_hub_download(repository, "config.json", revision=revision, **_hub_options(source)))


def _download_model(repository: str, revision: str) -> Path:
    """Download settings and weights, safetensors where the repository has them."""
    source = _find_endpoint()
    if is_offline() or _is_hub_off():
        _announce(f"the model {repository}", None, f"{source}/{repository}", _name_snapshot(repository, revision))
    with _hub_calls(repository, source) as hub:
        info = hub.HfApi(endpoint=source).model_info(repository, revision=revision, files_metadata=True)
    sizes = {entry.rfilename: entry.size for entry in info.siblings}
    wanted = _choose_files(list(sizes), f"{source}/{repository}")
    known = [sizes[name] for name in wanted]
    size = None if None in known else sum(known)
    _announce(f"the model {repository}", size, f"{source}/{repository}", _name_snapshot(repository, revision))
    with _hub_calls(repository, source) as hub:
        folder = hub.snapshot_download(repository, revision=revision, allow_patterns=wanted, **_hub_options(source))
    return Path(folder)


def _choose_files(names: Sequence[str], where: str) -> list[str]:
    """The files to fetch, all at the top of the repository: settings, and one kind of weights.

    >>> _choose_files(["config.json", "model.safetensors", "pytorch_model.bin", "onnx/model.onnx"], "hub")
    ['config.json', 'model.safetensors']
    """
    top = [name for name in names if "/" not in name]
    for pattern in ("model*.safetensors", "pytorch_model*.bin"):
        if weights := [name for name in top if fnmatchcase(name, pattern)]:
            settings = [name for name in top if any(fnmatchcase(name, kind) for kind in SETTINGS)]
            return sorted({*settings, *weights})
    remedy = "choose a repository with model.safetensors or pytorch_model.bin"
    raise ModelError("the repository has no weights that transformers reads", file=where, remedy=remedy)


def _announce(what: str, size: int | None, source: str, place: Path) -> None:
    """Announce a download into the cache; offline, the error says that the files can be put at `place` by hand."""
    with forbid_downloads(_is_hub_off()):
        announce_download(what, size, source, place if is_offline() else _find_cache())


def _is_hub_off() -> bool:
    """Whether the user has switched the hub off by its own environment variable."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in ("1", "true", "yes", "on")


def _find_endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def _hub_options(source: str) -> dict[str, Any]:
    return {"endpoint": source, "cache_dir": _find_cache()}


@contextmanager
def _hub_calls(repository: str, source: str) -> Iterator[Any]:
    """The package huggingface_hub, switched on; what it raises becomes an error that names the repository."""
    hub = require("huggingface_hub", extra="hf")
    constants: Any = require("huggingface_hub.constants", extra="hf")
    before = constants.HF_HUB_OFFLINE
    # The library reads its switch once, when it is imported, perhaps while another model was loaded offline.
    constants.HF_HUB_OFFLINE = False
    try:
        yield hub
    except (OSError, ValueError, RuntimeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"{repository} could not be downloaded from {source}: {lines[0]}",
            remedy="check the name; or give a local folder in transformers' layout as hf:FOLDER",
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = before
