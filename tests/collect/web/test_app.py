"""The description of the API fits what the API does, and nothing that it allows, or forbids, makes the server fail."""

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from hardlook.collect.web.app import OPERATIONS, build_openapi

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

PHASES = 5.0

DOCUMENT = build_openapi("x")


def fits(reply, operation):
    """Check a reply against the description of its status."""
    document = DOCUMENT
    path, method = next((one.path, one.method.lower()) for one in OPERATIONS if one.name == operation)
    described = document["paths"][path][method]["responses"]
    assert str(reply.status) in described, (operation, reply.status)
    schema = described[str(reply.status)]["content"]["application/json"]["schema"]
    jsonschema.validate(reply.json, {**schema, "components": document["components"]})
    return reply


@pytest.mark.parametrize("kind", ["clicks", "review", "ratings"])
def test_replies_are_as_described(make_study_app, request, kind):
    study_app = make_study_app(request.getfixturevalue(f"{kind}_study"), most_batches=1)
    visitor = study_app.participant()
    given = {"x": 1.0, "y": 1.0} if kind == "clicks" else {"value": 1}
    fits(visitor.get("/api/state"), "state")
    fits(study_app.visitor().get("/api/state"), "state")
    fits(visitor.post("/api/language", {"language": "de"}), "language")
    fits(visitor.post("/api/device", {"device": "pc"}), "device")
    fits(visitor.post("/api/pause", {}), "pause")
    fits(visitor.post("/api/trained", {}), "trained")
    if study_app.study.training:
        fits(visitor.show("training-0"), "show")
    fits(visitor.post("/api/training", {"trial": "training-0", **given}), "training")
    batch = fits(visitor.post("/api/batch", {}), "batch").json["batch"]
    for trial in batch["trials"]:
        fits(visitor.answer(trial["id"], **given), "answer")
        fits(visitor.show(trial["id"]), "show")
        study_app.now += PHASES
        fits(visitor.answer(trial["id"], **given), "answer")
        fits(visitor.answer(trial["id"]), "answer")
    assert fits(visitor.post("/api/batch", {}), "batch").json["done"]


def test_the_description_is_served_and_is_openapi(study_app):
    reply = study_app.visitor().get("/api/openapi.json")
    assert reply.json == build_openapi(study_app.study.settings.title)
    assert {one.path for one in OPERATIONS} < set(reply.json["paths"])
    for path in reply.json["paths"].values():
        for operation in path.values():
            assert operation["summary"] and "200" in operation["responses"]
    assert "additionalProperties" in reply.json["components"]["schemas"]["AnswerBody"]


# Few examples of each operation and mode, always the same: enough to meet every kind of field and body.
FEW = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("mode", MODES, ids=["fitting", "unfitting"])
def test_nothing_that_is_sent_makes_the_server_fail(study_app, mode):
    visitor = study_app.participant()
    visitor.show(visitor.batch()["batch"]["trials"][0]["id"])
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", study_app.app, headers={"host": visitor.host})
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    checks = [
        schemathesis.checks.not_a_server_error,
        schemathesis.checks.status_code_conformance,
        schemathesis.checks.content_type_conformance,
        schemathesis.checks.response_schema_conformance,
    ]
    statuses = {}

    def send(case):
        # So that no limit is met.
        study_app.now += 60
        case.headers = {**case.headers, "host": visitor.host, "cookie": cookies, "x-csrf-token": visitor.csrf}
        reply = case.call(base_url=f"http://{visitor.host}")
        statuses.setdefault(case.operation.label, set()).add(reply.status_code)
        case.validate_response(reply, checks=checks)

    for found in schema.get_all_operations():
        operation = found.ok()
        # Of an address without parts there is nothing to get wrong.
        plain = operation.label == "GET /api/state"
        FEW(given(case=operation.as_strategy(generation_mode=MODES[0] if plain else mode))(send))()
    assert len(statuses) == len(OPERATIONS) + 1
    assert max(status for met in statuses.values() for status in met) < 500
    accepted = {label for label, met in statuses.items() if 200 in met}
    if mode is MODES[0]:
        assert {"POST /api/pause", "POST /api/device", "GET /api/state"} <= accepted
    else:
        assert {400, 422} & statuses["POST /api/answers"] and "POST /api/answers" not in accepted
