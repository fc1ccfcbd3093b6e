"""The function retune: a study goes on with new data, and its model is kept, refitted or replaced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ranktune.api import name_of, resume, workforce
from ranktune.arguments import RetuneArguments, takes
from ranktune.daily.portfolio import earlier_of
from ranktune.notebook import StudyResult
from ranktune.reading import is_of
from ranktune.session import display, running
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.declared import declared
from ranktune.solvers.core.errors import ParameterError, StudyError, warn
from ranktune.solvers.data.readers.formats import reader_of
from ranktune.tuner.retuning.earlier import FILE
from ranktune.tuner.retuning.versions import decision_of, first_of, recorded, settle, versions
from ranktune.tuner.samplers.first import first_configurations
from ranktune.tuner.splits.seals import is_written
from ranktune.tuner.storage.locations import Locations
from ranktune.tuner.study.custom import restore_custom
from ranktune.tuner.study.deadline import Deadline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder, free_name, home_folder, make_folder, writing
from ranktune.tuner.study.settings import NO_TEST

SHARE = 0.1
"""Share of the budget of the first study."""


@dataclass(frozen=True)
class Retuned:
    """What retuning ended with.

    Attributes
    ----------
    decision : str
        "keep", "refit" or "replace".
    model : Path
        The model that is current now.
    evidence : dict
        The contenders against the incumbent with their intervals, how far the data have moved, and what is delivered.
    result : StudyResult
        The result of the new version.
    current : str
        A sentence: which model is current, and how that of this version is made current where it is not.
    """

    decision: str
    model: Path
    evidence: Json
    result: StudyResult
    current: str


@takes(RetuneArguments)
def retune(options: RetuneArguments) -> Retuned:
    """Tune a study further on new data, and decide whether its model is kept, refitted or replaced.

    The new version has the settings of the study, and a tenth of its budget. The trials of the latest version are
    evidence, with the noise by which the values of a few of them move between the data. Without a significant gain over
    the current model that is kept. A version that was interrupted is continued where the data are the same.

    {parameters}

    Returns
    -------
    Retuned
        The decision, the model that is current now, the evidence, and the result of the new version.

    Raises
    ------
    StudyError
        If there is no such study, if it has not ended, or if the model of the current version is gone.
    ParameterError
        If an argument is invalid.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import ranktune
    >>> from ranktune.daily.retuning import retune
    >>> def day(seed):
    ...     X = np.random.default_rng(seed).normal(size=(400, 5))
    ...     return X, (X[:, 0] + X[:, 1] > 0).astype(int), np.repeat(np.arange(40), 10)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     _ = ranktune.tune(day(0), name="shop", solvers="RidgeRanker", trials=4, jobs=1, home=home)
    ...     retuned = retune("shop", day(1), jobs=1, home=home)
    >>> retuned.decision
    'keep'
    """
    home, deadline = home_folder(options.home), Deadline.after(options.timeout)
    first = first_of(home, options.name)
    name = first.path.name
    all_versions, sources = versions(home, name), (options.data, options.vali, options.test)
    for source in sources:
        if source is not None and name_of(source) != NO_TEST:
            reader_of(source)  # it raises where there is none
    *_, last = [first, *(each for each in all_versions[1:] if options.version in (None, each.path.name))]
    is_open = last != first and not _is_decided(last) and (options.version is not None or not last.is_running())
    open_version = last if is_open else None
    if open_version is not None and not _is_of(open_version, sources):
        begun = f"version '{last.path.name}' of '{name}' was interrupted, on other data than these"
        goes_on = f"`ranktune resume {last.path.name}` goes on with its own data."
        if options.version is not None:
            raise StudyError(f"{begun}. Choose another name for the new version (version=); {goes_on}")
        warn(f"{begun}. It is left as it is, and a new version begins; {goes_on}")
        open_version = None
    if open_version is not None and is_written(open_version.path / FILE):
        return _retuned(open_version, resume(open_version.path.name, **_runtime(options)))
    latest = next(each for each in reversed(all_versions) if each == first or _is_decided(each))
    if not latest.has_result:
        raise StudyError(f"study '{latest.path.name}' has not ended. `ranktune resume {latest.path.name}` goes on.")
    incumbent, dated = recorded(home, name), f"{name}@{datetime.now().astimezone():%Y-%m-%d}"
    if not incumbent.path(home).exists():
        raise StudyError(f"the model of version '{incumbent.version}', {incumbent.path(home)}, is gone. Restore it.")
    latest.warn_of_versions()
    restore_custom(name, first.study().custom)
    study = _declared(options, first, incumbent.path(home))
    earlier, study = earlier_of(home, latest, incumbent, study, options.storage)
    study = _with_budget(study, options, first, len(first_configurations(replace(study, after=name).union_space())))
    version = options.version or (open_version.path.name if open_version else free_name(home, dated))
    study = replace(study, after=latest.path.name, name=version)
    folder, locations = make_folder(home, version), Locations.load(first.path)
    locations = replace(locations, storage=options.storage or locations.storage)
    if folder.has_begun and folder.study().after != latest.path.name:
        raise StudyError(f"there is a study '{version}' already. Choose another name for the version (version=).")
    with running(folder, workforce(options), locations, options.progress or display(options.verbose)) as session:
        session.progress.stage(_budget_line(study, version, len(earlier.observed)))
        locations.save(folder.path)
        problems = session.prepare(study, (*sources, str(incumbent.path(home))), options.extend)
        if len(problems) > 1:
            raise ParameterError(
                f"{study.data} has {len(problems)} parts with tests of their own. Give one file or table."
            )
        with writing(folder.path):
            earlier.save(folder.path)
        result = session.run(folder.study(), problems, deadline if options.timeout else Deadline.after(study.timeout))
    return _retuned(folder, result)


def ended(
    name: str, data: str, vali: str | None, test: str | None, version: str | None, home: str | Path | None
) -> tuple[Json, str] | None:
    """Return what a version of a study has ended with, and its metric; None where it has not, or not on these data.

    This is for commands that are given again since they were killed.
    """
    found = (each for each in versions(home_folder(home), name)[1:] if each.path.name == version and _is_decided(each))
    folder = next(found, None)
    if folder is None or not _is_of(folder, (data, vali, test)):
        return None
    folder.remove_data()  # which a full disk may have left
    decided = decision_of(folder) or {}
    model, line = settle(folder)
    return {"study": folder.path.name, "model": str(model), "current": line, **decided}, folder.study().metric


def _declared(options: RetuneArguments, first: StudyFolder, incumbent: Path) -> Study:
    """Return the study of a new version, with the budget of the first study."""
    study = first.as_it_began()
    return replace(
        study,
        data=name_of(options.data),
        vali=None if options.vali is None else name_of(options.vali),
        test=None if options.test is None or name_of(options.test) == NO_TEST else name_of(options.test),
        plan="auto" if study.plan == "nested" or (study.plan == "split" and options.vali is None) else study.plan,
        baseline=str(incumbent.resolve()),
        preset=None,
    )


def _with_budget(study: Study, options: RetuneArguments, first: StudyFolder, tried: int) -> Study:
    """Return the study with its budget: what is given, or a tenth, and at least what is tried first and one more."""
    whole = first.study()
    timed = whole.timeout is not None or whole.until is not None
    trials = whole.trials if timed else max(round(SHARE * (whole.trials or 0)), tried + 1)
    timeout = None if whole.timeout is None else SHARE * whole.timeout
    return replace(study, trials=options.trials or trials, timeout=options.timeout or timeout)


def _budget_line(study: Study, version: str, earlier: int) -> str:
    seconds = "" if study.timeout is None else f", {study.timeout:g} seconds"
    trials = f"{study.n_trials} trial{'s' * (study.n_trials != 1)}" if study.ends_by_count else "trials as time allows"
    return f"{version}: {trials}{seconds}, after {earlier} observations of '{study.after}'"


def _retuned(folder: StudyFolder, result: StudyResult) -> Retuned:
    decided = decision_of(folder) or {}
    model, line = settle(folder)
    return Retuned(decided["decision"], model, decided, result, line)


def _is_of(version: StudyFolder, sources: tuple[object, object, object]) -> bool:
    with version.owned():
        return is_of(version, (*sources, None))


def _is_decided(folder: StudyFolder) -> bool:
    return folder.has_result and decision_of(folder) is not None


def _runtime(options: RetuneArguments) -> Json:
    names = {field.name for field in declared(RetuneArguments)} - {"name", "data", "vali", "test", "timeout", "version"}
    return {name: getattr(options, name) for name in names}
