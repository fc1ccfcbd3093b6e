"""Logging a study in MLflow: a process beside the running study, python -m ranktune.dashboards.tracking.following.

The process reads the study as the pages do, so that neither MLflow's libraries nor an unreachable server slow the study
or make it fail. It ends when its standard input is closed, also because the process of the study was killed.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from ranktune.dashboards.tracking.study_log import EXPERIMENT, TRACKING, StudyLog
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, printable
from ranktune.tuner.study.lock import BeingRun, owning
from ranktune.tuner.study.secrets import VARIABLE, credentials, known_tracking, shown_tracking, without_password

SECONDS_AFTER_THE_END, SECONDS_AFTER_AN_ERROR = 30.0, 3.0
"""The longest that a study waits until its end is logged, where it has finished and where it was interrupted."""
SECONDS_BETWEEN_UPDATES = 3.0
FINISHED = "finished"
"""The line that ends the input of the process of a study that has finished."""
_LIMITS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""Settings of MLflow that its own variables override."""


def check_installed() -> None:
    """Raise ParameterError unless MLflow is installed."""
    if find_spec("mlflow") is None:
        raise ParameterError('mlflow= needs MLflow, which is not installed: pip install "ranktune[mlflow]".')


@contextmanager
def logged(folder: Path, uri: str | None, storage: str | None = None) -> Iterator[None]:
    """Log the study in folder, which the block runs, in MLflow at uri; None does nothing.

    Nothing here raises: a failure is one RankTuneWarning. storage is the URL of the record, if that is a database.
    """
    if uri is None:
        yield
        return
    try:
        process = _started(folder, known_tracking(uri), storage)
    except OSError as error:
        _warn(f"{folder.name} is not logged in MLflow: no process can be started ({error.strerror}).")
        yield
        return
    relay = threading.Thread(target=_relay, args=(process.stdout,), daemon=True)
    relay.start()
    patience = SECONDS_AFTER_AN_ERROR
    try:
        yield
        patience = SECONDS_AFTER_THE_END
        with suppress(OSError):  # it has ended
            process.stdin.write(f"{FINISHED}\n")  # type: ignore[union-attr]
    finally:
        with suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            _warn(f"{folder.name} is still being logged in MLflow at {shown_tracking(uri)}, in the background.")
        else:
            relay.join()


def _started(folder: Path, uri: str, storage: str | None) -> subprocess.Popen[str]:
    environment = {**os.environ, VARIABLE: uri}
    if storage is not None:
        environment["RANKTUNE_STORAGE"] = storage
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(folder.resolve())],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C in the terminal ends the study, and then this
    )


def _relay(lines: IO[str]) -> None:
    """Show the messages of the process as warnings."""
    with lines, suppress(RankTuneWarning):  # where warnings are errors, the study continues
        for line in lines:
            _warn(line.strip())


def _warn(message: str) -> None:
    warnings.warn(message, RankTuneWarning, stacklevel=2)


def follow(folder: Path, uri: str, ending: IO[str], output: IO[str]) -> None:
    """Log the study in folder as it runs, until `ending` ends; the first failure is one line in `output`."""
    with suppress(AttributeError, OSError):
        os.nice(10)  # trials come first
    ended, finished = threading.Event(), threading.Event()
    threading.Thread(target=_wait, args=(ending, ended, finished), daemon=True).start()
    log: StudyLog | None = None
    has_failed = is_last = False
    with _alone(folder):
        while not is_last:
            try:
                log = log or _opened(folder, uri)
                is_last = ended.is_set()
                log.update("RUNNING" if not is_last else "FINISHED" if finished.is_set() else "KILLED")
                if is_last and finished.is_set():
                    log.conclude()
            except Exception as error:  # whatever fails here, the study continues
                is_last = ended.is_set()
                if not has_failed:
                    print(failure(folder.name, uri, error), file=output, flush=True)
                has_failed = True
            if not is_last:
                ended.wait(SECONDS_BETWEEN_UPDATES)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process logs the study, such as that of an earlier run, and keep others away."""
    while True:
        try:
            with owning(folder / TRACKING):
                yield
                return
        except BeingRun:
            time.sleep(1.0)


def _wait(ending: IO[str], ended: threading.Event, finished: threading.Event) -> None:
    if ending.readline().strip() == FINISHED:
        finished.set()
    ended.set()


def _opened(folder: Path, uri: str) -> StudyLog:
    """Return the log of a study, with short waits for a server that does not answer."""
    check_installed()
    logging.getLogger("mlflow.store").setLevel(logging.CRITICAL)  # it logs tracebacks of what is said here
    plain, secrets = credentials(uri)
    os.environ.update({**_LIMITS, **os.environ, **secrets})
    return StudyLog(folder, plain, os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT)


def failure(name: str, uri: str, error: Exception) -> str:
    """Return in one line why a study is not logged, and what to do, without passwords."""
    reason = " ".join(without_password(printable(str(error)), known_tracking(uri)).split())[:200]
    return (
        f"study '{name}' is not logged in MLflow at {shown_tracking(uri)}: {reason or type(error).__name__}. "
        f"`ranktune resume {name}` logs what is missing; for another address, run the study again with mlflow=."
    )


if __name__ == "__main__":
    follow(Path(sys.argv[1]), os.environ[VARIABLE], sys.stdin, sys.stdout)
