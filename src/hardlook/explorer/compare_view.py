"""The page of two runs: the units that they share, sorted by how much they differ."""

from __future__ import annotations

from typing import Any

from hardlook.explorer.addresses import Pairs, compare_address, only, take, unit_address
from hardlook.explorer.library import Library
from hardlook.explorer.pairing import APART, Pairing
from hardlook.explorer.query import parse_query, shortened
from hardlook.explorer.records_view import records_view
from hardlook.explorer.refusals import Refused
from hardlook.explorer.run_index import ListedRun
from hardlook.explorer.run_view import rivals
from hardlook.report.numerals import counted, numeral


def compare_view(library: Library, pairs: Pairs) -> dict[str, Any]:
    """What the template `compare.html` shows."""
    named, rest = take(pairs, ("first", "second", "quality"))
    first, second = (library.run(only(named[name], name)) for name in ("first", "second"))
    if first.benchmark != second.benchmark:
        raise Refused("Only runs of one benchmark can be compared.")
    if first.key == second.key:
        raise Refused("These are one run: choose two.")
    judged = [field for field in library.table(first).fields if field.kind == "quality"]
    if not judged:
        raise Refused(f"The benchmark {first.benchmark} does not judge single units.", 404)
    quality = only(named["quality"], "quality", judged[0].key) or judged[0].key
    if quality not in {field.key for field in judged}:
        known = ", ".join(field.key for field in judged)
        raise Refused(f"There is no quality {shortened(quality)}. There are: {known}.")
    pairing = library.pairing(first, second, quality)
    query = parse_query(rest, pairing.table.by_key, sort=APART, descending=True)
    beside = [("with", second.key)]
    field = next(field for field in judged if field.key == quality)
    return {
        "title": f"{first.name} against {second.name}",
        "first": first,
        "second": second,
        "swapped": compare_address(second.key, first.key, quality),
        "choices": [first, *rivals(library, first)],
        "quality": quality,
        "qualities": [(one.key, one.title) for one in judged],
        "direction": "higher is better" if field.higher_is_better else "lower is better",
        "tally": _tally(pairing, first, second),
        "records": records_view(
            pairing.table,
            query,
            lambda chosen: compare_address(first.key, second.key, quality, chosen),
            lambda unit: unit_address(first.key, unit, beside),
        ),
    }


def _tally(pairing: Pairing, first: ListedRun, second: ListedRun) -> list[str]:
    """How often each is better, and what is in only one of the runs, in sentences."""
    better = pairing.better
    said = [
        f"First ({first.name}): better on {counted(better['first'], 'unit')}. "
        f"Second ({second.name}): better on {counted(better['second'], 'unit')}. "
        f"Alike on {counted(better['alike'], 'unit')}."
    ]
    if better["not told"]:
        said.append(f"On {counted(better['not told'], 'unit')} one of them has no value.")
    alone = [(pairing.only_first, first), (pairing.only_second, second)]
    said += [f"{numeral(count, 0)} units are only in {run.name} and not compared." for count, run in alone if count]
    return said
