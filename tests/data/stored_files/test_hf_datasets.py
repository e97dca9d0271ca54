"""Hugging Face datasets as `save_to_disk`, the cache and the hub have them, written here with pyarrow.

The files of state.json, dataset_dict.json and the Arrow stream are those that datasets 5.2.0 writes (compared once).
"""

import io
import json

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hardlook.data.images import decode_image
from hardlook.data.label_maps import decode_label_map
from hardlook.data.stored_files import hf_datasets
from hardlook.data.stored_files.hf_datasets import list_files, read_samples
from hardlook.errors import DataError, MissingExtra, OptionError

FILE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
IMAGE = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def forget_open_files():
    yield
    for opened in (hf_datasets._open_arrow, hf_datasets._open_parquet, hf_datasets._read_group):
        opened.cache_clear()


def encode(array):
    stream = io.BytesIO()
    PIL.Image.fromarray(array).save(stream, "PNG")
    return stream.getvalue()


def make_table(rows, *, image="image", mask="annotation", paths=True, stored=True):
    """Rows whose label maps are full of their number; a column `label` of classes, which are no files."""
    images, masks = [], []
    for row in rows:
        path = f"val/{row}.jpg" if paths else None
        images.append({"bytes": encode(np.roll(IMAGE, row)) if stored else None, "path": path})
        masks.append({"bytes": encode(np.full((4, 6), row, np.uint8)), "path": None})
    columns = {image: pa.array(images, FILE), mask: pa.array(masks, FILE), "kind": pa.array([0] * len(images))}
    return pa.table(columns)


def write_arrow(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def save_to_disk(folder, *tables):
    names = [f"data-{number:05d}-of-{len(tables):05d}.arrow" for number in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        write_arrow(folder / name, table)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "0", "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


def check(samples, rows):
    assert len(samples) == len(rows)
    for sample, row in zip(samples, rows, strict=True):
        assert (decode_image(sample.image.read_bytes(), sample.image.path) == np.roll(IMAGE, row)).all()
        assert (decode_label_map(sample.mask.read_bytes(), sample.mask.path) == row).all()


def test_a_saved_dataset_of_two_files(tmp_path):
    save_to_disk(tmp_path, make_table([3, 1, 4]), make_table([5]))
    samples = read_samples(tmp_path, "val")
    check(samples, [3, 1, 4, 5])
    assert [sample.id for sample in samples] == ["3", "1", "4", "5"]
    assert list(list_files(tmp_path, "val")) == ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]


def test_splits_of_a_saved_dictionary(tmp_path):
    save_to_disk(tmp_path / "train", make_table([1]))
    save_to_disk(tmp_path / "validation", make_table([2]))
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation"]}))
    check(read_samples(tmp_path, "val"), [2])
    check(read_samples(tmp_path, "validation"), [2])
    check(read_samples(tmp_path, "train"), [1])
    with pytest.raises(OptionError, match="no split 'test'") as caught:
        read_samples(tmp_path, "test")
    assert "--split train or validation" in caught.value.remedy


def test_the_cache_and_parquet_files_of_the_hub(tmp_path):
    write_arrow(tmp_path / "cache" / "scenes-train.arrow", make_table([1]))
    write_arrow(tmp_path / "cache" / "scenes-validation-00000-of-00001.arrow", make_table([2, 6]))
    check(read_samples(tmp_path / "cache", "val"), [2, 6])
    (tmp_path / "hub" / "data").mkdir(parents=True)
    rows = [7, 8, 9, 10, 11]
    file = tmp_path / "hub" / "data" / "validation-00000-of-00001.parquet"
    pq.write_table(make_table(rows), file, row_group_size=2)
    check(read_samples(tmp_path / "hub", "val"), rows)
    check(read_samples(file, "val"), rows)


def test_rows_whose_images_have_no_names_or_equal_ones_are_numbered(tmp_path):
    save_to_disk(tmp_path, make_table([0, 1], paths=False))
    assert [sample.id for sample in read_samples(tmp_path, "val")] == ["row-000000", "row-000001"]
    save_to_disk(tmp_path / "twice", make_table([1, 1]))
    assert [sample.id for sample in read_samples(tmp_path / "twice", "val")] == ["row-000000", "row-000001"]


def test_columns_are_found_by_their_names(tmp_path):
    save_to_disk(tmp_path / "a", make_table([1], image="photo", mask="mask"))
    check(read_samples(tmp_path / "a", "val"), [1])
    save_to_disk(tmp_path / "b", make_table([1], image="photo", mask="drawing"))
    with pytest.raises(DataError, match="columns with files are photo, drawing") as caught:
        read_samples(tmp_path / "b", "val")
    assert "rename_column" in caught.value.remedy


def test_images_that_lie_elsewhere_are_not_read(tmp_path):
    save_to_disk(tmp_path, make_table([1], stored=False))
    (sample,) = read_samples(tmp_path, "val")
    with pytest.raises(DataError, match=r"it names the file val/1\.jpg"):
        sample.image.read_bytes()


def test_a_state_cannot_lead_out_of_its_folder(tmp_path):
    save_to_disk(tmp_path / "data", make_table([1]))
    write_arrow(tmp_path / "secret.arrow", make_table([2]))
    (tmp_path / "data" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../secret.arrow"}]}))
    with pytest.raises(DataError):
        read_samples(tmp_path / "data", "val")


@pytest.mark.parametrize("content", [b"", b"no arrow", b"\xff" * 400])
def test_files_that_are_no_tables(tmp_path, content):
    save_to_disk(tmp_path, make_table([1]))
    (tmp_path / "data-00000-of-00001.arrow").write_bytes(content)
    with pytest.raises(DataError):
        read_samples(tmp_path, "val")
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataError):
        read_samples(tmp_path / "a.parquet", "val")


def test_a_file_that_is_cut_off(tmp_path):
    save_to_disk(tmp_path, make_table([1, 2, 3]))
    file = tmp_path / "data-00000-of-00001.arrow"
    whole = file.read_bytes()
    for length in range(8, len(whole) - 8, 97):
        file.write_bytes(whole[:length])
        with pytest.raises(DataError):
            check(read_samples(tmp_path, "val"), [1, 2, 3])
        hf_datasets._open_arrow.cache_clear()


def test_folders_that_hold_no_dataset_say_what_they_hold(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(DataError, match=r"found notes\.txt"):
        read_samples(tmp_path, "val")
    with pytest.raises(DataError, match="no such file or folder"):
        read_samples(tmp_path / "nowhere", "val")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    save_to_disk(tmp_path, make_table([1]))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra) as caught:
        read_samples(tmp_path, "val")
    assert "hardlook[datasets]" in caught.value.remedy
