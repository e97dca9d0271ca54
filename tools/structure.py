"""The structure of the package in figures: packages, fragments, import cycles, crowded folders, lines, files per run.

`python tools/structure.py` prints the figures of docs/architecture.md; with `--runs` it also traces one planted run of
each system and counts the files whose functions were called (without the planted world, planted models, report, command
line and statistics, which every run shares).
"""

from __future__ import annotations

import argparse
import ast
import importlib
import multiprocessing
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent / "src" / "hardlook"
SHARED = ("world/", "models/planted/", "report/", "cli/", "harness/stats/")
RUNS = {
    "open-miou": {"scenes": 6, "resamples": 20},
    "rclicks": {"scenes": 3, "rounds": 3, "resamples": 20},
    "toss": {"scenes": 24, "resamples": 20},
    "metacoco": {"scenes": 480, "tasks": 8, "resamples": 20},
}


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = ["hardlook", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_modules() -> dict[str, tuple[Path, ast.Module]]:
    """Every module of the package, parsed once."""
    return {module_name(path): (path, ast.parse(path.read_text("utf-8"))) for path in sorted(ROOT.rglob("*.py"))}


def imports_of(tree: ast.Module) -> Iterator[str]:
    """The dotted names that a module imports anywhere: at the top, inside functions, for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_graph(modules: Mapping[str, tuple[Path, ast.Module]]) -> dict[str, set[str]]:
    """Which modules of the package each module imports."""
    return {
        name: {target for target in imports_of(tree) if target in modules and target != name}
        for name, (_, tree) in modules.items()
    }


def find_cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other (strongly connected components of two and more), by Tarjan's method."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                groups.append(group)

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return groups


def find_fragments(modules: Mapping[str, tuple[Path, ast.Module]], graph: Mapping[str, set[str]]) -> list[str]:
    """Modules with exactly one importer, which lies in their own folder."""
    importers: dict[str, set[str]] = defaultdict(set)
    for name, targets in graph.items():
        for target in targets:
            importers[target].add(name)
    found = []
    for name, (path, _) in modules.items():
        if path.name != "__init__.py" and len(importers[name]) == 1:
            (only,) = importers[name]
            if modules[only][0].parent == path.parent:
                found.append(name)
    return found


def find_crowded_folders(limit: int = 20) -> dict[str, int]:
    """Folders with more than `limit` files."""
    counts = {folder: len(list(folder.glob("*.py"))) for folder in ROOT.rglob("*") if folder.is_dir()}
    return {str(folder.relative_to(ROOT)): count for folder, count in counts.items() if count > limit}


def files_of_run(benchmark: str, options: Mapping[str, object]) -> set[str]:
    """The files of the package whose functions a planted run calls, without those that every run shares."""
    for name in read_modules():  # beforehand: importing a module runs its class bodies and decorators
        if not name.endswith("__main__"):
            importlib.import_module(name)
    from hardlook.harness.runs.launch import launch

    seen: set[str] = set()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    with tempfile.TemporaryDirectory() as folder:
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            launch(benchmark, out=Path(folder) / "run", given=dict(options))
        finally:
            sys.setprofile(None)
    ours = {str(Path(name).relative_to(ROOT)) for name in seen if Path(name).is_relative_to(ROOT)}
    return {name for name in ours if not name.startswith(SHARED)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--runs", action="store_true", help="also count the files that a planted run of each system uses"
    )
    parser.add_argument("--list", action="store_true", help="name the fragments and the files of each run")
    given = parser.parse_args()
    modules = read_modules()
    graph = import_graph(modules)
    inner = {name: {t for t in ts if modules[t][0].name != "__init__.py"} for name, ts in graph.items()}
    fragments, cycles = find_fragments(modules, graph), find_cycles(inner)
    lines = sum(len(path.read_text("utf-8").splitlines()) for path, _ in modules.values())
    packages = sorted(folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").exists())
    print(f"top-level packages: {len(packages)} ({', '.join(packages)})")
    print(f"files: {len(modules)}, Python lines: {lines}")
    print(f"modules with one importer, in their own folder: {len(fragments)}")
    print(f"folders with more than 20 files: {find_crowded_folders() or 'none'}")
    print(f"import cycles between modules: {cycles or 'none'}")
    if given.list:
        print("fragments:", *fragments, sep="\n  ")
    if given.runs:
        for benchmark, options in RUNS.items():
            # A process of its own: what an earlier run has cached would not be called again.
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
                files = process.submit(files_of_run, benchmark, options).result()
            print(f"files that a planted run of {benchmark} uses: {len(files)}")
            if given.list:
                print(*sorted(files), sep="\n  ")


if __name__ == "__main__":
    main()
