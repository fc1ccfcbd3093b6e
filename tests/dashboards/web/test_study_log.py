"""What of a study is logged in MLflow, and what a server that MLflow itself runs has of it afterwards."""

import json
import os
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ranktune
from ranktune.dashboards.web.tracking import curves_of, metric_name, scores_of
from ranktune.notebook import StudyResult
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.models.base import load_model
from tests.support.engine_samples import graded
from tests.support.postgres_server import free_port
from tests.support.study_samples import concluded, trial

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("ndcg@10", "ndcg_at_10"),
        ("ndcg@10:gain=linear", "ndcg_at_10_gain_linear"),
        ("own:f", "own_f"),
        ("P_10", "P_10"),
    ],
)
def test_names_are_such_as_mlflow_takes(name: str, logged: str) -> None:
    assert metric_name(name) == logged


def test_a_trial_has_its_score_its_costs_and_its_curves() -> None:
    finished = trial(
        3, "ListNet", {"rounds": 30}, 0.5, means={"ndcg@10": 0.5, "map": 0.4}, parts=(0.6, 0.4),
        path_parameter="rounds", path=((10.0, 0.3), (30.0, 0.5)), learning_curve=((5.0, 0.2), (9.0, 0.3)),
    )  # fmt: skip
    results = dict(curves_of(finished, "ndcg@10"))
    assert results["ndcg_at_10"] == [(0, 0.5)] and results["map"] == [(0, 0.4)]
    assert results["ndcg_at_10_by_fold"] == [(1, 0.6), (2, 0.4)]
    assert results["ndcg_at_10_by_rounds"] == [(10, 0.3), (30, 0.5)]
    assert results["ndcg_at_10_by_queries"] == [(5, 0.2), (9, 0.3)]
    assert {"seconds", "features", "microseconds", "bytes"} < set(results)


def test_an_estimate_is_not_taken_for_a_score() -> None:
    stopped = dict(curves_of(trial(0, "ListNet", {}, 0.9, stopped="fold 1 of 5"), "ndcg@10"))
    assert stopped["ndcg_at_10_estimate"] == [(0, 0.9)] and "ndcg_at_10" not in stopped
    assert not any(name.startswith("ndcg") for name in dict(curves_of(trial(0, "ListNet", {}, None), "ndcg@10")))


def test_the_path_of_a_number_that_is_not_whole_has_its_places_as_steps() -> None:
    finished = trial(0, "RankSVM", {"C": 0.5}, 0.5, path_parameter="C", path=((0.1, 0.3), (0.5, 0.5)))
    assert dict(curves_of(finished, "ndcg@10"))["ndcg_at_10_by_C"] == [(0, 0.3), (1, 0.5)]


def test_a_result_has_the_scores_of_its_model() -> None:
    result = concluded("s", stopped=2)
    scores = scores_of(result)
    assert scores["test_ndcg_at_10"] == scores["vali_ndcg_at_10"] == 0.5 and scores["estimate_ndcg_at_10"] == 0.48
    assert scores["stopped"] == 2.0 and scores["failed"] == 0.0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "small.npz"
    queries = graded(24, 0)
    np.savez(file, X=queries.features, y=queries.grades, qid=queries.query_of_document)
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An MLflow server with a separate database and artifacts."""
    if find_spec("mlflow") is None or find_spec("flask") is None:
        pytest.skip("the server of MLflow is not installed: pip install mlflow")
    folder, address = tmp_path_factory.mktemp("mlflow"), f"127.0.0.1:{free_port()}"
    host, port = address.split(":")
    command = [sys.executable, "-m", "mlflow", "server", "--host", host, "--port", port, "--workers", "1"]
    places = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "files")]
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([*command, *places], stdout=log, stderr=log, env=environment)
    until = time.monotonic() + 240
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"http://{address}/health", timeout=2):
            break
        time.sleep(0.2)
    else:
        pytest.fail((folder / "log").read_text())
    yield f"http://{address}"
    process.terminate()
    process.wait()


def runs_of(server: str) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(server)
    result = client.get_experiment_by_name("ranktune")
    return [] if result is None else list(client.search_runs([result.experiment_id]))


def tuned(data: Path, home: Path, mlflow: str, name: str, trials: int = 3) -> StudyResult:
    return ranktune.tune(
        data, solvers=("RidgeRanker", "BestFeature"), trials=trials, sampler="random", name=name, home=home, jobs=1,
        mlflow=mlflow,
    )  # fmt: skip


@pytest.mark.thorough
def test_a_server_has_the_study_once_however_often_it_is_logged(data: Path, server: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=FutureWarning)
        from mlflow import MlflowClient

    address = server.replace("://", f"://me:{SECRET}@")
    result = tuned(data, tmp_path, address, "s")
    assert len(runs_of(server)) == 4
    resumed = ranktune.resume("s", trials=5, home=tmp_path, jobs=1)
    assert ranktune.resume("s", trials=5, home=tmp_path, jobs=1).trials == 5
    runs = runs_of(server)
    (study,) = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    trials = {int(run.data.tags["ranktune.trial"]): run for run in runs if run is not study}
    assert len(runs) == 6 and sorted(trials) == [0, 1, 2, 3, 4]
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert {run.data.tags["mlflow.parentRunId"] for run in trials.values()} == {study.info.run_id}
    assert study.data.params["metric"] == "ndcg@10" and study.data.params["data.features"] == "5"
    assert study.data.metrics["trials"] == 5.0
    assert study.data.metrics["test_ndcg_at_10"] == pytest.approx(resumed.test_metrics["ndcg@10"])
    scores = [run.data.metrics["ndcg_at_10"] for run in trials.values() if "ndcg_at_10" in run.data.metrics]
    assert study.data.metrics["best_ndcg_at_10"] == max(scores)
    assert {run.data.params["solver"] for run in trials.values()} == {"RidgeRanker", "BestFeature"}
    client = MlflowClient(server)
    curve = client.get_metric_history(study.info.run_id, "best_ndcg_at_10")
    assert sorted(point.step for point in curve) == [1, 2, 3, 4, 5]
    files = {file.path for file in client.list_artifacts(study.info.run_id)}
    assert {"study.json", "result.json", "report.html", "model"} == files
    (tmp_path / "fetched").mkdir()
    fetched = client.download_artifacts(
        study.info.run_id, f"model/{Path(resumed.model).name}", str(tmp_path / "fetched")
    )
    X = np.load(data)["X"]
    assert load_model(fetched).predict(X).tolist() == resumed.best_model.predict(X).tolist()
    saved = [file.read_bytes() for file in Path(result.folder).rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in content for content in saved)
    assert not any(SECRET in json.dumps(run.to_dictionary()) for run in runs)


@pytest.mark.thorough
def test_an_unreachable_server_is_one_warning_and_can_be_logged_later(data: Path, server: str, tmp_path: Path) -> None:
    nowhere = f"http://me:{SECRET}@127.0.0.1:{free_port()}"
    with pytest.warns(RankTuneWarning) as actual:
        result = tuned(data, tmp_path, nowhere, "later")
    (message,) = [str(result.message) for result in actual if "MLflow" in str(result.message)]
    assert "study 'later' is not logged in MLflow at http://me:***@127.0.0.1" in message
    assert "`ranktune resume later`" in message and SECRET not in message
    assert result.trials == 3 and Path(result.model).exists()
    before = len(runs_of(server))
    assert tuned(data, tmp_path, server, "later").trials == 3
    assert len(runs_of(server)) == before + 4
