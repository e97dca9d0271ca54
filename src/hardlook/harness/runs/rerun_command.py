"""The command that repeats a run, or one unit of it, made from its `run.json`.

>>> manifest = {"benchmark": {"name": "closed-miou"}, "options": {"scenes": 24, "split": "val"},
...             "model": {"name": "planted-segmenter", "args": {"stranger": 0.2, "ragged": 0.0}}}
>>> build_rerun_command(manifest, unit="scene 7")
"hardlook run closed-miou --model planted-segmenter --model-arg stranger=0.2 --scenes 24 --unit 'scene 7' --show"
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from hardlook.errors import HardlookError
from hardlook.harness.registry import find_added, find_benchmark
from hardlook.models.arguments import complete_arguments
from hardlook.models.registry import find

_PAIRS = ("data", "reading")


def build_rerun_command(
    manifest: Mapping[str, Any], unit: str | None = None, *, import_model: bool = True, out: str = "again"
) -> str:
    """The command as one line for a shell, with the options that are not the defaults.

    With `unit` it evaluates and shows that unit alone; without, it repeats the whole run in the folder `out`. Without
    `import_model` a model named as `module:attribute` is not looked up, since that would run the user's module: all its
    arguments are then listed, defaults included.

    >>> manifest = {"benchmark": {"name": "closed-miou"}, "options": {},
    ...             "model": {"name": "mine:Net", "args": {"size": 3, "tag": None}}}
    >>> build_rerun_command(manifest, "a b", import_model=False)
    "hardlook run closed-miou --model mine:Net --model-arg size=3 --unit 'a b' --show"
    """
    name = manifest["benchmark"]["name"]
    if (manifest.get("model") or {}).get("object") or find_added(name) is not None:
        return _build_call(manifest, unit, out)
    words = ["hardlook", "run", name, *_model_words(manifest.get("model"), import_model)]
    words += _option_words(name, manifest["options"])
    threads = manifest.get("answers", {}).get("parts", {}).get("threads", 1)
    if threads != 1:
        words += ["--threads", str(threads)]
    return shlex.join([*words, *(["--out", out] if unit is None else ["--unit", unit, "--show"])])


def _build_call(manifest: Mapping[str, Any], unit: str | None, out: str) -> str:
    """The call of `hl.run` that repeats a run of a model or a benchmark that was given as an object.

    >>> manifest = {"benchmark": {"name": "closed-miou"}, "options": {"scenes": 24},
    ...             "model": {"name": "Net", "args": {}, "object": "the model is an object of Net"}}
    >>> build_rerun_command(manifest)
    "hl.run('closed-miou', model=..., scenes=24, out='again')  # model: the object Net"
    >>> build_rerun_command(manifest, unit="scene-7")
    "hl.run('closed-miou', model=..., scenes=24).unit('scene-7')  # model: the object Net"
    """
    name, model = manifest["benchmark"]["name"], manifest.get("model")
    defaults = find_benchmark(name).options.model_construct().model_dump(mode="json")
    words = [repr(name) if find_added(name) is None else name.replace("-", "_")]
    comment = ""
    if model and model.get("object"):
        words.append("model=...")
        comment = f"  # model: the object {model['name']}"
    elif model:
        args = list_changed_arguments(model)
        words += [f"model={model['name']!r}", *([f"model_args={args!r}"] if args else [])]
    words += [
        f"{key}={value!r}"
        for key, value in manifest["options"].items()
        if key in defaults and value is not None and value != defaults[key]
    ]
    threads = manifest.get("answers", {}).get("parts", {}).get("threads", 1)
    words += [f"threads={threads}"] if threads != 1 else []
    words += [f"out={out!r}"] if unit is None else []
    return f"hl.run({', '.join(words)})" + (f".unit({unit!r})" if unit is not None else "") + comment


def _model_words(model: Mapping[str, Any] | None, import_model: bool) -> Iterator[str]:
    if not model:
        return
    yield from ("--model", model["name"])
    for key, value in list_changed_arguments(model, import_model=import_model).items():
        yield from ("--model-arg", f"{key}={_text(value)}")


def list_changed_arguments(model: Mapping[str, Any], *, import_model: bool = True) -> dict[str, Any]:
    """The arguments of a model of `run.json` that are not its defaults."""
    args = model.get("args") or {}
    defaults = _defaults(model) if import_model or ":" not in model["name"] else dict.fromkeys(args)
    return {key: value for key, value in args.items() if key not in defaults or _text(defaults[key]) != _text(value)}


def _defaults(model: Mapping[str, Any]) -> dict[str, Any]:
    """The model's default arguments; none where the model is not installed or needs some."""
    try:
        return complete_arguments(model["name"], find(model["name"]).factory(), {})
    except HardlookError:
        return {}


def _option_words(benchmark: str, options: Mapping[str, Any]) -> Iterator[str]:
    defaults = find_benchmark(benchmark).options.model_construct().model_dump(mode="json")
    for name, value in options.items():
        if name not in defaults or value is None or value == defaults[name]:
            continue
        flag = "--" + name.replace("_", "-")
        if name in _PAIRS:
            for key, text in value.items():
                yield from (flag, f"{key}={text}")
        elif isinstance(value, bool):
            yield flag if value else f"--no-{flag[2:]}"
        else:
            yield from (flag, _text(value))


def _text(value: Any) -> str:
    """A value as the command line takes it.

    >>> _text([4, 6]), _text(None), _text(True)
    ('4,6', 'none', 'true')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(_text, value)) if isinstance(value, list | tuple) else str(value)
