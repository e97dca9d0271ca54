"""One error for whatever a file makes a library raise, and limits that are checked before memory is taken."""

import resource
import struct
import subprocess
import sys
import zlib

import cv2
import numpy as np
import PIL.Image
import polars as pl
import pytest

from hardlook.data import rle
from hardlook.data.images import decode_picture, read_image, read_stated_size
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError, OptionError, RunError
from hardlook.reading import check_pixels, get_max_pixels, read_json, reading


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"), KeyError("x"), RecursionError("x"), MemoryError(), OSError(28, "No space left"),
        AttributeError("x"), pl.exceptions.PanicException("x"), pl.exceptions.ComputeError("x"), AssertionError(),
    ],
)  # fmt: skip
def test_every_error_becomes_one_that_names_the_file(error):
    with pytest.raises(RunError, match=r"^broken: .+\n  file: a.bin\n  remedy: copy it$") as caught:
        with reading("a.bin", "broken", remedy="copy it", kind=RunError):
            raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_interrupts_and_exits_pass(error):
    with pytest.raises(type(error)), reading("a.bin"):
        raise error


def test_an_error_of_hardlook_keeps_its_words_and_gets_the_file_it_lacks():
    with pytest.raises(OptionError, match=r"no\n  file: a.bin"), reading("a.bin", "broken"):
        raise OptionError("no")
    with pytest.raises(OptionError, match=r"no\n  file: b.bin"), reading("a.bin", "broken"):
        raise OptionError("no", file="b.bin")


def test_a_message_is_never_longer_than_can_be_read():
    with pytest.raises(DataError) as caught, reading("a.bin"):
        raise ValueError("x" * 10**6)
    assert len(str(caught.value)) < 500
    assert len(str(DataError("x" * 10**6, file="y" * 10**6, unit="z" * 10**6, remedy="r" * 10**6))) < 6000


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "[1, 2", "nul", "\xff", "9" * 5000, "\0"])
def test_what_is_no_json_gives_one_error(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match="not JSON") as caught:
        read_json(path)
    assert caught.value.file == str(path)


def test_json_errors_give_line_and_column(tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1,\n "b": }')
    with pytest.raises(DataError, match="line 2 column 7"):
        read_json(tmp_path / "a.json")


