"""Pickles read without running them: what they hold, and attacks."""

import collections
import pickle
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hostile_pickles import Call, assemble, attacks, getattr_chain, tensor_pickle, write_archive

from hardlook.networks import inert_pickles
from hardlook.networks.inert_pickles import InertArchive, Record, StoredTensor, interpret

NAMES = sorted(attacks(Path("trace")))


class Loss(torch.nn.Module):
    """A module with a buffer and a function, as SimpleClick's settings hold one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.arange(3.0))
        self.function = np.mean


@pytest.mark.parametrize("protocol", range(2, 6))
def test_plain_content_is_what_pickle_would_give(protocol):
    shared = [1, "two"]
    content = {
        "numbers": [0, -5, 1 << 70, 2.5, True, None, 300, 70_000],
        "texts": ("", "ü" * 300, b"bytes"),
        "nested": {"a": {"b": [(), (1,), (1, 2), (1, 2, 3, 4)]}},
        "shared": [shared, shared],
        "set": {1, "x"},
        "ordered": collections.OrderedDict(x=1, y=2),
    }
    found = interpret(pickle.dumps(content, protocol)).content
    if protocol == 2:  # bytes are encoded texts there
        assert found["texts"][2].name == "_codecs.encode"
        found["texts"], content["texts"] = found["texts"][:2], content["texts"][:2]
    assert found == content
    assert found["shared"][0] is found["shared"][1]


def test_objects_of_other_projects_are_records():
    found = interpret(pickle.dumps(Call(np.mean, 1, 2))).content
    assert isinstance(found, Record)
    assert (found.name, found.arguments) == ("numpy.mean", (1, 2))


def test_tensors_and_modules_of_a_torch_file(tmp_path):
    path = tmp_path / "file.pth"
    big = torch.randn(4, 6)
    state = collections.OrderedDict(
        whole=big, part=big[1:3, ::2], turned=big.T, none=torch.empty(0, 3), scalar=torch.tensor(7),
        parameter=torch.nn.Parameter(torch.ones(2)), half=torch.ones(2, dtype=torch.bfloat16), yes=torch.tensor([True]),
    )  # fmt: skip
    torch.save({"state_dict": state, "loss": Loss(), "device": torch.device("cuda:0")}, path)
    with InertArchive(path) as archive:
        assert {"torch.device", "numpy.mean"} <= archive.names
        for name, expected in state.items():
            found = archive.read_tensor(archive.content["state_dict"][name])
            assert found.dtype == expected.dtype
            assert torch.equal(found, expected.detach()), name
        loss = archive.content["loss"]
        assert isinstance(loss, Record)
        assert loss.name.endswith("Loss")
        weight = loss.state["_buffers"]["weight"]
        assert isinstance(weight, StoredTensor)
        assert archive.read_tensor(weight).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("protocol", [2, 4])
def test_attacks_are_refused_or_inert_and_never_run(tmp_path, name, protocol):
    trace = tmp_path / "trace"
    try:
        attack = pickle.dumps({"x": attacks(trace)[name]}, protocol)
    except Exception as error:
        pytest.skip(f"Python does not pickle it: {error}")
    before = {module: len(vars(sys.modules[module])) for module in ("os", "torch", "builtins")}
    try:
        found = interpret(attack).content
    except ValueError as error:
        assert "it would call" in str(error) or "it calls" in str(error)
    else:
        assert all(isinstance(value, Record | dict) for value in found.values())
    assert not trace.exists()
    assert before == {module: len(vars(sys.modules[module])) for module in before}


def test_a_chain_of_attributes_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"it would call builtins\.getattr"):
        interpret(getattr_chain(tmp_path / "trace"))
    assert not (tmp_path / "trace").exists()


def test_the_attacks_are_real(tmp_path):
    """Unpickled by Python, they run."""
    names = ("os.system", "eval", "exec", "open", "nested reduce", "map over a list", "chain")
    for place, name in enumerate(names):
        trace = tmp_path / str(place)
        attack = getattr_chain(trace) if name == "chain" else pickle.dumps(attacks(trace)[name])
        pickle.loads(attack)
        assert trace.exists(), name


def test_names_of_python_are_refused_under_all_spellings():
    for dotted in (
        "os system", "posix system", "nt system", "builtins eval", "__builtin__ eval", "builtins getattr", "sys exit",
        "subprocess Popen", "runpy run_path", "importlib import_module", "pickle loads", "_pickle loads",
        "socket socket", "code interact", "operator attrgetter", "functools partial",
    ):  # fmt: skip
        module, name = dotted.encode().split(b" ")
        with pytest.raises(ValueError, match="it would call"):
            interpret(assemble("PROTO", b"\2", "GLOBAL", module + b"\n" + name + b"\n", "STOP"))
        with pytest.raises(ValueError, match="it would call"):
            parts = [piece for text in (module, name) for piece in ("SHORT_BINUNICODE", bytes([len(text)]), text)]
            interpret(assemble("PROTO", b"\4", *parts, "STACK_GLOBAL", "STOP"))


def test_a_name_of_torch_that_would_run_code_is_a_record():
    attack = assemble(
        "PROTO", b"\2", "GLOBAL", b"torch.serialization\nos.system\n", "BINUNICODE", b"\4\0\0\0true", "TUPLE1",
        "REDUCE", "EMPTY_DICT", "BUILD", "STOP",
    )  # fmt: skip
    found = interpret(attack).content
    assert (found.name, found.arguments, found.state) == ("torch.serialization.os.system", ("true",), {})


def test_states_cannot_change_our_own_functions_or_classes():
    for target in (
        b"torch._utils\n_rebuild_tensor_v2\n",
        b"collections\nOrderedDict\n",
        b"hardlook.errors\nDataError\n",
    ):
        with pytest.raises(ValueError, match="gives a state to a Name"):
            interpret(assemble("PROTO", b"\2", "GLOBAL", target, "EMPTY_DICT", "BUILD", "STOP"))


@pytest.mark.parametrize(
    "lines",
    [
        ("EXT1", b"\1"),
        ("PERSID", b"0\n"),
        ("NONE", "NONE", "REDUCE"),
        ("BININT1", b"\5", "EMPTY_TUPLE", "REDUCE"),
        ("TUPLE2",),
        ("POP",),
        ("BINGET", b"\7"),
        ("APPENDS",),
        ("EMPTY_DICT", "EMPTY_LIST", "NONE", "SETITEM"),
        ("EMPTY_LIST", "NONE", "NONE", "SETITEM"),
        ("NONE", "BINPERSID"),
        ("MARK", "STOP"),
        ("BINUNICODE", b"\xff\xff\xff\x7fx"),
    ],
)
def test_malformed_pickles_are_refused(lines):
    with pytest.raises((ValueError, IndexError)):
        interpret(assemble("PROTO", b"\2", *lines, "STOP"))


def test_half_a_pickle_is_refused():
    whole = pickle.dumps({"a": [1, 2, 3]}, 2)
    for length in range(len(whole) - 1):
        with pytest.raises(ValueError):
            interpret(whole[:length])


def test_nesting_takes_no_stack():
    depth = 200_000
    nested = assemble("PROTO", b"\2", "EMPTY_LIST", *["TUPLE1"] * depth, "STOP")
    found = interpret(nested).content
    assert isinstance(found, tuple)
    del found
    with pytest.raises(ValueError, match="a key is a tuple"):
        interpret(assemble("PROTO", b"\2", "EMPTY_DICT", "EMPTY_LIST", *["TUPLE1"] * depth, "NONE", "SETITEM", "STOP"))
    calls = [
        "GLOBAL",
        b"a\nb\n",
        "EMPTY_TUPLE",
        "REDUCE",
        *["TUPLE1", "GLOBAL", b"a\nb\n", "EMPTY_TUPLE", "REDUCE"] * 9,
    ]
    interpret(assemble("PROTO", b"\2", *calls, "STOP"))


def test_a_list_that_holds_itself_is_read():
    found = interpret(
        assemble("PROTO", b"\2", "EMPTY_LIST", "BINPUT", b"\0", "BINGET", b"\0", "APPEND", "STOP")
    ).content
    assert found[0] is found


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ((1 << 40, 0, (4,), (1,)), "needs 4398046511104 bytes"),
        ((4, 0, (1 << 40,), (0,)), "larger than its storage"),
        ((4, 0, (1 << 30, 1 << 30), (1, 1)), "larger than its storage"),
        ((4, 2, (3,), (1,)), "larger than its storage"),
        ((4, 0, (2, 2), (3, 1)), "larger than its storage"),
        ((4, -1, (2,), (1,)), "no storage"),
        ((4, 0, (-2,), (1,)), "no shape"),
        ((4, 0, (2,), (1, 1)), "other strides than axes"),
        ((4, 0, (2,), (-1,)), "no shape"),
        ((4, 0, (1,) * 20, (1,) * 20), "no shape"),
        ((4, 0, (2,), (1,), "../0"), "no name or no size"),
        ((4, 0, (2,), (1,), "9"), "which has None"),
    ],
)
def test_tensors_that_ask_for_more_than_the_file_has_are_refused(tmp_path, entry, message):
    path = write_archive(tmp_path / "x.pth", tensor_pickle({"a": entry}), {"0": bytes(16)})
    with pytest.raises(ValueError, match=message), InertArchive(path) as archive:
        archive.read_tensor(archive.content["state_dict"]["a"])


def test_compressed_and_overlapping_archives_are_refused(tmp_path):
    pickled = tensor_pickle({"a": (4, 0, (4,), (1,))})
    bomb = write_archive(tmp_path / "bomb.pth", pickled, {"0": bytes(1 << 22)}, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed"):
        InertArchive(bomb)
    two = tmp_path / "two.pth"
    with zipfile.ZipFile(two, "w") as archive:
        archive.writestr("a/data.pkl", pickled)
        archive.writestr("b/data.pkl", pickled)
    with pytest.raises(ValueError, match=r"2 parts data\.pkl"):
        InertArchive(two)
    capitals = tmp_path / "capitals.pth"
    with zipfile.ZipFile(capitals, "w") as archive:
        archive.writestr("a/DATA.PKL", pickled)
        archive.writestr("a/data.pkl", pickled)
    with pytest.raises(ValueError, match=r"2 parts data\.pkl"):
        InertArchive(capitals)
    large = write_archive(tmp_path / "large.pth", pickled)
    content = bytearray(large.read_bytes())
    place = content.rfind(b"PK\1\2")
    content[place + 20 : place + 28] = (1 << 30).to_bytes(4, "little") * 2
    large.write_bytes(content)
    with pytest.raises(ValueError, match="larger than itself"):
        InertArchive(large)


def test_memory_that_a_call_would_take_is_not_taken(tmp_path):
    """In a process with little memory, as a slip would take this one's."""
    pickled = pickle.dumps({"state_dict": {"a": Call(bytearray, 1 << 36), "b": Call(torch.FloatTensor, 1 << 36)}}, 2)
    path = write_archive(tmp_path / "x.pth", pickled)
    code = "import sys; from pathlib import Path; from hardlook.networks.inert_pickles import InertArchive\n"
    code += "with InertArchive(Path(sys.argv[1])) as a: print(*(a.content['state_dict'][k].name for k in 'ab'))"

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, preexec_fn=limit)
    assert run.stdout.split() == ["builtins.bytearray", "torch.FloatTensor"], run.stderr


