"""What an earlier study found, as configurations that another one tries first."""

from __future__ import annotations

from collections.abc import Mapping

import optuna
from optuna.trial import TrialState

from ranktune.solvers.core.space import Value
from ranktune.tuner.storage.database import open_storage
from ranktune.tuner.storage.locations import Locations, record_name
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder


def record(folder: StudyFolder, split: str) -> optuna.Study:
    """Return the record of a split as an Optuna study."""
    storage = open_storage(Locations.load(folder.path).storage or folder.split(split) / "record.db")
    return optuna.load_study(study_name=record_name(folder.path.name, split), storage=storage)


def known_first(study: Study, folder: StudyFolder) -> dict[str, list[Mapping[str, Value]]]:
    """Return what a study tries first: what it is given, then the best of the study in a folder, of each solver.

    A configuration that is outside of the search space of the study is left out. So are solvers that do not compete.
    """
    space = study.union_space()
    first = {solver: list(listed) for solver, listed in study.first.items()}
    for solver, values in _best(folder).items():
        if solver in study.solvers and space.configuration(solver, values) is not None:
            first.setdefault(solver, []).append(values)
    return first


def _best(folder: StudyFolder) -> dict[str, dict[str, Value]]:
    """Return the values of parameters of the trial with the highest value of each solver, of all splits."""
    space, best = folder.study().union_space(), dict[str, tuple[float, dict[str, Value]]]()
    for trial in (trial for split in folder.split_names() for trial in record(folder, split).trials):
        if trial.state == TrialState.COMPLETE and trial.value is not None:
            solver, values = space.split(trial.params)
            if solver not in best or trial.value > best[solver][0]:
                best[solver] = trial.value, values
    return {solver: values for solver, (_, values) in best.items()}
