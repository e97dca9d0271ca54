"""The roles of models: what docs/model-roles.md says of their inputs."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from hardlook.errors import ModelError
from hardlook.models.interactive.network_segmenter import NetworkSegmenter
from hardlook.models.planted.disc import Disc
from hardlook.models.roles import Clicks, DatasetSegmenter, Episode, Support, fit_to_dataset

PAGE = (Path(__file__).parents[2] / "docs" / "model-roles.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [Support, Episode, Clicks], ids=lambda kind: kind.__name__)
def test_the_page_lists_every_field_of_an_input(kind):
    [table] = re.findall(r"\| input of \|.*?\n\n", PAGE, re.DOTALL)
    listed: dict[str, list[str]] = {}
    for row in table.splitlines()[2:]:
        cells = [cell.strip() for cell in row.strip("|\n").split("|")]
        if len(cells) < 3:
            continue
        if cells[0]:
            name = cells[0].split("`: `")[1].strip("`")
        listed.setdefault(name, []).append(cells[1].strip("`"))
    assert listed[kind.__name__] == [field.name for field in fields(kind)]


def test_a_dataset_may_have_a_model_of_its_own():
    class Fitted(Disc):
        def for_dataset(self, dataset):
            return {"davis": Disc(blunt=1.0), "none": None}.get(dataset, self)

    assert issubclass(Fitted, DatasetSegmenter) and issubclass(NetworkSegmenter, DatasetSegmenter)
    assert not issubclass(Disc, DatasetSegmenter)
    model, other = Fitted(), Disc()
    assert fit_to_dataset(model, "davis").blunt == 1.0 and fit_to_dataset(model, "grabcut") is model
    assert fit_to_dataset(other, "davis") is other
    with pytest.raises(ModelError, match="to give a model with `open`, got NoneType for none"):
        fit_to_dataset(model, "none")
