import subprocess
import sys

import hardlook.similarity


def test_importing_similarity_loads_neither_scipy_nor_the_rest_of_hardlook():
    code = (
        "import sys, hardlook.similarity;"
        "print([m for m in sys.modules if m.split('.')[0] in ('scipy', 'polars', 'torch')]);"
        "print(sorted({'.'.join(m.split('.')[:2]) for m in sys.modules if m.startswith('hardlook')}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == [
        "[]",
        str(["hardlook", "hardlook.callable_packages", "hardlook.moved", "hardlook.similarity"]),
    ]


def test_every_public_name_exists():
    assert all(hasattr(hardlook.similarity, name) for name in hardlook.similarity.__all__)
