"""Mutation testing: a random sample of small changes to the source, and whether the mirrored tests notice each.

`pip install cosmic-ray`, then `python tools/mutation.py --sample 300 --seed 0 --out mutants.csv`. A place in the code
is drawn, then one of cosmic-ray's operators that fit it. The tests of a mutant are the doctests of its module and the
files of the mirrored test folder that import the module; where there are none, those of the modules that import it. A
mutant survives when they all pass. Changes that only touch type annotations or docstrings are not drawn. With
`--again mutants.csv` only the survivors of that file run, after tests were added. See docs/testing.md.

Every mutant runs in a forked process that has the heavy libraries loaded already, on its own copy of the source.
"""

from __future__ import annotations

import argparse
import ast
import csv
import difflib
import functools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "hardlook"
PARTS = (
    "metrics",
    "harness/stats",
    "harness/runs",
    "harness/tally.py",
    "toss/scores.py",
    "toss/pixel_sums.py",
    "toss/tiers",
    "metacoco/scores.py",
    "metacoco/tasks",
    "rclicks/scores.py",
    "rclicks/clicks",
    "open_vocabulary/miou/scores.py",
    "open_vocabulary/ap/scores.py",
    "open_vocabulary/pq/scores.py",
    "collect/results",
)
NO_TESTS = 5  # pytest found no test
LEFT_OUT: set[str] = set()  # names of test files
HEAVY = ("numpy", "scipy.stats", "polars", "numba", "cv2", "PIL.Image", "pydantic", "pytest", "hotcoco")


@dataclass(frozen=True)
class Mutant:
    """One change: the file, its operator and occurrence, and the changed line before and after."""

    path: str
    operator: str
    occurrence: int
    line: int
    before: str
    after: str


def stripped(tree: ast.Module) -> str:
    """The code without annotations and docstrings: what two equivalent mutants have in common."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(value=None)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.dump(tree)


def draw_mutants(files: list[Path], sample: int, seed: int) -> list[Mutant]:
    """Places in the code, uniformly; at each one operator, uniformly."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    places: dict[tuple[Path, tuple[int, int]], list[tuple[str, int]]] = defaultdict(list)
    for path in files:
        tree = get_ast(path.read_text(encoding="utf-8"))
        for name in operator_names():
            try:
                operator = get_operator(name)()
            except TypeError:  # operators that need arguments of their own
                continue
            count = 0
            for node in ast_nodes(tree):
                for start, _ in operator.mutation_positions(node):
                    places[path, start].append((name, count))
                    count += 1
    rng = random.Random(seed)
    order = sorted(places)
    rng.shuffle(order)
    mutants: list[Mutant] = []
    for path, start in order:
        if len(mutants) == sample:
            break
        name, occurrence = rng.choice(places[path, start])
        text = path.read_text(encoding="utf-8")
        changed = mutate_code(text, get_operator(name)(), occurrence)
        try:
            if changed is None or stripped(ast.parse(changed)) == stripped(ast.parse(text)):
                continue
        except SyntaxError:
            continue
        before, after = first_difference(text, changed)
        mutants.append(Mutant(str(path.relative_to(SOURCE)), name, occurrence, start[0], before, after))
    return mutants


def first_difference(text: str, changed: str) -> tuple[str, str]:
    """The first line that differs, before and after."""
    lines = [one for one in difflib.ndiff(text.splitlines(), changed.splitlines()) if one[:2] in ("- ", "+ ")]
    removed = next((one[2:].strip() for one in lines if one.startswith("- ")), "")
    added = next((one[2:].strip() for one in lines if one.startswith("+ ")), "")
    return removed, added


def tests_of(path: str) -> list[str]:
    """The test files of a module: the mirrored folder's that import it, the one of its own name first.

    A module that none of them imports, such as a compiled kernel, is tested by the tests of those that import it.
    """
    module = module_of(path)
    own = ROOT / "tests" / Path(path).parent / f"test_{Path(path).stem}.py"
    found = {str(test) for test in sorted(own.parent.glob("test_*.py")) if module in imports_of(test)}
    found |= {str(own)} if own.exists() else set()
    if not found:
        package = SOURCE / Path(path).parts[0]
        for other in sorted(package.rglob("*.py")):
            name = str(other.relative_to(SOURCE))
            if name != path and other.name != "__init__.py" and module in imports_of(other):
                found |= set(tests_of(name))
    return sorted((one for one in found if Path(one).name not in LEFT_OUT), key=lambda one: (one != str(own), one))


def module_of(path: str) -> str:
    """The dotted name of a file of the package."""
    return "hardlook." + path.removesuffix(".py").replace("/", ".")


