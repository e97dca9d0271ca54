"""A model's identity changes with all that its answers depend on, and with nothing else."""

import importlib
import sys

import pytest

from hardlook.errors import ModelError
from hardlook.fingerprints import hash_file
from hardlook.models.identity import identify, sources_of
from hardlook.models.planted.segmenters import PlantedSegmenter
from hardlook.models.registry import build


def identity(model, args=None, name="mine", role="saliency"):
    return identify(model, name=name, role=role, args=args)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of three files: a model, the network it imports inside a function, and one that it does not need."""
    folder = tmp_path / "outside_net"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "model.py").write_text(
        "class Model:\n    def saliency(self, images):\n        from . import network\n        return network.run()\n"
    )
    (folder / "network.py").write_text("from outside_net.layers import layer\ndef run(): return []\n")
    (folder / "layers.py").write_text("layer = 1\n")
    (folder / "other.py").write_text("raise RuntimeError('never imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith("outside_net")]:
        del sys.modules[name]


def test_defaults_said_or_not_are_one_model():
    name, role = "planted-segmenter", "semantic-segmenter"
    prints = {
        str(args): identify(build(name, role, args), name=name, role=role, args=args).fingerprint()
        for args in ({}, {"sibling": "0"}, {"sibling": 0.0, "seed": 0}, {"sibling": "0.1"}, {"seed": "1"})
    }
    assert len(set(prints.values())) == 3
    assert len(set(list(prints.values())[:3])) == 1


def test_name_and_role_count():
    model = PlantedSegmenter()
    first = identity(model)
    assert first.fingerprint() != identity(model, name="other").fingerprint()
    assert first.fingerprint() != identity(model, role="encoder").fingerprint()
    assert first.args == {}


def test_sources_follow_imports_within_the_package(package):
    import outside_net.model

    assert [path.name for path in sources_of(outside_net.model.Model)] == [
        "__init__.py", "layers.py", "model.py", "network.py"
    ]  # fmt: skip
    before = identity(outside_net.model.Model()).source
    (package / "other.py").write_text("changed = True\n")
    assert identity(outside_net.model.Model()).source == before
    (package / "layers.py").write_text("layer = 2\n")
    assert identity(outside_net.model.Model()).source != before


def test_a_package_is_not_imported_to_find_its_files(package):
    """It may need what is not installed, or take long."""
    heavy = package / "heavy"
    (heavy / "inner").mkdir(parents=True)
    (heavy / "__init__.py").write_text("raise RuntimeError('never imported')\n")
    (heavy / "tool.py").write_text("from . import inner\n")
    (heavy / "inner" / "__init__.py").write_text("")
    (package / "network.py").write_text("def run():\n    from outside_net.heavy import tool\n")
    import outside_net.model

    assert [path.relative_to(package).as_posix() for path in sources_of(outside_net.model.Model)] == [
        "__init__.py", "heavy/__init__.py", "heavy/inner/__init__.py", "heavy/tool.py", "model.py", "network.py"
    ]  # fmt: skip
    assert "outside_net.heavy" not in sys.modules


IN_BLOCKS = """
class Holder:
    import outside_net.a

if True:
    pass
elif True:
    from outside_net import b
else:
    with open(""):
        from outside_net.c import name

try:
    for _ in ():
        import outside_net.d as renamed
    else:
        import outside_net.e
except* ValueError:
    import outside_net.f
finally:
    async def run():
        while True:
            import outside_net.g

match 1:
    case 2:
        from . import h
"""


def test_imports_in_any_block_count(package):
    (package / "network.py").write_text(IN_BLOCKS)
    for name in "abcdefgh":
        (package / f"{name}.py").write_text("")
    import outside_net.model

    found = {path.name for path in sources_of(outside_net.model.Model)}
    assert found == {"__init__.py", "model.py", "network.py", *(f"{name}.py" for name in "abcdefgh")}


def test_a_class_without_a_file_has_an_identity():
    kind = type("Typed", (), {"__module__": "no_module_of_this_name"})
    assert sources_of(kind) == []
    assert identity(kind()).fingerprint()


def test_weights_and_device_count(tmp_path):
    class Heavy:
        def __init__(self, file, device):
            self.weights_files = (file,)
            self.device = device

    file = tmp_path / "net.bin"
    file.write_bytes(b"one")
    first = identity(Heavy(file, "cpu"))
    assert first.weights == {"net.bin": hash_file(file)}
    assert first.device == "cpu"
    assert identity(Heavy(str(file), "cuda")).fingerprint() != first.fingerprint()
    file.write_bytes(b"two")
    assert identity(Heavy(file, "cpu")).fingerprint() != first.fingerprint()
    file.unlink()
    with pytest.raises(ModelError, match="weights file that is not there"):
        identity(Heavy(file, "cpu"))


def test_a_model_may_say_who_it_is():
    class Versioned:
        def fingerprint(self):
            return "v7"

    assert identity(Versioned()).source == "v7"


def test_imports_for_type_checkers_do_not_count(tmp_path, monkeypatch):
    package = tmp_path / "typed_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "used.py").write_text("")
    (package / "only_typed.py").write_text("")
    (package / "net.py").write_text(
        "import typing\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from typed_package import only_typed\nelse:\n    from typed_package import used\n"
        "if typing.TYPE_CHECKING:\n    import typed_package.only_typed\n"
        "class Net:\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    net = importlib.import_module("typed_package.net").Net
    assert [path.name for path in sources_of(net)] == ["__init__.py", "net.py", "used.py"]


def test_a_model_does_not_depend_on_the_api():
    """`hardlook/__init__.py` names it for type checkers."""
    from hardlook.models.planted.segmenters import PlantedSegmenter

    names = {path.parent.name for path in sources_of(PlantedSegmenter)}
    assert not names & {"api", "report", "harness", "cli"}
