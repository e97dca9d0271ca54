"""Studies served by the command itself, as a process that can be killed and started again on the same port."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request

from command_server import hardlook_command


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class ServedStudy:
    """`hardlook collect serve` on a port of its own."""

    def __init__(self, folder, database, port=None):
        self.folder, self.database, self.port = folder, database, port or free_port()
        self.process = None
        self.kills = 0

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/"

    def start(self):
        command = [*hardlook_command(), "collect", "serve", str(self.folder), "--port", str(self.port)]
        environment = {**os.environ, "HARDLOOK_DATABASE": self.database}
        self.process = subprocess.Popen(
            [*command, "--json"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(self.address + "health", timeout=5):
                    return self
            except OSError:
                if self.process.poll() is not None:
                    raise AssertionError(self.process.stdout.read()) from None
                time.sleep(0.02)
        raise AssertionError("the server did not answer within a minute")

    def kill(self):
        """Kill it as the system would: no goodbye, nothing flushed."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.kills += 1

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=30)


def init(kind, folder, *words):
    """`hardlook collect init`, as a process of its own."""
    command = [*hardlook_command(), "collect", "init", kind, str(folder), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def change_settings(folder, **changes):
    """Edit study.json as a researcher would."""
    path = folder / "study.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
