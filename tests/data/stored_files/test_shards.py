"""Shards as the library webdataset writes them: members in place, samples by key, and what is refused."""

import gzip
import io
import json
import tarfile

import numpy as np
import PIL.Image
import pytest

from hardlook.data.images import decode_image
from hardlook.data.label_maps import decode_label_map
from hardlook.data.stored_files.shards import read_labelled, read_objects, read_shards, split_name, write_shards
from hardlook.errors import DataError, OptionError


def encode(array, kind="PNG"):
    stream = io.BytesIO()
    PIL.Image.fromarray(array).save(stream, kind)
    return stream.getvalue()


IMAGE = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
MASK = np.arange(24, dtype=np.uint8).reshape(4, 6)


def write_shard(path, members):
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def pair(key, image="png", mask="seg.png"):
    return [(f"{key}.{image}", encode(IMAGE)), (f"{key}.{mask}", encode(MASK)), (f"{key}.json", b"{}")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # The examples of webdataset's documentation, and its rule: the first dot of the last part of the path.
        ("images17/image194.left.jpg", ("images17/image194", "left.jpg")),
        ("0001.jpg", ("0001", "jpg")),
        ("a.b/c.JPG", ("a.b/c", "jpg")),
        ("readme", ("readme", "")),
    ],
)
def test_keys(name, expected):
    assert split_name(name) == expected


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_are_read_in_place(tmp_path, format):
    long = "x" * 120  # more than the name field of a header holds
    with tarfile.open(tmp_path / "a.tar", "w", format=format) as archive:
        for key in ("0001", long if format != tarfile.USTAR_FORMAT else "0002"):
            for name, content in pair(key):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    samples = read_shards(tmp_path / "a.tar")
    assert len(samples) == 2
    for sample in samples.values():
        image, mask = sample.find_image(), sample.find_mask()
        assert (decode_image(image.read_bytes(), image.path) == IMAGE).all()
        assert (decode_label_map(mask.read_bytes(), mask.path) == MASK).all()


def test_a_folder_of_shards_in_order_with_equal_keys_told_apart(tmp_path):
    write_shard(tmp_path / "b-0001.tar", pair("7"))
    write_shard(tmp_path / "b-0000.tar", pair("9"))
    assert list(read_shards(tmp_path)) == ["9", "7"]
    write_shard(tmp_path / "b-0002.tar", pair("7"))
    assert list(read_shards(tmp_path)) == ["b-0000/9", "b-0001/7", "b-0002/7"]


def test_a_png_beside_a_jpg_is_the_mask(tmp_path):
    members = [("1.jpg", encode(IMAGE, "JPEG")), ("1.png", encode(MASK)), ("1.cls", b"3")]
    (sample,) = read_shards(write_shard(tmp_path / "a.tar", members)).values()
    assert (sample.find_image().name, sample.find_mask().name) == ("1.jpg", "1.png")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("1.jpg", b"x")], "no member is the label map"),
        ([("1.json", b"x")], "no member is the image"),
        ([("1.jpg", b"x"), ("1.seg.png", b"x"), ("1.mask.png", b"x")], "several members may be the label map"),
        ([("1.jpg", b"x"), ("1.image.png", b"x"), ("1.seg.png", b"x")], "several members may be the image"),
    ],
)
def test_samples_without_one_image_and_one_map_say_what_they_have(tmp_path, members, message):
    (sample,) = read_shards(write_shard(tmp_path / "a.tar", members)).values()
    with pytest.raises(DataError, match=message) as caught:
        (sample.find_image(), sample.find_mask())
    assert caught.value.unit == "1" and members[0][0].partition(".")[2] in caught.value.remedy


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("1.jpg", b"x"), ("2.jpg", b"x"), ("1.png", b"x")], "are not consecutive"),
        ([("1.jpg", b"x"), ("1.JPG", b"x")], "two members jpg"),
        ([("readme", b"x")], "no samples"),
        ([], "no samples"),
    ],
)
def test_shards_that_are_no_samples(tmp_path, members, message):
    with pytest.raises(DataError, match=message):
        read_shards(write_shard(tmp_path / "a.tar", members))


def test_a_shard_that_is_cut_off_or_compressed_is_refused(tmp_path):
    whole = write_shard(tmp_path / "a.tar", pair("1")).read_bytes()
    for length in (0, 100, 700, 1100):
        (tmp_path / "cut.tar").write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_shards(tmp_path / "cut.tar")
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(whole))
    with pytest.raises(DataError, match="not a tar file that can be read in place") as caught:
        read_shards(tmp_path / "a.tar.gz")
    assert "uncompressed" in caught.value.remedy


def test_a_shard_that_shrinks_after_it_was_listed(tmp_path):
    shard = write_shard(tmp_path / "a.tar", pair("1"))
    (sample,) = read_shards(shard).values()
    shard.write_bytes(shard.read_bytes()[:600])
    with pytest.raises(DataError, match="ends before this member"):
        sample.find_image().read_bytes()


