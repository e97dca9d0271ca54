"""A fork server for the commands that tests start: the heavy imports happen once, every command is its own process.

Half of what a short command costs is importing typer, pydantic, polars, numba and torch. The server has imported them;
for each command it forks a process, which takes over the arguments, working directory, environment and descriptors of
whoever called, runs, and ends with its own exit status. Callers start a small script instead of Python:

    subprocess.run([*hardlook_command(), "run", "closed-miou", "--out", out])
    subprocess.run([*python_command(), "-c", "import hardlook.metrics"])

The script hands its open descriptors to the server and waits. It passes on signals; when it is killed, the server kills
the process that it stands for. The server itself uses nothing that starts threads: they would not survive the fork.

Where there is no such server (it needs Linux), the two functions name the real Python, and everything is only slower.
"""

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

# Threads that importing numpy would start.
SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

THIRD_PARTY = (
    "typer.rich_utils", "rich.progress", "rich.table", "pydantic", "scipy.stats", "scipy.ndimage", "scipy.optimize",
    "cv2", "PIL.Image", "polars", "numba", "jinja2", "hotcoco", "threadpoolctl", "concurrent.futures.process",
    "torch", "torch._dynamo", "safetensors.torch", "onnxruntime", "ai_edge_litert.interpreter", "transformers",
    "starlette.applications", "uvicorn", "sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql", "psycopg",
    "httpx", "importlib.metadata", "multiprocessing.spawn", "multiprocessing.resource_tracker",
    "multiprocessing.synchronize", "typer._adapters", "typer._click.decorators", "rich._emoji_codes", "xxhash",
    "psutil", "polars._utils.parquet", "encodings.unicode_escape", "encodings.utf_8_sig", "lightning_fabric",
    "transformers.models.clip.modeling_clip", "transformers.models.auto.processing_auto",
    "transformers.models.clip.image_processing_pil_clip",
)  # fmt: skip

SCRIPT = """#!{python} -IS
import sys
sys.path.insert(0, {support!r})
from command_server import forward
forward({address!r}, {program!r})
"""

LENGTH = struct.Struct("!I")

# Names the folder of the scripts of a server that an ancestor of this process has started.
SHARED = "HARDLOOK_COMMAND_SERVER"

MAX_DESCRIPTORS = 64


# What tests call.


def hardlook_command():
    """The first words of a command line that runs `hardlook`."""
    folder = _scripts()
    return [str(folder / "hardlook")] if folder else [sys.executable, "-m", "hardlook"]


def python_command():
    """The first words of a command line that runs Python; only programs given by `-c` are understood."""
    folder = _scripts()
    return [str(folder / "other" / "python")] if folder else [sys.executable]


def command_folders():
    """Folders to put first on PATH, so that `hardlook` is the one of the server."""
    folder = _scripts()
    return [*([str(folder)] if folder else []), str(Path(sys.executable).parent)]


def start_for_children():
    """Start the server, if it can be had, for this process and all that it starts."""
    folder = _scripts()
    if folder:
        os.environ[SHARED] = str(folder)


@functools.cache
def _scripts():
    """Start the server, which ends with this process; the folder of the scripts that use it."""
    if sys.platform != "linux":
        return None
    if os.environ.get(SHARED):
        return Path(os.environ[SHARED])
    folder = tempfile.TemporaryDirectory(prefix="hardlook-commands-")
    address = f"{folder.name}/socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    server = subprocess.Popen(
        [sys.executable, __file__, str(listener.fileno()), f"{folder.name}/other/python"],
        env=os.environ | SINGLE_THREADED, stdin=subprocess.PIPE, pass_fds=[listener.fileno()],
    )  # fmt: skip
    listener.close()

    def end():
        server.stdin.close()
        server.wait()
        folder.cleanup()

    atexit.register(end)
    for name in ("hardlook", "other/python"):
        script = Path(folder.name, name)
        script.parent.mkdir(exist_ok=True)
        words = {"python": sys.executable, "support": str(Path(__file__).parent), "address": address}
        script.write_text(SCRIPT.format(**words, program=script.name))
        script.chmod(0o755)
    return Path(folder.name)


# What the scripts do. They import nothing else, and so start in 20 ms.


def forward(address, program):
    """Have the server run this command with this process's surroundings; end as it ends."""
    open_ones = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208
    descriptors = [number for number in open_ones if _is_inherited(number)]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    request = {
        "program": program, "arguments": sys.argv[1:], "folder": os.getcwd(),  # noqa: PTH109
        "environment": dict(os.environ), "umask": os.umask(0), "descriptors": descriptors,
    }  # fmt: skip
    message = json.dumps(request).encode(errors="surrogateescape")
    socket.send_fds(connection, [LENGTH.pack(len(message))], descriptors)
    connection.sendall(message)
    answers = connection.makefile()
    child = int(answers.readline())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: os.kill(child, number))
    line = answers.readline()
    if not line:
        sys.exit("the command server has ended")
    status = int(line)
    if status < 0:
        if status != -signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _is_inherited(number):
    try:
        return os.get_inheritable(number)
    except OSError:
        return False


# What the server does.


