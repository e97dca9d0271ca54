import io
import sys
import types

import pytest

from hardlook.harness.runs import progress as module
from hardlook.harness.runs.progress import (
    BarProgress,
    LineProgress,
    NotebookProgress,
    format_duration,
    make_progress,
    open_progress,
)


def test_one_line_a_minute_with_rate_and_time_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    progress = LineProgress(100, 10, stream)
    for second in range(1, 131):
        now[0] = float(second)
        if second % 10 == 0:
            progress.advance(5, second == 20)
    assert stream.getvalue().splitlines() == [
        "40/100 units, 1 failed, 0.5/s, 2 min 0 s left",
        "70/100 units, 1 failed, 0.5/s, 1 min 0 s left",
    ]
    progress.advance(25, 0)
    assert stream.getvalue().splitlines()[-1] == "100/100 units, 1 failed, 0.7/s, 0 s left"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min 0 s"),
        (61, "1 min 1 s"),
        (3599.9, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (7199, "1 h 59 min"),
        (7260, "2 h 1 min"),
    ],
)
def test_durations_in_words(seconds, text):
    assert format_duration(seconds) == text


def test_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch):
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(make_progress(1, 0), BarProgress)
    monkeypatch.setattr(module.sys.stderr, "isatty", lambda: False, raising=False)
    assert isinstance(make_progress(1, 0), LineProgress)


def test_the_bar_counts_units_and_failures():
    with BarProgress(10, 4) as bar:
        bar.advance(3, 1)
        task = bar.bar.tasks[0]
        assert (task.completed, task.total) == (7, 10)
        assert "1 failed" in task.fields["rate"]


def test_a_notebook_gets_one_output_that_is_updated(monkeypatch):
    from hardlook.harness.runs import progress

    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    def display(html, display_id):
        shown.append(html)
        return Handle()

    fake = types.ModuleType("IPython.display")
    fake.HTML, fake.display = str, display
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    monkeypatch.setattr(progress, "DRAW_SECONDS", 1e9)  # longer than this machine has been up
    with progress.make_progress(10, 2) as bar:
        for _ in range(7):
            bar.advance(1, 0)
        bar.advance(1, 1)
    assert isinstance(bar, progress.NotebookProgress)
    assert 'value="2" max="10"' in shown[0]
    assert 'value="10" max="10"' in shown[-1] and "10 of 10 units, 1 failed" in shown[-1]
    assert len(shown) == 3  # the start, the first step, the end: not each step


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch):
    from hardlook.harness.runs.progress import is_notebook

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not is_notebook()
    ipython.get_ipython = lambda: None
    assert not is_notebook()


def test_the_bar_shows_the_rate_of_this_session_and_failures_only_where_there_are_some(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    with BarProgress(10, 4) as bar:
        task = bar.bar.tasks[0]
        assert task.fields["rate"] == "" and task.description == "units"
        now[0] += 2.0
        bar.advance(3, 0)
        assert task.fields["rate"] == "1.5/s"
        now[0] += 2.0
        bar.advance(3, 2)
        assert task.fields["rate"] == "1.5/s [red]2 failed"
        bar.advance(0, 1)
        assert task.fields["rate"] == "1.5/s [red]3 failed"


def test_the_bar_of_a_notebook_has_rate_and_time_left_and_is_drawn_now_and_then(monkeypatch):
    now, drawn = [50.0], []
    handle = types.SimpleNamespace(update=drawn.append)

    def display(html, display_id):
        assert display_id is True
        drawn.append(html)
        return handle

    shown = types.SimpleNamespace(HTML=str, display=display)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.importlib, "import_module", lambda name: shown)
    bar = NotebookProgress(100, 20)
    assert drawn[-1].endswith(" 20 of 100 units, 0.0/s, unknown time left")
    now[0] = 60.0
    bar.advance(20, 0)
    assert drawn[-1].endswith(" 40 of 100 units, 2.0/s, 30 s left")
    count = len(drawn)
    now[0] += module.DRAW_SECONDS / 2
    bar.advance(1, 1)
    assert len(drawn) == count
    now[0] += module.DRAW_SECONDS / 2
    bar.advance(1, 1)
    assert len(drawn) == count + 1 and " 42 of 100 units, 2 failed, " in drawn[-1]
    bar.advance(58, 0)
    assert len(drawn) == count + 2 and " 100 of 100 units, 2 failed, " in drawn[-1]
    assert 'value="100" max="100"' in drawn[-1]


def test_a_bar_is_started_only_for_what_is_left_and_ended_with_the_block(monkeypatch):
    started = []

    class Recorded(module.NoProgress):
        def __init__(self, total, done):
            started.append((total, done))

        def advance(self, units, failed):
            started.append(("advance", units, failed))

        def __exit__(self, *raised):
            started.append("end")

    monkeypatch.setattr(module, "make_progress", Recorded)
    with open_progress(quiet=False) as start:
        start(5, 5)(0, 0)
        start(5, 6)(0, 0)
        start(5, 4)(1, 0)
        assert started == [(5, 4), ("advance", 1, 0)]
    assert started[-1] == "end"
    started.clear()
    with open_progress(quiet=True) as start:
        start(5, 0)(5, 0)
    assert started == []


def test_a_bar_ends_when_the_next_one_starts(monkeypatch):
    from hardlook.harness.runs import progress

    seen = []

    class Noted(progress.NoProgress):
        def __init__(self, total, done):
            self.total = total

        def __enter__(self):
            seen.append(("start", self.total))
            return self

        def __exit__(self, *raised):
            seen.append(("end", self.total))

    monkeypatch.setattr(progress, "make_progress", Noted)
    with progress.open_progress(quiet=False) as start:
        start(3, 0)
        start(5, 0)
    assert seen == [("start", 3), ("end", 3), ("start", 5), ("end", 5)]


def test_a_resumed_training_starts_its_bar_at_the_first_step_that_is_left():
    calls = []

    def start(total, done):
        calls.append((total, done))
        return lambda units, failed: calls.append((units, failed))

    show = module.follow_steps(start)
    for step in (6, 7):
        show(10, step, 64)
    assert calls == [(10, 5), (1, 0), (1, 0)]
