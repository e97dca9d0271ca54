import subprocess
import sys

import hardlook.harness.stats


def test_importing_stats_loads_neither_scipy_nor_the_rest_of_hardlook() -> None:
    code = (
        "import sys, hardlook.harness.stats;"
        "print([m for m in sys.modules if m.split('.')[0] in ('scipy', 'polars', 'torch')]);"
        "print(sorted({'.'.join(m.split('.')[:3]) for m in sys.modules if m.startswith('hardlook')}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    own = ["hardlook", "hardlook.callable_packages", "hardlook.harness", "hardlook.harness.stats", "hardlook.moved"]
    assert shown.splitlines() == ["[]", str(own)]


def test_every_public_name_exists() -> None:
    assert all(hasattr(hardlook.harness.stats, name) for name in hardlook.harness.stats.__all__)
    assert sorted(hardlook.harness.stats.__all__) == hardlook.harness.stats.__all__