def make_chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def test_a_small_file_of_a_huge_image_takes_no_memory(tmp_path):
    """2.6 MB that are 900 megapixels: 5.3 GB when they were decoded."""
    path = tmp_path / "huge.png"
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    chunks = (
        make_chunk(b"IHDR", header),
        make_chunk(b"IDAT", zlib.compress(b"\0" * 3_000_000)),
        make_chunk(b"IEND", b""),
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (read_image, read_label_map):
        with pytest.raises(DataError, match="30000x30000 are 900 megapixels") as caught:
            read(path)
        assert caught.value.file == str(path) and "HARDLOOK_MAX_PIXELS=900000000" in caught.value.remedy
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_chunk_that_states_two_gigabytes_takes_no_memory(tmp_path):
    path = tmp_path / "a.png"
    PIL.Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(path)
    data = bytearray(path.read_bytes())
    data[33] = 0x80  # the length of the chunk after the header
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read_image(path).shape == (9, 9, 3), "Pillow reads what is there"
    assert decode_picture(bytes(data), cv2.IMREAD_COLOR) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_the_limit_of_pixels_can_be_set(tmp_path, monkeypatch):
    PIL.Image.new("RGB", (40, 30)).save(tmp_path / "a.png")
    PIL.Image.new("L", (40, 30)).save(tmp_path / "grey.png")
    PIL.Image.new("RGB", (40, 30)).save(tmp_path / "a.jpg")
    monkeypatch.setenv("HARDLOOK_MAX_PIXELS", "1199")
    for name in ("a.png", "grey.png", "a.jpg"):
        with pytest.raises(DataError, match="40x30 are 0 megapixels"):
            read_image(tmp_path / name)
    monkeypatch.setenv("HARDLOOK_MAX_PIXELS", "1200")
    assert all(read_image(tmp_path / name).shape == (30, 40, 3) for name in ("a.png", "grey.png", "a.jpg"))
    for wrong in ("many", "-1", "1e9", "9" * 40):
        monkeypatch.setenv("HARDLOOK_MAX_PIXELS", wrong)
        with pytest.raises(OptionError, match="not a number of pixels"):
            get_max_pixels()


@pytest.mark.parametrize(
    "size", [[2**31, 160], [160, 2**31], [2**40, 2**40], [-1, 5], [5, -1], [4.5, 5], ["4", 5], [4]]
)
def test_a_mask_of_an_impossible_size_is_refused(size):
    """With [2^31, 160] decoding ended the process."""
    for counts in ("d0", "", [20]):
        with pytest.raises(DataError):
            rle.decode({"size": size, "counts": counts})


def test_arrays_whose_header_states_more_than_the_file_holds(tmp_path, monkeypatch):
    """np.load takes the memory that the header states, and looks for the data later."""
    with (tmp_path / "a.npy").open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (9000, 9000)})
        stream.write(b"\0" * 800)
    with pytest.raises(DataError, match="ends before its 81000000 labels"):
        read_label_map(tmp_path / "a.npy")
    np.savez_compressed(tmp_path / "bomb.npz", np.zeros((2000, 2000), np.uint8))
    assert (tmp_path / "bomb.npz").stat().st_size < 20_000
    monkeypatch.setenv("HARDLOOK_MAX_PIXELS", "3999999")
    with pytest.raises(DataError, match="2000x2000 are 4 megapixels"):
        read_label_map(tmp_path / "bomb.npz")


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "I;16", "1", "CMYK"])
def test_strips_of_a_large_image_give_the_same_pixels(tmp_path, monkeypatch, mode):
    rng = np.random.default_rng(0)
    if mode == "I;16":
        image = PIL.Image.fromarray(rng.integers(0, 65536, (37, 23), dtype=np.uint16))
    else:
        image = PIL.Image.fromarray(rng.integers(0, 256, (37, 23, 3), dtype=np.uint8)).convert(mode)
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    image.save(path)
    whole = read_image(path)
    monkeypatch.setattr("hardlook.data.images._STRIP_PIXELS", 100)
    monkeypatch.setattr("hardlook.data.images._is_safe_for_opencv", lambda data: False)
    assert np.array_equal(read_image(path), whole)


def test_sizes_are_read_from_headers(tmp_path):
    saved = {"a.png": {}, "a.jpg": {}, "b.jpg": {"progressive": True}, "c.jpg": {"exif": b"Exif\0\0" + b"x" * 500}}
    for name, options in saved.items():
        PIL.Image.new("RGB", (41, 30)).save(tmp_path / name, **options)
        assert read_stated_size((tmp_path / name).read_bytes()) == (41, 30)
    data = (tmp_path / "a.jpg").read_bytes()
    assert all(read_stated_size(data[:end]) in (None, (41, 30)) for end in range(0, len(data), 7))
    assert read_stated_size(b"GIF89a") is None and decode_picture(b"GIF89a" + b"\0" * 50, -1) is None


def test_pillow_runs_no_other_program(tmp_path):
    """An EPS under the name of a PNG would be given to Ghostscript."""
    path = tmp_path / "a.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    with pytest.raises(DataError, match="the file is not an image"):
        read_image(path)


def test_a_process_survives_what_ended_it_before():
    code = """
from hardlook.data import rle
try:
    rle.decode({'size': [2**31, 160], 'counts': 'd0'})
except Exception as error:
    print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "DataError")


def test_the_check_names_its_file():
    with pytest.raises(DataError, match=r"file: a.png\n  unit: cat"):
        check_pixels(10**9, 10**9, file="a.png", unit="cat")


@pytest.mark.parametrize("text", ['["\\ud800"]', '{"a": {"\\uDC00b": 1}}', '["\\ud83d\\ud83d"]'])
def test_half_of_a_surrogate_pair_is_no_text(tmp_path, text):
    """JSON can hold one; no file, table or page that repeats it can be written."""
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(DataError, match="half of a surrogate pair") as caught:
        read_json(path)
    assert str(path) in str(caught.value)


def test_a_whole_surrogate_pair_is_text(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('["\\ud83d\\ude00", "\\\\ud800"]')
    assert read_json(path) == ["\N{GRINNING FACE}", "\\ud800"]
