"""SIGTERM and SIGUSR1 stop a run as Ctrl-C does: records are written, the session ends, the command resumes."""

import os
import signal
import threading

import pytest
from small_runs import all_records, small_run

from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.progress import NoProgress
from hardlook.harness.runs.signals import (
    StoppedBySignal,
    get_exit_code,
    ignore_stopping_signals,
    kept_signal_handlers,
    stopped_by_signals,
)


@pytest.fixture(autouse=True)
def default_handlers():
    """Whatever other tests have installed in this process, as Ray does."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Sends(NoProgress):
    """A progress that sends this process a signal after the first batch."""

    number = signal.SIGTERM

    def __init__(self, total, done):
        pass

    def advance(self, units, failed):
        os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_keeps_what_is_answered(tmp_path, monkeypatch, number):
    monkeypatch.setattr(Sends, "number", number)
    with pytest.raises(StoppedBySignal) as caught:
        small_run(tmp_path, show_progress=Sends)
    assert get_exit_code(caught.value) == 128 + number
    assert len(all_records(tmp_path)) == 4
    assert RunFolder(tmp_path).read_manifest()["sessions"][0]["outcome"] == "stopped"
    assert signal.getsignal(number) is signal.SIG_DFL
    assert small_run(tmp_path).progress.before == 4


def test_the_command_exits_with_the_number_and_says_how_to_resume(tmp_path, monkeypatch, hardlook):
    words = [
        "run",
        "closed-miou",
        "--scenes",
        "12",
        "--resamples",
        "20",
        "--batch-size",
        "4",
        "--out",
        tmp_path / "run",
    ]
    monkeypatch.setattr("hardlook.harness.runs.progress.make_progress", Sends)
    answer = hardlook(*words)
    assert answer.code == 143
    assert "stopped by SIGTERM; all records so far are kept" in answer.err and "--scenes 12" in answer.err
    monkeypatch.undo()
    assert "Traceback" not in answer.err


def test_a_second_signal_does_not_interrupt_the_writing():
    with stopped_by_signals():
        with pytest.raises(StoppedBySignal):
            os.kill(os.getpid(), signal.SIGTERM)
        ignore_stopping_signals()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_handlers_of_the_program_stay():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with stopped_by_signals():
            os.kill(os.getpid(), signal.SIGTERM)
            ignore_stopping_signals()
            os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_leaves_signals_alone():
    seen = []

    def work():
        with stopped_by_signals():
            ignore_stopping_signals()
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]


def test_a_library_that_takes_the_signals_does_not_keep_them():
    def exit_at_once(number, frame):
        raise SystemExit(1)

    exit_at_once.__module__ = "ray._private.node"
    with stopped_by_signals():
        with kept_signal_handlers():
            signal.signal(signal.SIGTERM, exit_at_once)
        with pytest.raises(StoppedBySignal):
            os.kill(os.getpid(), signal.SIGTERM)
    signal.signal(signal.SIGTERM, exit_at_once)
    with stopped_by_signals(), pytest.raises(StoppedBySignal):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is exit_at_once
