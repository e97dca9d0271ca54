"""Models by name: built-in ones from a table, outside ones by decorator, entry point or dotted path.

>>> model = build("planted-segmenter", "semantic-segmenter", {"sibling": "0.3"})
>>> model.faults.sibling, find("planted-segmenter").card.roles
(0.3, ('semantic-segmenter',))
>>> [card.name for card in list_models("planted-s*", role="semantic-segmenter")]
['planted-segmenter']

A name is looked up among the built-in models (`built_in.toml`) and those added with `@register`, then among the entry
points of the group `hardlook.models`, then read as `package.module:attribute`; a name with the prefix of a family
(`timm:resnet50`) is that family's, and the path of a folder of `hardlook train` is what was trained there, before
all but the first of these. The module of a built-in model is
imported when the model is built. The class or factory of an entry point or dotted path may carry `hardlook_card`, a
mapping with any of `role`, `summary`, `licence`, `extra` and `weights`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from hardlook.errors import HardlookError, ModelError
from hardlook.models.arguments import convert_arguments
from hardlook.models.families import load_family, split_name
from hardlook.models.roles import ROLES
from hardlook.reading import read_json, reading

PROJECTION = "semantic-projection"
"""The method of word projections: a name for `hardlook train`, and no model before that."""

MARKS = {
    "GL": "pretrained on the labels of all training classes",
    "LL": "trained on tasks, with the labels of each task",
    "TT": "adapts to the supports when it is tested",
    "transductive": "answers all queries of a task together",
    "trained": "trained by `hardlook train NAME --out FOLDER` and run as --model FOLDER; the others are frozen",
    "checked": "equal to released code on golden numbers",
}
"""What a few-shot learner's marks mean; the letters are MetaCoCo's."""

Factory = TypeVar("Factory", bound=Callable[..., Any])


@dataclass(frozen=True)
class ModelCard:
    """A model's name, roles and terms.

    `roles` may be empty (an outside model that does not say: then any is tried); `weights` are names of weight
    files to fetch; `origin` says where the name was found; `problem` why the model cannot be used, if so; `marks` are
    keys of `MARKS`.
    """

    name: str
    roles: tuple[str, ...] = ()
    summary: str = ""
    licence: str = ""
    extra: str = ""
    weights: tuple[str, ...] = ()
    origin: str = "built-in"
    problem: str = ""
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegistryEntry:
    """A model's card and its factory, or the dotted path of a factory that is not imported yet.

    >>> RegistryEntry(ModelCard("upper", summary="capital letters"), "builtins:str.upper").factory()("ok")
    'OK'
    """

    card: ModelCard
    target: Callable[..., Any] | str

    def factory(self) -> Callable[..., Any]:
        """The class or function that makes the model, imported now if need be."""
        return import_dotted(self.target) if isinstance(self.target, str) else self.target

    @property
    def path(self) -> str:
        """Where the factory is, as `package.module:attribute`."""
        if isinstance(self.target, functools.partial):
            return self.card.name
        return self.target if isinstance(self.target, str) else f"{self.target.__module__}:{self.target.__qualname__}"


def register(
    name: str,
    *,
    role: str | tuple[str, ...],
    summary: str = "",
    licence: str = "",
    extra: str = "",
    weights: tuple[str, ...] = (),
) -> Callable[[Factory], Factory]:
    """A decorator that adds a class or factory under `name`.

    >>> @register("always-empty", role="one-shot-segmenter", summary="finds nothing")
    ... class AlwaysEmpty:
    ...     def segment_queries(self, queries, supports):
    ...         return [query[..., 0] > 255 for query in queries]
    >>> find("always-empty").card.summary
    'finds nothing'
    """
    roles = (role,) if isinstance(role, str) else role
    check_roles(*roles)

    def add(target: Factory) -> Factory:
        card = ModelCard(name, roles, summary, licence, extra, weights, target.__module__, marks=read_marks(target))
        entry, earlier = RegistryEntry(card, target), _REGISTERED.get(name)
        # A module that is run again (a reload, a notebook cell) replaces its own model, never another's.
        if earlier is not None and earlier.path != entry.path:
            remedy = f"give {entry.path} another name"
            raise ModelError(f"the model name {name!r} is taken by {earlier.path}", remedy=remedy)
        _REGISTERED[name] = entry
        return target

    return add


def find(name: str, role: str | None = None) -> RegistryEntry:
    """The model of that name; a `ModelError` with similar names when there is none, of `role` before others."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    if in_family := split_name(name):
        return _find_in_family(*in_family)
    if is_checkpoint_folder(name):
        return _find_checkpoint(name, role)
    points = _entry_points()
    for point in points:
        if point.name == name:
            entry = _load_entry_point(point)
            return _REGISTERED.get(name, entry)  # an outside module may use the decorator, which knows more
    if ":" in name:
        return RegistryEntry(replace(read_card(import_dotted(name), name), origin="dotted name"), name)
    hint = suggest_names(name, role, (entry.card for entry in _REGISTERED.values()), [point.name for point in points])
    if name == PROJECTION or name in (one.name for one in _list_trainable()):
        data = "voc" if name == PROJECTION else "root"
        remedy = f"hardlook train {name} --data {data}=DIR --out weights/{name}, then --model weights/{name}"
        raise ModelError(f"{name!r} is a method that has to be trained first", remedy=remedy)
    listed = f"`hardlook models --role {role}` lists those that fit" if role else "`hardlook models` lists them all"
    libraries = "models of timm, torchvision and transformers are timm:NAME, torchvision:NAME and hf:NAME"
    own = "a folder of `hardlook train` is named by its path, a class of your own package.module:Class"
    remedy = f"{hint}{listed}; {libraries}; {own}"
    raise ModelError(f"there is no model {name!r}", remedy=remedy)


