"""Fills the page templates: everything inlined, nothing fetched, and a policy that forbids fetching."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from hardlook.report.charts.palette import stylesheet


def fill(template: str, **values: object) -> str:
    """The template of that file name with its values; texts are escaped, `Markup` is not.

    The stylesheet, the script and the Content-Security-Policy are filled in here. The policy names the script by
    its hash, so that a script smuggled in through a label could not run even if escaping failed.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    style, script = stylesheet() + _read("style.css"), _read("table.js")
    return environment.from_string(_read(template)).render(
        style=Markup(style), script=Markup(script), policy=Markup(content_policy(script)), **values
    )


def content_policy(script: str) -> str:
    """The policy under which only this script runs and nothing is loaded."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _read(name: str) -> str:
    # Universal newlines: the hash is taken over what the browser parses, and that has no carriage returns.
    return files("hardlook.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")
