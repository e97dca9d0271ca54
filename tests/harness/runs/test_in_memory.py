import pytest

from hardlook.errors import RunError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.scorecard import UnitCounts


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("closed-miou", {"scenes": 3, "resamples": 0})


def test_every_unit_is_planned_and_scored_and_none_failed(rehearsal):
    card = rehearsal.score("planted-segmenter")
    assert card.units == UnitCounts(planned=3, scored=3, failed=0)
    assert (card.model, card.get("miou").value, card.left_out) == ("planted-segmenter", 1.0, ())


def test_records_come_in_the_order_of_their_units(rehearsal):
    units = ["scene-0000", "scene-0001", "scene-0002"]
    assert rehearsal.records("planted-segmenter")["unit"].to_list() == units


def test_a_unit_that_fails_is_an_error_that_names_it(rehearsal):
    with pytest.raises(RunError, match="too much for me") as caught:
        rehearsal.score("troubled_segmenters:Raises", {"scenes": "1"})
    assert caught.value.unit == "scene-0001"
