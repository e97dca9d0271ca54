"""The JSON Schema (draft 2020-12) of the exported document; it ships with the package."""

from __future__ import annotations

from importlib.resources import files


def schema_text() -> str:
    """The schema as `hardlook export --schema` prints it.

    >>> import json
    >>> json.loads(schema_text())["properties"]["schema"]
    {'const': 'hardlook.export/1'}
    """
    return files("hardlook.export").joinpath("export-1.schema.json").read_text(encoding="utf-8")
