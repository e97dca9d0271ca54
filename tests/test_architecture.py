"""The arrows between packages point one way, and files keep to the house's measures."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "hardlook"
GROUND = {"errors", "extras", "randomness", "fingerprint"}
# Which packages a package may import, beside itself.
ARROWS = {
    "errors": set(),
    "extras": {"errors"},
    "randomness": set(),
    "fingerprint": set(),
    "compiled": set(),
    "metrics": {"compiled"},
    "stats": set(),
    "similarity": set(),
    "regions": {"compiled"},
    "data": GROUND,
    "world": GROUND,
    "models": GROUND | {"regions", "world"},
    "tasks": GROUND,
    "tiers": GROUND | {"data", "metrics", "models", "stats", "world"},
    "wordnet": {"errors", "similarity"},
    "labels": GROUND | {"data", "models", "similarity", "wordnet"},
    "contract": GROUND | {"stats"},
    "contexts": GROUND | {"contract", "data", "metrics", "models", "similarity", "stats", "world"},
    "clicks": GROUND | {"contract", "data", "metrics", "models", "regions", "stats", "world"},
    "bias": GROUND | {"contract", "data", "metrics", "models", "stats", "tiers"},
    "benchmarks": GROUND
    | {
        "bias",
        "clicks",
        "contexts",
        "contract",
        "data",
        "labels",
        "metrics",
        "models",
        "regions",
        "similarity",
        "stats",
    }
    | {"tasks", "tiers", "wordnet", "world"},
    "runs": GROUND | {"benchmarks", "contract", "models", "stats"},
    "report": GROUND | {"contract"},
    "comparison": GROUND | {"benchmarks", "contract", "runs", "stats"},
    "leaderboards": GROUND | {"benchmarks", "contract", "runs", "stats"},
    "export": GROUND | {"benchmarks", "contract", "report", "runs"},
    "serving": GROUND,
    "explorer": GROUND | {"benchmarks", "comparison", "contract", "report", "runs", "serving"},
    "collect": GROUND
    | {"benchmarks", "clicks", "contract", "data", "labels", "metrics", "models", "regions", "report", "runs"}
    | {"serving", "similarity", "stats", "world"},
    "commands": GROUND
    | {"benchmarks", "bias", "contract", "data", "labels", "models", "report", "runs", "similarity", "stats"}
    | {"clicks", "contexts", "metrics", "regions", "tasks", "tiers", "wordnet", "world"}
    | {"collect", "comparison", "explorer", "export", "leaderboards", "serving"},
    "__main__": {"commands"},
}
SOURCES = sorted(PACKAGE.rglob("*.py"))


def home(path):
    """The package, or the module at the top, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """The parts of hardlook that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            words = name.split(".")
            if words[0] == "hardlook" and len(words) > 1 and (PACKAGE / words[1]).with_suffix(".py").exists():
                yield words[1]
            elif words[0] == "hardlook" and len(words) > 1 and (PACKAGE / words[1]).is_dir():
                yield words[1]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_arrows_point_one_way(path):
    if path.parent == PACKAGE and path.name == "__init__.py":
        assert set(imported(path)) == set()
        return
    allowed = ARROWS[home(path)] | {home(path)}
    assert set(imported(path)) <= allowed


def test_the_allowed_arrows_have_no_cycle():
    done = set()
    while len(done) < len(ARROWS):
        free = {name for name, needs in ARROWS.items() if name not in done and needs <= done}
        assert free, f"a cycle among {set(ARROWS) - done}"
        done |= free


def test_files_have_one_subject_each():
    long = {str(path.relative_to(PACKAGE)): n for path in SOURCES if (n := len(path.read_text().splitlines())) > 250}
    assert not long


def test_no_names_that_say_nothing():
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager", "handler", "handlers"}
    assert not [path for path in SOURCES if path.stem in empty]


@pytest.mark.parametrize("module", ["torch", "onnxruntime", "ai_edge_litert", "transformers", "ray", "starlette"])
def test_extras_are_never_imported_at_the_top(module):
    for path in SOURCES:
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert module not in {name.split(".")[0] for name in names}, path


def test_nothing_needs_torchvision_or_timm():
    for path in SOURCES:
        assert not {"torchvision", "timm"} & {word for word in path.read_text().replace(".", " ").split()}, path
