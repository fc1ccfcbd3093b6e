"""Workers that join a study over its folder or its database, find its data, and refuse what they cannot do."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ranktune import api
from ranktune.solvers.core.errors import RankTuneError, StudyError
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.runner.joining import DECLARED, DatabaseStudy, FolderStudy, JoinedSplit
from ranktune.tuner.runner.worker import JoinedWorker
from ranktune.tuner.search.progress import Silent
from ranktune.tuner.splits.store import store
from ranktune.tuner.storage.artifacts import Artifacts
from ranktune.tuner.storage.database import open_storage
from ranktune.tuner.storage.leases import WAITING, Offer
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.home import find_folder
from ranktune.tuner.workers.executor import Processes
from tests.support.buckets import s3_bucket
from tests.support.commands import write_letor
from tests.support.engine_samples import graded
from tests.support.postgres_server import Server

pytestmark = pytest.mark.thorough

SOLVERS = ["--solver", "RankSVM", "--solver", "ElasticRank"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with data and nothing else."""
    write(graded(120, 0), tmp_path / "train.txt")
    write(graded(40, 1), tmp_path / "test.txt")
    return tmp_path


def write(queries: Queries, path: Path) -> None:
    write_letor(path, queries.features, queries.grades, queries.query_of_document)


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ranktune", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment,
    )  # fmt: skip


def log(folder: Path, name: str) -> list[str]:
    return (folder / "ranktune-runs" / name / "events.jsonl").read_text().splitlines()


def test_a_second_launch_is_refused_and_with_join_helps(folder: Path) -> None:
    command = ["tune", "train.txt", "--test", "test.txt", *SOLVERS, "--trials", "120", "--jobs", "1", "--name", "n"]
    owner = start(folder, *command)
    while not (folder / "ranktune-runs" / "n" / "record.db").exists():
        time.sleep(0.1)
        assert owner.poll() is None
    second = start(folder, *command)
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 2
    assert f"process {owner.pid} on" in errors and "--join" in errors and len(errors.splitlines()) == 1
    helper = start(folder, *command, "--join", "--json")
    out, heard = helper.communicate(timeout=120)
    assert helper.returncode == 0, heard
    assert "joined n" in heard
    _, errors = owner.communicate(timeout=60)
    assert owner.returncode == 0, errors
    assert json.loads(out)["trials"] == 120
    assert any('"worker_joined"' in line for line in log(folder, "n"))


