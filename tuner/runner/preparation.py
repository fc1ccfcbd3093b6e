"""Preparation of a study: the data are written where workers map them, and the study is declared in its folder.

This module does not import the record, so that a worker that reads the data loads no database.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranktune.solvers.core.registrations import find
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.gathering import Gathering
from ranktune.tuner.evaluation.evaluate import check_metrics
from ranktune.tuner.evaluation.feature_order import check_budget
from ranktune.tuner.samplers.registry import make_sampler
from ranktune.tuner.splits.seals import DIGESTS, proven, seal
from ranktune.tuner.splits.split import IN_MEMORY
from ranktune.tuner.splits.store import remove_parts
from ranktune.tuner.study.abilities import check_able, needs_of_data, warn_of_ignored_positions
from ranktune.tuner.study.custom import declared_solvers
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from ranktune.tuner.study.problem import SplitProblem, assemble, folder_name, write_split

IN_GAP = "queries_in_gap"
"""Of the facts of a split: queries that are used for nothing, since they lie in the gap before the test queries."""


def prepare(
    study: Study,
    splits: list[QuerySplit],
    folder: StudyFolder,
    *,
    extend: bool = False,
    gathering: Gathering = IN_MEMORY,
) -> list[SplitProblem]:
    """Write the data where workers map them, and declare the study, or widen the present one if `extend`.

    splits is emptied, so that what was read is not kept in memory beside what is written. The declared study has
    metrics with one gain for all parts of the data. Raises StudyError if the folder has another study,
    ParameterError if the sampler or a metric cannot be used, or a solver not with these data.
    """
    study = _checked(study, splits, folder, extend=extend)
    digests: dict[str, str] = {}
    left_out: dict[str, dict[str, int]] = {}
    with folder.replace_data() as fresh:
        while splits:
            assembled = assemble(splits.pop(0), study, gathering)
            left_out[assembled.name] = {IN_GAP: assembled.n_in_gap} if assembled.n_in_gap else {}
            digests[assembled.name] = assembled.digest
            write_split(assembled, study, fresh)
        folder.declare(study, digests, extend=extend)
    problems = _opened(folder)
    folder.save_facts({problem.name: problem.facts | left_out[problem.name] for problem in problems})
    return problems


def _checked(study: Study, splits: Sequence[QuerySplit], folder: StudyFolder, *, extend: bool) -> Study:
    """Return the study to declare. Raises what prepare raises."""
    parts = [part for split in splits for part in (split.train, split.vali, split.test) if part is not None]
    study = study.for_grades(*(part.grades for part in parts))
    folder.check_settings(study, extend=extend)
    make_sampler(study.sampler, seed=study.seed, number=0)  # it may need a package that is not installed
    for name in study.solvers:
        if name not in declared_solvers(study.custom) or find(name) is not None:
            check_able(frozenset().union(*map(needs_of_data, parts)), (), name)
    warn_of_ignored_positions(study.solvers, parts)
    for part in parts:
        check_metrics(study.metrics, part)
        check_budget(part, study.budget)
    return study


def reopen(folder: StudyFolder) -> list[SplitProblem]:
    """Return the problems that `prepare` wrote, an empty list if they are gone, as those of a finished study.

    Raises Damaged if a file of theirs is not what was written.
    """
    problems = _folders(folder)
    if not all(path.is_dir() for path in problems.values()):
        return []
    in_memory = folder.study().data.endswith(" in memory>")
    for path in problems.values():
        if in_memory and not (path / DIGESTS).exists():
            seal(path)  # of an earlier version, which kept no digests, and these data have no other source
        proven(path)
        remove_parts(path)  # whose files have no digests
    return _opened(folder)


def _opened(folder: StudyFolder) -> list[SplitProblem]:
    return [SplitProblem.open(path, name) for name, path in _folders(folder).items()]


def _folders(folder: StudyFolder) -> dict[str, Path]:
    """Return the folder of each split's problem."""
    study = folder.study()
    return {name: folder.data / folder_name(name, digest, study) for name, digest in folder.digests().items()}
