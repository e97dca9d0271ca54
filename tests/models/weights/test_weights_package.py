"""`hl.weights`: a package that lists weights when it is called, with the functions of `hardlook weights`."""

import json
import subprocess
import sys

import pytest

import hardlook as hl
from hardlook.errors import ModelError


def test_it_lists_what_the_command_lists(hardlook):
    rows = hl.weights()
    assert [row.name for row in rows] == [row["name"] for row in json.loads(hardlook("weights", "list", "--json").out)]
    shown = rows._repr_html_()
    assert shown.count("<tr>") == len(rows) + 1 and "u2netp" in shown


def test_its_functions_are_there_when_they_are_asked_for():
    with pytest.raises(ModelError, match="no weights are called 'u2netq'"):
        hl.weights.locate_weights("u2netq")
    with pytest.raises(ModelError, match="no weights are called 'u2netq'"):
        hl.weights.install_weights("u2netq")
    with pytest.raises(AttributeError, match="unpickle"):
        hl.weights.unpickle  # noqa: B018
    assert {"import_weights", "install_weights", "list_weights", "locate_weights"} == set(hl.weights.__all__)


def test_importing_it_loads_no_torch():
    program = "import sys, hardlook as hl; hl.weights(); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_published_weights_become_a_checkpoint_folder(tmp_path):
    torch = pytest.importorskip("torch")
    from hardlook.networks.backbones import build_backbone

    network = build_backbone("conv32f")
    torch.save({f"module.{name}": value for name, value in network.state_dict().items()}, tmp_path / "net.pth")
    found = hl.weights.import_weights(tmp_path / "net.pth", "conv32f", tmp_path / "conv32f")
    assert found.folder == tmp_path / "conv32f" and any(found.folder.iterdir())
    assert not found.differences.missing and not found.differences.unexpected
