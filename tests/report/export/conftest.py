import io
import json

import pytest

from hardlook.harness.registry import BUILT_IN, STUDIES, find_benchmark
from hardlook.harness.runs.launch import launch
from hardlook.report.export.document import write_export

SMALL = {"metacoco": {"tasks": 3, "resamples": 20}}


@pytest.fixture(scope="session", params=[*BUILT_IN, *STUDIES])
def small_scored(request, tmp_path_factory):
    """A small run of each benchmark, by a planted model with a fault."""
    name = request.param
    dial = next((dial for dial in find_benchmark(name).card.dials if dial.moves), None)
    model, args = (dial.model, dial.arguments(0.4)) if dial else (None, {})
    given = SMALL.get(name, {"scenes": 24, "resamples": 20})
    return launch(name, out=tmp_path_factory.mktemp(name) / "run", model=model, model_args=args, given=given).scored


@pytest.fixture(scope="session")
def closed_miou(tmp_path_factory):
    """A small run of one benchmark, with labels taken for strangers."""
    out = tmp_path_factory.mktemp("closed") / "run"
    return launch("closed-miou", out=out, model_args={"stranger": 0.3}, given={"scenes": 8, "resamples": 20}).scored


@pytest.fixture(scope="session")
def exported():
    """The document of a scored run, read back from its text."""

    def read_back(scored, **more):
        stream = io.StringIO()
        write_export(scored, stream, **more)
        return json.loads(stream.getvalue(), parse_constant=_refuse)

    return read_back


def _refuse(word):
    raise ValueError(f"JSON has no {word}")
