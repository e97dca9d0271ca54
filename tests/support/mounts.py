"""File systems of a test's own: a small one that fills up, and a folder that cannot be written, also not by root."""

import contextlib
import subprocess

import pytest


@contextlib.contextmanager
def mounted(folder, *options):
    """Mount something on a folder; skips where this process may not."""
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip(f"no mount: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def read_only(folder):
    """Make a folder read-only: a mount where that is allowed, else by its permissions."""
    if subprocess.run(["mount", "--bind", str(folder), str(folder)], capture_output=True).returncode == 0:
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
            yield
        finally:
            subprocess.run(["umount", str(folder)], check=True)
        return
    inside = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in inside:
        path.chmod(0o555)
    try:
        if (probe := folder / "probe").parent.exists():
            with contextlib.suppress(OSError):
                probe.touch()
                probe.unlink()
                pytest.skip("permissions do not hold for this user, and it may not mount")
        yield
    finally:
        for path in inside:
            path.chmod(0o755)
