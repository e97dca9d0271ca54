"""What tools/check_release.py looks for, and the files of a release that must agree with each other."""

import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import hardlook

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
INCLUDED = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]


@pytest.fixture(scope="module")
def check_release():
    spec = importlib.util.spec_from_file_location("check_release", ROOT / "tools" / "check_release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def package_files(check_release):
    return check_release.list_package_files(ROOT / "src" / "hardlook")


def test_files_of_the_package_are_those_of_the_wheel(check_release, package_files):
    assert {"hardlook/py.typed", "hardlook/models/built_in.toml", "hardlook/api/runs.py"} <= package_files
    information = {"hardlook-0.2.0.dist-info/METADATA", "hardlook-0.2.0.dist-info/licenses/LICENSE"}
    assert check_release.find_wheel_errors(package_files | information, package_files) == []


@pytest.mark.parametrize("lost", ["hardlook/py.typed", "hardlook/models/built_in.toml", "hardlook/world/colours.csv"])
def test_a_wheel_without_a_data_file_is_refused(check_release, package_files, lost):
    assert check_release.find_wheel_errors(package_files - {lost}, package_files) == [f"the wheel lacks {lost}"]


@pytest.mark.parametrize("foreign", ["tests/test_errors.py", "docs/index.md", "benchmarks/a.py", "hardlook/old.py"])
def test_a_wheel_with_other_files_is_refused(check_release, package_files, foreign):
    (error,) = check_release.find_wheel_errors(package_files | {foreign}, package_files)
    assert error == f"the wheel holds {foreign}, which is not in src/hardlook"


def test_a_kind_of_file_that_nothing_reads_is_refused(check_release, package_files):
    files = package_files | {"hardlook/cli/run.py.orig"}
    (error,) = check_release.find_wheel_errors(files, files)
    assert error.startswith("hardlook/cli/run.py.orig")


def test_a_source_distribution_holds_what_pyproject_lists(check_release):
    names = [f"hardlook-0.2.0/{name}" for name in INCLUDED]
    assert check_release.find_sdist_errors([*names, "hardlook-0.2.0/src/hardlook/py.typed"], INCLUDED) == []
    assert check_release.find_sdist_errors(names[1:], INCLUDED) == ["the source distribution lacks src"]
    assert all((ROOT / name).exists() for name in INCLUDED)


def test_every_dependency_of_the_core_has_a_lowest_version(check_release):
    pins = check_release.list_lowest(PROJECT["project"]["dependencies"])
    assert len(pins) == len(PROJECT["project"]["dependencies"])
    assert "cloudpickle==3.0" in pins
    for unbounded in ("numpy", "numpy<3", "numpy>=1,<3"):
        with pytest.raises(SystemExit, match="NAME>=VERSION"):
            check_release.list_lowest([unbounded])


def test_ci_installs_the_newest_versions_and_a_release_all(check_release, monkeypatch, capsys):
    monkeypatch.setattr(check_release, "find_interpreter", {"3.13": "/opt/python3.13"}.get)
    newest = ("newest", sys.executable, [])
    assert check_release.list_cases(["numpy==1.26"], newest_only=True) == [newest]
    cases = check_release.list_cases(["numpy==1.26"])
    assert cases == [newest, ("lowest", sys.executable, ["numpy==1.26"]), ("newest", "/opt/python3.13", [])]
    assert capsys.readouterr().out == "Python 3.12: not on this machine, not checked\n"
    assert "release CHECK=--newest" in (ROOT / ".ci" / "run").read_text()


def test_an_interpreter_that_does_not_start_is_passed_over(check_release, tmp_path, monkeypatch):
    """pyenv puts commands on the search path that only print an error when their version is not selected."""
    command, installed = tmp_path / "shims" / "python3.99", tmp_path / "versions" / "3.99.1" / "bin" / "python3.99"
    for path, code in ((command, 127), (installed, 0)):
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\nexit {code}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert check_release.find_interpreter("3.99") == str(installed)
    installed.unlink()
    assert check_release.find_interpreter("3.99") is None


def test_a_command_that_fails_ends_the_check_with_what_it_printed(check_release):
    with pytest.raises(SystemExit, match=r"ended with 3\nso much\n"):
        check_release.run(sys.executable, "-c", "print('so much'); raise SystemExit(3)")


def test_the_citation_is_of_this_version():
    """The keys that version 1.2.0 of the Citation File Format requires, and the facts that pyproject.toml has too."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["title"]
    assert citation["version"] == hardlook.__version__
    assert citation["authors"] == PROJECT["project"]["authors"]
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["keywords"] == PROJECT["project"]["keywords"]


def test_the_changelog_begins_with_this_version():
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## ")]
    assert headings[0].split()[1] == hardlook.__version__