@pytest.fixture
def declared(folder: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path, Path]]:
    """A study in a database, interrupted before its first trial: its URL, data and artifacts."""
    url, arrays = postgres.new_database(), folder / "arrays"

    class Enough(Silent):
        def split(self, name: str, total: int | None, done: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.tune(
            folder / "train.txt", test=folder / "test.txt", solvers="RankSVM", name="n", home=folder / "home", jobs=1,
            storage=url, artifacts=arrays, progress=Enough(),
        )  # fmt: skip
    (data,) = (folder / "home" / "n" / "data").iterdir()
    monkeypatch.setenv("RANKTUNE_CACHE", str(folder / "cache"))  # not before: kernels would be compiled again
    yield url, data, arrays


def changed(url: str, **values: object) -> None:
    """Change what is declared of the study."""
    storage = open_storage(url)
    number = storage.get_study_id_from_name("n")
    text = storage.get_study_user_attrs(number)[DECLARED]
    storage.set_study_user_attr(number, DECLARED, json.dumps(json.loads(text) | values))
    storage.remove_session()
    storage.engine.dispose()


def joined(url: str) -> str:
    """Return the folder in which a worker finds the data of the study."""
    study = DatabaseStudy(url, "n")
    try:
        (split,) = study.splits()
        params: dict[str, Value] = {"solver": "RankSVM", "RankSVM.C": 1.0}
        assert split.task_of(params, True).path and not split.task_of(params, False).path
        return split.task_of(params, False).folder
    finally:
        study.close()


def test_data_are_read_where_they_are_or_fetched_once(declared: tuple[str, Path, Path]) -> None:
    url, data, arrays = declared
    assert joined(url) == str(data.resolve())
    elsewhere = f"/nowhere/at/all/{data.name}"
    changed(url, folder=elsewhere)
    assert joined(url) == str(store() / data.name)
    for file in (store() / data.name).glob("*.npy"):
        assert file.read_bytes() == (data / file.name).read_bytes()
    (arrays / f"data-{data.name}.zip").unlink()
    assert joined(url) == str(store() / data.name), "fetched once is enough"


def test_missing_data_are_reported_with_a_remedy(declared: tuple[str, Path, Path]) -> None:
    url, data, arrays = declared
    changed(url, folder=f"/nowhere/at/all/{data.name}", host="far")
    (arrays / f"data-{data.name}.zip").unlink()
    with pytest.raises(StudyError, match=r"are not in .*arrays"):
        joined(url)
    changed(url, artifacts=None)
    with pytest.raises(StudyError, match=r"/nowhere/at/all/.* on far.*artifacts="):
        joined(url)


def test_a_worker_of_another_version_is_refused(declared: tuple[str, Path, Path]) -> None:
    changed(declared[0], version="9.9.9", unheard_of=1)
    with pytest.raises(StudyError, match=r"RankTune 9\.9\.9.*pip install ranktune==9\.9\.9"):
        joined(declared[0])


def test_a_worker_puts_back_what_a_newer_version_offers_meanwhile(declared: tuple[str, Path, Path]) -> None:
    """Its owner was upgraded and went on with the study, while the worker waited for trials."""
    url, _, _ = declared

    class Study(DatabaseStudy):
        def splits(self) -> list[JoinedSplit]:
            if not self._splits:
                super().splits()[0].leases.offer(Offer(0, {"solver": "RankSVM", "RankSVM.C": 1.0}))
                changed(url, version="9.9.9")
            return super().splits()

    study = Study(url, "n")
    with Processes(1) as executor, pytest.raises(StudyError, match=r"RankTune 9\.9\.9"):
        JoinedWorker(study, executor, lambda text: None, wait=5.0).run()
    (lease,) = study.splits()[0].leases.rows()
    assert (lease.state, lease.attempt) == (WAITING, 1)
    study.close()


def test_a_study_that_is_not_there_is_told_with_the_nearest(declared: tuple[str, Path, Path]) -> None:
    with pytest.raises(StudyError, match=r"no study 'm' in postgresql://tester@.*Known: n"):
        DatabaseStudy(declared[0], "m")


def test_the_record_stays_where_it_began(declared: tuple[str, Path, Path], folder: Path) -> None:
    with pytest.raises(StudyError, match=r"keeps its record in postgresql://tester@.*not in its folder"):
        api.tune(
            folder / "train.txt", test=folder / "test.txt", solvers="RankSVM", name="n", home=folder / "home", jobs=1
        )
    url, _, _ = declared
    result = api.resume("n", trials=3, storage=url, home=folder / "home", jobs=1)
    assert result.trials == 3


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a separate S3 server on loopback."""
    with s3_bucket(monkeypatch, "runs") as url:
        yield f"{url}/ranktune"


def test_artifacts_are_kept_in_a_bucket(bucket: str) -> None:
    place = Artifacts(bucket)
    assert place.read("a") is None
    place.write("a", b"123")
    assert (place.read("a"), Artifacts(bucket).read("a")) == (b"123", b"123")
    place.remove("a")
    assert place.read("a") is None
    with pytest.raises(StudyError, match=r"s3://elsewhere.*Are bucket"):
        Artifacts("s3://elsewhere").write("a", b"123")


def test_a_study_keeps_its_arrays_in_a_bucket(folder: Path, bucket: str) -> None:
    tuned = api.tune(
        folder / "train.txt", test=folder / "test.txt", solvers="RankSVM", trials=2, name="n", home=folder, jobs=1,
        artifacts=bucket,
    )  # fmt: skip
    assert tuned.trials == 2
    record = Record(folder / "n", "n", "ndcg@10", artifacts=bucket)
    for trial in record.trials():
        assert record.per_query(trial)["ndcg@10"].mean() == pytest.approx(trial.value)
    record.close()
    assert not (folder / "n" / "artifacts").exists()
    with pytest.raises(StudyError, match="keeps its record"):
        api.tune(folder / "train.txt", test=folder / "test.txt", solvers="RankSVM", name="n", home=folder, jobs=1)


@pytest.mark.parametrize("where", ["ftp://host/x", "s3://", "http://bucket"])
def test_other_places_for_arrays_are_refused(where: str) -> None:
    with pytest.raises(RankTuneError, match="BUCKET/PREFIX"):
        Artifacts(where)


def test_a_worker_without_an_owner_leaves(folder: Path) -> None:
    tuned = api.tune(
        folder / "train.txt", test=folder / "test.txt", solvers="RankSVM", trials=1, name="n", home=folder, jobs=1
    )
    assert tuned.trials == 1
    study = FolderStudy(folder=find_folder(folder, "n"))
    assert study.is_concluded()
    study.close()
    assert api.work("n", home=folder, jobs=1) == 0


class Noted(Silent):
    """Keeps what is said outside of trials."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def stage(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.parametrize("where", ["folder", "database", "interrupted"])
def test_a_worker_may_be_first(where: str, folder: Path, request: pytest.FixtureRequest) -> None:
    """It waits for the study, or for who goes on with it, and then runs trials."""
    at: dict[str, Any] = {"home": folder / "home", "jobs": 1}
    if where == "database":
        at["storage"] = request.getfixturevalue("postgres").new_database()

    class Ends(Noted):
        def split(self, name: str, total: int | None, done: int) -> None:
            raise KeyboardInterrupt

    def tuned(progress: Silent) -> int:
        files: dict[str, Any] = {"data": folder / "train.txt", "test": folder / "test.txt"}
        return api.tune(**files, solvers=["RankSVM"], trials=60, name="n", progress=progress, **at).trials

    if where == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            tuned(Ends())
    noted = Noted()
    with ThreadPoolExecutor(1) as other:
        ran = other.submit(api.work, "n", wait=90.0, progress=noted, **at)
        while not noted.said:
            assert not ran.done(), ran.exception()
            time.sleep(0.05)
        assert tuned(Silent()) == 60
        assert ran.result(90.0) > 0
    assert "study 'n'" in noted.said[0] and "Waiting for it for up to 90 seconds" in noted.said[0]
