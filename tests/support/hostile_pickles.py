"""Pickles that run code where they are unpickled, or ask for too much; each leaves a file behind if it ran."""

import collections
import io
import operator
import os
import pickle
import pickletools
import zipfile
from functools import partial

import torch


def write_archive(path, pickled, storages=None, *, compression=zipfile.ZIP_STORED):
    """A torch file with the given pickle and storages (key -> bytes)."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")
        for key, content in (storages or {}).items():
            archive.writestr(f"archive/data/{key}", content)
    return path


class Call:
    """Pickled, it is a call."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


class WithState:
    """Pickled, it is a call, then a state for what that gave."""

    def __init__(self, function, arguments, state):
        self.call = (function, arguments, state)

    def __reduce__(self):
        return self.call


def attacks(trace):
    """Objects by name whose unpickling would write the file `trace`."""
    write = f"open({str(trace)!r}, 'w').write('ran')"
    return {
        "os.system": Call(os.system, f"touch {trace}"),
        "eval": Call(eval, write),
        "exec": Call(exec, write),
        "open": Call(open, str(trace), "w"),
        "nested reduce": Call(Call, Call(eval, write)),
        "operator": Call(operator.methodcaller("system", f"touch {trace}"), Call(__import__, "os")),
        "partial": Call(partial(os.system, f"touch {trace}")),
        "map over a list": Call(list, Call(map, eval, [write])),
        "state of a class": WithState(collections.OrderedDict, (), (None, {"__class__": Call(eval, write)})),
        "torch hub": Call(torch.hub.load, str(trace.parent), "x", "local"),
        "torch load": Call(torch.load, str(trace)),
        "torch._utils function": Call(torch._utils._rebuild_wrapper_subclass, Call(eval, write), *range(8)),
        "type": Call(type, "Evil", (object,), {"__init__": Call(eval, write)}),
        "setattr": Call(setattr, Call(__import__, "torch"), "load", None),
    }


def getattr_chain(trace):
    """A pickle that would call getattr(__import__("os"), "system") on a command that writes `trace`."""
    command = f"touch {trace}".encode()
    imported = ("GLOBAL", b"builtins\n__import__\n", "BINUNICODE", b"\2\0\0\0os", "TUPLE1", "REDUCE")
    found = ("GLOBAL", b"builtins\ngetattr\n", *imported, "BINUNICODE", b"\6\0\0\0system", "TUPLE2", "REDUCE")
    given = ("BINUNICODE", len(command).to_bytes(4, "little"), command, "TUPLE1", "REDUCE")
    return assemble("PROTO", b"\2", *found, *given, "STOP")


def assemble(*lines):
    """A pickle from opcodes and raw bytes, for what no pickler writes."""
    codes = {code.name: code.code.encode("latin1") for code in pickletools.opcodes}
    return b"".join(codes[line] if isinstance(line, str) else line for line in lines)


def tensor_pickle(entries, *, more=None):
    """A checkpoint's pickle whose tensors state what they like: name -> (count, offset, size, strides[, key])."""

    class Storage:
        def __init__(self, count, key):
            self.count, self.key = count, key

    class Stored:
        def __init__(self, count, offset, size, strides, key="0"):
            self.arguments = (Storage(count, key), offset, size, strides, False, collections.OrderedDict())

        def __reduce__(self):
            return torch._utils._rebuild_tensor_v2, self.arguments

    class Pickler(pickle.Pickler):
        def persistent_id(self, given):
            if isinstance(given, Storage):
                return ("storage", torch.FloatStorage, given.key, "cpu", given.count)
            return None

    stream = io.BytesIO()
    content = {"state_dict": {name: Stored(*entry) for name, entry in entries.items()}, **(more or {})}
    Pickler(stream, 2).dump(content)
    return stream.getvalue()
