"""A model built by name together with its identity: for studies, and for models that use another model.

>>> inner = build_inner("planted-encoder", "encoder", "context=0.5")
>>> inner.model.context, inner.fingerprint() == build_inner("planted-encoder", "encoder").fingerprint()
(0.5, False)
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import ModelError, OptionError
from hardlook.fingerprints import hash_sources, hash_value
from hardlook.models.arguments import parse_arguments
from hardlook.models.identity import ModelIdentity, identify, sources_of
from hardlook.models.registry import build, find
from hardlook.models.roles import Features

if TYPE_CHECKING:
    from hardlook.models.roles import Image, ImageTextEncoder


@dataclass(frozen=True)
class NamedModel:
    """A model and its identity."""

    model: Any
    identity: ModelIdentity

    @property
    def device(self) -> str:
        """Where it runs; empty if the model does not say."""
        return self.identity.device

    def facts(self) -> dict[str, Any]:
        """The identity as JSON, with its fingerprint."""
        return {**asdict(self.identity), "fingerprint": self.identity.fingerprint()}

    def fingerprint(self) -> str:
        """A hash of name, arguments and code; weights, known by content, and device are for the outer model to name."""
        args = {
            key: value
            for key, value in self.identity.args.items()
            if key != "device" and Path(str(value)).name not in self.identity.weights
        }
        return hash_value([self.identity.name, args, self.identity.source])

    def whole_fingerprint(self) -> str:
        """`fingerprint` with the weights and the kind of device, for callers that name neither."""
        return hash_value([self.fingerprint(), dict(self.identity.weights), self.device.split(":")[0]])


class OuterModel:
    """Base of models that use another model: they have its weights files and device, and include its fingerprint."""

    def __init__(self, inner: NamedModel) -> None:
        self._inner = inner
        self.weights_files = tuple(Path(path) for path in getattr(inner.model, "weights_files", ()))
        self.device = inner.device

    def fingerprint(self) -> str:
        """A hash of this model's code and of the inner model's name, arguments and code."""
        return hash_value([hash_sources(sources_of(type(self))), self._inner.fingerprint()])


def build_inner(
    name: str, role: str, text: str = "", *, device: str = "", defaults: Mapping[str, str] | None = None
) -> NamedModel:
    """The model `name` for `role` with the arguments in `text` (key=value,...), which override `defaults`.

    `device` goes to a model that takes one; empty leaves it to the model. A model that takes none runs on the
    CPU, so `cpu` is right for it and anything else is a `ModelError`.
    """
    args = {**(defaults or {}), **parse_arguments(text)}
    if device:
        if "device" in args:
            raise OptionError(f"the device of {name!r} is given twice: {device!r} and {args['device']!r}")
        if "device" in inspect.signature(find(name).factory()).parameters:
            args["device"] = device
        elif device != "cpu":
            raise ModelError(f"the {role} {name!r} takes no device, got {device!r}", remedy="leave device out")
    model = build(name, role, args)
    return NamedModel(model, identify(model, name=name, role=role, args=args))


def build_named(name: str, role: str, args: Mapping[str, Any]) -> NamedModel:
    """The model `name` for `role`; an encoder of images and texts serves as an image encoder too."""
    roles = find(name).card.roles
    paired = role == "encoder" and "image-text-encoder" in roles and "encoder" not in roles
    model = build(name, "image-text-encoder" if paired else role, args)
    return NamedModel(_ImageEncoder(model) if paired else model, identify(model, name=name, role=role, args=args))


class _ImageEncoder:
    """The image half of an encoder of images and texts."""

    def __init__(self, model: ImageTextEncoder) -> None:
        self.model, self.dimension = model, model.dimension

    def encode(self, images: Sequence[Image]) -> Features:
        return Features(self.model.encode_images(images))
