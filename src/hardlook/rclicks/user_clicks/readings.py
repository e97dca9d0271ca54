"""Readings of `hardlook clicks`: the values of each, what they mean, and the choice that a run makes.

>>> choose_readings({"wd": "paper"}, EVALUATION)
{'wd': 'paper', 'maps': 'released'}
"""

from __future__ import annotations

from collections.abc import Mapping

from hardlook.errors import OptionError
from hardlook.harness.sections import Table

Choices = Mapping[str, Mapping[str, str]]
EVALUATION: Choices = {
    "wd": {
        "released": "pixels over the diagonal of the object's box",
        "paper": "each axis over the side of the object's box",
    },
    "maps": {
        "released": "NSS and PDE with 1e-9 added to the map's sum and deviation",
        "paper": "NSS and PDE of the map as it is",
    },
}
TRAINING: Choices = {
    "mask-sigma": {
        "released": "the error mask is blurred by 0.707 % of the image's diagonal, cut to whole pixels",
        "paper": "the error mask is blurred by 1 % of the image's diagonal",
    }
}


def choose_readings(given: Mapping[str, str], choices: Choices) -> dict[str, str]:
    """The value of every reading; one that is not given is `released`."""
    for name, value in given.items():
        if name not in choices:
            raise OptionError(f"--reading {name}: there is no such reading", remedy=f"there are {', '.join(choices)}")
        if value not in choices[name]:
            known = ", ".join(f"{key} ({meaning})" for key, meaning in choices[name].items())
            raise OptionError(f"--reading {name}={value}: there is no such reading", remedy=f"choose one of: {known}")
    return {name: given.get(name, "released") for name in choices}


def reading_table(values: Mapping[str, str], choices: Choices) -> Table:
    """The table of readings: name, value and meaning of each."""
    rows = [(name, value, choices[name][value]) for name, value in values.items()]
    return Table("Readings", "", ("name", "value", "meaning"), rows)
