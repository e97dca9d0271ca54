"""A predictor made by a factory that is named on the command line.

>>> arguments_of("checkpoint=a.pth,size=4"), arguments_of('{"size": 4, "zoom": {"skip_clicks": -1}}')
({'checkpoint': 'a.pth', 'size': '4'}, {'size': 4, 'zoom': {'skip_clicks': -1}})
"""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardlook.errors import HardlookError, ModelError, OptionError
from hardlook.models.arguments import convert
from hardlook.models.card import import_dotted
from hardlook.models.inner_model import arguments_in
from hardlook.models.interactive.ritm_settings import FAMILIES
from hardlook.models.sources import sources_of


@dataclass(frozen=True)
class Made:
    """A predictor, the source files of its class and its factory, and the files that its arguments name."""

    predictor: Any
    sources: tuple[Path, ...]
    weights_files: tuple[Path, ...]


def made(name: str, text: str) -> Made:
    """The predictor that the factory at package.module:factory makes with the arguments in `text`."""
    if ":" not in name:
        raise OptionError(
            f"{name!r} names no factory of a predictor",
            remedy="write predictor=package.module:factory; RClicks sets, by family: "
            + "; ".join(f"{family}: {settings.words()}" for family, settings in FAMILIES.items()),
        )
    factory = import_dotted(name)
    arguments = convert(name, factory, arguments_of(text))
    try:
        predictor = factory(**arguments)
    except HardlookError:
        raise
    except Exception as error:  # what outside code raises is anyone's guess
        raise ModelError(
            f"the factory {name!r} failed: {type(error).__name__}: {error}",
            remedy="call it in a Python shell with the same arguments",
        ) from error
    sources = set(sources_of(type(predictor)))
    written = inspect.getsourcefile(factory) if inspect.isfunction(factory) else None
    if written:
        sources.add(Path(written))
    given = (Path(value) for value in arguments.values() if isinstance(value, str | Path) and str(value))
    said = (Path(path) for path in getattr(predictor, "weights_files", ()))
    return Made(predictor, tuple(sorted(sources)), tuple(sorted({*said, *(path for path in given if path.is_file())})))


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments in `text`: a JSON object, or key=value with commas between."""
    if not text.lstrip().startswith("{"):
        return dict(arguments_in(text))
    try:
        read: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise OptionError(f"{text!r} is no JSON object: {error}", remedy='write {"key": value} or key=value') from error
    return read
