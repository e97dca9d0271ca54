"""Pages from the templates of a package, every value escaped, and the files that lie beside them.

>>> refused = environment_of("hardlook.explorer").get_template("refused.html")
>>> "&lt;b&gt;" in refused.render(title="No", message="<b>")
True
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment_of(package: str) -> Environment:
    """The templates in `package`/templates; a value that a page was not given is an error, not an empty place."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(lambda name: text_file(package, f"templates/{name}")),
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def text_file(package: str, name: str) -> str:
    """The text of a file of a package.

    >>> text_file("hardlook.report", "style.css").count("{") > 0
    True
    """
    return files(package).joinpath(name).read_text(encoding="utf-8")
