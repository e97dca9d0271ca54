import copy
import json
import math
from dataclasses import replace

import jsonschema
import pytest
from small_runs import small_run

from hardlook.contract.scorecard import Scorecard
from hardlook.export.document import data_fingerprints
from hardlook.export.schema import schema_text
from hardlook.export.score_rows import scorecard_of

SCHEMA = json.loads(schema_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_export_of_every_benchmark_is_valid_and_gives_its_scorecard_back(small_scored, exported):
    document = exported(small_scored)
    errors = [f"{error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(document)]
    assert not errors
    assert scorecard_of(document) == Scorecard.from_json(small_scored.folder.scores_path.read_text())
    assert document["benchmark"]["name"] == small_scored.benchmark.card.name
    names = [block["name"] for section in document["sections"] for block in section["blocks"]]
    assert len(set(names)) == len(names) > 0
    assert len(document["records"]["rows"]) == document["records"]["count"] == document["units"]["scored"]


def test_the_schema_is_one_and_leaves_no_object_open():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def objects(node):
        if isinstance(node, dict):
            if "properties" in node and node.get("type") == "object":
                yield node
            for inner in node.values():
                yield from objects(inner)
        elif isinstance(node, list):
            for inner in node:
                yield from objects(inner)

    found = list(objects(SCHEMA))
    assert len(found) > 15
    assert all(node["additionalProperties"] is False for node in found)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: document.update(extra=1),
        lambda document: document.pop("units"),
        lambda document: document.update(schema="hardlook.export/2"),
        lambda document: document["scores"][0].update(value="0.5"),
        lambda document: document["scores"][0].update(colour="red"),
        lambda document: document["sections"][0]["blocks"][0].update(columns=["label", "value"]),
        lambda document: document["sections"][0]["blocks"][0].update(name="Two Words"),
        lambda document: document["records"].update(file="also.ndjson"),
        lambda document: document["records"].pop("rows"),
        lambda document: document["records"]["columns"][0].update(kind="picture"),
        lambda document: document["units"].update(failed=-1),
        lambda document: document["model"]["identity"].update(path="x"),
    ],
)
def test_the_schema_refuses_what_is_not_in_it(closed_miou, exported, spoil):
    document = copy.deepcopy(exported(closed_miou))
    assert VALIDATOR.is_valid(document)
    spoil(document)
    assert not VALIDATOR.is_valid(document)


# Names below these depend on the benchmark or its blocks.
OPEN = ("options", "args", "axes", "slice", "weights")


def test_every_other_change_of_shape_is_refused(closed_miou, exported):
    document = exported(closed_miou)
    document["scores"], document["sections"] = document["scores"][:2], document["sections"][:1]
    document["records"]["rows"] = document["records"]["rows"][:1]
    assert VALIDATOR.is_valid(document)
    accepted = {(what, *path) for what, *path in shape_changes(document) if VALIDATOR.is_valid(document)}
    assert {change for change in accepted if not set(change[:-1]) & set(OPEN)} == {("drop", "records")}
    assert ("drop", "options", "scenes") in accepted


def shape_changes(document, node=None, path=()):
    """Every key taken away, then with a value of another type, one at a time, the document whole again after each."""
    node = document if node is None else node
    for key in list(node) if isinstance(node, dict) else range(min(len(node), 1)):
        value = node[key]
        if isinstance(node, dict):
            kept = dict(node)
            del node[key]
            yield "drop", *path, key
            node[key] = [1] if isinstance(value, dict) else {"x": {"y": 1}}
            yield "type", *path, key
            node.clear()
            node.update(kept)
        if isinstance(value, dict | list):
            yield from shape_changes(document, value, (*path, key))


def test_what_ran_is_told_as_the_run_folder_tells_it(closed_miou, exported):
    document = exported(closed_miou)
    manifest = json.loads(closed_miou.folder.manifest_path.read_text())
    assert document["model"]["args"] == manifest["model"]["args"]
    assert document["model"]["identity"]["source"] == manifest["model"]["source"]
    assert document["options"] == manifest["options"]
    assert document["fingerprints"]["answers"] == manifest["answers"]["fingerprint"]
    assert document["created"] == manifest["created"]
    assert [row["name"] for row in document["data"]] == ["planted world"]
    assert [score["name"] for score in document["benchmark"]["scores"] if score["headline"]] == ["miou"]


def test_scores_are_exact_and_carry_their_interval(closed_miou, exported):
    rows = {(row["name"], *row["slice"].values()): row for row in exported(closed_miou)["scores"]}
    assert len(rows) == len(closed_miou.scorecard.scores)
    for score in closed_miou.scorecard.scores:
        row = rows[(score.name, *score.slice.values())]
        assert row["value"] == (None if math.isnan(score.value) else score.value)
        assert (row["low"] is None) == (score.interval is None)
        if score.interval:
            assert (row["low"], row["high"]) == (score.interval.low, score.interval.high)
            assert (row["resampled"], row["resampled_n"]) == ("image", score.interval.n)
    assert rows[("miou",)]["title"] == "mIoU"


def test_data_are_named_with_how_much_of_them_was_hashed():
    parts = {"data gt": "a1", "data voc (every byte)": "b2", "model name": "x", "units": "c3"}
    assert data_fingerprints(parts) == [
        {"name": "gt", "fingerprint": "a1", "every_byte": False},
        {"name": "voc", "fingerprint": "b2", "every_byte": True},
    ]


def test_failed_units_are_told_with_their_error(tmp_path, exported):
    done = small_run(tmp_path / "run", scenes=8, model="troubled_segmenters:Raises", max_failures=0.5)
    document = exported(done.scored)
    assert VALIDATOR.is_valid(document)
    assert len(document["failures"]) == document["units"]["failed"] > 0
    assert document["units"]["scored"] == document["records"]["count"] == 8 - len(document["failures"])
    assert all(failure["error"] for failure in document["failures"])


def test_stored_predictions_have_a_name_and_no_identity(closed_miou, exported):
    scorecard = replace(closed_miou.scorecard, model="stored predictions")
    document = exported(replace(closed_miou, manifest={**closed_miou.manifest, "model": None}, scorecard=scorecard))
    assert document["model"] == {"name": "stored predictions", "args": {}, "identity": None}
    assert VALIDATOR.is_valid(document)
    assert scorecard_of(document).model == "stored predictions"
