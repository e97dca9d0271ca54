"""Batches that came in less time than they take; every honest schedule passes, no schedule that skips phases does."""

from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.study.settings import TOLERANCE, TimedAnswer, is_too_quick

SECONDS = st.floats(0, 100)


@given(
    trials=st.lists(st.tuples(st.floats(0.1, 10), SECONDS, SECONDS, SECONDS), min_size=1, max_size=12),
    start=st.floats(0, 1e9),
)
def test_who_looks_at_one_task_after_another_is_never_too_quick(trials, start):
    now, answers = start, []
    for least, before, thinking, sending in trials:
        shown = now + before
        now = shown + least + thinking
        # An answer may wait for a connection, and then arrive after later ones.
        answers.append(TimedAnswer(least, shown, now + sending))
    assert not is_too_quick(answers)


@given(count=st.integers(2, 30), least=st.floats(1, 10), share=st.floats(0, 0.9))
def test_all_at_once_is_too_quick_however_long_the_batch_lay_open(count, least, share):
    first = TimedAnswer(least, 0.0, 10_000.0)
    seconds = least + share * least * (count - 2)
    rest = [TimedAnswer(least, 20_000.0, 20_000.0 + seconds)] * (count - 1)
    bar = least * (count - 1) * (1 - TOLERANCE) - TOLERANCE * least
    assert is_too_quick([first, *rest]) == (seconds < bar) or abs(seconds - bar) < 1e-6


def test_an_answer_that_waited_for_a_connection_may_come_last():
    waited, later = TimedAnswer(2.0, 0.0, 55.0), TimedAnswer(1.0, 53.0, 54.0)
    assert not is_too_quick([waited, later])
    # It does not make up for one that was too quick itself.
    assert is_too_quick([waited, TimedAnswer(1.0, 53.0, 53.5)])


def test_questions_have_a_mean_over_the_batch():
    quick = [TimedAnswer(0.0, 0.3 * n, 0.3 * n + 0.2) for n in range(10)]
    assert is_too_quick(quick, least_mean=0.5) and not is_too_quick(quick, least_mean=0.25)
    # One picture that is looked at for long makes up for others: it is a mean.
    assert not is_too_quick([*quick[:9], TimedAnswer(0.0, 2.7, 5.2)], least_mean=0.5)


def test_a_clock_that_was_set_back_and_answers_never_shown_say_nothing():
    assert not is_too_quick([TimedAnswer(5.0, 100.0, 40.0), TimedAnswer(5.0, None, 1.0)])
    assert not is_too_quick([])
    assert not is_too_quick([TimedAnswer(5.0, 1000.0, 1006.0), TimedAnswer(5.0, 508.0, 514.0)])
