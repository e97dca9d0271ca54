from dataclasses import replace

import numpy as np
import pytest
from image_tables import full_table

from hardlook.errors import DataError
from hardlook.metacoco.tasks.checking import check_tasks
from hardlook.metacoco.tasks.drawing import draw_tasks
from hardlook.metacoco.tasks.eligibility import find_eligible_classes
from hardlook.metacoco.tasks.images import MODES

TABLE = full_table(5, 3, 6)

DRAWN = {
    mode: draw_tasks(find_eligible_classes(TABLE, MODES, 3, 2, 3), mode, np.arange(10, 14), seed=0) for mode in MODES
}


def rows_of(concept, context):
    return np.flatnonzero((TABLE.concept == concept) & (TABLE.context == context))


@pytest.mark.parametrize("mode", MODES)
def test_drawn_tasks_pass(mode):
    check_tasks(DRAWN[mode], TABLE)


def broken(mode, field, place, value):
    array = getattr(DRAWN[mode], field).copy()
    array[place] = value
    return replace(DRAWN[mode], **{field: array})


def test_a_broken_rule_is_named_with_the_task():
    iid, ood, swapped = DRAWN["iid"], DRAWN["ood"], DRAWN["swapped"]
    k, own = int(iid.classes[2, 0]), int(iid.support_context[2, 0])
    elsewhere = next(x for x in range(3) if x != own)
    stranger = next(c for c in range(5) if c not in iid.classes[2])
    free = [row for row in rows_of(k, own) if row not in iid.query[2, 0] and row not in iid.support[2, 0]]
    asked = int(TABLE.context[swapped.query[2, 0, 0]])
    third = next(x for x in range(3) if x not in (asked, int(swapped.support_context[2, 0])))
    cases = [
        (broken("iid", "classes", (2, 0), iid.classes[2, 1]), "a class occurs twice"),
        (broken("iid", "query", (2, 0, 0), rows_of(stranger, own)[0]), "an image is not of its class"),
        (broken("iid", "query", (2, 0, 0), iid.support[2, 0, 1]), "a query has the content of a support"),
        (broken("iid", "support", (2, 0, 0), iid.support[2, 0, 1]), "two supports have one content"),
        (broken("iid", "query", (2, 0, 0), iid.query[2, 0, 1]), "two queries of a class have one content"),
        (
            broken("iid", "support", (2, 0, 0), rows_of(k, elsewhere)[0]),
            "a support is not in its class's support context",
        ),
        (broken("iid", "query", (2, 0, 0), rows_of(k, elsewhere)[0]), "a query's context is not one of the mode iid"),
        (broken("ood", "query", (2, 0, 0), free[0]), "a query's context is not one of the mode ood"),
        (
            broken("swapped", "query", (2, 0, 0), rows_of(int(swapped.classes[2, 0]), third)[0]),
            "a query's context is not one of the mode swapped",
        ),
    ]
    for tasks, rule in cases:
        with pytest.raises(DataError) as caught:
            check_tasks(tasks, TABLE)
        assert caught.value.what == rule
        assert caught.value.unit == f"task 12 ({tasks.mode}, 3-way 2-shot)"
    assert ood.support_context[2, 0] == own


@pytest.mark.parametrize("elsewhere", [0, 2])
def test_a_query_of_a_context_before_or_after_its_own_is_refused(elsewhere):
    task, way = np.argwhere(DRAWN["iid"].support_context == 1)[0]
    row = rows_of(int(DRAWN["iid"].classes[task, way]), elsewhere)[0]
    with pytest.raises(DataError, match="a query's context is not one of the mode iid"):
        check_tasks(broken("iid", "query", (task, way, 0), row), TABLE)


def test_a_shared_task_of_two_contexts_is_refused():
    shared = DRAWN["shared"]
    mixed = {name: getattr(shared, name).copy() for name in ("support", "query", "support_context")}
    k, other = int(shared.classes[1, 0]), (int(shared.support_context[1, 0]) + 1) % 3
    mixed["support"][1, 0], mixed["query"][1, 0] = rows_of(k, other)[:2], rows_of(k, other)[2:5]
    mixed["support_context"][1, 0] = other
    with pytest.raises(DataError, match="not one of the mode shared"):
        check_tasks(replace(shared, **mixed), TABLE)


def test_a_content_of_another_classes_support_is_seen():
    iid = DRAWN["iid"]
    content = TABLE.content.copy()
    content[iid.query[3, 2, 0]] = content[iid.support[3, 0, 0]]
    with pytest.raises(DataError, match="a query has the content of a support"):
        check_tasks(iid, replace(TABLE, content=content))


def test_a_swapped_task_asks_in_one_context_of_another_class():
    swapped = DRAWN["swapped"]
    # Queries in the class's own support context, which is one of the task's as well.
    k, own = int(swapped.classes[2, 0]), int(swapped.support_context[2, 0])
    free = [row for row in rows_of(k, own) if row not in swapped.support[2, 0]]
    query = swapped.query.copy()
    query[2, 0] = free[: query.shape[2]]
    with pytest.raises(DataError, match="not one of the mode swapped"):
        check_tasks(replace(swapped, query=query), TABLE)
