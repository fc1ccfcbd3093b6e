"""A study in MLflow: a run, with a nested run for each trial, as far as the study has come.

The run of the study has its settings and the sizes of its data as parameters, the best so far as a metric, and in the
end the scores and files of the result. A trial has its solver and parameters, its score, its costs and its learning
curves. The score of a trial that was stopped early is an estimate, so that it has another name.

Nothing is logged twice: the folder of the study holds the number of its run, and the run of a trial the number of the
trial. Points that are sent twice have the same step and time, and count once.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ranktune.dashboards.records.file import Reader
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.dashboards.records.trial import Trial
from ranktune.dashboards.web.report import write_report
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.tuner.selection.results import Result
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.secrets import shown_tracking

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

Curve = tuple[str, list[tuple[int, float]]]
"""Name of a metric, and its values by step."""


class StudyLog:
    """The run of a study in MLflow."""

    def __init__(self, folder: Path, uri: str, experiment: str = EXPERIMENT) -> None:
        """Find the run of the study in folder, or create it. Raises what MLflow raises."""
        from mlflow import MlflowClient

        self.folder = folder
        self.client: MlflowClient = MlflowClient(uri)
        self._readers: dict[Path, Reader] = {}
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
        by_end = sorted(data.trials, key=lambda trial: (trial.split, trial.ended or 0.0, trial.number))
        reached: dict[str, tuple[int, float]] = {}
        for trial in by_end:
            count, best = reached.get(trial.split, (0, -math.inf))
            best = best if trial.full_value is None else max(best, trial.full_value)
            reached[trial.split] = count + 1, best
            if (trial.split, trial.number) in self._ended:
                continue
            name = "/".join(filter(None, (trial.split, f"best_{metric_name(data.metric)}")))
            self._log(self.run_id, [(name, [(count + 1, best)])], at=_milliseconds(trial.ended))
            self._log_trial(trial, data.metric)
            self._ended.add((trial.split, trial.number))
        self.client.set_tag(self.run_id, STATE, data.state)
        if status in _ENDED:
            self.client.set_terminated(self.run_id, status)
        else:
            self.client.update_run(self.run_id, status=status)

    def conclude(self) -> None:
        """Log the result of a finished study, and its files: model, result, declaration and report."""
        data = self._read()
        result = data.result
        if result is not None:
            at = int(1000 * StudyFolder(self.folder).result.stat().st_mtime)
            self._log(self.run_id, [(name, [(0, value)]) for name, value in scores_of(result).items()], at=at)
            self.client.set_tag(self.run_id, SOLVER, result.best.solver)
        for path, place in _files(self.folder, result):
            if path.is_dir():
                self.client.log_artifacts(self.run_id, str(path), place)
            elif path.exists():
                self.client.log_artifact(self.run_id, str(path), place)
        with tempfile.TemporaryDirectory() as folder:
            self.client.log_artifact(self.run_id, str(write_report(self.folder, Path(folder, "report.html"))))

    def _read(self) -> StudyData:
        return open_study(self.folder, self._readers)

    def _saved_run(self, uri: str) -> str | None:
        """Return the number of the study's run, None if it has none there, or if it was deleted."""
        from mlflow.exceptions import MlflowException

        run_id = _saved_runs(self.folder).get(shown_tracking(uri))
        if run_id is None:
            return None
        try:
            run = self.client.get_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        return run_id if run.info.lifecycle_stage == "active" else None

    def _created(self, uri: str, experiment: str) -> str:
        data, begun = self._read(), int(1000 * (self.folder / "study.json").stat().st_mtime)
        existing = self.client.get_experiment_by_name(experiment)
        number = self.client.create_experiment(experiment) if existing is None else existing.experiment_id
        run = self.client.create_run(number, start_time=begun, run_name=data.name)
        run_id: str = run.info.run_id
        settings = {name: value for name, value in data.study.as_dict().items() if value not in (None, [], {}, "")}
        facts = {
            f"data.{'.'.join(filter(None, (split, name)))}": value
            for split, facts_of_split in data.facts.items()
            for name, value in facts_of_split.items()
        }
        self._log(run_id, [], begun, settings | facts)
        runs = _saved_runs(self.folder) | {shown_tracking(uri): run_id}
        (self.folder / TRACKING).mkdir(exist_ok=True)
        atomic_write(self.folder / TRACKING / "runs.json", json.dumps(runs))
        return run_id

    def _nested(self) -> Iterator[Run]:
        """Yield the runs of trials."""
        token: str | None = ""
        while token is not None:
            page = self.client.search_runs(
                [self._experiment], f"tags.`{_PARENT}` = '{self.run_id}'", max_results=1000, page_token=token or None
            )
            yield from page
            token = page.token or None

    def _log_trial(self, trial: Trial, metric: str) -> None:
        begun, ended = _milliseconds(trial.begun), _milliseconds(trial.ended)
        run_id = self._begun.get((trial.split, trial.number))
        if run_id is None:
            tags = {_PARENT: self.run_id, NUMBER: str(trial.number), SPLIT: trial.split, SOLVER: trial.solver}
            name = "/".join(filter(None, (trial.split, f"{trial.number} {trial.solver}")))
            run = self.client.create_run(self._experiment, start_time=begun, tags=tags, run_name=name)
            run_id = self._begun[trial.split, trial.number] = str(run.info.run_id)
        self._log(run_id, curves_of(trial, metric), ended, {"solver": trial.solver, **trial.params})
        state = "failed" if trial.value is None else f"stopped after {trial.stopped}" if trial.stopped else "complete"
        self.client.set_tag(run_id, STATE, state if trial.error is None else f"{state}: {trial.error}"[:_LONGEST])
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


