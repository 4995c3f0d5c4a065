"""Calls that threads share."""

from __future__ import annotations

import threading

import pytest

from flowcompute.thread_pool import ThreadPool


def test_calls_give_values_in_any_order_and_threads_are_kept() -> None:
    threads, together = ThreadPool("flowcompute-test"), threading.Barrier(3)
    for _ in range(5):
        assert sorted(threads.begin([lambda i=i: (together.wait(10), i)[1] for i in range(3)], 3).wait()) == [0, 1, 2]
    assert sum(thread.name == "flowcompute-test" for thread in threading.enumerate()) == 3
    threads.begin([], 4).wait()
    assert sum(thread.name == "flowcompute-test" for thread in threading.enumerate()) == 4
    threads.close()
    threads.close()
    assert not any(thread.name == "flowcompute-test" for thread in threading.enumerate())


def test_an_error_is_told_when_all_have_ended() -> None:
    threads, ended = ThreadPool("flowcompute-test"), []

    def fail() -> None:
        raise KeyError("first")

    works = [threads.begin([fail, lambda: ended.append(1)], 1) for _ in range(2)]
    with pytest.raises(KeyError, match="first"):
        works[0].wait()
    works[1].forget()
    assert ended == [1, 1]
    assert works[0].wait() == []
    threads.close()


def test_calls_whose_wait_was_interrupted_are_waited_for_by_who_waits_next() -> None:
    threads, go, ended = ThreadPool("flowcompute-test"), threading.Event(), []
    works = threads.begin([lambda: ended.append(go.wait(600)), lambda: ended.append(True)], 2)

    class Interrupting:
        """News that an interrupt comes before."""

        def get(self) -> None:
            raise KeyboardInterrupt

    news = works._news
    works._news = Interrupting()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        works.wait()
    works._news = news
    go.set()
    works.forget()
    assert ended == [True, True]
    threads.close()
