"""Damage to files: bits, bytes, pieces, tokens, numbers, headers and the values of documents, from a seeded generator.

`mutate(data, rng)` knows no format by name. It looks at the first bytes: PNG and JPEG get other sizes in their headers,
archives and safetensors are taken apart and put together again around a damaged part, so that checksums and lengths
stay right and the damage gets past them.
"""

import io
import json
import random
import re
import struct
import zipfile
import zlib

NUMBERS = (
    b"0", b"-1", b"1", b"255", b"65536", b"2147483647", b"2147483648", b"4294967296", b"9223372036854775808", b"1e400",
    b"-1e308", b"1e-320", b"NaN", b"Infinity", b"-Infinity", b"0.5", b"-0", b"1e9", b"30000", b"9" * 5000,
    b"1_0", b"0x10",
)  # fmt: skip
TEXTS = (
    "", " ", "\0", "\ud800", "\N{SNOWMAN}", "a" * 5000, "../../etc/passwd", "/", ".", "\n", "1", "nan", "-1", "\u202e",
)  # fmt: skip
TOKENS = (
    b"", b",", b"\n", b"\r\n", b'"', b"'", b"\t", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"null", b"true", b"{}", b"[]",
    b"[" * 3000, b'{"a":' * 3000, b"[" * 200_000, b"\xed\xa0\x80", b"#", b"_" * 3000, b"0" * 3000, b" " * 3000,
)  # fmt: skip
WORDS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
SIZES = (0, 1, 2, 160, 4096, 8191, 20_000, 30_000, 65_500, 100_000, 2**31 - 1, 2**31, 2**32 - 1)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_TOKEN = re.compile(rb"[^\s,:;\[\]{}\"]+")


def mutate(data, rng):
    """The data with one to four pieces of damage."""
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3, 4))):
        data = _mutate_once(data, rng)
    return data


def _mutate_once(data, rng):
    if not data:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(64)))
    if rng.random() < 0.4:
        if data.startswith(b"\x89PNG") and len(data) > 33:
            return _mutate_png(data, rng)
        if data.startswith(b"\xff\xd8"):
            return _mutate_jpeg(data, rng)
        if data.startswith(b"PK\x03\x04"):
            return _mutate_archive(data, rng)
        if data[8:9] == b"{":
            return _mutate_safetensors(data, rng)
        if data.startswith(b"PAR1"):
            return _mutate_parquet(data, rng)
    if rng.random() < 0.6 and (changed := _mutate_document(data, rng)) is not None:
        return changed
    return rng.choice(_BLIND)(data, rng)


