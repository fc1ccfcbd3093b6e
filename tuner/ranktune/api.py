"""The Python functions tune, run, resume and work; the command line calls them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from ranktune.arguments import (
    NewStudyRuntime,
    ResumeArguments,
    RunArguments,
    StudyRuntime,
    TuneArguments,
    WorkArguments,
    takes,
)
from ranktune.dashboards.web.tracking import check_installed
from ranktune.earlier import known_first
from ranktune.notebook import StudyResult, shown
from ranktune.reading import Sources, changed
from ranktune.session import display, finished, running
from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.solvers.core.declared import declared
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError, nearest, spelt, warn
from ranktune.solvers.data.api_search import NAME as API_SEARCH
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.retuning.versions import settle
from ranktune.tuner.runner.joining import DatabaseStudy, FolderStudy
from ranktune.tuner.runner.worker import JoinedWorker
from ranktune.tuner.storage.locations import Locations
from ranktune.tuner.study.custom import restore_custom
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import NoStudy, find_folder, free_name, home_folder, make_folder
from ranktune.tuner.study.settings import TIMED, Settings, toml_fields
from ranktune.tuner.workers.interrupts import Interrupted
from ranktune.tuner.workers.workforce import Workforce


@takes(TuneArguments)
def tune(options: TuneArguments) -> StudyResult:
    """Tune the solvers on data, choose a model by validation, evaluate it on test, and save it.

    {parameters}

    Returns
    -------
    StudyResult
        The leaderboard, the chosen model with its validation estimate, and where it was saved.

    Raises
    ------
    ParameterError
        If an argument is invalid.
    DataError
        If the data cannot be read.
    StudyError
        If the study exists with other settings, or cannot be written.
    AllFailed
        If every trial failed.

    Notes
    -----
    data, vali and test are each a path, "api-search" (the embedded example), a Queries, a data frame, a tuple
    (X, y, qid), a lightgbm.Dataset or an xgboost.DMatrix; ranktune.read lists the files. Without test, a fifth of the
    training queries is set aside first. With timeout, the solvers share the time. With a database as storage, other
    processes join by work or `ranktune resume --join`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import ranktune
    >>> X = np.random.default_rng(0).normal(size=(200, 9))
    >>> y, qid = (X[:, 0] + X[:, 8] > 0).astype(int), np.repeat(np.arange(20), 10)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     result = ranktune.tune((X[:, :8], y, qid), solvers="RidgeRanker", trials=5, jobs=1, home=home)
    >>> result.trials, int(result.best.nonzeros)
    (5, 8)
    """
    deadline = Deadline.after(options.timeout)
    sources = options.data, options.vali, options.test, options.baseline
    settings = {name: value for name, value in settings_of(options).items() if value is not None} | _described(sources)
    for option in declared(Settings):
        if option.kind == Sequence[str] and isinstance(settings.get(option.name), str):
            settings[option.name] = (settings[option.name],)
    return _run(Study(**settings | _files(settings)), sources, options, deadline)


def settings_of(study: Settings) -> Json:
    """Return the settings of a study by name."""
    return {option.name: getattr(study, option.name) for option in declared(Settings)}


def study_file(path: str | Path) -> Json:
    """Return the arguments of tune that a study file gives. Raises ParameterError where tune has no such argument."""
    values = toml_fields(path)
    names = [option.name for option in declared(TuneArguments) if not option.setting.python_only]
    for name in values:
        if name not in names:
            raise ParameterError(f"{path}: a study has no field '{name}'. {nearest(name, names)}")
    return {"data": API_SEARCH} | values


def workforce(options: StudyRuntime) -> Workforce:
    """Return the workers that the options of a study ask for."""
    return Workforce(
        options.jobs, options.trial_timeout, options.trial_memory, options.executor, options.address, options.memory
    )


@takes(RunArguments)
def run(options: RunArguments) -> StudyResult:
    r"""Run a declared study, whose data are paths or names.

    A file may also say how its study runs: its fields are the arguments of tune. Arguments take precedence over them.

    {parameters}

    Returns
    -------
    StudyResult
        What tune returns.

    Raises
    ------
    ParameterError
        If the file cannot be read, or a field of it is invalid.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import ranktune
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> lines = [f"{int(x[0] + x[1] > 0)} qid:{k // 10} 1:{x[0]} 2:{x[2]} 3:{x[3]}" for k, x in enumerate(X)]
    >>> with tempfile.TemporaryDirectory() as home:
    ...     data = Path(home, "train.txt")
    ...     _ = data.write_text("\n".join(lines))
    ...     study = ranktune.Study(name="mine", data=str(data), metric="pairwise", solvers=["RankSVM"], trials=2)
    ...     result = ranktune.run(study, jobs=1, home=home)
    >>> result.trials
    2
    """
    study = options.study
    fields = (
        study_file(study) if isinstance(study, str | Path) else settings_of(study) | {"data": study.data or API_SEARCH}
    )
    changed = {name: value for name, value in vars(options).items() if value != getattr(NewStudyRuntime, name, value)}
    return tune(**(fields | changed))


@takes(ResumeArguments)
def resume(options: ResumeArguments) -> StudyResult:
    """Continue a study that was interrupted, or give a finished one more trials.

    Finished trials are kept. storage is needed only where its URL has a password that is stored nowhere else. extend
    continues with the wider search space that a newer version of the solvers has.

    {parameters}

    Returns
    -------
    StudyResult
        What tune returns.

    Raises
    ------
    StudyError
        If there is no such study, or if its data are gone.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import ranktune
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y, qid = (X[:, 0] + X[:, 1] > 0).astype(int), np.repeat(np.arange(20), 10)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     data = Path(home, "train.data")
    ...     _ = ranktune.convert((X[:, 1:], y, qid), data)
    ...     _ = ranktune.tune(data, name="mine", solvers="RankSVM", trials=2, jobs=1, home=home)
    ...     result = ranktune.resume("mine", trials=3, jobs=1, home=home)
    >>> result.trials
    3
    """
    folder = find_folder(home_folder(options.home), options.name)
    locations = Locations.load(folder.path, options.storage)
    if options.storage is not None and locations.storage != options.storage:
        message = f"study '{options.name}' keeps its record where it began, and goes on there: storage= is not used."
        warn(message)
    with running(folder, workforce(options), locations, options.progress or display(options.verbose)) as session:
        restore_custom(options.name, folder.study().custom)
        study = folder.study() if options.extend else folder.as_it_began()
        ended = None if options.extend or options.trials is not None else finished(folder, study)
        if options.trials is not None:
            study = replace(study, trials=options.trials)
        problems, gone = ([], "") if ended is not None else session.reopened()
        if ended is not None:
            session.progress.stage(f"study '{options.name}' is finished; {spelt('trials=')} gives it more trials")
        elif problems:
            folder.declare(study, folder.digests(), extend=options.extend)
            if text := session.workers.call(changed, folder, session.memory):
                warn(text)
        else:
            try:
                problems = session.prepare(study, (study.data, study.vali, study.test, None), options.extend)
            except DataError as error:
                raise StudyError(
                    f"the data of study '{options.name}' {gone}, and cannot be read again: {error}"
                ) from None
        result = session.run(study, problems) if ended is None else shown(ended)
        with suppress(StudyError):  # a version whose first study is gone
            if line := settle(folder, move=False)[1]:
                session.progress.stage(line)
        return result


def _run(study: Study, sources: Sources, options: NewStudyRuntime, deadline: Deadline) -> StudyResult:
    if study.mlflow is not None:
        check_installed()
    home = home_folder(options.home)
    locations = Locations(options.storage, None if options.artifacts is None else str(options.artifacts))
    force = workforce(options)
    if options.like is not None:
        study = replace(study, first=known_first(study, find_folder(home, options.like)))
    folder = make_folder(home, study.name or free_name(home, _stem(study.data)))
    with running(folder, force, locations, options.progress or display(options.verbose)) as session:
        study = folder.check_settings(study, extend=options.extend)
        locations.save(folder.path)
        problems = session.prepare(study, sources, options.extend)
        del sources  # the workers' mapped copy serves from here on
        return session.run(folder.study(), problems, deadline, study.mlflow)


@takes(WorkArguments)
def work(options: WorkArguments) -> int:
    """Run trials of a study that another process runs (tune, run or resume).

    The study of that name is in the database at the URL storage, on this or another machine, or else in home. Any
    number of processes may join and leave. The call ends with the study, or when there was no trial for wait seconds;
    a study that no process runs yet is waited for as long.
    The data are read from where they are on the machine that runs the study, or fetched from its artifacts.

    {parameters}

    Returns
    -------
    int
        The number of trials that were run here.

    Raises
    ------
    StudyError
        If there is no such study by then.

    Examples
    --------
    >>> from ranktune import api
    >>> api.work("mine", storage="postgresql://me@host/runs", jobs=8)  # doctest: +SKIP
    """
    progress = options.progress or display(options.verbose)
    with closing(progress), closing(_joinable(options, progress.stage)) as joinable:
        force = Workforce(options.jobs, options.trial_timeout, options.trial_memory, memory=options.memory)
        with force.assembled(apart=True) as workers:
            worker = JoinedWorker(joinable, workers, progress.stage, wait=options.wait)
            try:
                return worker.run()
            except KeyboardInterrupt:
                raise Interrupted(worker.put_back, f"{worker.done} trial{'s' * (worker.done != 1)} ran here.") from None


def _joinable(options: WorkArguments, say: Callable[[str], None]) -> FolderStudy | DatabaseStudy:
    """Return the study once another process runs it. Raises NoStudy if that is not within options.wait seconds."""
    until, has_said = time.monotonic() + options.wait, False
    while True:
        try:
            if options.storage is not None:
                return DatabaseStudy(options.storage, options.name)
            folder = find_folder(home_folder(options.home), options.name)
            if folder.is_running() or folder.has_result:
                return FolderStudy(folder)
            raise NoStudy(f"no process runs study '{options.name}' in {folder.path}. Continue it (`ranktune resume`).")
        except NoStudy as missing:
            if time.monotonic() >= until:
                raise
            if not has_said:
                say(f"{missing} Waiting for it for up to {options.wait:g} seconds")
            has_said = True
        time.sleep(1.0)


def _described(sources: Sources) -> Json:
    """Return data, vali, test and baseline as the record names them; a source that is None is left out."""
    data, *_, baseline = sources
    parts = zip(("data", "vali", "test"), sources, strict=False)
    names = {name: name_of(option) for name, option in parts if option is not None}
    if baseline is None:
        return names
    from ranktune.comparing import baseline_text  # it loads what reads models of others

    return names | {"baseline": baseline_text(baseline, data)}


def _files(settings: JsonView) -> Json:
    """Return the settings that are files beside the data, as the record names them."""
    named: Json = {name: name_of(settings[name]) for name in ("qrels", "propensities") if settings.get(name)}
    logs = settings.get("clicks") or ()
    return named | {"clicks": tuple(map(name_of, (logs,) if isinstance(logs, str | Path) else logs))}


def name_of(source: object) -> str:
    """Return the absolute path of a source, its name, or what kind of object it is."""
    if isinstance(source, str | Path):
        return str(Path(source).resolve()) if str(source) and os.path.exists(source) else str(source)
    timed = isinstance(source, Queries) and source.times is not None
    return TIMED if timed else f"<{type(source).__name__} in memory>"


def _stem(data: str) -> str:
    """Return the name of a study of this data: train.txt.gz of folder mslr gives mslr-train."""
    if data.startswith("<"):
        return "study"
    path = Path(data)
    stem = path.name.split(".")[0] or "study"
    return f"{path.parent.name}-{stem}" if stem.lower() in ("train", "training") and path.parent.name else stem
