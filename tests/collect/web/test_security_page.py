"""The page on threats names tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]

PAGE = ROOT / "docs" / "collect-security.md"


def test_every_answer_has_a_test_and_every_test_is_there():
    threats = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ") and "test" in line]
    assert len(threats) > 20
    for cells in threats[1:]:
        named = re.findall(r"`((?:tests/)?[a-z_/]+(?:\.py)?)`", cells[-1])
        assert named, cells[0]
        for name in named:
            assert (ROOT / name).exists() or (Path(__file__).parent / name).exists(), name
