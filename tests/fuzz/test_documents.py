"""Documents with a hostile value anywhere: hypothesis looks for one that a reader does not refuse in its own words."""

import copy
import json

import pytest
from fuzz_readers import SIZE, make_coco, make_lvis
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.study.folder import make_study, open_study
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask
from hardlook.data import rle
from hardlook.data.click_names import parse_full_stem
from hardlook.data.coco_detection import parse_instances, parse_results
from hardlook.data.toss_pairs import parse_line
from hardlook.errors import DataError, HardlookError

NUMBERS = st.one_of(
    st.integers(-3, 40), st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([2**31, 2**63, 10**400, 1e308])
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=8,
)


@pytest.fixture(scope="module", params=[make_coco, make_lvis])
def coco(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("coco")
    request.param(folder)
    return json.loads((folder / "instances.json").read_text()), json.loads((folder / "results.json").read_text())


def list_places(value, path=()):
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from list_places(one, (*path, key))


def replace(document, path, value):
    changed = copy.deepcopy(document)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return changed


@given(data=st.data())
def test_an_instances_json_with_any_value_anywhere(data, coco):
    document, _ = coco
    changed = replace(document, data.draw(st.sampled_from(list(list_places(document)))), data.draw(VALUES))
    try:
        for image in parse_instances(changed, "instances.json").images:
            assert image.masks().shape[1:] == (image.height, image.width)
    except DataError as error:
        assert error.file == "instances.json"


@given(data=st.data())
def test_results_with_any_value_anywhere(data, coco):
    document, results = coco
    truth = parse_instances(document)
    changed = replace(results, data.draw(st.sampled_from(list(list_places(results)))), data.draw(VALUES))
    for kind in ("bbox", "segm"):
        try:
            found = parse_results(changed, truth, kind, "results.json")
            assert all(len(found[image.id].area(kind)) == len(found[image.id].scores) for image in truth.images)
        except DataError as error:
            assert error.file == "results.json"


@given(st.one_of(VALUES, st.fixed_dictionaries({"size": VALUES, "counts": st.one_of(VALUES, st.text(max_size=30))})))
def test_any_value_as_a_mask(value):
    for read in (rle.decode, rle.area, rle.to_box, lambda one: rle.from_segmentation(one, SIZE[1], SIZE[0])):
        try:
            read(value)
        except DataError as error:
            assert error.what and error.remedy


@given(st.lists(st.lists(st.one_of(st.floats(), st.integers(-(10**20), 10**20)), min_size=6, max_size=12), max_size=3))
def test_any_numbers_as_polygons(polygons):
    try:
        assert rle.decode(rle.from_segmentation(polygons, 15, 20)).shape == (15, 20)
    except DataError as error:
        assert error.remedy


@given(st.text(max_size=60), st.sampled_from([None, "first", "fn", "fp"]), st.integers(0, 3))
def test_any_text_as_a_name_or_a_line(text, click_type, tier):
    for read in (lambda: parse_full_stem(text, click_type), lambda: parse_line(text, tier=tier, fold=0, line=1)):
        try:
            read()
        except DataError as error:
            assert error.remedy


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory):
    settings = StudySettings(kind="ratings", title="Alike", devices=("any",))
    folder = tmp_path_factory.mktemp("study") / "study"
    make_study(folder, settings, [RatingTask("t1", "pair/a/b", "pair", ("a", "b"), "path", 0.2)], made={})
    return folder


@given(data=st.data())
def test_settings_of_a_study_with_any_value_anywhere(data, study_folder):
    folder = study_folder
    for name in ("study.json", "tasks.jsonl", "made.json"):
        whole = (folder / name).read_text()
        document = json.loads(whole)
        changed = replace(document, data.draw(st.sampled_from(list(list_places(document)))), data.draw(VALUES))
        (folder / name).write_text(json.dumps(changed))
        try:
            assert open_study(folder).items
        except HardlookError as error:
            assert error.file and name in error.file
        (folder / name).write_text(whole)
