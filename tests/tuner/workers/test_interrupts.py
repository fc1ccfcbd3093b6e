"""An interrupt ends a loop even where something has swallowed its exception."""

import logging
import signal
import threading

import pytest

from ranktune.tuner.workers.interrupts import Interrupts


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


def test_an_interrupt_comes_before_the_errors_that_follow_it() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        swallow()
        raise RuntimeError("no compiled object yet")


def test_a_library_that_logs_an_interrupt_is_not_heard(capsys: pytest.CaptureFixture[str]) -> None:
    library = logging.Logger("library")
    with pytest.raises(KeyboardInterrupt), Interrupts():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            library.exception("a connection cannot be closed")
        library.error("something else")
    assert capsys.readouterr().err == "something else\n"


def test_a_context_begins_with_what_the_enclosing_one_stored() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), Interrupts():
        swallow()
        with Interrupts() as interrupts:
            interrupts.check()
            done = True
    assert not done


def test_nothing_is_raised_without_an_interrupt() -> None:
    with Interrupts() as interrupts:
        interrupts.check()
    with pytest.raises(ZeroDivisionError), Interrupts():
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
