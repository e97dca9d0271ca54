"""Imports go one way, as docs/architecture.md says; names say something; optional dependencies stay optional."""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "hardlook"
_spec = importlib.util.spec_from_file_location("structure", ROOT / "tools" / "structure.py")
structure = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(structure)

EXTRAS = {
    "torch", "onnxruntime", "ai_edge_litert", "transformers", "torchmetrics", "pyarrow", "ray", "starlette",
    "itsdangerous",
}  # fmt: skip
# What knows arrays and nothing else of hardlook beyond these.
ARRAYS_ONLY = {
    "hardlook.metrics": (),
    "hardlook.harness.stats": (),
    "hardlook.similarity.graph_measures": ("hardlook.similarity.matrix",),
    "hardlook.similarity.matrix": (),
}
SYSTEMS = ("toss", "metacoco", "rclicks", "open_vocabulary", "collect", "similarity")


@cache
def modules():
    """Every module of the package, parsed once for all tests."""
    return structure.read_modules()


@cache
def graph():
    """Which modules each module imports."""
    return structure.import_graph(modules())


def allowed_imports():
    """The packages' table of docs/architecture.md: package -> packages that it may import."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("## Packages", 1)[1].split("## A system", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", table, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", cell)) for name, cell in rows}


def top(module):
    """The package, or the module at the top, that a module belongs to; '' for hardlook itself."""
    return module.partition(".")[2].partition(".")[0]


ALLOWED = allowed_imports()


def test_the_table_names_every_package_and_nothing_else():
    there = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(ALLOWED) == there - {"__init__", "__main__"}
    assert all(targets <= set(ALLOWED) for targets in ALLOWED.values())


def test_imports_go_one_way():
    wrong = [
        f"{name} imports {target}"
        for name, targets in graph().items()
        for target in sorted(targets)
        if top(name) not in ("", "__main__") and top(target) not in {"", top(name), *ALLOWED[top(name)]}
    ]
    assert not wrong


def test_every_allowed_import_is_used():
    used = {(top(name), top(target)) for name, targets in graph().items() for target in targets}
    unused = [
        f"{name} -> {target}" for name, targets in ALLOWED.items() for target in targets if (name, target) not in used
    ]
    assert not unused


def test_the_allowed_imports_have_no_cycle():
    done = set()
    while len(done) < len(ALLOWED):
        free = {name for name, needs in ALLOWED.items() if name not in done and needs <= done}
        assert free, f"a cycle among {set(ALLOWED) - done}"
        done |= free


def test_modules_have_no_import_cycles():
    inner = {
        name: {one for one in targets if modules()[one][0].name != "__init__.py"} for name, targets in graph().items()
    }
    assert structure.find_cycles(inner) == []


def test_what_knows_arrays_knows_nothing_else():
    wrong = []
    for part, also in ARRAYS_ONLY.items():
        for name, targets in graph().items():
            if name == part or name.startswith(f"{part}."):
                fine = {one for one in targets if one == "hardlook" or f"{one}.".startswith((f"{part}.", *also))}
                wrong += [f"{name} imports {one}" for one in targets - fine if one != part.rpartition(".")[0]]
    assert not wrong


def test_only_commands_import_the_command_line():
    wrong = [
        name
        for name, targets in graph().items()
        if top(name) in SYSTEMS and ".commands" not in name and any(top(target) == "cli" for target in targets)
    ]
    assert not wrong


def test_the_four_systems_have_the_same_files():
    parts = {"benchmark.py", "options.py", "units.py", "evaluation.py", "scores.py", "report.py"}
    for system in ("toss", "metacoco", "rclicks", "open_vocabulary/miou", "open_vocabulary/ap", "open_vocabulary/pq"):
        assert parts <= {path.name for path in (PACKAGE / system).glob("*.py")}, system
    for system in ("toss", "metacoco", "rclicks", "open_vocabulary"):
        assert (PACKAGE / system / "published.py").exists(), system
        assert {path.name for path in (PACKAGE / system / "published").iterdir()} >= {"cells.csv", "tables.csv"}, system


def test_folders_are_not_crowded():
    assert set(structure.find_crowded_folders()) <= {"metrics", "models/few_shot", "networks/few_shot"}


def test_no_names_that_say_nothing():
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager", "handler", "handlers"}
    assert not [str(path) for path, _ in modules().values() if path.stem in empty]


# Made of torch modules throughout, and imported inside functions by whoever trains or runs a network.
TORCH_PACKAGES = (
    "hardlook.networks.backbones",
    "hardlook.networks.few_shot",
    "hardlook.networks.one_shot",
    "hardlook.networks.interactive",
    "hardlook.networks.open_vocabulary",
    "hardlook.networks.mask_transformer",
    "hardlook.networks.kernels.fused_norm",
    "hardlook.networks.kernels.task_convolutions",
    "hardlook.networks.kernels.task_kernels",
    "hardlook.networks.precision",
    "hardlook.training",
)


def test_extras_are_never_imported_at_the_top():
    wrong = []
    for name, (_, tree) in modules().items():
        if name.startswith(TORCH_PACKAGES):
            continue
        for node in tree.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [f"{name} imports {one}" for one in names if one.partition(".")[0] in EXTRAS]
    assert not wrong


def test_networks_are_imported_inside_functions():
    wrong = []
    for name, (_, tree) in modules().items():
        if name.startswith((*TORCH_PACKAGES, "hardlook.torchmetrics")):
            continue
        imported = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
        wrong += [f"{name} imports {one}" for one in imported if one.startswith(TORCH_PACKAGES)]
    assert not wrong


# Each is imported in one file. Model families are so inside functions: their compiled operators may not fit the
# installed torch.
IMPORTED_ONCE = {
    "hotcoco": "hardlook.data.rle",
    "timm": "hardlook.models.families.timm_encoders",
    "torchvision": "hardlook.models.families.torchvision_models",
    "segmentation_models_pytorch": "hardlook.models.families.smp_segmenters",
}


def test_model_families_and_hotcoco_are_imported_in_their_own_file_only():
    wrong = []
    for name, (_, tree) in modules().items():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            packages = {one.partition(".")[0] for one in names} & IMPORTED_ONCE.keys()
            wrong += [f"{name} imports {package}" for package in packages if IMPORTED_ONCE[package] != name]
    assert not wrong
