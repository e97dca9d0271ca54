"""Check every file of a run for damage, and repair it: damaged files are set aside, missing units are evaluated again.

Checking changes nothing and needs neither the model nor the data; repairing needs both.

>>> import tempfile
>>> from hardlook.harness.runs.launch import launch
>>> out = Path(tempfile.mkdtemp()) / "run"
>>> done = launch("closed-miou", model="planted-segmenter", given={"scenes": 4, "resamples": 50}, out=out)
>>> verify_run(RunFolder(out)).problems
()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hardlook.errors import DamagedFile, HardlookError, RunError
from hardlook.fingerprints import hash_value
from hardlook.harness.checked_json import parse_checked_json
from hardlook.harness.joined_runs.joining import join_runs
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RunFolder, write_atomically
from hardlook.harness.runs.launch import RunResult, RunSettings, launch
from hardlook.harness.runs.record_store import (
    FAILURE_COLUMNS,
    has_checksum,
    keep_first_records,
    list_parts,
    read_all_records,
    read_failures,
    read_failures_table,
    read_part,
    write_failures,
)
from hardlook.harness.runs.rerun_command import list_changed_arguments
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.runs.sessions import claim_run, describe_mixed_code, gather_sessions, list_sessions
from hardlook.harness.scorecard import read_scores


@dataclass(frozen=True)
class Problem:
    """A file that is damaged, or that does not belong to the run."""

    file: Path
    what: str


@dataclass(frozen=True)
class Verification:
    """What was found in a run folder.

    `files` were checked, `unchecked` of them have no checksum (those of earlier versions). `planned`, `answered` and
    `failed` count units; they are None where `run.json` or a part is damaged. `notes` are not about damage.
    """

    folder: Path
    files: int
    unchecked: int
    problems: tuple[Problem, ...]
    planned: int | None = None
    answered: int | None = None
    failed: int | None = None
    notes: tuple[str, ...] = ()


def verify_run(folder: RunFolder) -> Verification:
    """Read every file of a run and compare it with its checksum; nothing is written."""
    files = list(_list_files(folder))
    problems = [problem for file, check in files if (problem := _find_problem(file, check))]
    unchecked = sum(not has_checksum(file) for file, _ in files)
    found = Verification(folder.path, len(files), unchecked, tuple(problems))
    if problems:
        return found
    manifest = folder.read_manifest()
    benchmark, answers = find_benchmark(manifest["benchmark"]["name"]), manifest["answers"]["fingerprint"]
    every, others = read_all_records(folder, benchmark.schema, answers, ["unit"])
    foreign = tuple(
        Problem(part, f"{count} records of another version of the benchmark, another model or other data")
        for part, count in others.items()
    )
    answered, failures = len(keep_first_records(every)), read_failures(folder, answers)
    notes = [describe_mixed_code(list_sessions(folder, manifest), answers)]
    if folder.failures_path.exists() and not read_failures_table(folder).equals(failures):
        notes.append("failures.parquet is out of date; `hardlook score` writes it again")
    if unanswered := manifest["units"] - answered - len(failures):
        notes.append(f"{unanswered} of {manifest['units']} units are not answered yet")
    return Verification(
        folder.path,
        len(files),
        unchecked,
        foreign,
        manifest["units"],
        answered,
        len(failures),
        tuple(note for note in notes if note),
    )


def repair_run(folder: RunFolder, show_progress: Callable[[int, int], Any] | None = None) -> RunResult | None:
    """Set damaged files aside and evaluate the missing units again; None where no unit was missing.

    A damaged `run.json` is an error, since it says what to evaluate: the `hardlook run` of the folder writes it again.
    """
    manifest = folder.read_manifest()
    with claim_run(folder):
        for problem in verify_run(folder).problems:
            if problem.file.exists():
                folder.set_file_aside(problem.file)
        gather_sessions(folder)
        write_failures(folder, manifest["answers"]["fingerprint"])
    if manifest.get("joined"):
        join_runs(_list_joined_folders(folder, manifest), folder.path)
        return None
    after = verify_run(folder)
    if after.answered is not None and after.answered + (after.failed or 0) == after.planned:
        scored = score_run(folder)
        write_atomically(folder.scores_path, scored.scorecard.to_json())
        return None
    model = manifest["model"] or {}
    return launch(
        manifest["benchmark"]["name"],
        out=folder.path,
        model=model.get("name"),
        model_args=list_changed_arguments(model) if model else {},
        given=manifest["options"],
        settings=RunSettings(max_failures=1.0),
        batch_size=manifest["batch_size"],
        threads=manifest["answers"]["parts"].get("threads", 1),
        show_progress=show_progress,
    )


def _list_joined_folders(folder: RunFolder, manifest: dict[str, Any]) -> list[Path]:
    """The runs that a joined run was made from; an error where one of them is no longer there."""
    folders = [Path(row["folder"]) for row in manifest["joined"]]
    if absent := [path for path in folders if not RunFolder(path).exists()]:
        what = f"this run was joined from others, and {absent[0]} is not there any more"
        raise RunError(what, file=folder.path, remedy="put the runs of run.json's `joined` back, or join them again")
    return folders


def _list_files(folder: RunFolder) -> Iterator[tuple[Path, Callable[[], Any]]]:
    """Every file of a run with the function that reads and checks it."""
    yield folder.manifest_path, partial(_check_manifest, folder)
    for part in list_parts(folder.records_path):
        yield part, partial(_check_records, folder, part)
    for part in list_parts(folder.failure_parts_path):
        yield part, partial(read_part, part, FAILURE_COLUMNS)
    for path in sorted(folder.sessions_path.glob("*.json")):
        yield path, partial(_check_session, path)
    if folder.failures_path.exists():
        yield folder.failures_path, partial(read_failures_table, folder)
    if folder.scores_path.exists():
        yield folder.scores_path, partial(read_scores, folder.scores_path)


def _find_problem(file: Path, check: Callable[[], Any]) -> Problem | None:
    try:
        check()
    except HardlookError as error:
        return Problem(file, error.what)
    except OSError as error:
        return Problem(file, f"it cannot be read ({error.strerror})")
    return None


def _check_manifest(folder: RunFolder) -> None:
    manifest = folder.read_manifest()
    answers = manifest["answers"]
    if "parts" in answers and hash_value(answers["parts"]) != answers["fingerprint"]:
        raise DamagedFile("run.json is damaged: answers.fingerprint is not the hash of answers.parts")


def _check_records(folder: RunFolder, part: Path) -> None:
    """Read a part with all its columns, where `run.json` can be read and says which these are."""
    try:
        schema = find_benchmark(folder.read_manifest()["benchmark"]["name"]).schema
    except RunError:
        read_part(part, ["unit", "answers"])
    else:
        read_part(part, [*schema.polars_schema(), "answers"], schema.defaults())


def _check_session(path: Path) -> None:
    try:
        session = parse_checked_json(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"a session cannot be read: it {error}", file=path) from None
    if not isinstance(session, dict):
        raise DamagedFile("a session is not an object", file=path)
