"""The command that answers a unit again, spelled without loading anything that a `run.json` names."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from hardlook.runs.again import command_again


def command_for(manifest: Mapping[str, Any], unit: str) -> str:
    """One line for a shell.

    A model named as `module:attribute` is not looked up, since that would run the module: all its arguments are
    then spelled, defaults too.

    >>> manifest = {"benchmark": {"name": "closed-miou"}, "options": {},
    ...             "model": {"name": "mine:Net", "args": {"size": 3, "tag": None}}}
    >>> command_for(manifest, "a b")
    "hardlook run closed-miou --model mine:Net --model-arg size=3 --unit 'a b' --show"
    """
    model = manifest.get("model")
    if not model or ":" not in str(model["name"]):
        return command_again(manifest, unit)
    words = shlex.split(command_again({**manifest, "model": None}, unit))
    named = ["--model", str(model["name"])]
    for name, value in (model.get("args") or {}).items():
        if value is not None:
            said = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            named += ["--model-arg", f"{name}={said.lower() if isinstance(value, bool) else said}"]
    return shlex.join([*words[:3], *named, *words[3:]])
