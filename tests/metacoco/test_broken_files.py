"""MetaCoCo on files that are missing, cut off or double."""

import csv

import polars as pl
import pytest

from hardlook.errors import DataError
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import RunSettings, launch

pytestmark = pytest.mark.usefixtures("own_cache")

SMALL = {"shots": "1", "queries": 1, "tasks": 6, "repeats": 1, "resamples": 0}


def run(world, out, **given):
    more = {key: given.pop(key) for key in ("model", "max_failures") if key in given}
    given = {**SMALL, "modes": "iid,ood", "data": {"root": world}, **given}
    settings = RunSettings(max_failures=more.get("max_failures", 1.0))
    return launch("metacoco", out=out, model=more.get("model", "planted-learner"), given=given, settings=settings)


def test_a_missing_image_is_named_before_anything_is_run(world, tmp_path):
    lost = next((world / "test" / "dog" / "fog").glob("*.png"))
    lost.unlink()
    with pytest.raises(DataError) as caught:
        run(world, tmp_path / "run")
    assert lost.name in str(caught.value)
    assert "dog" in str(caught.value)


def test_a_truncated_image_costs_the_tasks_that_show_it_and_no_other(world, tmp_path):
    broken = next((world / "test" / "dog" / "fog").glob("*.png"))
    broken.write_bytes(broken.read_bytes()[:300])
    done = run(world, tmp_path / "run", tasks=20)
    failures = pl.read_parquet(RunFolder(tmp_path / "run").failures_path)
    names = sorted(str(path.relative_to(world)) for path in (world / "test").rglob("*.png"))
    row = names.index(str(broken.relative_to(world)))
    whole = run_records(tmp_path / "run")
    assert not any(row in list(one["support"]) + list(one["query"]) for one in whole.iter_rows(named=True))
    assert 0 < len(failures) < 40
    assert len(failures) + len(whole) == 40
    assert all(broken.name in error for error in failures["error"])
    assert done.scored.scorecard.units.failed == len(failures)


def run_records(out):
    return pl.read_parquet(sorted(RunFolder(out).records_path.glob("part-*.parquet")))


def test_a_truncated_image_stops_a_learner_on_features_with_its_name(world, tmp_path):
    broken = next((world / "test" / "dog" / "fog").glob("*.png"))
    broken.write_bytes(broken.read_bytes()[:300])
    with pytest.raises(DataError) as caught:
        run(world, tmp_path / "run", model="nearest-centroid", encoder="planted-encoder")
    assert broken.name in str(caught.value)


def test_doubles_across_classes_never_meet_in_a_task(world, tmp_path):
    """Half of the houses are filed as barns too."""
    rows = list(csv.DictReader((world / "manifest.csv").read_text().splitlines()))
    doubled = [row | {"concept": "barn"} for row in rows if row["concept"] == "house"][::2]
    pl.DataFrame(rows + doubled).write_csv(world / "manifest.csv")
    launch(
        "metacoco", out=tmp_path / "run", model="planted-learner",
        given={**SMALL, "tasks": 40, "data": {"root": world}},
    )  # fmt: skip
    names = sorted((row["path"], row["concept"]) for row in rows + doubled if row["split"] == "test")
    records = pl.read_parquet(sorted(RunFolder(tmp_path / "run").records_path.glob("part-*.parquet")))
    met = 0
    for row in records.iter_rows(named=True):
        shown, asked = ({names[place][0] for place in row[column]} for column in ("support", "query"))
        assert not shown & asked
        met += {"barn", "house"} <= set(row["concepts"].split("\n"))
    assert met > 0


def test_corrupt_images_are_counted_out_and_named(world, tmp_path):
    cut, empty, text = sorted((world / "test" / "dog").rglob("*.png"))[:3]
    cut.write_bytes(cut.read_bytes()[:300])
    empty.write_bytes(b"")
    text.write_text("no picture")
    with pytest.raises(DataError):
        run(world, tmp_path / "refused", model="nearest-centroid", encoder="planted-encoder")
    for model in ("nearest-centroid", "planted-learner"):
        more = {"encoder": "planted-encoder"} if model == "nearest-centroid" else {}
        done = run(world, tmp_path / model, model=model, skip_corrupt=True, **more)
        card = done.scored.scorecard
        (out,) = [item for item in card.left_out if item.what == "corrupt images"]
        names = [path.relative_to(world).as_posix() for path in (cut, empty, text)]
        assert out.count == 3 and list(out.examples) == names and card.units.failed == 0
        assert len(run_records(tmp_path / model)) == 12


def test_empty_files_of_another_split_do_not_stop_a_run_that_skips_corrupt_images(world, tmp_path):
    next((world / "train").rglob("*.png")).write_bytes(b"")
    with pytest.raises(DataError, match="empty"):
        run(world, tmp_path / "refused")
    card = run(world, tmp_path / "run", skip_corrupt=True).scored.scorecard
    assert card.units.failed == 0 and not any(item.what == "corrupt images" for item in card.left_out)


def test_without_a_corrupt_image_skipping_changes_no_record(world, tmp_path):
    run(world, tmp_path / "plain")
    card = run(world, tmp_path / "skipping", skip_corrupt=True).scored.scorecard
    assert (
        run_records(tmp_path / "plain")
        .drop("answers", strict=False)
        .equals(run_records(tmp_path / "skipping").drop("answers", strict=False))
    )
    assert not any(item.what == "corrupt images" for item in card.left_out)
