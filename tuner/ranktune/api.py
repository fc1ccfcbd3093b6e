"""The Python face: tune, run, resume, read. The command line calls these and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ranktune.notebook import StudyResult, shown
from ranktune.reading import read_and_prepare
from ranktune.solvers.core.errors import DataError, StudyError
from ranktune.solvers.data.queries import Queries
from ranktune.studies import catalogue
from ranktune.tuner.evaluation.plans import DEFAULT_FOLDS, DEFAULT_PERMUTATIONS
from ranktune.tuner.runner.engine import run_study
from ranktune.tuner.runner.joining import InFolder, InStorage
from ranktune.tuner.runner.ownership import Ownership
from ranktune.tuner.runner.preparation import reopen
from ranktune.tuner.runner.progress import Progress, Silent
from ranktune.tuner.runner.worker import WAIT, JoinedWorker
from ranktune.tuner.storage.locations import Locations
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import DEFAULT_METRIC, DEFAULT_TRIALS, TRIALS_BY_TIME, Study
from ranktune.tuner.study.events import Event, Events
from ranktune.tuner.study.home import StudyFolder, default_home, find_folder, free_name, make_folder
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.workers.executor import Executor
from ranktune.tuner.workers.interrupts import Interrupted, Interrupts
from ranktune.tuner.workers.workforce import Workforce

API_SEARCH = "api-search"


def tune(
    data: Any = API_SEARCH,
    *,
    vali: Any = None,
    test: Any = None,
    metric: str = DEFAULT_METRIC,
    also: str | Sequence[str] = (),
    solvers: str | Sequence[str] = (),
    plan: str = "auto",
    permutations: int = DEFAULT_PERMUTATIONS,
    folds: int | None = None,
    repeats: int = 1,
    outer: int = DEFAULT_FOLDS,
    trials: int | None = None,
    timeout: float | None = None,
    full: bool = False,
    until: float | None = None,
    sampler: str = "thompson",
    within: str = "",
    seed: int = 0,
    refit: bool = True,
    space: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    name: str | None = None,
    home: str | Path | None = None,
    jobs: int | None = None,
    trial_timeout: float | None = None,
    trial_memory: int | str | None = None,
    executor: str | Executor = "processes",
    address: str | None = None,
    storage: str | None = None,
    artifacts: str | Path | None = None,
    extend: bool = False,
    progress: Progress | None = None,
) -> StudyResult:
    """Tune the solvers on data and return what was found: leaderboard, chosen model, where it was saved.

    data is a path (LETOR / SVMlight text, csv, parquet, npz, or a folder Fold1..Fold5), a Queries, a data frame, a
    tuple (X, y, qid), or "api-search", the embedded example. vali and test likewise; without test, a fifth of the
    training queries is set aside first, with test="none" none is. Trials are 30 by default, or with a timeout (seconds
    for everything, reading too, which the solvers share) as many as fit, with until as many as promise to gain that
    much. The other fields are those of Study. jobs is the number of processes, all cores by default. An existing name
    with the same settings is continued.

    trial_timeout (seconds) and trial_memory (bytes, or text such as "4GB") bound one trial, which fails beyond them.
    executor, with address, runs trials elsewhere (ranktune.tuner.workers.workforce). storage is the URL of a PostgreSQL
    database for the record, artifacts a folder or s3://BUCKET/PREFIX for its arrays: then others join by
    work, or `ranktune worker`. extend: more solvers and wider ranges than the study of that name began with are taken
    over by it.
    """
    deadline = Deadline.after(timeout)
    if trials is None:
        trials = DEFAULT_TRIALS if timeout is None and until is None else TRIALS_BY_TIME
    study = Study(
        name=name or "",
        data=_described(data),
        vali=None if vali is None else _described(vali),
        test=None if test is None else _described(test),
        metric=metric,
        also=_names(also),
        solvers=_names(solvers),
        plan=plan,
        permutations=permutations,
        folds=folds,
        repeats=repeats,
        outer=outer,
        trials=trials,
        timeout=timeout,
        full=full,
        until=until,
        sampler=sampler,
        within=within,
        seed=seed,
        refit=refit,
        space=space or {},
        reading=reading or {},
    )
    force = Workforce(jobs, trial_timeout, trial_memory, executor, address)
    places = Locations(storage, None if artifacts is None else str(artifacts))
    return _run(study, (data, vali, test), home, force, _Entry(places, extend), progress, deadline)


@dataclass(frozen=True)
class _Entry:
    """How a study is entered: where it is kept, and what to do where there is one of that name."""

    places: Locations = field(default_factory=Locations)
    extend: bool = False


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def run(
    study: Study | str | Path,
    *,
    home: str | Path | None = None,
    jobs: int | None = None,
    trial_timeout: float | None = None,
    trial_memory: int | str | None = None,
    executor: str | Executor = "processes",
    address: str | None = None,
    storage: str | None = None,
    artifacts: str | Path | None = None,
    extend: bool = False,
    progress: Progress | None = None,
) -> StudyResult:
    """Run a declared study: a Study whose data are paths or names, or the path of its TOML file.

    The other arguments are those of tune.
    """
    declared = study if isinstance(study, Study) else Study.from_toml(study)
    deadline = Deadline.after(declared.timeout)
    located = replace(
        declared,
        data=_described(declared.data or API_SEARCH),
        vali=declared.vali and _described(declared.vali),
        test=declared.test and _described(declared.test),
    )
    force = Workforce(jobs, trial_timeout, trial_memory, executor, address)
    places = Locations(storage, None if artifacts is None else str(artifacts))
    sources = located.data, located.vali, located.test
    return _run(located, sources, home, force, _Entry(places, extend), progress, deadline)


def resume(
    name: str,
    *,
    trials: int | None = None,
    home: str | Path | None = None,
    jobs: int | None = None,
    trial_timeout: float | None = None,
    trial_memory: int | str | None = None,
    executor: str | Executor = "processes",
    address: str | None = None,
    storage: str | None = None,
    extend: bool = False,
    progress: Progress | None = None,
) -> StudyResult:
    """Continue a study that was interrupted, or give a finished one more trials; finished trials are kept.

    storage is needed only where its URL has a password that is found nowhere else. extend goes on
    with the wider search space that a newer version of its solvers has. The other arguments are as in tune.
    """
    folder = find_folder(_home(home), name)
    places = Locations.noted(folder.path, storage)
    force = Workforce(jobs, trial_timeout, trial_memory, executor, address)
    with _at_work(folder, force, _Entry(places), progress) as at:
        study = folder.study()
        if trials is not None:
            study = replace(study, trials=trials)
        problems = reopen(folder)
        if problems:
            folder.declare(study, folder.digests(), extend=extend)
        else:
            at.progress.stage(f"reading {study.data}")
            try:
                problems = _prepared(study, (study.data, study.vali, study.test), folder, at, extend)
            except DataError as error:
                raise StudyError(
                    f"the data of study '{name}' are not kept once it is finished, and cannot be read again: {error}"
                ) from None
        return _ran(study, problems, folder, places, at)


def read(source: Any, **options: Any) -> Queries:
    """Return the queries in a file, data frame or tuple (X, y, qid). Options: n_features, missing, one_based, ..."""
    return catalogue.read(source, **options)


def _run(
    study: Study,
    sources: tuple[Any, Any, Any],
    home: str | Path | None,
    force: Workforce,
    entry: _Entry,
    progress: Progress | None,
    deadline: Deadline,
) -> StudyResult:
    where = _home(home)
    folder = make_folder(where, study.name or free_name(where, _stem(study.data)))
    with _at_work(folder, force, entry, progress) as at:
        study = folder.check_settings(study, extend=entry.extend)
        entry.places.note(folder.path)
        at.progress.stage(f"reading {study.data}")
        problems = _prepared(study, sources, folder, at, entry.extend)
        del sources  # the workers' mapped copy serves from here on
        return _ran(study, problems, folder, entry.places, at, deadline)


def _ran(
    study: Study,
    problems: Sequence[Problem],
    folder: StudyFolder,
    places: Locations,
    at: _Work,
    deadline: Deadline | None = None,
) -> StudyResult:
    return shown(
        run_study(
            study,
            problems,
            folder,
            at.workers,
            progress=at.progress,
            deadline=deadline,
            places=places,
            events=at.events,
            owner=at.owner,
        )
    )


@dataclass(frozen=True)
class _Work:
    """What a process holds while it runs a study."""

    workers: Executor
    progress: Progress
    events: Events
    owner: Ownership | None


@contextmanager
def _at_work(folder: StudyFolder, force: Workforce, entry: _Entry, progress: Progress | None) -> Iterator[_Work]:
    """Own a study, with its workers; a signal to end becomes Interrupted."""
    heard = progress or _watcher()
    try:
        with Interrupts(), folder.owned(), closing(heard), ExitStack() as held:
            url = entry.places.storage
            owner = None if url is None else held.enter_context(Ownership(url, folder.path.name))
            events = held.enter_context(Events(folder.path, heard.event))
            workers = held.enter_context(force.assembled(apart=url is not None))
            try:
                yield _Work(workers, heard, events, owner)
            except BaseException as error:
                cause = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
                events.write(Event.STUDY_STOPPED, reason=cause)
                raise
            if owner is not None:
                owner.concluded = True
    except KeyboardInterrupt as error:
        put_back = error.put_back if isinstance(error, Interrupted) else 0
        raise Interrupted(put_back, _how_far(folder)) from None


def _how_far(folder: StudyFolder) -> str:
    """Return what an interrupted study has so far, and how to go on."""
    if not (folder.path / "study.json").exists():
        return "Nothing had begun, and nothing was kept."
    from ranktune.dashboards.terminal.listing import state  # it loads what draws tables

    name = folder.path.name
    told = f"Finished trials are in the record: `ranktune resume {name}` goes on."
    try:
        found = state(folder.path)
    except StudyError:  # the database is away, perhaps
        return told
    best = "" if found["best"] is None else f", best {found['metric']} {found['best']:.4f} ({found['solver']})"
    return f"{found['done']} of {found['trials']} trials are in the record{best}: `ranktune resume {name}` goes on."


def work(
    name: str,
    *,
    storage: str | None = None,
    home: str | Path | None = None,
    jobs: int | None = None,
    trial_timeout: float | None = None,
    trial_memory: int | str | None = None,
    wait: float = WAIT,
    progress: Progress | None = None,
) -> int:
    """Run trials of a study that another process runs (tune, run or resume), and return how many.

    The study of that name is in the database at the URL storage, on this or another machine, or else in home. Any
    number of processes may do so, and come and go. It ends with the study, or when there was no trial to take for wait
    seconds. The data are read from where they are on the machine that runs the study, or fetched from its artifacts.
    """
    heard = progress or _watcher()
    opened = InFolder(find_folder(_home(home), name)) if storage is None else InStorage(storage, name)
    with closing(heard), closing(opened) as joinable:
        with Workforce(jobs, trial_timeout, trial_memory).assembled(apart=True) as workers:
            worker = JoinedWorker(joinable, workers, heard.stage, wait=wait)
            try:
                return worker.run()
            except KeyboardInterrupt:
                raise Interrupted(worker.put_back, f"{worker.done} trials were run here.") from None


def _prepared(
    study: Study, sources: tuple[Any, Any, Any], folder: StudyFolder, at: _Work, extend: bool
) -> list[Problem]:
    """Return the problems of the data; files are read by a worker, which has to know how to compute anyway."""
    if all(source is None or (source != API_SEARCH and isinstance(source, str | Path)) for source in sources):
        return at.workers.call(read_and_prepare, study, sources, folder, extend)
    return read_and_prepare(study, sources, folder, extend, at.progress)


def _described(source: Any) -> str:
    """Return how the record names a source: its absolute path, its name, or what kind of object it is."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        return str(path.resolve()) if path.exists() else str(source)
    return f"<{type(source).__name__} in memory>"


def _stem(data: str) -> str:
    """Return the name of a study of this data: train.txt.gz of folder mslr gives mslr-train."""
    if data.startswith("<"):
        return "study"
    path = Path(data)
    stem = path.name.split(".")[0] or "study"
    return f"{path.parent.name}-{stem}" if stem.lower() in ("train", "training") and path.parent.name else stem


def _home(home: str | Path | None) -> Path:
    return default_home() if home is None else Path(home)


def _watcher() -> Progress:
    """Return a progress display where somebody watches the terminal."""
    if not sys.stderr.isatty():
        return Silent()
    from ranktune.terminal import watcher

    return watcher()
