"""What tests cost: a report of the dearest at the end of a run, and a limit for those that are run before each commit.

They are CPU seconds, in this process and in those that it started and waited for. Compiling in this process, which is
done once a machine, is left out. What a fixture of a module or of the session takes to set up is a cost of its own, to
which the limit applies too.
"""

import os
import sys
import time
from collections.abc import Generator
from typing import Any

import pytest

from tests.support.kernels import KERNELS

LIMIT = 8.0
"""CPU seconds of an idle machine that a test without the marker thorough, slow or engines may take."""
DEAREST = 10
LOOPS, BYTES = 2_000_000, 64 << 20
WORK_SECONDS = 0.1
"""What so many rounds of a loop and so many new bytes take on an idle machine. Where they take longer, so may tests."""


class Costs:
    """The plugin: it measures where tests run, and reports where they are reported."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._begun = 0.0
        self._apart: dict[str, float] = {}
        self._counter: list[float] | None = None
        self._started = 0.0
        self._rows: list[tuple[float, str]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._apart, self._begun = {}, self._now()
        self._started = time.time()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, object, object]:
        begun, others = self._now(), sum(self._apart.values())
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                within = sum(self._apart.values()) - others  # fixtures that this one asked for
                self._apart[f"fixture {fixturedef.argname}"] = self._now() - begun - within

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call":
            costs = {"": self._now() - self._begun - sum(self._apart.values()), **self._apart}
            report.user_properties += [("seconds", f"{cost:.2f} {what}") for what, cost in costs.items() if cost > 0.5]
            is_free = any(item.get_closest_marker(name) for name in ("thorough", "slow", "engines"))
            is_dear = report.passed and not is_free and max(costs.values()) > self._limit > 0.0
            if is_dear and not self._has_compiled():
                limit = self._limit * max(1.0, slowness())
                if dear := {what: cost for what, cost in costs.items() if cost > limit}:
                    report.outcome = "failed"
                    said = ", ".join(f"{what or 'the test'} took {cost:.1f}" for what, cost in dear.items())
                    report.longrepr = (
                        f"{said} CPU seconds, and a fast test may take {limit:.1f}. Take fewer data, share what is "
                        "made, or mark it thorough. --cpu-limit sets another limit, 0 none."
                    )
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == "seconds" and report.when == "call":
                seconds, _, what = str(value).partition(" ")
                self._rows.append((float(seconds), f"{report.nodeid} {what}"))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._rows:
            terminalreporter.section(f"the {DEAREST} dearest tests, in CPU seconds")
            for seconds, what in sorted(self._rows, reverse=True)[:DEAREST]:
                terminalreporter.write_line(f"{seconds:6.1f} {what}")

    def _has_compiled(self) -> bool:
        """Return whether machine code was kept since the test began: a process that it started may have compiled it."""
        return any(file.stat().st_mtime >= self._started for file in KERNELS.rglob("*.nb[ci]"))

    def _now(self) -> float:
        """Return the seconds that this process and its children have worked, without its compiling."""
        if self._counter is None and "numba.core.event" in sys.modules:
            self._counter = _compiling()
        times = os.times()
        return sum(times[:4]) - (0.0 if self._counter is None else sum(self._counter))


def _compiling() -> list[float]:
    """Return a list to which the seconds of each compiling of this process are added, from now on."""
    from numba.core.event import Event, Listener, register

    spent: list[float] = []
    begun: list[float] = []

    class _Listener(Listener):
        def on_start(self, event: Event) -> None:
            begun.append(time.thread_time())

        def on_end(self, event: Event) -> None:
            first = begun.pop()
            if not begun:  # the outermost
                spent.append(time.thread_time() - first)

    register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
    return spent


def slowness() -> float:
    """Return how many times as long as an idle machine this one takes: for a fixed piece of work, or by its load.

    Processes that share caches and cores take up to twice the CPU seconds.
    """
    begun, total = time.process_time(), 0
    for number in range(LOOPS):
        total += number & 3
    held = bytearray(BYTES)
    held[::4096] = bytes(len(held) // 4096)
    load = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 1.0
    return max((time.process_time() - begun) / WORK_SECONDS, load)
