"""Ctrl-C that is not lost: compiled libraries may swallow the exception that Python raises for it, and go on."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupts:
    """Within it an interrupt is raised as ever, and remembered: check, and the end of the block, raise it again.

    Only in the main thread, and where nobody else handles interrupts; elsewhere it does nothing.
    """

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was an interrupt."""
        if self._asked:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        signal.default_int_handler(number, frame)
