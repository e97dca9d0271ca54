"""Arguments of the command line: parsers of NAME=VALUE pairs, shards and batch sizes, and flags that commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hardlook.errors import OptionError

if TYPE_CHECKING:
    from hardlook.models.named_model import NamedModel


def parse_pairs(texts: list[str] | None, flag: str) -> dict[str, str]:
    """NAME=VALUE texts as a dict.

    >>> parse_pairs(["voc=/data/VOC2012"], "--data")
    {'voc': '/data/VOC2012'}
    """
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise OptionError(f"{flag} {text}: expected NAME=VALUE", remedy=f"for example {flag} name=value")
        if name in found:
            raise OptionError(f"{flag} {name} is given twice")
        found[name] = value
    return found


def parse_paths(texts: list[str] | None, flag: str, *, alone: str = "") -> dict[str, Path]:
    """NAME=PATH texts as a dict of paths; with `alone`, a path without a name gets that name.

    >>> parse_paths(["voc=data/VOC2012"], "--data"), parse_paths(["data/pacs"], "--data", alone="root")
    ({'voc': PosixPath('data/VOC2012')}, {'root': PosixPath('data/pacs')})
    """
    named = [f"{alone}={text}" if alone and "=" not in text else text for text in texts or []]
    return {name: Path(value).expanduser() for name, value in parse_pairs(named, flag).items()}


def parse_shard(text: str | None) -> tuple[int, int] | None:
    """`i/N` as (i, N).

    >>> parse_shard("2/8")
    (2, 8)
    """
    if not text:
        return None
    first, slash, second = text.partition("/")
    if not (slash and first.isdigit() and second.isdigit()):
        raise OptionError(f"--shard {text}: expected i/N", remedy="for example --shard 3/8 for the third of eight")
    return int(first), int(second)


def parse_batch_size(text: str | None) -> int | None:
    """A positive number, or None for `auto`."""
    if text is None or text == "auto":
        return None
    if not text.isdigit() or int(text) < 1:
        raise OptionError(f"--batch-size {text}: expected a whole number from 1, or auto")
    return int(text)


Data = Annotated[
    list[str] | None,
    typer.Option("--data", help="voc=DIR, or images=DIR with masks=DIR or binary=DIR; repeatable.", show_default=False),
]

Labels = Annotated[
    Path | None, typer.Option("--labels", help="Class names for images and masks, one per line, class number 1 first.")
]

Split = Annotated[
    str | None, typer.Option("--split", help="A list of the VOC devkit, such as train; all images without it.")
]

ModelArgs = Annotated[list[str] | None, typer.Option(help="KEY=VALUE for that model; repeatable.")]
Run = Annotated[Path | None, typer.Option("--run", help="Folder of a finished `hardlook run toss`.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything that is drawn.")]
Json = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def build_named_model(name: str, role: str, args: Sequence[str] | None, flag: str) -> NamedModel:
    """Build the model `name` for a role, with the KEY=VALUE arguments of `flag`."""
    from hardlook.models.named_model import build_named

    return build_named(name, role, parse_pairs(list(args or ()), flag))
