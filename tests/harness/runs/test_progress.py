import io
import sys

import pytest

from hardlook.harness.runs import progress as module
from hardlook.harness.runs.progress import BarProgress, LineProgress, format_duration, make_progress


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
    import types

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
    monkeypatch.setattr(progress, "DRAW_SECONDS", 1000.0)
    with progress.make_progress(10, 2) as bar:
        for _ in range(7):
            bar.advance(1, 0)
        bar.advance(1, 1)
    assert isinstance(bar, progress.NotebookProgress)
    assert 'value="2" max="10"' in shown[0]
    assert 'value="10" max="10"' in shown[-1] and "10 of 10 units, 1 failed" in shown[-1]
    assert len(shown) == 3  # the start, the first step, the end: not each step


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch):
    import types

    from hardlook.harness.runs.progress import is_notebook

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not is_notebook()
    ipython.get_ipython = lambda: None
    assert not is_notebook()
