"""Names in click files: datasets, images, objects, and the predictions whose errors were clicked on.

In the first round a full stem is `IMG` or `IMG_______OBJ` (seven underscores). Later rounds add the method whose mask
was shown, the error type, the device and a number: `..._ritm_fn_pc_7`; masks of MiVOS have neither device nor number:
`..._mivos_fp`.

>>> parse_full_stem("llama_ritm_fn_pc_7")
FullStem(image='llama', object='', method='ritm', click_type='fn', device='pc', number=7)
>>> str(parse_full_stem("street_______12"))
'street_______12'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from hardlook.errors import DataError

ClickType = Literal["first", "fn", "fp"]
CLICK_TYPES: tuple[ClickType, ...] = ("first", "fn", "fp")
DEVICES = ("pc", "mobile")
SEPARATOR = "_" * 7
WITHOUT_DEVICE = "mivos"
_OBJECT_STEM = re.compile(rf"(?P<image>.+){SEPARATOR}(?P<object>\d+)", re.DOTALL)
_ENDING = r"_(?P<type>fn|fp)_(?P<device>pc|mobile)_(?P<number>\d{1,18})"
_LATER_ENDING = re.compile(rf"(?P<method>[^_].*){_ENDING}", re.DOTALL)
_LATER_STEM = re.compile(
    rf"(?P<instance>.+)_(?:(?P<method>[^_]+){_ENDING}|(?P<bare>{WITHOUT_DEVICE})_(?P<bare_type>fn|fp))", re.DOTALL
)


@dataclass(frozen=True)
class FullStem:
    """The parts of a full stem; `object` is "" or digits; only later rounds have `method`, `device` and `number`."""

    image: str
    object: str = ""
    method: str = ""
    click_type: ClickType = "first"
    device: str = ""
    number: int | None = None

    def __str__(self) -> str:
        name = format_instance_stem(self.image, self.object)
        if self.click_type == "first":
            return name
        shown = f"{name}_{self.method}_{self.click_type}"
        return shown if self.number is None else f"{shown}_{self.device}_{self.number}"


def format_instance_stem(image: str, object_stem: str = "") -> str:
    """The stem of an object of an image, which is also its full stem in the first round.

    >>> format_instance_stem("llama"), format_instance_stem("street", "12")
    ('llama', 'street_______12')
    """
    return f"{image}{SEPARATOR}{object_stem}" if object_stem else image


def format_full_stem(parts: FullStem) -> str:
    """The full stem of these parts; a `DataError` if parsing it would not give the same parts.

    >>> format_full_stem(FullStem("llama", "3", "mivos", "fp"))
    'llama_______3_mivos_fp'
    """
    name = str(parts)
    if not parts.image or parse_full_stem(name, parts.click_type) != parts:
        remedy = "give an image, an object of digits, a method without underscores, and pc or mobile with a number"
        raise DataError(f"{parts} has no full stem", unit=name, remedy=remedy)
    return name


def parse_full_stem(name: str, click_type: str | None = None) -> FullStem:
    """The parts of a full stem.

    Without `click_type` (first, fn or fp) the ending decides, so an image that is itself named `x_mivos_fn` is read as
    a later round. With it, a name of the first round is never split, and one of a later round must have the ending.

    >>> parse_full_stem("x_mivos_fn").click_type, parse_full_stem("x_mivos_fn", "first").image
    ('fn', 'x_mivos_fn')
    """
    found = _LATER_STEM.fullmatch(name) if click_type != "first" else None
    if found is None:
        if not name or click_type not in (None, "first"):
            remedy = f"write IMG[{SEPARATOR}OBJ]_METHOD_{{fn|fp}}_{{pc|mobile}}_N or ..._{WITHOUT_DEVICE}_{{fn|fp}}"
            raise DataError(f"not a full stem of click type {click_type or 'first'}", unit=name, remedy=remedy)
        return FullStem(*_split_instance_stem(name))
    kind = found["type"] or found["bare_type"]
    if click_type not in (None, kind):
        remedy = "fix the name or type"
        raise DataError(f"expected click type {click_type}, got a full stem of type {kind}", unit=name, remedy=remedy)
    number = None if found["number"] is None else int(found["number"])
    method = found["method"] or found["bare"]
    return FullStem(
        *_split_instance_stem(found["instance"]), method, cast("ClickType", kind), found["device"] or "", number
    )


def parse_later_stem(name: str, instance: str) -> FullStem | None:
    """The parts of a later round's full stem on a known instance; None if it does not have this form.

    As the instance is known, the method may contain underscores. Only names with device and number are parsed.

    >>> parse_later_stem("llama_cfr_icl_fn_pc_7", "llama")
    FullStem(image='llama', object='', method='cfr_icl', click_type='fn', device='pc', number=7)
    """
    found = _LATER_ENDING.fullmatch(name.removeprefix(f"{instance}_")) if name.startswith(f"{instance}_") else None
    if found is None:
        return None
    kind = cast("ClickType", found["type"])
    return FullStem(*_split_instance_stem(instance), found["method"], kind, found["device"], int(found["number"]))


def _split_instance_stem(name: str) -> tuple[str, str]:
    found = _OBJECT_STEM.fullmatch(name)
    return (found["image"], found["object"]) if found else (name, "")


# Names of COCO-MVal in the published files.
_ALIASES = {"coco": "coco-mval", "cocomval": "coco-mval", "coco-mv": "coco-mval"}


def normalize_dataset_name(text: str) -> str:
    """A dataset's name in lower case with hyphens, without aliases.

    >>> normalize_dataset_name("GrabCut"), normalize_dataset_name("COCO"), normalize_dataset_name("Object CutOut")
    ('grabcut', 'coco-mval', 'object-cutout')
    """
    plain = text.strip().lower().replace("_", "-").replace(" ", "-")
    return _ALIASES.get(plain, plain)
