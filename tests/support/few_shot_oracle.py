"""The scores of few-shot tasks written out from the text of the specification, a query at a time.

Rows are mappings with the columns of a task's record. What cannot be computed is None: the interval of one task, the
share of attracted errors where there is no error.
"""

from __future__ import annotations

import math

from scipy.stats import t


def of(rows, **wanted):
    return [row for row in rows if all(row[column] == value for column, value in wanted.items())]


def task_accuracies(rows):
    """The share of right answers of each task."""
    return [row["correct"] / row["queries"] for row in rows]


def mean_with_interval(values, level=0.95):
    """(mean, half width, n) of pooled values: sem(ddof 1) times Student's t with n - 1 degrees of freedom."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return mean, None, n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return mean, math.sqrt(variance / n) * float(t.ppf((1 + level) / 2, n - 1)), n


def paired_differences(rows, mode, other):
    """What a task loses from `mode` to `other`: tasks of one number have the same classes and supports."""
    found = []
    for row in of(rows, mode=mode):
        for partner in of(rows, mode=other, ways=row["ways"], shots=row["shots"], index=row["index"]):
            found.append(row["correct"] / row["queries"] - partner["correct"] / partner["queries"])
    return found


def queries_of(row):
    """Each query of a task as names: its class, its context, the contexts shown, the answer, whether it is right."""
    concepts, contexts = row["concepts"].split("\n"), row["contexts"].split("\n")
    shown = [contexts[place] if place >= 0 else None for place in row["support_context"]]
    each = len(row["predicted"]) // row["ways"]
    for number, predicted in enumerate(row["predicted"]):
        truth = number // each
        context = contexts[row["query_context"][number]]
        yield {
            "concept": concepts[truth],
            "context": context,
            "own context": shown[truth],
            "right": predicted == truth,
            "attracted": predicted != truth and shown[predicted] == context,
            "wrong classes": row["ways"] - 1,
            "wrong classes in its context": sum(
                1 for place in range(row["ways"]) if place != truth and shown[place] == context
            ),
        }


def all_queries(rows):
    return [query for row in rows for query in queries_of(row)]


def share(queries):
    return sum(query["right"] for query in queries) / len(queries)


def by(queries, key):
    """{value of `key`: (share of right answers, how many queries)}."""
    groups = {}
    for query in queries:
        groups.setdefault(key(query), []).append(query)
    return {name: (share(group), len(group)) for name, group in groups.items()}


def by_concept(rows):
    return by(all_queries(rows), lambda query: query["concept"])


def by_contexts(rows):
    """By (context of the class's supports, context of the query); supports of several contexts have no cell."""
    known = [query for query in all_queries(rows) if query["own context"] is not None]
    return by(known, lambda query: (query["own context"], query["context"]))


def attraction(rows):
    """(share of errors that are attracted, that share by chance, how many errors)."""
    errors = [query for query in all_queries(rows) if not query["right"]]
    if not errors:
        return None, None, 0
    led = sum(query["attracted"] for query in errors) / len(errors)
    chance = sum(query["wrong classes in its context"] / query["wrong classes"] for query in errors) / len(errors)
    return led, chance, len(errors)


GAPS = {"gap": "ood", "swapped-gap": "swapped", "blind-gap": "blind"}

LEAVE_THE_CONTEXT = ("ood", "swapped", "blind")


def metacoco_scores(rows, modes, combinations, blind_supports="ours", level=0.95):
    """{(name, its slice as sorted pairs): (value, half of the t interval or None, n)} of everything reported.

    `combinations` lists (ways, shots); the first one's scores have no slice of their own, and so have the attracted
    errors of the first mode that leaves the supports' context.
    """
    found = {}

    def put(name, value, half, n, **where):
        found[name, tuple(sorted((key.replace("_", " "), text) for key, text in where.items()))] = value, half, n

    for place, (ways, shots) in enumerate(combinations):
        here = of(rows, ways=ways, shots=shots)
        at = {"ways": str(ways), "shots": str(shots)} if place else {}
        for mode in modes:
            chosen = of(here, mode=mode)
            if chosen:
                put(mode, *mean_with_interval(task_accuracies(chosen), level), **at)
            for concept, (value, n) in by_concept(chosen).items():
                put("accuracy", value, None, n, **at, mode=mode, concept=concept)
        for name, other in GAPS.items():
            lost = paired_differences(here, "iid", other)
            if lost and (other, blind_supports) != ("blind", "paper"):
                put(name, *mean_with_interval(lost, level), **at)
        misled = [mode for mode in LEAVE_THE_CONTEXT if mode in modes]
        for mode in misled:
            led, chance, errors = attraction(of(here, mode=mode))
            if errors and (mode, blind_supports) != ("blind", "paper"):
                where = at if mode == misled[0] else {**at, "mode": mode}
                put("attraction", led, None, errors, **where)
                put("attraction-chance", chance, None, errors, **where)
                put("excess-attraction", led - chance, None, errors, **where)
        # One context for all tells nothing about two contexts.
        cells = by_contexts([row for row in here if row["mode"] != "shared"])
        for (support, query), (value, n) in cells.items():
            put("accuracy", value, None, n, **at, support_context=support, query_context=query)
            if support != query and (support, support) in cells:
                lost = cells[support, support][0] - value
                put("gap", lost, None, n, **at, support_context=support, query_context=query)
    return found
