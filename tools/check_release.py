"""Checks a release as a user meets it: the wheel is built, read file by file, installed in empty environments and run.

`python tools/check_release.py` builds the source distribution and, from it, the wheel; lets `twine check --strict`
judge both; and compares the files of the wheel with `src/hardlook`. It then installs the wheel without extras: with
the newest versions of its dependencies, with the lowest that `pyproject.toml` allows, and on Python 3.12 and 3.13
where the machine has them. Each environment runs the command line, the Python API, a planted run and the demo of one
benchmark, from an empty folder, and `tests/core_install`. It needs the extras `dev` and `release`.

`--newest` installs it once, on this Python with the newest versions, and leaves the demo and `tests/core_install` out:
for continuous integration, which has both already. `--no-install` only builds and reads the files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".css", ".csv", ".html", ".js", ".json", ".npz", ".py", ".svg", ".toml", ".txt", ".typed", ".xz"}
SUFFIXES |= {".safetensors"}  # a trained few-shot learner
OTHER_VERSIONS = ("3.12", "3.13")
# Together they read masks, run-length encodings, WordNet, published tables and drawings: all kinds of data files.
RUNS = {
    "closed-miou": ("--scenes", "6"),
    "open-ap": ("--scenes", "4"),
    "toss": ("--scenes", "24"),
    "rclicks": ("--scenes", "2"),
}
LOWER_BOUND = re.compile(r"([A-Za-z0-9._-]+)(\[[a-z,]+\])?>=([0-9][0-9.]*)")

# Run by an installed interpreter: prints the public names and the error of those that need an extra.
LIST_NAMES = """
import json, hardlook as hl
missing = {}
for name in dir(hl):
    try:
        getattr(hl, name)
    except ImportError as error:
        missing[name] = str(error)
print(json.dumps({"names": dir(hl), "missing": missing}))
"""


def list_lowest(requirements: Iterable[str]) -> list[str]:
    """Constraints that pin each requirement `NAME>=VERSION` to that version; it must be one that was released.

    >>> list_lowest(["numpy>=1.26.0", "psycopg[binary]>=3.1.9"])
    ['numpy==1.26.0', 'psycopg==3.1.9']
    """
    pins = []
    for requirement in requirements:
        bound = LOWER_BOUND.fullmatch(requirement)
        if not bound:
            raise SystemExit(f"pyproject.toml: {requirement!r} has no lowest version; write it as NAME>=VERSION")
        pins.append(f"{bound[1]}=={bound[3]}")
    return pins


def list_package_files(source: Path) -> set[str]:
    """Files of the package under `source` (the folder `hardlook`), as paths inside a wheel."""
    files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"hardlook/{path.relative_to(source).as_posix()}" for path in files}


def find_wheel_errors(names: Iterable[str], expected: set[str]) -> list[str]:
    """What is wrong with the files of a wheel: some of the package are missing, or others are in it."""
    held = {name for name in names if not re.match(r"hardlook-[^/]+\.dist-info/", name)}
    errors = [f"the wheel lacks {name}" for name in sorted(expected - held)]
    errors += [f"the wheel holds {name}, which is not in src/hardlook" for name in sorted(held - expected)]
    strange = [name for name in sorted(held & expected) if Path(name).suffix not in SUFFIXES]
    return errors + [f"{name} is of a kind that the package does not read (SUFFIXES)" for name in strange]


def find_sdist_errors(names: Iterable[str], included: Iterable[str]) -> list[str]:
    """Entries of the list `include` of pyproject.toml that a source distribution does not hold."""
    held = {name.split("/")[1] for name in names if "/" in name}
    return [f"the source distribution lacks {name}" for name in included if name not in held]


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """Run a command without the caller's Python settings and return what it printed; an error ends the check."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden} | variables
    words = [str(word) for word in command]
    answer = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    if answer.returncode:
        raise SystemExit(f"{' '.join(words)}\nended with {answer.returncode}\n{answer.stdout}{answer.stderr}")
    return answer.stdout


def build(out: Path) -> tuple[Path, Path]:
    """Build the source distribution and, from its files, the wheel; returns both paths."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def find_interpreter(version: str) -> str | None:
    """The path of an interpreter of this version that works, on the search path or among those of pyenv."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(name), *map(str, sorted(pyenv.glob(f"{version}.*/bin/{name}"), reverse=True))]
    # A command of pyenv may stand for a version that is not selected: then it only prints an error.
    return next(
        (path for path in found if path and not subprocess.run([path, "-c", ""], capture_output=True).returncode), None
    )


