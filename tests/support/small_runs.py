"""Small runs of closed mIoU on the planted world, for tests of the harness."""

import polars as pl

from hardlook.harness.runs.engines import EngineOptions
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.harness.runs.record_store import write_part

FAULTY = {"stranger": 0.3}


def small_run(out, *, scenes=12, model="planted-segmenter", args=None, engine="inline", batch_size=4, **more):
    """Launch closed mIoU; keyword arguments of `RunSettings` or of `launch` beyond these."""
    behaviour = {key: more.pop(key) for key in ("on_error", "max_failures", "shard", "new") if key in more}
    engine_options = engine if isinstance(engine, EngineOptions) else EngineOptions(engine)
    given = {"scenes": scenes, "resamples": 200, **more.pop("given", {})}
    return launch(
        "closed-miou",
        out=out,
        model=model,
        model_args=args if args is not None else (FAULTY if model == "planted-segmenter" else {}),
        given=given,
        batch_size=batch_size,
        settings=RunSettings(engine=engine_options, **behaviour),
        **more,
    )


def all_records(out):
    """Every row of a run's parts, sorted, doubled rows and all."""
    parts = sorted(RunFolder(out).records_path.glob("part-*.parquet"))
    return pl.concat([pl.read_parquet(part) for part in parts]).sort("unit")


def replace_part(part, frame):
    """Put other records in the place of a part."""
    part.unlink()
    write_part(frame, part.parent)


def scores_text(out):
    return RunFolder(out).scores_path.read_text()
