import json

import pytest

from hardlook.errors import DataError
from hardlook.similarity.label_files import read_lvis_labels
from hardlook.similarity.label_sets import load_label_set


@pytest.fixture
def write_file(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def load_error(path):
    """The error of loading a label set."""
    with pytest.raises(DataError) as raised:
        load_label_set(path)
    assert raised.value.file == str(path)
    return raised.value


def test_csv_with_every_column(write_file):
    path = write_file(
        "pets.csv",
        "# ours\nid,category_id,name,aliases,isthing,synset,hypernym,note\n"
        '4,40,dog,hound|"pup",thing,domestic_dog.n.01,,x\n5,50,stop sign,,0,,street_sign.n.01,\n',
    )
    labels = load_label_set(path)
    dog, sign = labels.labels
    assert (dog.id, dog.category_id, dog.synset, dog.isthing) == (4, 40, "dog.n.01", True)
    assert dog.aliases[0] == "hound"
    assert (sign.synset, sign.hypernym, sign.isthing) == (None, "street_sign.n.01", False)
    assert (labels.name, labels.variant) == ("pets", "file")


def test_tsv_and_offsets(write_file):
    labels = load_label_set(write_file("pets.tsv", "name\toffset\ndog\tn02084071\n"))
    assert labels.labels[0].synset == "dog.n.01"


@pytest.mark.parametrize(
    "content",
    [
        ["wall", "building, edifice"],
        [{"name": "wall"}, {"name": "building", "aliases": ["edifice"]}],
        {"0": "wall", "1": "building; edifice"},
        {"categories": [{"id": 3, "name": "wall"}, {"id": 8, "name": "building, edifice"}]},
        [{"name": "wall", "id": 2978, "trainId": 0}, {"name": "building, edifice", "id": 312, "trainId": 1}],
    ],
)
def test_json_layouts(content, write_file):
    labels = load_label_set(write_file("scene.json", content))
    assert labels.ids.tolist() == [0, 1]
    assert labels.labels[1].name == "building" and labels.labels[1].aliases == ("edifice",)


def test_json_keeps_the_datasets_category_ids(write_file):
    coco = {"categories": [{"id": 3, "name": "wall"}, {"id": 8, "name": "sky", "isthing": 0}]}
    labels = load_label_set(write_file("a.json", coco))
    assert labels.category_ids.tolist() == [3, 8] and labels.labels[1].isthing is False
    ade = load_label_set(write_file("b.json", [{"name": "wall", "id": 2978, "trainId": 0}]))
    assert ade.category_ids.tolist() == [2978]


@pytest.mark.parametrize("content", ["wall\nsky\n", "0: wall\n1: sky\n", "0\twall\n\n# x\n1\tsky", "0,wall\n1, sky\n"])
def test_text_layouts(content, write_file):
    labels = load_label_set(write_file("names.txt", content))
    assert [(label.id, label.name) for label in labels] == [(0, "wall"), (1, "sky")]
    assert all(label.synset is None for label in labels)


@pytest.mark.parametrize(
    ("name", "content", "what", "where"),
    [
        ("a.csv", "id,label\n0,dog\n", "no column `name`", None),
        ("a.csv", "name,sysnet\ndog,dog.n.01\n", "unknown column 'sysnet'", None),
        ("a.csv", "name,synset,synset\ndog,dog.n.01,\n", "duplicate column 'synset'", None),
        ("a.csv", "name,id\ndog,0\ncat\n", "2 cells", "line 3"),
        ("a.csv", "#\nname,id\ndog,0\n#\ncat,x\n", "'x' is not a whole number", "line 5, column id"),
        ("a.csv", "name,id\ndog,0\ncat,\n", "no id and others have", "line 3, column id"),
        ("a.csv", "name,id\ndog,0\nDog,1\n", "is a duplicate, first at line 2", "line 3, column name"),
        ("a.csv", "name,id\ndog,1\ncat,1\n", "is a duplicate, first at line 2", "line 3, column id"),
        ("a.csv", "name,isthing\ndog,maybe\n", "'maybe' is not 1 for a thing", "line 2, column isthing"),
        ("a.csv", "name,status\ndog,done\n", "'done' is not one of chosen", "line 2, column status"),
        ("a.csv", "name,id\n,1\n", "must have a name", "line 2, column name"),
        ("a.csv", "name,synset\ndog,dog.n.99\n", "no noun synset 'dog.n.99'", "line 2, column synset (dog)"),
        ("a.csv", "name,hypernym\ndog,dgo.n.01\n", "no noun synset 'dgo.n.01'", "line 2, column hypernym (dog)"),
        ("a.csv", "name,synset,offset\ndog,dog.n.01,n02121620\n", "offset differ", "line 2, column offset"),
        ("a.csv", "name\n", "no labels", None),
        ("a.txt", "0: wall\nsky\n", "no id and others have", "line 2, column id"),
        ("a.json", "[1", "not JSON", "line 1"),
        ("a.json", "[3]", "a name or an object", "item 0"),
        ("a.json", '"dog"', "no list of labels", None),
    ],
)
def test_errors_name_the_row_and_the_column(name, content, what, where, write_file):
    error = load_error(write_file(name, content))
    assert what in error.what
    assert error.unit == where


def test_a_file_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"name\ncaf\xe9\n")
    assert "UTF-8" in load_error(path).what


def test_errors_suggest_similar_names(write_file):
    assert "dog.n.01" in load_error(write_file("a.csv", "name,synset\ndog,dog.n.99\n")).remedy
    assert "giraffe.n.01" in load_error(write_file("a.csv", "name,synset\nx,girafe.n.01\n")).remedy
    assert "synset" in load_error(write_file("a.csv", "name,sysnet\ndog,dog.n.01\n")).remedy


LVIS = {
    "categories": [
        {"id": 2, "name": "stop_sign", "synset": "stop_sign.n.01", "synonyms": ["stop_sign"]},
        {"id": 1, "name": "aerosol_can", "synset": "aerosol.n.02", "synonyms": ["aerosol_can", "spray_can"]},
    ]
}


def test_lvis_files_have_synsets(write_file):
    path = write_file("lvis.json", LVIS)
    aerosol, stop = read_lvis_labels(path)
    assert (aerosol.id, aerosol.category_id, aerosol.synset, aerosol.aliases) == (0, 1, "aerosol.n.02", ("spray_can",))
    assert (stop.synset, stop.stated, stop.isthing) == (None, "stop_sign.n.01", True)
    assert load_label_set(path).labels == (aerosol, stop)


@pytest.mark.parametrize(
    ("content", "what"),
    [("{}", "not an LVIS json"), ("nonsense", "not an LVIS json"), ('{"categories": [{"id": 1}]}', "'name'")],
)
def test_lvis_errors(content, what, write_file):
    with pytest.raises(DataError, match=what):
        read_lvis_labels(write_file("lvis.json", content))


def test_labels_that_begin_with_the_same_word_keep_their_whole_text(tmp_path):
    # Three of ADE20K's 847 classes, as MaskFormer and CAT-Seg list them.
    rows = ["bag", "bag, handbag, pocketbook, purse", "pot, flowerpot"]
    for name, content in (("a.json", json.dumps(rows)), ("a.txt", "\n".join(rows))):
        (tmp_path / name).write_text(content)
        labels = load_label_set(tmp_path / name)
        assert labels.names == ("bag", "bag, handbag, pocketbook, purse", "pot")
        assert labels.labels[1].aliases == ("handbag", "pocketbook", "purse")
        assert labels.find("purse").id == 1 and labels.find("bag").id == 0
