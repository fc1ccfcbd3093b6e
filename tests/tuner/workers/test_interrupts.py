"""An interrupt ends a loop even where something has swallowed its exception."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from ranktune.tuner.workers.interrupts import Interrupts


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    """Handle interrupts as Python does by itself; a shell's background jobs begin with them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def swallow() -> None:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return
    pytest.fail("an interrupt was not raised")


def test_a_swallowed_interrupt_is_raised_by_the_next_check() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        for step in range(5):
            interrupts.check()
            done.append(step)
            if step == 2:
                swallow()
    assert done == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_swallowed_interrupt_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        swallow()


def test_nothing_is_raised_without_an_interrupt_or_over_another_error() -> None:
    with Interrupts() as interrupts:
        interrupts.check()
    with pytest.raises(ZeroDivisionError), Interrupts():
        swallow()
        _ = 1 / 0


def test_other_handlers_and_other_threads_are_left_alone() -> None:
    heard = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    failed: list[BaseException] = []

    def elsewhere() -> None:
        try:
            with Interrupts() as interrupts:
                interrupts.check()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert failed == []
