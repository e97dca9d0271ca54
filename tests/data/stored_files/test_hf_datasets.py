"""Hugging Face datasets as `save_to_disk`, the cache and the hub have them, written here with pyarrow.

The files of state.json, dataset_dict.json and the Arrow stream are those that datasets 5.2.0 writes (compared once).
"""

import contextlib
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hardlook.data.images import decode_image
from hardlook.data.label_maps import decode_label_map
from hardlook.data.stored_files import hf_datasets
from hardlook.data.stored_files.hf_datasets import list_files, list_splits, read_labelled, read_objects, read_samples
from hardlook.errors import DataError, MissingExtra, OptionError

FILE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
IMAGE = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def forget_open_files():
    yield
    for opened in (hf_datasets._open_arrow, hf_datasets._read_metadata, hf_datasets._read_group):
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


def test_row_groups_of_different_lengths(tmp_path):
    rows = [7, 8, 9, 10, 11, 12]
    with pq.ParquetWriter(tmp_path / "val.parquet", make_table(rows).schema) as writer:
        for first, end in ((0, 1), (1, 3), (3, 6)):
            writer.write_table(make_table(rows[first:end]))
    check(read_samples(tmp_path / "val.parquet", "val"), rows)


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


def test_columns_that_are_named(tmp_path):
    save_to_disk(tmp_path, make_table([1], image="photo", mask="drawing"))
    check(read_samples(tmp_path, "val", {"image": "photo", "mask": "drawing"}), [1])
    check(read_samples(tmp_path, "val", {"mask": "drawing"}), [1])
    with pytest.raises(DataError, match="columns with files are photo, drawing; others are kind"):
        read_samples(tmp_path, "val", {"image": "kind", "mask": "drawing"})


def test_a_file_that_is_written_again_is_read_again(tmp_path):
    for rows in ([1], [2, 3]):
        pq.write_table(make_table(rows), tmp_path / "new.parquet")
        (tmp_path / "new.parquet").replace(tmp_path / "a.parquet")
        check(read_samples(tmp_path / "a.parquet", "val"), rows)


def describe(table, features):
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


LABEL = {"names": ["cat", "dog"], "_type": "ClassLabel"}


def make_labels(rows, **columns):
    """Images with a ClassLabel."""
    table = make_table(rows).drop_columns(["annotation", "kind"])
    for name, values in {"label": [row % 2 for row in rows], **columns}.items():
        table = table.append_column(name, values if isinstance(values, pa.Array) else pa.array(values))
    return describe(table, {"label": LABEL})


def test_labels_and_contexts_of_all_splits(tmp_path):
    save_to_disk(tmp_path / "train", make_labels([0, 1], context=["snow", "grass"]))
    save_to_disk(tmp_path / "test", make_labels([2], context=["fog"]))
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    rows = read_labelled(tmp_path, None)
    assert [(row.id, row.label, row.context, row.split) for row in rows] == [
        ("0", "cat", "snow", "train"), ("1", "dog", "grass", "train"), ("2", "cat", "fog", "test")
    ]  # fmt: skip
    assert [row.label for row in read_labelled(tmp_path, "test")] == ["cat"]
    assert list(list_files(tmp_path, None)) == [f"{split} data-00000-of-00001.arrow" for split in ("train", "test")]


def test_labels_without_names_are_their_numbers_and_names_may_lie_beside_the_file(tmp_path):
    table = make_labels([0, 1]).replace_schema_metadata(None)
    save_to_disk(tmp_path, table)
    assert [row.label for row in read_labelled(tmp_path, None)] == ["0", "1"]
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": {"label": LABEL}}))
    assert [(row.label, row.context) for row in read_labelled(tmp_path, None)] == [("cat", "any"), ("dog", "any")]


@pytest.mark.parametrize("label", [-1, 2, None])
def test_labels_that_are_none(tmp_path, label):
    save_to_disk(tmp_path, make_labels([0], label=pa.array([label], pa.int64())))
    with pytest.raises(DataError, match=r"row 0"):
        read_labelled(tmp_path, None)


@pytest.mark.parametrize("described", [b"no json", b"[]", b'{"info": 3}', b'{"info": {"features": {"label": [[3]]}}}'])
def test_metadata_that_are_damaged(tmp_path, described):
    save_to_disk(tmp_path, make_labels([0]).replace_schema_metadata({"huggingface": described}))
    try:
        assert [row.label for row in read_labelled(tmp_path, None)] == ["0"]
    except DataError as error:
        assert error.file


def test_splits_by_the_names_of_files(tmp_path):
    names = ("scenes-train-00000-of-00002.arrow", "scenes-train-00001-of-00002.arrow", "scenes-test.arrow")
    for name in (*names, "cache-0123.arrow"):
        write_arrow(tmp_path / name, make_table([1]))
    found = {split: [file.name for file in files] for split, files in list_splits(tmp_path).items()}
    assert found == {"test": [names[2]], "train": list(names[:2])}
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="found nothing"):
        list_splits(tmp_path / "empty")


@pytest.mark.parametrize(
    "there", [["00000-of-00003", "00002-of-00003"], ["00000-of-00001", "00000-of-00002", "00001-of-00002"]]
)
def test_parts_that_are_missing_or_of_two_versions(tmp_path, there):
    (tmp_path / "data").mkdir()
    for number, part in enumerate(there):
        pq.write_table(make_labels([number]), tmp_path / "data" / f"train-{part}.parquet")
    pq.write_table(make_labels([5]), tmp_path / "data" / "test-00000-of-00001-0123456789abcdef.parquet")
    with pytest.raises(DataError, match=f"the parts of train are not complete.*{', '.join(there)}"):
        read_labelled(tmp_path, "train")
    with pytest.raises(DataError, match="the parts of train are not complete"):
        read_labelled(tmp_path, None)
    assert [row.id for row in read_labelled(tmp_path, "test")] == ["5"]


