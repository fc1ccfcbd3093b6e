"""Whole studies that decide by another policy than that of every study, and single decisions."""

from pathlib import Path
from typing import Any

from ranktune.solvers.core.space import Value
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.tuner.evaluation.evaluate import attempt
from ranktune.tuner.policy.actions import Finish
from ranktune.tuner.policy.next_trial import next_action
from ranktune.tuner.policy.policy import Policy
from ranktune.tuner.runner.engine import StudyRun
from ranktune.tuner.runner.preparation import prepare
from ranktune.tuner.search.loop import Objective
from ranktune.tuner.search.progress import Progress, Silent
from ranktune.tuner.search.search_scheduler import SearchScheduler
from ranktune.tuner.selection.results import Result
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.events import Events
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.workers.executor import InProcess


def run_by(
    policy: Policy,
    folder: Path,
    split: QuerySplit,
    progress: Progress | None = None,
    objective: Objective = attempt,
    **settings: Any,
) -> Result:
    """Run a study of the split by a policy, in this process."""
    study, home = Study(name=folder.name, data="<Queries in memory>", **settings), StudyFolder(folder)
    with home.owned(), Events(folder) as events, InProcess() as executor:
        run = StudyRun(study, home, executor, progress or Silent(), objective, events=events, policy=policy)
        return run.run(prepare(study, [split], home))


def begun(scheduler: SearchScheduler, number: int, left: float) -> dict[str, Value] | None:
    """Begin the trial that is next, and return its parameters, None where the search ends."""
    action = next_action(scheduler.state, left)
    return None if isinstance(action, Finish) else scheduler.begin(number, action)
