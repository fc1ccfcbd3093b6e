"""SIGINT and the signals that end a process, turned into a stop in good order that cannot get lost.

Compiled libraries may swallow the exception that Python raises for an interrupt, and fail later because of what it cut
short: so the interrupt is also stored, and comes before errors that follow.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, a request to end, and a closed terminal."""


_asked_to_end: list[float] = []  # when, by a steady clock


def since_interrupt() -> float:
    """Return the seconds since this process was asked to end, 0 if it was not."""
    return time.monotonic() - _asked_to_end[0] if _asked_to_end else 0.0


class Interrupted(KeyboardInterrupt):
    """A study was interrupted: put_back running trials are queued again; advice says how to continue."""

    def __init__(self, put_back: int = 0, advice: str = "") -> None:
        super().__init__(put_back, advice)
        self.put_back, self.advice = put_back, advice

    def __str__(self) -> str:
        """Return what happened, in sentences."""
        trials = "trial was" if self.put_back == 1 else "trials were"
        back = f"{self.put_back} running {trials} put back, to be run again." if self.put_back else ""
        return " ".join(filter(None, ("Interrupted.", back, self.advice)))


class Interrupts:
    """Context in which a signal raises KeyboardInterrupt and is stored; check, and the exit, raise it again.

    In deferred blocks the first signal only sets requested. A context within another one begins with what that one
    stored. It does nothing outside the main thread, and for signals with another handler.
    """

    def __init__(self) -> None:
        self.requested = False
        self._signals: list[int] = []
        self._deferred: Callable[[], bool] = bool  # which says False
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if isinstance(enclosing := _owner_of(number), Interrupts):
                    self.requested |= enclosing.requested
                elif handler not in (signal.SIG_DFL, signal.default_int_handler):
                    continue
                self._before[number] = signal.signal(number, self._note)
            sys.unraisablehook = self._report_lost
            if logging.lastResort is not None:
                logging.lastResort.addFilter(self._is_news)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if not any(isinstance(_owner_of(number), Interrupts) for number in SIGNALS):
            _asked_to_end.clear()
        if sys.unraisablehook == self._report_lost:
            sys.unraisablehook = self._hook
        if logging.lastResort is not None:
            logging.lastResort.removeFilter(self._is_news)
        if kind is None or issubclass(kind, Exception):  # an error after an interrupt is mostly its consequence
            self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was an interrupt."""
        if self.requested:
            raise KeyboardInterrupt

    @contextmanager
    def deferred(self, deferred: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Let the first signal in the block only set requested, while deferred says so; a second one raises at once."""
        self._deferred = deferred
        try:
            yield
        finally:
            self._deferred = bool

    @property
    def is_ctrl_c(self) -> bool:
        """Whether the only signal was Ctrl-C."""
        return self._signals == [signal.SIGINT]

    def forget(self) -> None:
        """Go on after a signal that was answered; the next one is a second signal."""
        self.requested = False
        _asked_to_end.clear()

    def _report_lost(self, lost: sys.UnraisableHookArgs) -> None:
        """Skip the report of an interrupt that cannot be raised, in a callback: it is stored."""
        if not (self.requested and issubclass(lost.exc_type, KeyboardInterrupt)):
            self._hook(lost)

    def _is_news(self, record: logging.LogRecord) -> bool:
        """Return whether a log record is not of an interrupt, which a library may log before it raises it again."""
        return not (self.requested and record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))

    def _note(self, number: int, frame: FrameType | None) -> None:
        is_first = not (self.requested or self._signals)
        self._signals.append(number)
        self.requested = True
        _asked_to_end.append(time.monotonic())
        if not (is_first and self._deferred()):
            raise KeyboardInterrupt


def _owner_of(number: int) -> object:
    """Return the object whose method handles a signal, None without one."""
    return getattr(signal.getsignal(number), "__self__", None)


def ignore_more() -> None:
    """Let further signals do nothing: this process has been interrupted and is about to end with an exit code."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)  # with SIG_IGN nothing could notice that there was one
