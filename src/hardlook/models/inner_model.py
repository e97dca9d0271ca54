"""A model inside a model: named, built with arguments written as one text, and known to the run that uses it.

>>> inner = build_inner("planted-encoder", "encoder", "context=0.5")
>>> inner.model.context, inner.fingerprint() == build_inner("planted-encoder", "encoder", "").fingerprint()
(0.5, False)
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardlook.errors import ModelError, OptionError
from hardlook.fingerprint import of_sources, of_value
from hardlook.models.identity import ModelIdentity, identify
from hardlook.models.registry import build, find
from hardlook.models.sources import sources_of


@dataclass(frozen=True)
class InnerModel:
    """The model and its identity; what the model around it says of weights and device it says for both."""

    model: Any
    identity: ModelIdentity

    @property
    def weights_files(self) -> tuple[Path, ...]:
        """The files that it has read."""
        return tuple(Path(path) for path in getattr(self.model, "weights_files", ()))

    @property
    def device(self) -> str:
        """Where it runs; empty where it does not say."""
        return self.identity.device

    def fingerprint(self) -> str:
        """A hash of its name, arguments and code.

        Weights and device are left out, since the model around it names them, and a weights file is known by its
        content and not by its place.
        """
        args = {
            key: value
            for key, value in self.identity.args.items()
            if key != "device" and Path(str(value)).name not in self.identity.weights
        }
        return of_value([self.identity.name, args, self.identity.source])

    def whole_fingerprint(self) -> str:
        """The same with weights and the kind of device, for whoever names neither."""
        return of_value([self.fingerprint(), dict(self.identity.weights), self.device.split(":")[0]])

    def fingerprint_within(self, outer: object) -> str:
        """The same together with the code of the model around it, for that model's `fingerprint()`."""
        return of_value([of_sources(sources_of(type(outer))), self.fingerprint()])


def build_inner(
    name: str, role: str, text: str = "", *, device: str = "", usual: Mapping[str, str] | None = None
) -> InnerModel:
    """The model `name` for `role`, made with the arguments in `text`, which go before the `usual` ones.

    `device` goes to a model that takes one; empty leaves it to the model. A model that takes none runs on the
    processor, so `cpu` is right for it and anything else is a `ModelError`.
    """
    args = {**(usual or {}), **arguments_in(text)}
    if device:
        if "device" in args:
            raise OptionError(f"the device of {name!r} is said twice: {device!r} and {args['device']!r}")
        if "device" in inspect.signature(find(name).factory()).parameters:
            args["device"] = device
        elif device != "cpu":
            raise ModelError(f"the {role} {name!r} takes no device, and {device!r} came", remedy="leave device out")
    model = build(name, role, args)
    return InnerModel(model, identify(model, name=name, role=role, args=args))


def arguments_in(text: str) -> dict[str, str]:
    """Arguments written as `key=value` with commas between; a comma within a value is kept.

    >>> arguments_in("size=4,6,layer=stride16+head")
    {'size': '4,6', 'layer': 'stride16+head'}
    """
    found: dict[str, str] = {}
    last = ""
    for part in (part.strip() for part in text.split(",") if part.strip()):
        key, equals, value = part.partition("=")
        if not equals and last:
            found[last] += f",{part}"
            continue
        last = key.strip()
        if not equals or not last or last in found:
            what = f"{last!r} comes twice" if equals and last in found else f"{part!r} names no argument"
            raise OptionError(f"{what} in {text!r}", remedy="write key=value with commas between, each key once")
        found[last] = value.strip()
    return found