def metric_name(name: str) -> str:
    """Return a name that MLflow takes: ndcg_at_10 for ndcg@10."""
    return re.sub(r"[^\w.\- /]", "_", name.replace("@", "_at_"))


def curves_of(trial: Trial, metric: str) -> list[Curve]:
    """Return the score, the costs and the learning curves of a trial as metrics."""
    name = metric_name(metric)
    costs = {
        "seconds": trial.seconds, "features": trial.nonzeros, "microseconds": trial.microseconds, "bytes": trial.bytes,
    }  # fmt: skip
    single = {name if trial.full_value is not None else f"{name}_estimate": trial.value} | costs
    if trial.full_value is not None:
        single |= {metric_name(other): mean for other, mean in trial.means.items() if other != metric}
    drawn: list[Curve] = [(key, [(0, value)]) for key, value in single.items() if value is not None]
    drawn.append((f"{name}_by_fold", list(enumerate(trial.parts, start=1))))
    drawn.append((f"{name}_by_queries", [(int(queries), value) for queries, value in trial.learning_curve]))
    whole = all(float(place).is_integer() for place, _ in trial.path)
    path = [(int(place) if whole else k, value) for k, (place, value) in enumerate(trial.path)]
    drawn.append((f"{name}_by_{metric_name(trial.path_parameter)}", path))
    return [curve for curve in drawn if curve[1]]


def scores_of(result: Result) -> dict[str, float]:
    """Return the numbers of a result as metrics: of the chosen model, and of the search."""
    best, name = result.best, metric_name(result.metric)
    scores = {f"test_{metric_name(metric)}": value for metric, value in result.test_metrics.items()}
    scores |= {f"vali_{name}": math.nan if best.vali is None else best.vali.mean}
    scores |= {f"estimate_{name}": result.estimate.mean, "features": best.nonzeros}
    scores |= {"microseconds": best.microseconds, "bytes": best.bytes}
    scores |= {"trials": result.trials, "stopped": result.stopped, "seconds": result.seconds}
    scores["failed"] = sum(failure.number is not None for failure in result.failures)
    return {key: float(value) for key, value in scores.items() if math.isfinite(value)}


def _files(folder: Path, result: Result | None) -> Iterator[tuple[Path, str | None]]:
    """Yield the files of a study and the folders among the artifacts that they belong into."""
    yield folder / "study.json", None
    if result is not None:
        yield folder / "result.json", None
        model = Path(result.model)
        yield model if model.exists() else folder / model.name, "model"


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