@functools.cache
def imports_of(file: Path) -> frozenset[str]:
    """The modules that a file imports, those of `from package import module` and `load_kernels("name")` included."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load_kernels":
            found |= {f"hardlook.metrics.kernels.{one.value}" for one in node.args if isinstance(one, ast.Constant)}
    return frozenset(found)


def is_caught(mutant: Mutant, source: Path, timeout: float) -> str:
    """`caught`, `survived` or `timeout`, by the mutant's tests in a forked process on the copy `source`."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    target = source / "hardlook" / mutant.path
    text = (SOURCE / mutant.path).read_text(encoding="utf-8")
    changed = mutate_code(text, get_operator(mutant.operator)(), mutant.occurrence)
    assert changed is not None
    target.write_text(changed, encoding="utf-8")
    code = exit_code_of_tests([str(target), *tests_of(mutant.path)], source, timeout)
    target.write_text(text, encoding="utf-8")
    return "timeout" if code is None else "caught" if code else "survived"


def exit_code_of_tests(files: list[str], source: Path, timeout: float) -> int | None:
    """Run the tests of these files on the copy `source`: 0 where all pass, None after `timeout` seconds."""
    child = os.fork()
    if child == 0:
        os.setsid()
        run_tests(source, files)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return 0 if code == NO_TESTS else code
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def run_tests(source: Path, tests: list[str]) -> None:
    """Run pytest in this process and leave it: the exit code says whether all passed."""
    import pytest

    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    os.environ.update(CI="true", PYTHONPATH=str(source))
    sys.path.insert(0, str(source))
    os.chdir(ROOT)
    code = 3
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
    try:
        code = int(pytest.main([*options, "-c", str(ROOT / "pyproject.toml"), *tests]))
    finally:
        os._exit(code)


def main() -> None:
    """Draw, run, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", nargs=2, type=int, default=(1, 1), metavar=("I", "N"), help="the i-th of N parts")
    parser.add_argument("--only", default="", help="only files whose path starts with this")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for the tests of one mutant")
    parser.add_argument("--again", type=Path, help="only the mutants that survived in this file")
    parser.add_argument(
        "--leave-out", nargs="*", default=[], metavar="TEST_FILE", help="names of test files not to run"
    )
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without any change first")
    parser.add_argument("--out", type=Path, default=Path("mutants.csv"))
    given = parser.parse_args()
    LEFT_OUT.update(given.leave_out)
    files = [
        one for part in PARTS for one in ([SOURCE / part] if part.endswith(".py") else (SOURCE / part).rglob("*.py"))
    ]
    files = sorted({one for one in files if one.exists() and str(one.relative_to(SOURCE)).startswith(given.only)})
    mutants = draw_mutants(files, given.sample, given.seed)[given.part[0] - 1 :: given.part[1]]
    if given.again:
        with given.again.open(newline="", encoding="utf-8") as lines:
            survived = {
                (row["file"], row["before"], row["after"])
                for row in csv.DictReader(lines)
                if row["result"] == "survived"
            }
        mutants = [one for one in mutants if (one.path, one.before, one.after) in survived]
    for name in HEAVY:
        __import__(name)
    with tempfile.TemporaryDirectory() as folder, given.out.open("w", newline="", encoding="utf-8") as out:
        source = Path(folder) / "src"
        shutil.copytree(SOURCE, source / "hardlook", ignore=shutil.ignore_patterns("__pycache__"))
        writer = csv.writer(out)
        writer.writerow(("result", "file", "line", "operator", "before", "after", "seconds"))
        # Every test file once, however many modules it tests.
        tested = {str(source / "hardlook" / one.path) for one in mutants}
        tested |= {test for one in mutants for test in tests_of(one.path)}
        broken = (
            []
            if given.unchecked
            else [one for one in sorted(tested) if exit_code_of_tests([one], source, given.timeout) != 0]
        )
        if broken:
            sys.exit(f"tests fail without any change: {', '.join(broken)}")
        counts: dict[str, int] = defaultdict(int)
        for number, mutant in enumerate(mutants, 1):
            start = time.monotonic()
            result = is_caught(mutant, source, given.timeout)
            counts[result] += 1
            row = (result, mutant.path, mutant.line, mutant.operator, mutant.before, mutant.after)
            writer.writerow((*row, f"{time.monotonic() - start:.1f}"))
            out.flush()
            if result == "survived":
                print(f"survived: {mutant.path}:{mutant.line}: {mutant.before}  ->  {mutant.after}", flush=True)
            if number % 20 == 0:
                print(f"{number} of {len(mutants)}: {dict(counts)}", flush=True)
        print(dict(counts))


if __name__ == "__main__":
    main()