def test_folders_and_files_that_are_not_there(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(DataError, match=r"no \.tar files; found notes\.txt"):
        read_shards(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        read_shards(tmp_path / "nowhere")


class Pairs:
    """A dataset by torchvision's contract: `len`, and (image, target) by position; an IndexError ends it."""

    def __init__(self, masks):
        self.masks = masks

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, position):
        return PIL.Image.fromarray(np.roll(IMAGE, position)), self.masks[position]


@pytest.mark.parametrize("top", [20, 300, 70_000])
def test_python_datasets_are_written_and_read_back_to_the_last_pixel(tmp_path, top):
    palette = PIL.Image.fromarray(MASK).convert("P")
    palette.putpalette(list(range(256)) * 3)
    masks = [palette, MASK.astype(np.int64) + top]
    shards = write_shards(Pairs(masks), tmp_path, names=["a/1", "a/2"], per_shard=1)
    assert [shard.name for shard in shards] == ["shard-000000.tar", "shard-000001.tar"]
    samples = read_shards(tmp_path)
    assert list(samples) == ["a/1", "a/2"]
    for position, sample in enumerate(samples.values()):
        image, mask = sample.find_image(), sample.find_mask()
        assert (decode_image(image.read_bytes(), image.path) == np.roll(IMAGE, position)).all()
        assert (decode_label_map(mask.read_bytes(), mask.path) == MASK.astype(int) + top * position).all()


@pytest.mark.parametrize("top", [255, 256, 65_535, 65_536])
def test_the_largest_numbers_of_each_type_are_kept(tmp_path, top):
    write_shards([(IMAGE, np.array([[0, top]]))], tmp_path)
    [sample] = read_shards(tmp_path).values()
    mask = sample.find_mask()
    assert decode_label_map(mask.read_bytes(), mask.path).tolist() == [[0, top]]


def test_shards_have_as_many_samples_as_asked_for(tmp_path):
    shards = write_shards(Pairs([MASK] * 5), tmp_path, per_shard=2)
    assert [len(read_shards(shard)) for shard in shards] == [2, 2, 1]
    assert list(read_shards(tmp_path))[-1] == "00000004"


@pytest.mark.parametrize(
    ("sample", "names", "kind", "message"),
    [
        ((IMAGE.astype(np.float32), MASK), None, DataError, "an image of shape"),
        ((IMAGE, MASK / 2), None, DataError, "a label map of shape"),
        ((IMAGE, 3), None, DataError, "a label map of shape"),
        ((IMAGE, MASK), ["a.b"], OptionError, "the key 'a.b'"),
        ((IMAGE, MASK), [], OptionError, "the key ''"),
    ],
)
def test_what_cannot_be_written_is_said(tmp_path, sample, names, kind, message):
    with pytest.raises(kind, match=message):
        write_shards([sample], tmp_path, names=names)


def test_a_folder_with_shards_is_not_written_into(tmp_path):
    write_shards([(IMAGE, MASK)], tmp_path)
    with pytest.raises(DataError, match="holds shards already"):
        write_shards([(IMAGE, MASK)], tmp_path)


def write_sample(path, **members):
    """A shard of one sample: an image and members by ending, with dots for underscores."""
    ends = {"png": encode(IMAGE), **members}
    return write_shard(path, [(f"0001.{end.replace('_', '.')}", content) for end, content in ends.items()])


def test_objects_of_the_json(tmp_path):
    rows = [
        {"bbox": [0, 0, 2, 3], "category": "cat"},
        {"box": [1, 1, 2, 2], "label": "dog", "segmentation": [[1, 1, 3, 1, 3, 3, 1, 3]], "iscrowd": 1},
    ]
    path = write_sample(tmp_path / "a.tar", json=json.dumps({"objects": rows}).encode())
    samples = read_objects(path)
    (image,) = samples.truth.images
    assert samples.truth.categories == {1: "cat", 2: "dog"} and image.crowd.tolist() == [False, True]
    assert image.boxes.tolist() == [[0, 0, 2, 3], [1, 1, 2, 2]] and image.area.tolist() == [6, 4]
    assert read_objects(path, "xyxy").truth.images[0].boxes.tolist() == [[0, 0, 2, 3], [1, 1, 1, 1]]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"objects": 3}', b'{"objects": [3]}', b'{"objects": [{"category": "cat"}]}']
)
def test_objects_that_are_none(tmp_path, content):
    with pytest.raises(DataError) as caught:
        read_objects(write_sample(tmp_path / "a.tar", json=content))
    assert "a.tar" in str(caught.value.file)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"cls": b"7"}, ("7", "any")),
        ({"cls_txt": b"cat\n", "context_txt": b" snow "}, ("cat", "snow")),
        ({"json": b'{"label": "cat", "context": "fog"}'}, ("cat", "fog")),
        ({"cls": b"dog", "json": b'{"label": "cat", "domain": 3}'}, ("dog", "3")),
    ],
)
def test_labels_and_contexts(tmp_path, members, expected):
    (sample,) = read_labelled(write_sample(tmp_path / "a.tar", **members))
    assert (sample.id, sample.label, sample.context) == ("0001", *expected)


@pytest.mark.parametrize(
    "members", [{}, {"cls": b"\xff"}, {"cls": b"a" * 2000}, {"json": b'{"label": [1]}'}, {"cls": b" "}]
)
def test_labels_that_are_none(tmp_path, members):
    with pytest.raises(DataError) as caught:
        read_labelled(write_sample(tmp_path / "a.tar", **members))
    assert caught.value.remedy
