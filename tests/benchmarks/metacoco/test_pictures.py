"""Which queries of a task are shown: wrong ones of every class, and right ones only where none is wrong."""

from hypothesis import given
from hypothesis import strategies as st

from hardlook.benchmarks.metacoco.benchmark import METACOCO
from hardlook.benchmarks.metacoco.pictures import MOST_QUERIES, _queries
from hardlook.models.registry import build
from hardlook.runs.in_memory import Rehearsal


@given(st.integers(2, 6).flatmap(lambda ways: st.lists(st.integers(0, ways - 1), min_size=3 * ways, max_size=3 * ways)))
def test_the_queries_shown_are_wrong_and_of_as_many_classes_as_there_are(predicted):
    shown = _queries(predicted, each=3)
    wrong = {place for place, answer in enumerate(predicted) if answer != place // 3}
    pool = wrong or set(range(len(predicted)))
    assert len(shown) == len(set(shown)) == min(MOST_QUERIES, len(pool)) and set(shown) <= pool
    classes = {place // 3 for place in pool}
    assert len({place // 3 for place in shown}) == min(MOST_QUERIES, len(classes))


def test_a_task_without_an_error_shows_queries_too():
    rehearsal = Rehearsal("metacoco", {"tasks": 1, "queries": 2, "resamples": 0, "modes": "iid"})
    unit = next(unit for batch in rehearsal.prepared for unit in batch.units)
    [record] = METACOCO.evaluate([unit], build("planted-learner", "few-shot-learner"))
    labels = [picture.label for picture in METACOCO.pictures(unit, record)]
    assert record["correct"] == record["queries"]
    asked = [label for label in labels if not label.startswith("support: ")]
    assert len(asked) == MOST_QUERIES
    assert all(label.split(",")[0] == label.split("answered ")[1] for label in asked)