def _list_trainable() -> Sequence[Any]:
    from hardlook.networks.few_shot.catalogue import list_methods

    return list_methods()


def _find_in_family(prefix: str, name: str) -> RegistryEntry:
    family = load_family(prefix)
    if not name:
        remedy = f"`hardlook models --family {prefix}` lists them"
        raise ModelError(f"which model of {prefix}? {prefix}: names none", remedy=remedy)
    card = ModelCard(
        f"{prefix}:{name}", family.find_roles(name), family.summary, extra=family.extra, origin=f"family {prefix}"
    )
    return RegistryEntry(card, functools.partial(family.build, name))


def is_checkpoint_folder(name: str) -> bool:
    """Whether the name is the path of a folder that `hardlook train` wrote."""
    try:
        return (Path(name).expanduser() / "checkpoint.json").is_file()
    except (OSError, ValueError, RuntimeError):  # no path
        return False


def _find_checkpoint(name: str, role: str | None) -> RegistryEntry:
    """The model of a checkpoint folder: a segmenter, a few-shot learner, or an encoder where one is asked."""
    card = read_json(Path(name).expanduser() / "checkpoint.json", what="not the description of a checkpoint")
    with reading(name, "not the description of a checkpoint", remedy="copy the folder again"):
        method, backbone = card.get("method", ""), card["backbone"]
        summary = f"{method} on {backbone}, trained" if method else f"{backbone}, imported weights"
    if card.get("kind") == "one-shot":
        segmenter = import_dotted("hardlook.models.one_shot.network_segmenter:TrainedSegmenter")
        described = ModelCard(name, ("one-shot-segmenter",), summary, extra="torch", origin="checkpoint folder")
        return RegistryEntry(described, functools.partial(segmenter, name))
    if card.get("kind") == "projection":
        named = import_dotted("hardlook.open_vocabulary.word_projection:WordProjection")
        described = ModelCard(name, ("semantic-segmenter",), summary, extra="torch", origin="checkpoint folder")
        return RegistryEntry(described, functools.partial(named, name))
    if card.get("kind") == "interactive":
        clicked = import_dotted("hardlook.models.interactive.network_segmenter:Ritm")
        described = ModelCard(name, ("promptable-segmenter",), summary, extra="torch", origin="checkpoint folder")
        return RegistryEntry(described, functools.partial(clicked, name))
    # The roles' classes differ in what they need of the folder.
    kind = "TrainedModel" if role == "encoder" or not method else "TrainedLearner"
    found = import_dotted(f"hardlook.models.few_shot.trained:{kind}")
    factory: Any = functools.partial(found, name)
    # It takes its device itself, and no other encoder.
    factory.accepts = "images"
    roles = ("few-shot-learner", "encoder") if method else ("encoder",)
    return RegistryEntry(ModelCard(name, roles, summary, extra="torch", origin="checkpoint folder"), factory)


