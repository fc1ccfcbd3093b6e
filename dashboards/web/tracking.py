"""A study in MLflow: a run, with a nested run for each trial, as far as the study has come.

The run of the study has its settings and the sizes of its data as parameters, the best so far as a metric, and in the
end the scores and files of the result. A trial has its solver and parameters, its score, its costs and its learning
curves. The score of a trial that was stopped early is an estimate, so that it has another name.

Nothing is logged twice: the folder of the study holds the number of its run, and the run of a trial the number of the
trial. Points that are sent twice have the same step and time, and count once.

A process beside the running study does it, python -m ranktune.dashboards.web.tracking. It reads the study as the pages
do, so that neither MLflow's libraries nor an unreachable server slow the study or make it fail. It ends when its
standard input is closed, also because the process of the study was killed.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ranktune.dashboards.records.reader import TrialReader
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.dashboards.records.trial import Trial
from ranktune.dashboards.web.page import write_report
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, printable, warn
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.tuner.selection.results import Result
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.lock import BeingRun, owning
from ranktune.tuner.study.secrets import VARIABLE, credentials, known_tracking, shown_tracking, without_password

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

EXPERIMENT = "ranktune"
"""The experiment, unless MLFLOW_EXPERIMENT_NAME names another."""
TRACKING = "mlflow"
"""Folder in that of a study: the number of its run by address of a server, and the lock of the process that logs."""
SPLIT, NUMBER, STATE, SOLVER = "ranktune.split", "ranktune.trial", "ranktune.state", "ranktune.solver"
_PARENT = "mlflow.parentRunId"
_LONGEST = 500
"""The most characters of a parameter that every server takes."""
_MOST_METRICS = 1000
"""The most metrics of one request."""
_ENDED = ("FINISHED", "FAILED", "KILLED")

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

Curve = tuple[str, list[tuple[int, float]]]
"""Name of a metric, and its values by step."""


class StudyLog:
    """The run of a study in MLflow."""

    def __init__(self, folder: Path, uri: str, experiment: str = EXPERIMENT) -> None:
        """Find the run of the study in folder, or create it. Raises what MLflow raises."""
        from mlflow import MlflowClient

        self.folder = folder
        self.client: MlflowClient = MlflowClient(uri)
        self._readers: dict[Path, TrialReader] = {}
        self.run_id = self._saved_run(uri) or self._created(uri, experiment)
        self._experiment = self.client.get_run(self.run_id).info.experiment_id
        nested = {
            (run.data.tags.get(SPLIT, ""), int(run.data.tags.get(NUMBER, -1))): run.info for run in self._nested()
        }
        self._ended = {place for place, info in nested.items() if info.status in _ENDED}
        self._begun = {place: info.run_id for place, info in nested.items() if place not in self._ended}

    def update(self, status: str = "RUNNING") -> None:
        """Log the trials that have ended since, and the status of the study."""
        data = self._read()
        bests: dict[str, list[float]] = {}
        for trial in sorted(data.trials, key=lambda trial: (trial.split, trial.ended or 0.0, trial.number)):
            best = bests.setdefault(trial.split, [-math.inf])
            best.append(max(best[-1], -math.inf if trial.full_value is None else trial.full_value))
            if (trial.split, trial.number) not in self._ended:
                name = _joined(trial.split, f"best_{metric_name(data.metric)}")
                self._log(self.run_id, [(name, [(len(best) - 1, best[-1])])], at=_milliseconds(trial.ended))
                self._log_trial(trial, data.metric)
                self._ended.add((trial.split, trial.number))
        self.client.set_tag(self.run_id, STATE, data.state)
        (self.client.set_terminated if status in _ENDED else self.client.update_run)(self.run_id, status)

    def conclude(self) -> None:
        """Log the result of a finished study, and its files: model, result, declaration and report."""
        result = self._read().result
        files: list[tuple[Path, str | None]] = [(self.folder / "study.json", None)]
        if result is not None:
            file, model = StudyFolder(self.folder).result, Path(result.model)
            scores = [(name, [(0, value)]) for name, value in scores_of(result).items()]
            self._log(self.run_id, scores, at=_milliseconds(file.stat().st_mtime))
            self.client.set_tag(self.run_id, SOLVER, result.best.solver)
            files += [(file, None), (model if model.exists() else self.folder / model.name, "model")]
        for path, place in files:
            if path.exists():
                log = self.client.log_artifacts if path.is_dir() else self.client.log_artifact
                log(self.run_id, str(path), place)
        with tempfile.TemporaryDirectory() as folder:
            self.client.log_artifact(self.run_id, str(write_report(self.folder, Path(folder, "report.html"))))

    def _read(self) -> StudyData:
        return open_study(self.folder, self._readers)

    def _saved_run(self, uri: str) -> str | None:
        """Return the number of the study's run, None if it has none there, or if it was deleted."""
        from mlflow.exceptions import MlflowException

        run_id = _saved_runs(self.folder).get(shown_tracking(uri))
        try:
            is_active = run_id is not None and self.client.get_run(run_id).info.lifecycle_stage == "active"
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        return run_id if is_active else None

    def _created(self, uri: str, experiment: str) -> str:
        data, begun = self._read(), _milliseconds((self.folder / "study.json").stat().st_mtime)
        existing = self.client.get_experiment_by_name(experiment)
        number = self.client.create_experiment(experiment) if existing is None else existing.experiment_id
        run_id = str(self.client.create_run(number, start_time=begun, run_name=data.name).info.run_id)
        settings = {name: value for name, value in data.study.as_dict().items() if value not in (None, [], {}, "")}
        sizes = {
            f"data.{_joined(split, name, by='.')}": value
            for split, sizes_of_split in data.facts.items()
            for name, value in sizes_of_split.items()
        }
        self._log(run_id, [], begun, settings | sizes)
        runs = _saved_runs(self.folder) | {shown_tracking(uri): run_id}
        (self.folder / TRACKING).mkdir(exist_ok=True)
        atomic_write(self.folder / TRACKING / "runs.json", json.dumps(runs))
        return run_id

    def _nested(self) -> Iterator[Run]:
        """Yield the runs of trials."""
        token: str | None = None
        while True:
            page = self.client.search_runs(
                [self._experiment], f"tags.`{_PARENT}` = '{self.run_id}'", max_results=1000, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return

    def _log_trial(self, trial: Trial, metric: str) -> None:
        begun, ended = _milliseconds(trial.begun), _milliseconds(trial.ended)
        run_id = self._begun.get((trial.split, trial.number))
        if run_id is None:
            tags = {_PARENT: self.run_id, NUMBER: str(trial.number), SPLIT: trial.split, SOLVER: trial.solver}
            name = _joined(trial.split, f"{trial.place} {trial.solver}")
            run = self.client.create_run(self._experiment, start_time=begun, tags=tags, run_name=name)
            run_id = self._begun[trial.split, trial.number] = str(run.info.run_id)
        self._log(run_id, curves_of(trial, metric), ended, {"solver": trial.solver, **trial.params})
        state = trial.state + f" after {trial.stopped}" * bool(trial.stopped) + f": {trial.error}" * bool(trial.error)
        self.client.set_tag(run_id, STATE, state[:_LONGEST])
        self.client.set_terminated(run_id, "FAILED" if trial.value is None else "FINISHED", end_time=ended)

    def _log(self, run_id: str, curves: list[Curve], at: int, values: Mapping[str, object] | None = None) -> None:
        """Log finite points, which all have one time, so that a second call adds nothing, and values as parameters."""
        from mlflow.entities import Metric, Param

        points = [(name, value, at, step) for name, curve in curves for step, value in curve if math.isfinite(value)]
        params = [Param(metric_name(name), _text(value)) for name, value in (values or {}).items()]
        if params:
            self.client.log_batch(run_id, params=params)
        for first in range(0, len(points), _MOST_METRICS):
            metrics = [Metric(*point) for point in points[first : first + _MOST_METRICS]]
            self.client.log_batch(run_id, metrics=metrics)


def _joined(*parts: str, by: str = "/") -> str:
    return by.join(filter(None, parts))


def metric_name(name: str) -> str:
    """Return a name that MLflow takes: ndcg_at_10 for ndcg@10."""
    return re.sub(r"[^\w.\- /]", "_", name.replace("@", "_at_"))


def curves_of(trial: Trial, metric: str) -> list[Curve]:
    """Return the score, the costs and the learning curves of a trial as metrics."""
    name, in_full = metric_name(metric), trial.full_value is not None
    single: dict[str, float | None] = (
        {metric_name(other): mean for other, mean in trial.means.items()} if in_full else {}
    )
    single |= {
        name if in_full else f"{name}_estimate": trial.value, "seconds": trial.seconds, "features": trial.nonzeros,
        "microseconds": trial.microseconds, "bytes": trial.bytes,
    }  # fmt: skip
    whole = all(float(place).is_integer() for place, _ in trial.path)
    drawn: list[Curve] = [(key, [(0, value)]) for key, value in single.items() if value is not None]
    drawn += [
        (f"{name}_by_fold", list(enumerate(trial.parts, start=1))),
        (f"{name}_by_queries", [(int(queries), value) for queries, value in trial.learning_curve]),
        (f"{name}_by_{metric_name(trial.path_parameter)}",
         [(int(place) if whole else k, value) for k, (place, value) in enumerate(trial.path)]),
    ]  # fmt: skip
    return [curve for curve in drawn if curve[1]]


def scores_of(result: Result) -> dict[str, float]:
    """Return the numbers of a result as metrics: of the chosen model, and of the search."""
    best, name = result.best, metric_name(result.metric)
    scores = {f"test_{metric_name(metric)}": value for metric, value in result.test_metrics.items()} | {
        f"vali_{name}": math.nan if best.vali is None else best.vali.mean, f"estimate_{name}": result.estimate.mean,
        "features": best.nonzeros, "microseconds": best.microseconds, "bytes": best.bytes, "trials": result.trials,
        "stopped": result.stopped, "seconds": result.seconds,
        "failed": sum(failure.number is not None for failure in result.failures),
    }  # fmt: skip
    return {key: float(value) for key, value in scores.items() if math.isfinite(value)}


def _saved_runs(folder: Path) -> dict[str, str]:
    try:
        runs: dict[str, str] = json.loads((folder / TRACKING / "runs.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return runs


def _milliseconds(seconds: float | None) -> int:
    return 0 if seconds is None else int(1000 * seconds)


def _text(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


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
        warn(f"{folder.name} is not logged in MLflow: no process can be started ({error.strerror}).")
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
            warn(f"{folder.name} is still being logged in MLflow at {shown_tracking(uri)}, in the background.")
        else:
            relay.join()


def _started(folder: Path, uri: str, storage: str | None) -> subprocess.Popen[str]:
    environment = {**os.environ, VARIABLE: uri}
    if storage is not None:
        environment["RANKTUNE_STORAGE"] = storage
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, str(folder.resolve())],
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
            warn(line.strip())


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
