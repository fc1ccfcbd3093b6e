"""From sources of data to the problems of a study. A worker process reads sources that are files."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from ranktune.solvers.core.errors import ParameterError
from ranktune.studies import catalogue
from ranktune.tuner.runner.preparation import prepare
from ranktune.tuner.runner.progress import Progress, Silent
from ranktune.tuner.splits.split import Split, nested_splits
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.problem import Problem
from ranktune.tuner.study.settings import NO_TEST

Sources: TypeAlias = tuple[object, object, object]
"""data, vali and test: each a path, a name, an object in memory, or None."""


def read_and_prepare(
    study: Study, sources: Sources, folder: StudyFolder, extend: bool, progress: Progress | None = None
) -> list[Problem]:
    """Read the data, write them where workers map them and declare the study. Raises what prepare raises."""
    return prepare(study, _loaded(study, sources, progress or Silent()), folder, extend=extend)


def _loaded(study: Study, sources: Sources, progress: Progress) -> list[Split]:
    """Return the splits of the data; a single one has no name."""
    data, vali, test = sources
    given = None if isinstance(test, str) and test == NO_TEST else test
    splits = catalogue.load(data, vali=vali, test=given, progress=progress.stage, **study.reading)
    if study.plan == "nested":
        if len(splits) > 1:
            raise ParameterError(
                f"{data} has folds with test queries of their own, which judge already. Leave plan='nested' out."
            )
        return nested_splits(splits[0], study.outer, study.seed)
    return splits if len(splits) > 1 else [replace(splits[0], name="")]
