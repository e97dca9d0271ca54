import signal
import subprocess
import sys
import textwrap

from hardlook.models.feature_rows import ROWS_A_FLUSH

COUNT = 2 * ROWS_A_FLUSH + 22
SCRIPT = textwrap.dedent(
    f"""
    import os, signal, sys
    from pathlib import Path
    import numpy as np
    from hardlook.models.feature_tables import feature_table
    from hardlook.models.registry import register
    from hardlook.models.roles import Features

    folder, log, kill_after = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])

    @register("logging-encoder", role="encoder")
    class Logging:
        dimension = 2
        def fingerprint(self):
            return "logging"
        def encode(self, images):
            with log.open("ab") as stream:
                stream.write(b"x")
            if log.stat().st_size == kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return Features(np.stack([image[0, 0, :2] for image in images]).astype(np.float32))

    def read(path):
        return np.full((4, 4, 3), int(path.stem), np.uint8)

    paths = [Path(f"{{number}}.png") for number in range({COUNT})]
    found = feature_table("logging-encoder", {{}}, paths, [p.stem for p in paths], maps=False, read=read, folder=folder)
    assert found.vectors[:, 0].tolist() == list(range({COUNT}))
    """
)


def run_script(tmp_path, log, kill_after=0):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path), str(log), str(kill_after)])


def test_a_killed_process_is_continued_by_the_next(tmp_path):
    log = tmp_path / "log"
    assert run_script(tmp_path, log, 2 * ROWS_A_FLUSH + 10).wait(60) == -signal.SIGKILL
    assert run_script(tmp_path, log).wait(60) == 0
    # The ten images after the last flush, the killed one among them, are encoded twice.
    assert log.stat().st_size == COUNT + 10


def test_of_two_processes_one_encodes_and_the_other_waits(tmp_path):
    log = tmp_path / "log"
    both = [run_script(tmp_path, log) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert log.stat().st_size == COUNT
