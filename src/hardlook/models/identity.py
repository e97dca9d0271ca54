"""Which model it was: name, arguments, code, weights and device, in one fingerprint.

>>> from hardlook.models.registry import build
>>> def fingerprint(args):
...     model = build("planted-segmenter", "semantic-segmenter", args)
...     return identify(model, name="planted-segmenter", role="semantic-segmenter", args=args).fingerprint()
>>> fingerprint({}) == fingerprint({"sibling": "0"}), fingerprint({}) == fingerprint({"sibling": "0.1"})
(True, False)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hardlook.errors import ModelError
from hardlook.fingerprint import of_file, of_sources, of_value
from hardlook.models.arguments import complete
from hardlook.models.registry import find
from hardlook.models.sources import sources_of


@dataclass(frozen=True)
class ModelIdentity:
    """All that a model's answers depend on.

    `args` with the defaults filled in; `source` the hash of the code (or what the model's own `fingerprint()`
    says); `weights` {file name: sha256}; `device` as the model names it, empty when it does not.
    """

    name: str
    role: str
    args: Mapping[str, Any]
    source: str
    weights: Mapping[str, str] = field(default_factory=dict)
    device: str = ""

    def fingerprint(self) -> str:
        """A short hash of all of it: equal for models that give the same answers."""
        return of_value(asdict(self))


def identify(model: object, *, name: str, role: str, args: Mapping[str, Any] | None = None) -> ModelIdentity:
    """The identity of a model that was built as `name` for `role` with `args`.

    The model may help: `fingerprint()` stands for its code, `weights_files` are the files it has read, `device` is
    where it runs. `name` need not be findable, for a model made in a script.
    """
    own = getattr(model, "fingerprint", None)
    return ModelIdentity(
        name=name,
        role=role,
        args=_settled(name, args or {}),
        source=str(own()) if callable(own) else of_sources(sources_of(type(model))),
        weights=_weights(model, name),
        device=str(getattr(model, "device", "")),
    )


def _settled(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    try:
        factory = find(name).factory()
    except ModelError:
        settled = dict(args)
    else:
        settled = complete(name, factory, args)
    return {key: settled[key] for key in sorted(settled)}


def _weights(model: object, name: str) -> dict[str, str]:
    files = [Path(path) for path in getattr(model, "weights_files", ())]
    absent = [path for path in files if not path.is_file()]
    if absent:
        raise ModelError(f"the model {name!r} names a weights file that is not there", file=absent[0])
    return {path.name: of_file(path) for path in sorted(files)}
