"""What is wrong with a setting, in words for whoever wrote it.

>>> from hardlook.collect.study.settings import StudySettings
>>> def wrong(**values):
...     try:
...         StudySettings.model_validate({"kind": "clicks", "title": "Cups", **values})
...     except ValidationError as error:
...         return in_words(error, StudySettings)
>>> wrong(batchsize=4)
"batchsize: there is no such field; is 'batch_size' meant?"
>>> wrong(least_inside=70)
'least_inside: Input should be less than or equal to 1, not 70'
>>> wrong(devices=("any",))
'devices are pc and mobile in a clicks study, and any in a review or rating'
"""

from __future__ import annotations

from difflib import get_close_matches

from pydantic import BaseModel, ValidationError

LONGEST = 60


def in_words(error: ValidationError, model: type[BaseModel]) -> str:
    """The first error: the field, what was expected and what came; a wrong name with the one that is near."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    if first["type"] == "value_error":
        said = str(first["msg"]).removeprefix("Value error, ")
    elif first["type"] == "extra_forbidden":
        near = get_close_matches(field, model.model_fields, n=1)
        said = f"there is no such field; is {near[0]!r} meant?" if near else "there is no such field"
    else:
        came = repr(first["input"])
        said = str(first["msg"]) + (f", not {came}" if first["type"] != "missing" and len(came) <= LONGEST else "")
    return f"{field}: {said}" if field else said
