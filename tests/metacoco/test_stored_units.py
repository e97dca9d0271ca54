"""MetaCoCo on labelled images of tables, shards and Python objects: as on the same files in folders."""

import json
import shutil
import tarfile

import PIL.Image
import pytest
import stored_datasets as stored

import hardlook as hl
from hardlook.data.concept_context import list_images
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.metacoco.options import MetaCocoOptions
from hardlook.metacoco.units import list_sources, list_units, load_images, make_source

pytestmark = pytest.mark.usefixtures("own_cache")

SMALL = {"shots": "1", "queries": 1, "tasks": 6, "repeats": 1, "resamples": 0}


class LabelledFiles:
    """As torchvision's ImageFolder, with the context in the target."""

    def __init__(self, rows, *, contexts=True):
        self.classes = sorted({row.concept for row in rows})
        self.samples = [(str(row.path), self.classes.index(row.concept)) for row in rows]
        self.contexts = [row.context for row in rows] if contexts else None

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        image = PIL.Image.open(path).convert("RGB")
        return (image, label) if self.contexts is None else (image, {"label": label, "context": self.contexts[index]})


def write_hf(folder, rows, *, names):
    """One Parquet file per split, with the columns image, label (ClassLabel) and domain (text)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    features = {"label": {"names": names, "_type": "ClassLabel"}}
    for split in sorted({row.split for row in rows}):
        some = [row for row in rows if row.split == split]
        cells = [{"bytes": row.path.read_bytes(), "path": row.name.replace("/", "-")} for row in some]
        columns = {
            "image": pa.array(cells, file),
            "label": pa.array([names.index(row.concept) for row in some]),
            "domain": pa.array([row.context for row in some]),
        }
        table = pa.table(columns).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
        folder.mkdir(exist_ok=True)
        pq.write_table(table, folder / f"{split}-00000-of-00001.parquet")
    return folder


def add_samples(archive, rows):
    for row in rows:
        stem = row.name.replace("/", "-").removesuffix(".png")
        stored.add_member(archive, f"{stem}.png", row.path.read_bytes())
        stored.add_member(archive, f"{stem}.cls", row.concept.encode())
        stored.add_member(archive, f"{stem}.json", json.dumps({"context": row.context}).encode())


@pytest.fixture(scope="module")
def formats(written, tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    rows = list_images(written)
    test = [row for row in rows if row.split == "test"]
    with tarfile.open(folder / "0.tar", "w") as archive:
        add_samples(archive, test)
    return {
        "root": {"root": written},
        "hf-dataset": {"hf-dataset": write_hf(folder / "hf", rows, names=sorted({row.concept for row in rows}))},
        "webdataset": {"webdataset": folder / "0.tar"},
        "dataset": {"dataset": LabelledFiles(test)},
    }


def test_records_are_those_of_the_folders(formats):
    expected = InMemoryRun("metacoco", {**SMALL, "data": formats["root"]}).records("planted-learner")
    for name in ("hf-dataset", "webdataset", "dataset"):
        records = InMemoryRun("metacoco", {**SMALL, "data": formats[name]}).records("planted-learner")
        assert records["concepts"].to_list() == expected["concepts"].to_list(), name
        assert records["correct"].to_list() == expected["correct"].to_list(), name


def test_splits_and_contexts_of_tables_are_chosen_as_those_of_folders(formats):
    given = {**SMALL, "data": formats["hf-dataset"], "split": "train", "ways": "3", "modes": "iid"}
    whole = InMemoryRun("metacoco", given).records("planted-learner")
    few = InMemoryRun("metacoco", {**given, "test_contexts": "autumn,beach"}).records("planted-learner")
    contexts = {name for text in few["contexts"] for name in text.split("\n")}
    assert contexts <= {"autumn", "beach"} < {name for text in whole["contexts"] for name in text.split("\n")}


def test_features_are_computed_from_stored_images(formats):
    encoder = {"encoder": "planted-encoder"}
    values = [
        InMemoryRun("metacoco", {**SMALL, **encoder, "data": formats[name]}).score("nearest-centroid").get("iid").value
        for name in ("root", "webdataset", "dataset")
    ]
    assert values[0] == values[1] == values[2]


def test_an_object_in_processes(formats, tmp_path, forked_workers):
    given = {"model": "planted-learner", "progress": False, "report": False, **SMALL}
    inline = hl.run("metacoco", data=formats["dataset"], out=tmp_path / "inline", **given)
    processes = hl.run("metacoco", data=formats["dataset"], out=tmp_path / "p", engine="processes", workers=1, **given)
    assert processes.scores["iid"].value == inline.scores["iid"].value
    assert processes.records["correct"].to_list() == inline.records["correct"].to_list()


def test_images_without_contexts_have_one(written):
    rows = [row for row in list_images(written) if row.split == "test"]
    options = MetaCocoOptions(
        data={"dataset": LabelledFiles(rows, contexts=False)}, modes=("blind",), tasks=2, shots=(1,)
    )
    assert {context for _, context in make_source(options).open().cells()} == {"any"}
    assert len(list_units(options.model_copy(update={"blind_supports": "paper", "queries": 1, "repeats": 1}))) == 2


def test_sources_name_what_was_hashed(formats):
    assert "dataset (decoded items of the LabelledFiles object)" in list_sources(
        MetaCocoOptions(data=formats["dataset"])
    )
    files = [name for name in list_sources(MetaCocoOptions(data=formats["hf-dataset"])) if name.startswith("hf")]
    assert files == [f"hf-dataset {split} {split}-00000-of-00001.parquet" for split in ("test", "train", "val")]


def test_columns_are_for_tables(formats):
    with pytest.raises(OptionError, match="--columns without hf-dataset"):
        list_units(MetaCocoOptions(data=formats["root"], columns="label=kind"))


@pytest.fixture(scope="module")
def spoiled(written, tmp_path_factory):
    """The same images in three layouts: a copy of one in other bytes under another concept, and one that is cut off."""
    folder = tmp_path_factory.mktemp("spoiled")
    world = shutil.copytree(written, folder / "world")
    (world / "manifest.csv").unlink()
    dog, *_, cut = sorted((world / "test" / "dog").rglob("*.png"))
    PIL.Image.open(dog).save(world / "test" / "cat" / "fog" / "copy.png", compress_level=0)
    cut.write_bytes(cut.read_bytes()[:300])
    rows = list_images(world)
    with tarfile.open(folder / "0.tar", "w") as archive:
        add_samples(archive, [row for row in rows if row.split == "test"])
    return {
        "root": {"root": world},
        "hf-dataset": {"hf-dataset": write_hf(folder / "hf", rows, names=sorted({row.concept for row in rows}))},
        "webdataset": {"webdataset": folder / "0.tar"},
    }


def test_corrupt_images_and_near_duplicates_are_found_as_in_folders(spoiled):
    for name, data in spoiled.items():
        with pytest.raises(DataError, match=r"1 of \d+ images cannot be read") as caught:
            make_source(MetaCocoOptions(data=data, near_duplicates="drop"))
        assert "--skip-corrupt" in caught.value.remedy
        with pytest.raises(DataError, match="2 images show the same picture as others") as caught:
            make_source(MetaCocoOptions(data=data, skip_corrupt=True, near_duplicates="refuse"))
        assert ("data inspect" in caught.value.remedy) == (name == "root")
        source = make_source(MetaCocoOptions(data=data, skip_corrupt=True, near_duplicates="drop"))
        assert len(source.corrupt) == 1 and len(source.similar) == 2, name
        notes = {note.what: note.count for note in load_images(source).left_out}
        assert notes == {"corrupt images": 1, "near-duplicate images": 2}, name


def test_scores_without_them_are_those_of_the_folders(spoiled):
    given = {**SMALL, "skip_corrupt": True, "near_duplicates": "drop"}
    expected = InMemoryRun("metacoco", {**given, "data": spoiled["root"]}).records("planted-learner")
    for name in ("hf-dataset", "webdataset"):
        records = InMemoryRun("metacoco", {**given, "data": spoiled[name]}).records("planted-learner")
        assert records["concepts"].to_list() == expected["concepts"].to_list(), name
        assert records["correct"].to_list() == expected["correct"].to_list(), name


def test_near_duplicates_of_an_object_are_dropped_and_its_broken_items_named(spoiled):
    """An item of an object is its image with its label: where it cannot be read, its label is not known either."""
    rows = [row for row in list_images(spoiled["root"]["root"]) if row.split == "test"]
    with pytest.raises(DataError, match="cannot be read") as caught:
        MetaCocoOptions(data={"dataset": LabelledFiles(rows)}, skip_corrupt=True)
    assert "item 80" in caught.value.what
    sound = [row for row in rows if row.path.stat().st_size != 300]
    source = make_source(MetaCocoOptions(data={"dataset": LabelledFiles(sound)}, near_duplicates="drop"))
    assert len(source.similar) == 2


def test_columns_of_other_names(formats, tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(formats["hf-dataset"]["hf-dataset"] / "test-00000-of-00001.parquet")
    renamed = table.rename_columns(["photo", "species", "where"])
    pq.write_table(renamed, tmp_path / "test.parquet")
    data = {"hf-dataset": tmp_path / "test.parquet"}
    with pytest.raises(
        DataError, match="columns are photo \\(image\\), species \\(number\\), where \\(text\\)"
    ) as caught:
        make_source(MetaCocoOptions(data=data))
    assert "--columns label=NAME" in caught.value.remedy
    source = make_source(MetaCocoOptions(data=data, columns="label=species, context=where"))
    assert len({context for _, context in source.open().cells()}) == 8
