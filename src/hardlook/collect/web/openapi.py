"""The API described as OpenAPI 3.1, made from the very records that check requests; served at /api/openapi.json.

>>> document = openapi("Cups")
>>> document["openapi"], sorted(document["paths"])[:2]
('3.1.0', ['/api/answers', '/api/batch'])
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from hardlook import __version__
from hardlook.collect.web import replies
from hardlook.collect.web.operations import OPERATIONS, Operation

_REFERENCE = "#/components/schemas/{model}"
_REFUSALS = {
    "400": "not readable",
    "401": "no session",
    "403": "not from the study's own page",
    "404": "no such thing of this participant",
    "405": "no such method here",
    "408": "too slow",
    "409": "not now, or not twice",
    "413": "too large",
    "414": "the address is too long",
    "415": "not JSON",
    "421": "another server was meant",
    "422": "a field is wrong",
    "429": "too often",
    "503": "the database cannot be used",
}
# What can go wrong with a request that only reads.
_READING = ("401", "404", "405", "414", "421", "429", "503")


def openapi(title: str) -> dict[str, Any]:
    """The whole document, for JSON."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths[operation.path] = {operation.method.lower(): _described(operation, schemas)}
    paths["/pictures/{trial}/{what}"] = {"get": _picture(schemas)}
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


def _described(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    said = [_schema(reply, schemas) for reply in operation.replies]
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            "200": _json("done", said[0] if len(said) == 1 else {"anyOf": said}),
            **_refusals(schemas, tuple(_REFUSALS) if operation.body else _READING),
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


def _picture(schemas: dict[str, Any]) -> dict[str, Any]:
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
            **_refusals(schemas, _READING),
        },
    }


def _refusals(schemas: dict[str, Any], statuses: tuple[str, ...]) -> dict[str, Any]:
    failure = _schema(replies.Failure, schemas)
    return {status: _json(_REFUSALS[status], failure) for status in statuses}


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
