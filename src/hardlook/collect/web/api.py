"""The participants' API: a table of operations, from which routes and the OpenAPI 3.1 description are made.

What an operation takes and returns is read from the annotations of its function, so that the description uses the
very records that check requests; it is served at /api/openapi.json.

>>> document = build_openapi("Cups")
>>> document["openapi"], sorted(document["paths"])[:2]
('3.1.0', ['/api/answers', '/api/batch'])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter

from hardlook import __version__
from hardlook.collect.web import messages, trials


@dataclass(frozen=True)
class Operation:
    """One operation; `run` is called with the visit, the body if it takes one, and the parameters of the path."""

    name: str
    path: str
    summary: str
    run: Callable[..., Mapping[str, Any]]

    @cached_property
    def body(self) -> type[BaseModel] | None:
        """The type of the request's body; None for an operation that only reads."""
        return get_type_hints(self.run).get("body")

    @property
    def method(self) -> str:
        """GET or POST."""
        return "POST" if self.body else "GET"

    @property
    def replies(self) -> tuple[Any, ...]:
        """The types of the possible replies."""
        reply = get_type_hints(self.run)["return"]
        return get_args(reply) or (reply,)


OPERATIONS = (
    Operation("state", "/api/state", "Get the participant's state", trials.get_state),
    Operation("language", "/api/language", "Change the language", trials.set_language),
    Operation("device", "/api/device", "Set the device", trials.set_device),
    Operation("trained", "/api/trained", "End the training round", trials.end_training),
    Operation("pause", "/api/pause", "Keep the open batch", trials.keep_alive),
    Operation("batch", "/api/batch", "Get the open batch or a new one", trials.get_batch),
    Operation("show", "/api/trials/{trial}/show", "Begin a trial", trials.show_trial),
    Operation("answer", "/api/answers", "Store an answer", trials.store_answer),
    Operation("training", "/api/training", "Judge a training answer", trials.check_training_answer),
)

_REFERENCE = "#/components/schemas/{model}"
_READ_REFUSALS = (401, 404, 405, 414, 421, 429, 503)
_WRITE_REFUSALS = (400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 421, 422, 429, 503)


def build_openapi(title: str) -> dict[str, Any]:
    """The OpenAPI document."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths[operation.path] = {operation.method.lower(): _describe_operation(operation, schemas)}
    paths["/pictures/{trial}/{what}"] = {"get": _describe_picture(schemas)}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"{title}: the participants' API", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token", "description": "from /api/state"}
            },
        },
    }


def _describe_operation(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    replies = [_schema(reply, schemas) for reply in operation.replies]
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            "200": _json("done", replies[0] if len(replies) == 1 else {"anyOf": replies}),
            **_describe_refusals(schemas, _WRITE_REFUSALS if operation.body else _READ_REFUSALS),
        },
    }
    if operation.body:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _schema(operation.body, schemas)}},
        }
        described["security"] = [{"csrf": []}]
    if "{trial}" in operation.path:
        described["parameters"] = [_parameter("trial", {"type": "string"})]
    return described


def _describe_picture(schemas: dict[str, Any]) -> dict[str, Any]:
    image = {"schema": {"type": "string", "contentMediaType": "image/*"}}
    return {
        "operationId": "picture",
        "summary": "A picture, from the show of its trial to its answer",
        "parameters": [
            _parameter("trial", {"type": "string"}),
            _parameter("what", {"enum": ["image", "target", "feedback"]}),
        ],
        "responses": {
            "200": {"description": "the picture", "content": {"image/png": image, "image/jpeg": image}},
            **_describe_refusals(schemas, _READ_REFUSALS),
        },
    }


def _describe_refusals(schemas: dict[str, Any], statuses: tuple[int, ...]) -> dict[str, Any]:
    failure = _schema(messages.Failure, schemas)
    return {str(status): _json(HTTPStatus(status).phrase, failure) for status in statuses}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _schema(record: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to a record's schema, which is added to `schemas` with all that it needs."""
    made = TypeAdapter(record).json_schema(ref_template=_REFERENCE)
    schemas.update(made.pop("$defs", {}))
    schemas[record.__name__] = made
    return {"$ref": _REFERENCE.format(model=record.__name__)}
