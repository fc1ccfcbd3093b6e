"""The Python face: tune, run, resume, read. The command line calls these and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranktune.notebook import StudyResult, shown
from ranktune.solvers.errors import DataError, ParameterError, StudyError
from ranktune.solvers.queries import Queries
from ranktune.studies import catalogue
from ranktune.tuner.deadline import Deadline
from ranktune.tuner.engine import prepare, reopen, run_study
from ranktune.tuner.executor import Executor, make_executor
from ranktune.tuner.home import StudyFolder, default_home, find_folder, free_name, make_folder
from ranktune.tuner.plans import DEFAULT_FOLDS, DEFAULT_PERMUTATIONS
from ranktune.tuner.problem import Problem
from ranktune.tuner.progress import Progress, Silent
from ranktune.tuner.split import Split, nested_splits
from ranktune.tuner.study import DEFAULT_METRIC, DEFAULT_TRIALS, NO_TEST, TRIALS_BY_TIME, Study

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
    sampler: str = "thompson",
    within: str = "",
    seed: int = 0,
    refit: bool = True,
    space: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    name: str | None = None,
    home: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Tune the solvers on data and return what was found: leaderboard, chosen model, where it was saved.

    data is a path (LETOR / SVMlight text, csv, parquet, npz, or a folder Fold1..Fold5), a Queries, a data frame, a
    tuple (X, y, qid), or "api-search", the embedded example. vali and test likewise; without test, a fifth of the
    training queries is set aside first, with test="none" none is. Trials are 30 by default, or with a timeout (seconds
    for everything, reading too, which the solvers share) as many as fit. The other fields are those of Study. jobs is
    the number of processes, all cores by default. An existing name with the same settings is continued.
    """
    deadline = Deadline.after(timeout)
    if trials is None:
        trials = DEFAULT_TRIALS if timeout is None else TRIALS_BY_TIME
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
        sampler=sampler,
        within=within,
        seed=seed,
        refit=refit,
        space=space or {},
        reading=reading or {},
    )
    return _run(study, (data, vali, test), home, jobs, progress, deadline)


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def run(
    study: Study | str | Path,
    *,
    home: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Run a declared study: a Study whose data are paths or names, or the path of its TOML file."""
    declared = study if isinstance(study, Study) else Study.from_toml(study)
    deadline = Deadline.after(declared.timeout)
    located = replace(
        declared,
        data=_described(declared.data or API_SEARCH),
        vali=declared.vali and _described(declared.vali),
        test=declared.test and _described(declared.test),
    )
    return _run(located, (located.data, located.vali, located.test), home, jobs, progress, deadline)


def resume(
    name: str,
    *,
    trials: int | None = None,
    home: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Continue a study that was interrupted, or give a finished one more trials; finished trials are kept."""
    folder = find_folder(_home(home), name)
    progress = progress or _watcher()
    with folder.owned(), closing(progress), make_executor(_cores() if jobs is None else jobs) as executor:
        study = folder.study()
        if trials is not None:
            study = replace(study, trials=trials)
        if folder.data.is_dir():
            folder.declare(study, folder.digests())
            problems = reopen(folder)
        else:
            progress.stage(f"reading {study.data}")
            try:
                problems = _prepared(study, (study.data, study.vali, study.test), folder, executor, progress)
            except DataError as error:
                raise StudyError(f"study '{name}' is finished, and its data cannot be read again: {error}") from None
        return shown(run_study(study, problems, folder, executor, progress=progress))


def read(source: Any, **options: Any) -> Queries:
    """Return the queries in a file, data frame or tuple (X, y, qid). Options: n_features, missing, one_based, ..."""
    return catalogue.read(source, **options)


def _run(
    study: Study,
    sources: tuple[Any, Any, Any],
    home: str | Path | None,
    jobs: int | None,
    progress: Progress | None,
    deadline: Deadline,
) -> StudyResult:
    progress = progress or _watcher()
    where = _home(home)
    folder = make_folder(where, study.name or free_name(where, _stem(study.data)))
    with folder.owned(), closing(progress), make_executor(_cores() if jobs is None else jobs) as executor:
        folder.check_settings(study)
        progress.stage(f"reading {study.data}")
        problems = _prepared(study, sources, folder, executor, progress)
        del sources  # the workers' mapped copy serves from here on
        return shown(run_study(study, problems, folder, executor, progress=progress, deadline=deadline))


def _prepared(
    study: Study, sources: tuple[Any, Any, Any], folder: StudyFolder, executor: Executor, progress: Progress
) -> list[Problem]:
    """Return the problems of the data; files are read by a worker, which has to know how to compute anyway."""
    if all(source is None or (source != API_SEARCH and isinstance(source, str | Path)) for source in sources):
        return executor.call(_read_and_prepare, study, sources, folder)
    return _read_and_prepare(study, sources, folder, progress)


def _read_and_prepare(
    study: Study, sources: tuple[Any, Any, Any], folder: StudyFolder, progress: Progress | None = None
) -> list[Problem]:
    return prepare(study, _loaded(study, *sources, progress or Silent()), folder)


def _loaded(study: Study, data: Any, vali: Any, test: Any, progress: Progress) -> list[Split]:
    """Return the splits of the data; a single one needs no name of its own."""
    given = None if isinstance(test, str) and test == NO_TEST else test
    splits = catalogue.load(data, vali=vali, test=given, progress=progress.stage, **study.reading)
    if study.plan == "nested":
        if len(splits) > 1:
            raise ParameterError(
                f"{data} brings folds with test queries of their own, which judge already. Leave plan='nested' out."
            )
        return nested_splits(splits[0], study.outer, study.seed)
    return splits if len(splits) > 1 else [replace(splits[0], name="")]


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


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def _watcher() -> Progress:
    """Return a progress display where somebody watches the terminal."""
    if not sys.stderr.isatty():
        return Silent()
    from ranktune.terminal import watcher

    return watcher()
