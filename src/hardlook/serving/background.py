"""A server in a thread of its own, for as long as something else uses it.

>>> from hardlook.serving.asgi import say
>>> async def hello(scope, receive, send):
...     await say(send, 200, "hello")
>>> from urllib.request import urlopen
>>> with served(hello) as address, urlopen(address) as answer:
...     answer.read()
b'hello'
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hardlook.errors import RunError
from hardlook.serving.asgi import Application
from hardlook.serving.listening import address_of, listen, server_of


@contextmanager
def served(app: Application, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve `app` in the background; gives the address, and stops the server at the end."""
    listening = listen(host, port)
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RunError("the server did not start", remedy="see what it printed above")
            time.sleep(0.01)
        yield address_of(host, listening)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()
