"""With `--goldens`, a table of the goldens of released networks at the end: the largest difference of each."""

import sys

import pytest
from tiny_clickability import always_on_one_thread, tiny

__all__ = ["always_on_one_thread", "tiny"]


@pytest.fixture(autouse=True)
def same_draws():
    """Inputs that a test draws are the same in every run."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)


def pytest_addoption(parser):
    parser.addoption("--goldens", action="store_true", help="print the largest difference from each golden")


def pytest_terminal_summary(terminalreporter, config):
    goldens = sys.modules.get("goldens")
    if not config.getoption("--goldens", default=False) or goldens is None:
        return
    terminalreporter.section("goldens of released code: largest difference in float64, of the largest value")
    found = sorted(goldens.DIFFERENCES.items(), key=lambda pair: -pair[1])
    for name, difference in found:
        terminalreporter.write_line(f"{difference:9.1e}  {name}")
    kinds = [sum(name.startswith(kind) for name, _ in found) for kind in ("backbone_", "method_")]
    most, others = found[0][1] if found else 0, len(found) - sum(kinds)
    words = f"{kinds[0]} backbones and {kinds[1]} methods of few-shot learning, {others} other networks"
    terminalreporter.write_line(f"{words}, {most:.1e} at most")