def resolve(name: str, role: str, args: Mapping[str, Any] | None = None) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The factory of the model `name` and its keyword arguments, checked without making the model.

    >>> resolve("planted-segmenter", "semantic-segmenter", {"sibling": "0.3"})[1]
    {'sibling': 0.3}
    """
    check_roles(role)
    entry = find(name, role)
    if entry.card.roles and role not in entry.card.roles:
        hint = suggest_names(name, role, (one.card for one in _REGISTERED.values() if role in one.card.roles))
        remedy = f"{hint}`hardlook models --role {role}` lists those that are"
        if role == "few-shot-learner" and "encoder" in entry.card.roles:
            remedy = f"give it as --encoder {name}, with a learner on its features, such as --model nearest-centroid"
        own = " and ".join(entry.card.roles)
        article = "an" if own[0] in "aeio" else "a"
        raise ModelError(f"the model {name!r} does not have the role {role}; it is {article} {own}", remedy=remedy)
    factory = entry.factory()
    return factory, convert_arguments(name, factory, args or {})


def build(name: str, role: str, args: Mapping[str, Any] | None = None) -> Any:
    """The model `name` for `role`, made with the keyword arguments `args` (strings are converted by annotation)."""
    factory, keywords = resolve(name, role, args)
    check_device(name, keywords.get("device"))
    # Images and masks that several units share are read-only, so that no model changes them for the others; torch warns
    # of each kind of tensor that is made from one.
    warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
    try:
        model = factory(**keywords)
    except HardlookError:
        raise
    except (Exception, SystemExit) as error:
        given = ", ".join(f"{key}={value!r}" for key, value in keywords.items()) or "no arguments"
        what = f"the model {name!r} could not be made with {given}: {type(error).__name__}: {error}"
        raise ModelError(what) from error
    check_serves(model, name, role)
    return model


def check_serves(model: object, name: str, role: str) -> None:
    """Raise a `ModelError` where the model lacks what the role demands."""
    if lacking := missing_members(model, role):
        others = [other for other in ROLES if not missing_members(model, other)]
        serves = f"it serves as {' and '.join(others)}" if others else "it has the methods of no role"
        what = f"the model {name!r} cannot serve as {role}: it lacks {', '.join(lacking)}; {serves}"
        raise ModelError(what, remedy=f"`hardlook check {role} {name}` says what the role demands")


def check_device(name: str, device: object) -> None:
    """Raise a `ModelError` where a GPU is asked for and torch finds none."""
    if not str(device).startswith("cuda") or find_spec("torch") is None:
        return
    import torch

    number = str(device).partition(":")[2] or "0"
    if not torch.cuda.is_available() or (number.isdigit() and int(number) >= torch.cuda.device_count()):
        what = f"the model {name!r} cannot run on {device}: torch finds {torch.cuda.device_count()} GPUs"
        raise ModelError(what, remedy="--device cpu, or a machine and a torch that have it")


def takes_argument(name: str, role: str, argument: str) -> bool:
    """Whether the model of that name can be given this argument."""
    try:
        parameters = inspect.signature(find(name, role).factory()).parameters
    except (TypeError, ValueError):  # compiled classes may hide their signature
        return True
    return argument in parameters


def needs_argument(name: str, role: str, argument: str) -> bool:
    """Whether the model of that name has this argument and no default for it; not for a name that is none.

    >>> needs_argument("fc-clip", "semantic-segmenter", "labels"), needs_argument("u2netp", "saliency", "labels")
    (True, False)
    """
    try:
        parameters = inspect.signature(find(name, role).factory()).parameters
    except (TypeError, ValueError, HardlookError):  # the error of a wrong name comes when the model is built
        return False
    return argument in parameters and parameters[argument].default is inspect.Parameter.empty


def list_models(pattern: str = "*", role: str | None = None) -> list[ModelCard]:
    """Cards of all models whose name fits the pattern, sorted by name; one that cannot be loaded says why.

    Built-in models are listed without importing them; entry points are loaded, since only the object knows its role.
    An outside model that names no role is listed under every role.
    """
    cards = []
    for point in _entry_points():
        try:
            card = _load_entry_point(point).card
        except HardlookError as error:
            card = ModelCard(point.name, origin=_origin(point), problem=error.what)
        registered = _REGISTERED.get(point.name)  # looked up after loading, which may have registered it
        if registered is None:
            cards.append(card)
        elif getattr(registered.target, "__module__", None) != point.module:
            hidden = f"hidden by the {registered.card.origin} model of the same name; call it {point.value}"
            cards.append(replace(card, problem=hidden))
    cards += [entry.card for entry in _REGISTERED.values()]
    fits = (card for card in cards if fnmatchcase(card.name, pattern))
    return sorted((card for card in fits if role is None or not card.roles or role in card.roles), key=lambda c: c.name)


def check_roles(*roles: str, where: str = "") -> None:
    """A `ModelError` that lists the roles, unless all of these are among them."""
    if unknown := [role for role in roles if role not in ROLES]:
        what = f"there is no role {' or '.join(map(repr, unknown))}{where}"
        raise ModelError(what, remedy=f"the roles are {', '.join(ROLES)}")


def missing_members(model: object, role: str) -> list[str]:
    """Names of the attributes and methods of the role that the model does not have."""
    protocol = ROLES[role]
    members = [*inspect.get_annotations(protocol), *vars(protocol)]
    return [name for name in members if not name.startswith("_") and not hasattr(model, name)]


def suggest_names(name: str, role: str | None, cards: Iterable[ModelCard], others: Sequence[str] = ()) -> str:
    """A question with the names most like `name`, followed by a space; empty if there are none.

    `others` are names whose role is not known. Similar names of another role are given only where there are no better
    ones, with their role.

    >>> cards = [ModelCard("u2netp", ("saliency",)), ModelCard("deeplab-voc", ("semantic-segmenter",))]
    >>> suggest_names("deeplab", "semantic-segmenter", cards)
    "did you mean 'deeplab-voc'? "
    >>> suggest_names("u2net", "semantic-segmenter", cards)
    "'u2netp' is near, but a saliency; "
    """
    roles = {card.name: card.roles for card in cards}
    fitting = [known for known, own in roles.items() if role is None or not own or role in own]
    if near := get_close_matches(name, [*fitting, *others], n=3, cutoff=0.5):
        return f"did you mean {' or '.join(map(repr, near))}? "
    if wrong := get_close_matches(name, list(roles), n=1, cutoff=0.5):
        return f"{wrong[0]!r} is near, but a {' and '.join(roles[wrong[0]])}; "
    return ""


def import_dotted(path: str) -> Callable[..., Any]:
    """The class or function at `package.module:attribute`."""
    module, _, attribute = path.partition(":")
    value: Any = None
    try:
        value = importlib.import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except HardlookError:
        raise
    except (Exception, SystemExit) as error:  # outside code may raise anything when it is imported
        remedy = _advise_import(module, attribute, value)
        raise ModelError(f"{path!r} could not be imported: {type(error).__name__}: {error}", remedy=remedy) from error
    if not callable(value):
        raise ModelError(f"{path!r} is a {type(value).__name__}, not a class or function that makes a model")
    factory: Callable[..., Any] = value
    return factory


def _advise_import(module: str, attribute: str, imported: Any) -> str:
    """What to write instead of a dotted path that failed; `imported` is how far it came, None without the module.

    >>> _advise_import("models/mine.py", "Net", None)
    'write the module as Python imports it: mine:Net, in the folder of mine.py or with it in PYTHONPATH'
    >>> _advise_import("textwrap", "TextWraper", importlib.import_module("textwrap"))
    'did you mean TextWrapper? that is in the module'
    """
    if module.endswith(".py"):
        file = Path(module)
        where = f"in the folder of {file.name} or with it in PYTHONPATH"
        return f"write the module as Python imports it: {file.stem}:{attribute}, {where}"
    if imported is not None and (near := get_close_matches(attribute, dir(imported), n=1)):
        return f"did you mean {near[0]}? that is in the module"
    return "write package.module:attribute, importable from where you are (see PYTHONPATH)"


def read_card(target: Callable[..., Any], name: str) -> ModelCard:
    """The card a class or factory carries in `hardlook_card`; its docstring's first line where it has no summary.

    >>> class Mine:
    ...     'Colours by hand.'
    ...     hardlook_card = {"role": "saliency", "licence": "MIT"}
    >>> read_card(Mine, "mine").roles, read_card(Mine, "mine").summary
    (('saliency',), 'Colours by hand.')
    """
    given: Mapping[str, Any] = getattr(target, "hardlook_card", {})
    role, weights = given.get("role", ()), given.get("weights", ())
    roles = (role,) if isinstance(role, str) else tuple(role)
    check_roles(*roles, where=f" (the hardlook_card of {name!r})")
    first_line = (inspect.getdoc(target) or "").partition("\n")[0]
    return ModelCard(
        name,
        roles,
        summary=str(given.get("summary", first_line)),
        licence=str(given.get("licence", "")),
        extra=str(given.get("extra", "")),
        weights=(weights,) if isinstance(weights, str) else tuple(weights),
        marks=read_marks(target),
    )


def read_marks(target: Any) -> tuple[str, ...]:
    """The marks of a class, from its attributes `flags` and `transductive`.

    >>> class Mine:
    ...     flags, transductive = ("GL", "TT"), True
    >>> read_marks(Mine), read_marks(str)
    (('GL', 'TT', 'transductive'), ())
    """
    flags = getattr(target, "flags", ())
    marks = [flag for flag in flags if flag in MARKS] if isinstance(flags, tuple | list) else []
    return (*marks, "transductive") if getattr(target, "transductive", False) is True else tuple(marks)


def _entry_points() -> list[EntryPoint]:
    return list(_read_entry_points(tuple((place, _modified(place)) for place in sys.path)))


@functools.lru_cache(maxsize=8)
def _read_entry_points(places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """The entry points of all installed packages, read again where a place of `sys.path` is new or has changed."""
    return tuple(sorted(entry_points(group="hardlook.models"), key=lambda point: (point.name, point.value)))


def _modified(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns  # noqa: PTH116, a tenth of the time of Path.stat
    except OSError:
        return 0


def _load_entry_point(point: EntryPoint) -> RegistryEntry:
    return RegistryEntry(replace(read_card(import_dotted(point.value), point.name), origin=_origin(point)), point.value)


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "entry point"


def _read_built_in() -> dict[str, RegistryEntry]:
    table = tomllib.loads(files("hardlook.models").joinpath("built_in.toml").read_text(encoding="utf-8"))
    entries = {}
    for name, row in table.items():
        target = row.pop("target")
        fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        entries[name] = RegistryEntry(ModelCard(name, **fields), target)
    return entries


_REGISTERED = _read_built_in()