@pytest.mark.parametrize(
    ("called", "empty", "fill"),
    [
        (b"collections\nOrderedDict\n", "EMPTY_DICT", "SETITEMS"),
        (b"builtins\nset\n", "EMPTY_LIST", "APPENDS"),
        (b"elsewhere\nThing\n", "EMPTY_LIST", "APPENDS"),
    ],
)
def test_a_container_that_is_recalled_cannot_be_copied_without_end(monkeypatch, called, empty, fill):
    """Each copy takes six bytes of the file, however large the container is."""
    monkeypatch.setattr(inert_pickles, "MAX_COPIED", 5000)
    parts = [part for number in range(100) for part in ("BININT1", bytes([number]))]
    start = ("GLOBAL", called, "BINPUT", b"\1", empty, "BINPUT", b"\0", "MARK", *parts, fill)
    copy = ("BINGET", b"\1", "BINGET", b"\0", "TUPLE1", "REDUCE")
    interpret(assemble(*start, *copy * 40, "STOP"))
    with pytest.raises(ValueError, match="given more than 5000 elements"):
        interpret(assemble(*start, *copy * 110, "STOP"))
    if empty == "EMPTY_DICT":  # torch copies what it builds a dictionary with
        built = ("BINGET", b"\1", "EMPTY_TUPLE", "REDUCE", "BINGET", b"\0", "BUILD")
        with pytest.raises(ValueError, match="given more than 5000 elements"):
            interpret(assemble(*start, *built * 110, "STOP"))


