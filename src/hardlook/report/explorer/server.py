"""A server of the explorer as a Python object, which serves in the background until it is stopped."""

from __future__ import annotations

import html
import threading
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

from hardlook import serving
from hardlook.extras import require
from hardlook.report.explorer.app import make_app
from hardlook.report.explorer.run_index import RunIndex


class Explorer:
    """The explorer of the runs below a folder, at `address`; it listens from the beginning and serves from `start` on.

    `notes` say that there is no run yet, `warnings` that other machines can read them.
    """

    def __init__(
        self, folder: Path, *, port: int = 0, host: str = "127.0.0.1", benchmarks: Collection[str] = ()
    ) -> None:
        require("uvicorn", extra="web")
        self.folder = folder
        self.app = make_app(folder, host=host, benchmarks=benchmarks)
        self.listening = serving.listen(host, port)
        self._running = ExitStack()
        self._stopped = threading.Event()
        self.address = serving.server_url(host, self.listening)
        self.notes: list[str] = []
        self.warnings: list[str] = []
        if not RunIndex(folder).runs():
            self.notes.append(f"{folder}: there is no run below this folder yet; reload the page when there is one")
        if host not in serving.LOOPBACK:
            who = f"{host} can be reached from other machines; anyone there"
            self.warnings.append(f"{who} can read every run and its pictures without a password")

    def start(self) -> None:
        """Serve in a thread until `stop`, or until the process ends."""
        self._running.enter_context(serving.serve_in_background(self.app, self.listening))

    def wait(self) -> None:
        """Wait until Ctrl-C, then stop; for scripts, which would end and take the server with them."""
        try:
            self._stopped.wait()
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """End the server and free its port; a second call does nothing."""
        self._running.close()
        self.listening.close()
        self._stopped.set()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Explorer of {self.folder} at {self.address}"

    def _repr_html_(self) -> str:
        folder, address = html.escape(str(self.folder)), html.escape(self.address, quote=True)
        return f'<p>Explorer of {folder}: <a href="{address}" target="_blank">{address}</a></p>'
