"""The templates of pages, filled in: everything inlined, nothing fetched, and a policy that forbids fetching."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from hardlook.report.charts.palette import stylesheet


def render_template(template: str, **values: object) -> str:
    """Fill in the template of that file name; texts are escaped, `Markup` is not.

    The stylesheet, the script and the Content-Security-Policy are added here. The policy names the script by its hash,
    so that a script in a label could not run even if escaping failed.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    style, script = stylesheet() + _read("style.css"), _read("table.js") + _read("folding.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return environment.from_string(_read(template)).render(
        style=Markup(style), script=Markup(script), policy=Markup(policy), **values
    )


def _read(name: str) -> str:
    # The hash is that of what the browser parses, which has no carriage returns.
    return files("hardlook.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")
