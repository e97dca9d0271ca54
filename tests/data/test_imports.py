from __future__ import annotations

import ast
from pathlib import Path

import hardlook

SOURCE = Path(hardlook.__file__).parent


def _imports(package: str) -> dict[str, set[str]]:
    found = {}
    for path in (SOURCE / package).rglob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        found[path.relative_to(SOURCE).as_posix()] = names
    return found


def test_readers_do_not_know_the_world_and_the_world_does_not_know_the_readers() -> None:
    for package, foreign in (("data", "hardlook.world"), ("world", "hardlook.data")):
        for path, names in _imports(package).items():
            assert not any(name.startswith(foreign) for name in names), path


def test_one_file_alone_imports_hotcoco() -> None:
    users = {p for package in ("data", "world") for p, n in _imports(package).items() if any("hotcoco" in x for x in n)}
    assert users == {"data/rle.py"}