def make_objects(objects, kind, **columns):
    table = make_table(range(len(objects))).drop_columns(["annotation", "kind"])
    table = table.append_column("objects", pa.array(objects, kind))
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return describe(table, {"objects": {"feature": {"category": LABEL}, "_type": "List"}})


OBJECTS = pa.struct([("bbox", pa.list_(pa.list_(pa.float32(), 4))), ("category", pa.list_(pa.int64()))])


def test_objects_with_ids_and_sizes(tmp_path):
    rows = [{"bbox": [[0, 0, 2, 3]], "category": [1]}, {"bbox": [], "category": []}, None]
    save_to_disk(tmp_path, make_objects(rows[:2], OBJECTS, image_id=[30, 20], width=[6, 6], height=[4, 4]))
    first, second = read_objects(tmp_path, None).truth.images
    assert (first.id, second.id, first.boxes.tolist()) == (30, 20, [[0, 0, 2, 3]]) and len(second.ids) == 0
    save_to_disk(tmp_path / "twice", make_objects(rows[:2], OBJECTS, image_id=[30, 30]))
    truth = read_objects(tmp_path / "twice", None).truth
    assert [image.id for image in truth.images] == [1, 2] and truth.categories == {0: "cat", 1: "dog"}
    assert (truth.images[0].width, truth.images[0].height) == (6, 4)
    for row in (None, {"bbox": [[0, 0, 1, 1]], "category": []}, {"bbox": [None], "category": [0]}):
        save_to_disk(tmp_path / "bad", make_objects([row], OBJECTS))
        if row is None:
            assert not len(read_objects(tmp_path / "bad", None).truth.images[0].ids)
        else:
            with pytest.raises(DataError):
                read_objects(tmp_path / "bad", None)


def test_fields_of_objects_that_are_named(tmp_path):
    kind = pa.list_(pa.struct([("region", pa.list_(pa.float64())), ("kind", pa.string())]))
    save_to_disk(tmp_path, make_objects([[{"region": [1, 1, 3, 2], "kind": "owl"}]], kind))
    with pytest.raises(
        DataError, match=r"no column is the category of an object; columns are region .*, kind"
    ) as caught:
        read_objects(tmp_path, None)
    assert "--columns category=NAME" in caught.value.remedy
    with pytest.raises(DataError, match="neither boxes nor masks; their fields are region, kind"):
        read_objects(tmp_path, None, {"category": "kind"})
    named = read_objects(tmp_path, None, {"category": "kind", "bbox": "region", "box": "xyxy"}).truth
    assert named.categories == {1: "owl"} and named.images[0].boxes.tolist() == [[1, 1, 2, 1]]


def test_a_dataset_without_objects_says_what_it_has(tmp_path):
    save_to_disk(tmp_path, make_labels([0]))
    with pytest.raises(DataError, match=r"columns are image \(image\), label \(class label\)"):
        read_objects(tmp_path, None)


def test_a_dataset_of_the_hub_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_DATASETS_CACHE", raising=False)
    from pathlib import Path

    folder = tmp_path / "datasets" / "owner___pets" / "default" / "0.0.0" / "0f"
    write_arrow(folder / "pets-train.arrow", make_labels([0, 1]))
    assert [row.label for row in read_labelled(Path("owner/pets"), None)] == ["cat", "dog"]
    assert list(list_files(Path("owner/pets"), "train").values()) == [folder / "pets-train.arrow"]


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


@pytest.mark.parametrize("column", ["image.path", "label"])
def test_a_column_that_is_shorter_than_its_file_is_an_error(tmp_path, column):
    """A page whose kind is damaged is skipped by Parquet's readers, and the column ends before the others do."""
    file = tmp_path / "a.parquet"
    pq.write_table(make_labels([0, 1, 2]), file, use_dictionary=False, compression="none")
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = {one.path_in_schema: one for one in map(group.column, range(group.num_columns))}
    content = bytearray(file.read_bytes())
    assert content[columns[column].data_page_offset + 1] == 0  # a data page
    content[columns[column].data_page_offset + 1] = 2
    file.write_bytes(content)
    with pytest.raises(DataError, match="0 of 3 rows are there") as caught:
        read_labelled(file, None)
    assert caught.value.file == str(file)


def test_threads_never_share_a_reader_of_a_parquet_file(tmp_path, monkeypatch):
    class Watched(pq.ParquetFile):
        """Arrow's own ends the process where two threads are in it at once."""

        users, together = 0, 0

        def read_row_group(self, group):
            self.users += 1
            time.sleep(0.005)
            Watched.together = max(Watched.together, self.users)
            table = super().read_row_group(group)
            self.users -= 1
            return table

    monkeypatch.setattr(pq, "ParquetFile", Watched)
    # Nothing else keeps two threads apart.
    monkeypatch.setattr(hf_datasets, "_GROUPS_LOCK", contextlib.nullcontext())
    pq.write_table(make_table(range(12)), tmp_path / "val-00000-of-00001.parquet", row_group_size=1)
    samples = read_samples(tmp_path, "val")
    with ThreadPoolExecutor(6) as threads:
        images = list(threads.map(lambda sample: decode_image(sample.image.read_bytes(), sample.image.path), samples))
    assert Watched.together == 1
    assert all(np.array_equal(image, np.roll(IMAGE, row)) for row, image in enumerate(images))
