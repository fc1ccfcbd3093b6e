"""Ctrl-C, and the signals that end a process, turned into a stop in good order that cannot get lost.

Compiled libraries may swallow the exception that Python raises for an interrupt, and go on; so it is remembered.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, the system's request to end, and a terminal that was closed: all mean the same here."""


class Interrupted(KeyboardInterrupt):
    """A study was interrupted: put_back trials that were running wait to be run again; told says how to go on."""

    def __init__(self, put_back: int = 0, told: str = "") -> None:
        super().__init__(put_back, told)
        self.put_back, self.told = put_back, told

    def __str__(self) -> str:
        """Return what happened, in sentences."""
        back = f"{self.put_back} running trials were put back, to be run again." if self.put_back else ""
        return " ".join(filter(None, ("Interrupted.", back, self.told)))


class Interrupts:
    """Within it a signal to end raises KeyboardInterrupt, and is remembered; check, and the end, raise it again.

    In its gentle blocks the first one only makes asked true. Only in the main thread, and where nobody else handles the
    signal; elsewhere it does nothing.
    """

    def __init__(self) -> None:
        self.asked = False
        self._gentle = False
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if _is_free(signal.getsignal(number)):
                    self._before[number] = signal.signal(number, self._note)
            sys.unraisablehook = self._quietly
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if sys.unraisablehook == self._quietly:
            sys.unraisablehook = self._hook
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was an interrupt."""
        if self.asked:
            raise KeyboardInterrupt

    @contextmanager
    def gentle(self, gentle: bool = True) -> Iterator[None]:
        """Let the first signal in the block only be noted; another one raises at once. Not so where gentle is False."""
        self._gentle = gentle
        try:
            yield
        finally:
            self._gentle = False

    def _quietly(self, lost: Any) -> None:
        """Say nothing of an interrupt that came where nothing can be raised, in a callback: it is remembered."""
        if not (self.asked and issubclass(lost.exc_type, KeyboardInterrupt)):
            self._hook(lost)

    def _note(self, number: int, frame: FrameType | None) -> None:
        first, self.asked = not self.asked, True
        if not (first and self._gentle):
            raise KeyboardInterrupt


def _is_free(handler: Any) -> bool:
    """Return whether a signal is handled as by default, or by Interrupts around; one that is ignored stays so."""
    ours = isinstance(getattr(handler, "__self__", None), Interrupts)
    return ours or handler in (signal.SIG_DFL, signal.default_int_handler)