def test_names_and_keys_cannot_be_made_longer_than_those_of_networks():
    text = ("BINUNICODE", (2000).to_bytes(4, "little"), b"a" * 2000, "BINPUT", b"\0")
    for lines in ((*text, "BINGET", b"\0", "STACK_GLOBAL"), ("GLOBAL", b"a" * 2000 + b"\nb\n")):
        with pytest.raises(ValueError, match=r"a name of [24]00[02] characters"):
            interpret(assemble("PROTO", b"\4", *lines, "STOP"))
    call = ("EMPTY_TUPLE", "REDUCE", "MEMOIZE")
    assert interpret(assemble("GLOBAL", b"a\nb\n", *call * 500, "STOP")).content.name == "a.b(...)"
    for parts, fits in ((16, True), (17, False)):
        lines = ("EMPTY_DICT", "MARK", *["NONE"] * parts, "TUPLE", "NONE", "SETITEM", "STOP")
        if fits:
            assert interpret(assemble(*lines)).content == {(None,) * parts: None}
        else:
            with pytest.raises(ValueError, match="a key is a tuple"):
                interpret(assemble(*lines))


def test_reading_imports_nothing_that_a_file_names(tmp_path):
    marker = tmp_path / "planted_package.py"
    marker.write_text("raise SystemExit('imported')")
    sys.path.insert(0, str(tmp_path))
    try:
        attack = assemble("PROTO", b"\2", "GLOBAL", b"planted_package\nThing\n", "EMPTY_TUPLE", "REDUCE", "STOP")
        assert interpret(attack).content.name == "planted_package.Thing"
    finally:
        sys.path.remove(str(tmp_path))
    assert "planted_package" not in sys.modules
