import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.explorer.remembered import Remembered


def test_many_who_ask_at_once_wait_for_one():
    kept, calls, start = Remembered(4), [], threading.Barrier(12)

    def make():
        calls.append(threading.get_ident())
        time.sleep(0.05)
        return "value"

    found = []

    def ask():
        start.wait()
        found.append(kept.get("key", make))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["value"] * 12
    assert len(calls) == 1


def test_another_key_does_not_wait():
    kept, inside = Remembered(4), threading.Event()
    go_on = threading.Event()

    def slow():
        inside.set()
        assert go_on.wait(10)
        return 1

    thread = threading.Thread(target=lambda: kept.get("slow", slow))
    thread.start()
    assert inside.wait(10)
    assert kept.get("quick", lambda: 2) == 2
    go_on.set()
    thread.join()


def test_an_error_is_not_remembered():
    kept = Remembered(2)
    with pytest.raises(ValueError, match="once"):
        kept.get("key", lambda: (_ for _ in ()).throw(ValueError("once")))
    assert not kept.has("key")
    assert kept.get("key", lambda: 3) == 3


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 4))
def test_it_keeps_what_was_asked_for_last(asked, most):
    kept, recent, made = Remembered(most), [], 0
    for key in asked:
        made += key not in recent
        recent = [*(other for other in recent if other != key), key][-most:]
        assert kept.get(key, lambda key=key: key * 10) == key * 10
        assert [one for one in range(6) if kept.has(one)] == sorted(recent)
    assert kept.made == made


def test_the_latest_is_kept_whatever_it_weighs():
    kept = Remembered(10, weigh=float)
    kept.get("light", lambda: 4)
    kept.get("heavy", lambda: 400)
    assert kept.has("heavy")
    assert not kept.has("light")
    kept.forget("heavy")
    assert not kept.has("heavy")