def serve(listener, python):
    """Fork a process for each connection, until standard input ends; their worker processes are forked here too."""
    import multiprocessing
    import selectors

    _import_everything()
    multiprocessing.set_executable(python)
    base_path = [one for one in sys.path[1:] if one not in _python_path(os.environ)]
    waiting = selectors.DefaultSelector()
    waiting.register(0, selectors.EVENT_READ, "end")
    waiting.register(listener, selectors.EVENT_READ, "call")
    running = {}
    while True:
        for key, _ in waiting.select():
            if key.data == "end":
                for child in running.values():
                    os.kill(child, signal.SIGKILL)
                return
            if key.data == "call":
                connection, _ = listener.accept()
                received = _receive(connection)
                if received is None:
                    connection.close()
                    continue
                child = os.fork()
                if child == 0:
                    waiting.close()
                    for other in (listener, connection, *running):
                        other.close()
                    _run(*received, base_path)
                with contextlib.suppress(OSError):  # A caller that was killed meanwhile is found gone below.
                    connection.sendall(f"{child}\n".encode())
                for number in received[1]:
                    os.close(number)
                ended = os.pidfd_open(child)
                running[connection] = child
                waiting.register(connection, selectors.EVENT_READ, "gone")
                waiting.register(ended, selectors.EVENT_READ, connection)
            elif key.data == "gone":
                # Killed, or it lets go of a process that has ended.
                if key.fileobj in running:
                    waiting.unregister(key.fileobj)
                    os.kill(running[key.fileobj], signal.SIGKILL)
            else:
                connection = key.data
                waiting.unregister(key.fileobj)
                os.close(key.fileobj)
                _, status = os.waitpid(running.pop(connection), 0)
                try:
                    waiting.unregister(connection)
                    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
                except (KeyError, OSError):
                    pass
                connection.close()


def _import_everything():
    import gc
    import importlib
    import pkgutil

    import hardlook

    gc.disable()
    for name in (*THIRD_PARTY, *(one.name for one in pkgutil.walk_packages(hardlook.__path__, "hardlook."))):
        try:
            if not name.endswith("__main__"):
                importlib.import_module(name)
        except ImportError:  # An extra that is not installed.
            pass
    _fill_caches()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 20)  # as in tests/conftest.py
    gc.enable()


def _fill_caches():
    """What most commands compute first: scenes of the default world, a kernel, WordNet's tables, imports of models."""
    import numpy as np
    import PIL.Image
    import rich.cells

    import hardlook
    from hardlook.metrics import confusion_counts
    from hardlook.models.identity import _parse_imports, sources_of
    from hardlook.models.interactive.mobile_sam import MobileSam
    from hardlook.networks.few_shot.catalogue import list_methods
    from hardlook.similarity.wordnet.measures import noun_information_content
    from hardlook.similarity.wordnet.nouns import load_nouns
    from hardlook.world.planted import PlantedWorld

    list(PlantedWorld())
    confusion_counts(np.zeros((256, 256), np.int32), np.zeros((256, 256), np.int32), classes=2)
    noun_information_content()
    assert load_nouns().name_rank is not None
    load_nouns().senses("dog")
    assert sources_of(MobileSam)
    for package in ("models", "networks"):
        for path in Path(hardlook.__path__[0], package).rglob("*.py"):
            _parse_imports(path.read_bytes())
    list_methods()
    PIL.Image.init()
    rich.cells.cell_len("é")


def _receive(connection):
    """The request and its descriptors; None when the caller has gone."""
    try:
        header, descriptors, _, _ = socket.recv_fds(connection, LENGTH.size, MAX_DESCRIPTORS)
        message = b""
        while len(message) < LENGTH.unpack(header)[0]:
            more = connection.recv(1 << 20)
            if not more:
                return None
            message += more
    except (OSError, struct.error):
        return None
    return json.loads(message.decode(errors="surrogateescape")), descriptors


def _python_path(environment):
    return [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]


def _run(request, descriptors, base_path):
    """Become the process that was asked for; never returns."""
    import fcntl
    import io
    import threading
    import traceback
    import types

    aside = [fcntl.fcntl(number, fcntl.F_DUPFD, 256) for number in descriptors]
    for number in descriptors:
        os.close(number)
    for number, wanted in zip(aside, request["descriptors"], strict=True):
        os.dup2(number, wanted)
        os.close(number)
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    output, errors = io.FileIO(1, "w", closefd=False), io.FileIO(2, "w", closefd=False)
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(
        io.BufferedWriter(output), encoding="utf-8", line_buffering=output.isatty()
    )
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(
        io.BufferedWriter(errors), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    path = _python_path(request["environment"])
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    try:
        if request["program"] == "hardlook":
            from hardlook.cli.app import main as run

            script = Path(sys.executable).with_name("hardlook")
            main.__file__ = str(script)
            sys.path[:] = [str(script.parent), *path, *base_path]
            sys.argv = [str(script), *request["arguments"]]
            run()
        else:
            # What stands before are flags of the interpreter, which multiprocessing hands on.
            _, code, *arguments = request["arguments"][request["arguments"].index("-c") :]
            sys.path[:] = ["", *path, *base_path]
            sys.argv = ["-c", *arguments]
            exec(compile(code, "<string>", "exec"), main.__dict__)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
        if left.code is not None and not isinstance(left.code, int):
            sys.stderr.write(f"{left.code}\n")
    except BaseException:
        traceback.print_exc()
        status = 1
    # As the interpreter ends, without taking down what the server imported.
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 0xFF)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
