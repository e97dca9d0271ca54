"""`import hardlook as hl`: cheap, complete, typed."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import hardlook
import hardlook as hl


def test_every_public_name_can_be_had_and_is_documented():
    for name in dir(hl):
        value = getattr(hl, name)
        assert name == "__version__" or inspect.getdoc(value), name
    assert {"run", "load", "runs", "compare", "leaderboard", "join", "models", "wrap", "similarity"} <= set(dir(hl))


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(hardlook.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.asname: f"{node.module}:{alias.name}" for node in block.body for alias in node.names}
    assert set(typed) | {"__version__"} == set(dir(hl))
    for name, place in typed.items():
        module, _, attribute = place.partition(":")
        known = hardlook._PLACES[name]
        if not known.endswith(":"):
            assert place == known, name
        elif module != "hardlook":  # a package that can be called
            package = sys.modules[known.removesuffix(":")]
            assert package.__calls__ == f"{module}:{attribute}", name


def test_a_package_that_can_be_called_is_the_same_however_it_is_imported():
    program = "import hardlook.models.registry, hardlook as hl\n"
    program += "print(hl.models is hardlook.models, len(hl.models('k-nn')))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["True", "1"]


def test_unknown_names_are_errors():
    assert not hasattr(hl, "walk")
