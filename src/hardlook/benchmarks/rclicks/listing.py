"""The list of units: instances of all datasets with people's clicks, those of one image as one group."""

from __future__ import annotations

from pathlib import Path

from hardlook.benchmarks.rclicks.options import NO_USERS, PLANTED_USERS, RClicksOptions
from hardlook.benchmarks.rclicks.people import with_people
from hardlook.benchmarks.rclicks.units import InstanceUnit, planted_instances, stored_instances
from hardlook.contract.benchmark import Unit, UnitList
from hardlook.data.click_file import read_clicks
from hardlook.errors import OptionError


def list_units(options: RClicksOptions) -> UnitList:
    """Every instance, and what was left out.

    >>> [unit.id for unit in list_units(RClicksOptions(scenes=2))]
    ['planted/000001', 'planted/000002']
    """
    if options.planted:
        refuse_without_data(options)
        return UnitList(_unit(one) for one in planted_instances(options))
    instances, left_out = stored_instances(options)
    if options.users not in (PLANTED_USERS, NO_USERS):
        instances, notes = with_people(instances, read_clicks(Path(options.users).expanduser()))
        left_out += notes
    return UnitList((_unit(one) for one in instances), left_out)


def refuse_without_data(options: RClicksOptions) -> None:
    """An error for options that only mean something of data."""
    given = {
        "--at-most": options.at_most is not None,
        "--min-area": options.min_area > 0,
        "--split": options.split is not None,
        f"--user-clicks {options.users}": options.users not in (PLANTED_USERS, NO_USERS),
    }
    if named := [name for name, said in given.items() if said]:
        remedy = "give --data, or leave these out: the planted world has --scenes and people of its own"
        raise OptionError(f"{', '.join(named)} without data", remedy=remedy)


def _unit(payload: InstanceUnit) -> Unit:
    return Unit(f"{payload.dataset}/{payload.name}", payload, group=f"{payload.dataset}/{payload.image}")
