import pytest
from command_line import CommandLine


@pytest.fixture
def hardlook(capsys, monkeypatch):
    """The command line as a function of words."""
    return CommandLine(capsys, monkeypatch)