def list_cases(lowest: list[str], *, newest_only: bool = False) -> list[tuple[str, str, list[str]]]:
    """What is installed, with which interpreter, under which constraints; says which versions of Python are missing."""
    cases: list[tuple[str, str, list[str]]] = [("newest", sys.executable, [])]
    if newest_only:
        return cases
    cases.append(("lowest", sys.executable, lowest))
    for version in OTHER_VERSIONS:
        if interpreter := find_interpreter(version):
            cases.append(("newest", interpreter, []))
        else:
            print(f"Python {version}: not on this machine, not checked", flush=True)
    return cases


def check_installed(wheel: Path, interpreter: str, folder: Path, pins: Iterable[str], *, thorough: bool = True) -> str:
    """Install a wheel in a new environment under `folder` and use it there; returns the versions installed.

    A thorough check also runs the demo of one benchmark and `tests/core_install`.
    """
    version = wheel.name.split("-")[1]
    environment, empty, constraints = folder / "environment", folder / "empty", folder / "constraints.txt"
    empty.mkdir(parents=True)
    constraints.write_text("".join(f"{pin}\n" for pin in pins))
    run(interpreter, "-m", "venv", environment)
    python, command = environment / "bin" / "python", environment / "bin" / "hardlook"
    run(python, "-m", "pip", "install", "--quiet", "--no-compile", "--constraint", constraints, wheel)
    run(python, "-m", "pip", "check")
    package = Path(run(python, "-c", "import hardlook; print(hardlook.__path__[0])", cwd=empty).strip())
    run(python, "-W", "error", "-m", "compileall", "-q", "-f", package)

    printed = run(command, "--version", cwd=empty).strip()
    if printed != f"hardlook {version}":
        raise SystemExit(f"hardlook --version prints {printed!r}; the wheel is of {version}")
    listed = json.loads(run(python, "-c", LIST_NAMES, cwd=empty))
    unnamed = {name: error for name, error in listed["missing"].items() if "pip install" not in error}
    if "run" not in listed["names"] or unnamed:
        raise SystemExit(f"import hardlook: {len(listed['names'])} names; errors without a remedy: {unnamed}")
    for name, size in RUNS.items():
        run(command, "run", name, *size, "--resamples", "50", "--out", name, "--quiet", cwd=empty)
    run(command, "verify", *RUNS, cwd=empty)
    pages = [f"{name}/report.html" for name in RUNS]
    if thorough:
        run(command, "demo", "--benchmark", "closed-miou", "--out", "demo", cwd=empty)
        pages += ["demo/index.html", "demo/closed-miou-comparison/comparison.html"]
    if absent := [page for page in pages if not (empty / page).is_file()]:
        raise SystemExit(f"{interpreter}: {', '.join(absent)} not written")
    if thorough:
        tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/core_install")
        run(sys.executable, *tests, cwd=ROOT, HARDLOOK_CORE_PYTHON=str(python))
    return " ".join(run(python, "-m", "pip", "freeze", "--exclude", "hardlook").split())


def main() -> None:
    """Build, check, install and run; prints one line per step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the two files (default: dist)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--newest", action="store_true", help="install the newest versions on this Python only")
    how.add_argument("--no-install", action="store_true", help="check the two files, and install them nowhere")
    given = parser.parse_args()
    out: Path = given.out
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lowest = list_lowest(project["project"]["dependencies"])
    cases = [] if given.no_install else list_cases(lowest, newest_only=given.newest)

    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as pool:
        sdist, wheel = build(Path(temporary))
        with zipfile.ZipFile(wheel) as archive:
            errors = find_wheel_errors(archive.namelist(), list_package_files(ROOT / "src" / "hardlook"))
        with tarfile.open(sdist) as archive:
            included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
            errors += find_sdist_errors(archive.getnames(), included)
        if errors:
            raise SystemExit("\n".join(errors))
        print(f"{sdist.name}, {wheel.name}: built, complete, accepted by twine", flush=True)
        folders = [Path(temporary) / f"{index}" for index in range(len(cases))]
        checks = [
            pool.submit(check_installed, wheel, interpreter, folder, pins, thorough=not given.newest)
            for (_, interpreter, pins), folder in zip(cases, folders, strict=True)
        ]
        for (versions, interpreter, _), check in zip(cases, checks, strict=True):
            installed = check.result()
            python = run(interpreter, "--version").strip()
            print(f"{python}, {versions} versions: installed and run\n  {installed}", flush=True)
        out.mkdir(parents=True, exist_ok=True)
        for path in (sdist, wheel):
            shutil.copy(path, out)


if __name__ == "__main__":
    main()