def _flip_bits(data, rng):
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set_bytes(data, rng):
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        changed[rng.randrange(len(changed))] = rng.choice((0, 0x20, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(changed)


def _set_word(data, rng):
    width = rng.choice((1, 2, 4, 8))
    place = rng.randrange(len(data))
    word = rng.choice(WORDS) if rng.random() < 0.8 else (1 << 64) - 1 - rng.choice(WORDS)
    return (
        data[:place] + (word % (1 << 8 * width)).to_bytes(width, rng.choice(("little", "big"))) + data[place + width :]
    )


def _truncate(data, rng):
    return data[: rng.randrange(len(data))]


def _piece(data, rng):
    start = rng.randrange(len(data))
    return start, min(len(data), start + rng.choice((1, 2, 4, 16, 64, 256, 4096)))


def _delete(data, rng):
    start, end = _piece(data, rng)
    return data[:start] + data[end:]


def _duplicate(data, rng):
    start, end = _piece(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 50)) + data[end:]


def _move(data, rng):
    start, end = _piece(data, rng)
    rest, place = data[:start] + data[end:], rng.randrange(len(data) - (end - start) + 1)
    return rest[:place] + data[start:end] + rest[place:]


def _insert(data, rng):
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice((*TOKENS, *NUMBERS)) + data[place:]


def _replace_number(data, rng):
    found = list(_NUMBER.finditer(data[:100_000]))
    if not found:
        return _flip_bits(data, rng)
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(NUMBERS) + data[one.end() :]


def _swap_tokens(data, rng):
    found = list(_TOKEN.finditer(data[:100_000]))
    if len(found) < 2:
        return _move(data, rng)
    first, second = sorted(rng.sample(range(len(found)), 2))
    one, two = found[first], found[second]
    between = data[one.end() : two.start()]
    return data[: one.start()] + two[0] + between + one[0] + data[two.end() :]


def _replace_token(data, rng):
    found = list(_TOKEN.finditer(data[:100_000]))
    if not found:
        return _insert(data, rng)
    one = rng.choice(found)
    return data[: one.start()] + rng.choice((*TOKENS, *NUMBERS)) + data[one.end() :]


_BLIND = (
    _flip_bits, _flip_bits, _set_bytes, _set_word, _truncate, _delete, _duplicate, _move, _insert, _replace_number,
    _replace_number, _swap_tokens, _replace_token,
)  # fmt: skip


def _mutate_png(data, rng):
    """Another width, height, depth or colour type in the header, or a damaged chunk, checksums made right again."""
    if rng.random() < 0.6:
        header = bytearray(data[16:29])
        place = rng.choice((0, 4, 8, 9, 12))
        if place < 8:
            header[place : place + 4] = struct.pack(">I", rng.choice(SIZES))
        else:
            header[place] = rng.randrange(20)
        if rng.random() < 0.5:
            header[0:8] = struct.pack(">II", rng.choice(SIZES), rng.choice(SIZES))
        return data[:16] + bytes(header) + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + data[33:]
    chunks, place = [], 8
    while place + 12 <= len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        chunks.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
        place += 12 + length
    if not chunks:
        return _flip_bits(data, rng)
    chosen = rng.randrange(len(chunks))
    name, content = chunks[chosen]
    if name == b"IDAT" and rng.random() < 0.5:
        try:
            content = zlib.compress(_flip_bits(zlib.decompress(content) or b"\0", rng))
        except zlib.error:
            content = _set_bytes(content or b"\0", rng)
    else:
        content = rng.choice(_BLIND)(content or b"\0", rng)[:100_000]
    chunks[chosen] = (rng.choice((name, name, name, b"tRNS", b"PLTE", b"iCCP", b"zTXt", b"acTL")), content)
    if rng.random() < 0.2:
        rng.shuffle(chunks)
    packed = (struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in chunks)
    return data[:8] + b"".join(packed)


def _mutate_jpeg(data, rng):
    """Another size or number of components in the frame header."""
    found = [one.start() for one in re.finditer(rb"\xff[\xc0\xc1\xc2]", data)]
    if not found or found[0] + 10 > len(data):
        return _flip_bits(data, rng)
    place, changed = found[0], bytearray(data)
    for start in rng.sample((5, 7), rng.choice((1, 2))):
        changed[place + start : place + start + 2] = struct.pack(">H", rng.choice(SIZES) % 65_536)
    if rng.random() < 0.2:
        changed[place + rng.choice((1, 4, 9))] = rng.randrange(256)
    return bytes(changed)


def _mutate_archive(data, rng):
    """A damaged member, in a whole archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(one.filename, archive.read(one)) for one in archive.infolist()]
        chosen = rng.randrange(len(members))
        name, content = members[chosen]
        members[chosen] = (name, _mutate_once(content, rng))
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return written.getvalue()
    except Exception:  # already damaged
        return _flip_bits(data, rng)


def _mutate_parquet(data, rng):
    """A whole Parquet file whose columns are missing, renamed, of other types, or hold other values."""
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(data))
        name = rng.choice(frame.columns)
        what = rng.randrange(6)
        if what == 0:
            frame = frame.drop(name)
        elif what == 1:
            frame = frame.rename({name: rng.choice(("", "unit", "answers", "\N{SNOWMAN}", "a" * 500))})
        elif what == 2:
            kind = rng.choice((pl.String, pl.Int8, pl.Float32, pl.Boolean, pl.List(pl.Int64), pl.Binary, pl.Date))
            frame = frame.with_columns(pl.col(name).cast(kind, strict=False))
        elif what == 3:
            value = rng.choice((None, float("nan"), -1, 2**62, "", "\N{SNOWMAN}", b"\0", [1]))
            frame = frame.with_columns(pl.lit(value, allow_object=False).alias(name))
        elif what == 4:
            frame = pl.concat([frame] * rng.choice((2, 40)))
        else:
            frame = frame.head(rng.choice((0, 1)))
        written = io.BytesIO()
        frame.write_parquet(written)
        return written.getvalue()
    except (Exception, pl.exceptions.PanicException):  # already damaged, or no such change of this column
        return _flip_bits(data, rng)


def _mutate_safetensors(data, rng):
    """A damaged header, its length made right again."""
    length = int.from_bytes(data[:8], "little")
    if not 0 < length <= len(data) - 8:
        return _flip_bits(data, rng)
    header = data[8 : 8 + length]
    changed = _mutate_document(header, rng) or rng.choice(_BLIND)(header, rng)
    return len(changed).to_bytes(8, "little") + changed + data[8 + length :]


def _mutate_document(data, rng):
    """A JSON document, or a line of JSON lines, with a value replaced, removed, repeated or exchanged; else None."""
    if data[:1] not in b"{[" or len(data) > 1_000_000:
        return None
    lines = data.split(b"\n")
    chosen = rng.randrange(len(lines)) if len(lines) > 2 and lines[1][:1] == b"{" else None
    try:
        document = json.loads(data if chosen is None else lines[chosen])
        places = []
        _list_places(document, places)
    except (ValueError, RecursionError):
        return None
    if not places:
        return None
    parent, key = rng.choice(places)
    what = rng.randrange(5)
    if what == 0:
        del parent[key]
    elif what == 1 and isinstance(parent, list):
        parent.insert(key, parent[key])
    elif what == 2:
        other, where = rng.choice(places)
        parent[key], other[where] = other[where], parent[key]
        if _has_cycle(document, set(), 0):
            return None
    else:
        parent[key] = "\N{LOCK}"
    text = json.dumps(document).encode()
    text = text.replace(json.dumps("\N{LOCK}").encode(), _make_value(rng, 0))
    if chosen is None:
        return text
    lines[chosen] = text
    return b"\n".join(lines)


def _make_value(rng, depth):
    """A value that a reader does not expect, as JSON."""
    kind = rng.randrange(9)
    if kind < 3:
        return rng.choice(NUMBERS)
    if kind < 5:
        return json.dumps(rng.choice(TEXTS)).encode()
    if kind == 5:
        return rng.choice((b"null", b"true", b"false", b"{}", b"[]", b"[[]]", b"[null]", b'{"":0}'))
    if kind == 6:
        levels = rng.choice((2, 50, 400, 900, 100_000))
        return b"[" * levels + b"]" * levels if rng.random() < 0.5 else b'{"a":' * levels + b"1" + b"}" * levels
    if kind == 7 and depth < 3:
        return b"[" + b",".join(_make_value(rng, depth + 1) for _ in range(rng.randrange(8))) + b"]"
    return str(rng.choice((rng.randrange(-5, 300), rng.uniform(-10, 10), rng.getrandbits(70)))).encode()


def _list_places(value, places, depth=0):
    if depth > 300:
        return
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        places.append((value, key))
        _list_places(one, places, depth + 1)


def _has_cycle(value, above, depth):
    if not isinstance(value, dict | list):
        return False
    if id(value) in above or depth > 300:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(_has_cycle(one, above | {id(value)}, depth + 1) for one in inner)


def make_generator(*key):
    """A generator that depends on the key alone."""
    return random.Random(":".join(map(str, key)))
