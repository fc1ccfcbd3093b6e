"""From sources of data to the problems of a study.

A worker process reads sources that are files.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, cast

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError, RankTuneError, listed, warn
from ranktune.solvers.core.memory import limited_to, release_freed
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.columns.decisions import Undecided, questions
from ranktune.solvers.data.gathering import Gathering
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import LoadOptions, ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.data.sources.inspection import DATE, questions_on, suspects
from ranktune.tuner.runner.preparation import prepare
from ranktune.tuner.selection.rows import CLICKS
from ranktune.tuner.splits.seals import write_sealed
from ranktune.tuner.splits.split import by_time, nested_splits
from ranktune.tuner.study.baseline import Baseline
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder, writing
from ranktune.tuner.study.problem import SplitProblem, assemble
from ranktune.tuner.study.settings import NO_TEST
from ranktune.tuner.workers.limits import load_libraries

Sources: TypeAlias = tuple[object, object, object, object]
"""data, vali, test and baseline: each a path, a name, an object in memory, or None."""


def load_for_workers() -> None:
    """Load what workers need for trials and for the end of a study; this module has what they need for reading."""
    import ranktune.tuner.selection.finals  # noqa: F401

    load_libraries()


def read_and_prepare(
    study: Study,
    sources: Sources,
    folder: StudyFolder,
    extend: bool,
    memory: int | None = None,
) -> list[SplitProblem]:
    """Read the data, write them where workers map them and declare the study. Raises what prepare raises.

    memory is the bytes of the whole study: data that would take more are refused before they are read.
    """
    with limited_to(memory), folder.gathering() as place:
        gathering = Gathering(place)
        splits, baseline, about = _loaded(study, sources, folder.path, gathering)
        problems = prepare(study, splits, folder, extend=extend, gathering=gathering)
    if baseline is not None:
        baseline.save(folder.path)
    if study.clicks:
        with writing(folder.path):
            write_sealed(folder.path / CLICKS, json.dumps(about))
    release_freed()
    return problems


def is_of(folder: StudyFolder, sources: Sources, memory: int | None = None) -> bool:
    """Return whether sources hold the data that a study began with, by content; whatever goes on with it asks this.

    Raises what reading raises.
    """
    study = replace(folder.study(), baseline=None)
    with limited_to(memory), folder.gathering() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were given when the study began
        gathering = Gathering(place)
        splits, *_ = _loaded(study, sources, folder.path, gathering)
        found = {split.name: assemble(split, study, gathering).digest for split in splits}
    release_freed()
    return found == folder.digests()


def changed(folder: StudyFolder, memory: int | None = None) -> str:
    """Return that the files of a study hold other data than it began with; "" where they do not, or are not there."""
    study = folder.study()
    named = [str(source) for source in (study.data, study.vali, study.test) if source not in (None, NO_TEST)]
    try:
        if not all(map(os.path.exists, named)) or is_of(folder, (study.data, study.vali, study.test, None), memory):
            return ""
    except RankTuneError as error:
        return f"the study goes on with the data that it began with; those of today cannot be compared: {error}"
    return f"{named[0]} no longer holds the data that the study began with, and goes on with."


def _loaded(
    study: Study, sources: Sources, home: Path, gathering: Gathering
) -> tuple[list[QuerySplit], Baseline | None, Json]:
    """Return the splits of the data, of which a single one has no name, the baseline, and what the click log has.

    home is the folder of the study.
    """
    data, vali, test, _ = sources
    untested = isinstance(test, str) and test == NO_TEST
    tested = None if untested else test
    options = cast(LoadOptions, study.read_options)
    splits = catalogue.load(data, vali=vali, test=tested, **options)
    _check_suspects(splits[0].train, options, catalogue.is_table(data))
    about: Json = {}
    if study.clicks:
        about, splits = _with_clicks(study, splits)
    baseline = None
    if study.baseline is not None:
        from ranktune.comparing import baseline_of  # it loads what reads models of others

        baseline = baseline_of(study, splits, (data, vali, tested, sources[3]), options, home)
    if baseline is not None:
        splits = baseline.on(splits)
    if study.group_by_time is not None:
        splits = [by_time(split, tested=not untested) for split in splits]
    if study.plan == "nested":
        if len(splits) > 1:
            raise ParameterError(
                f"{data} has folds with test queries of their own, which judge already. Leave plan='nested' out."
            )
        return nested_splits(splits[0], study.outer, study.seed, gathering, study.gap), baseline, about
    return splits if len(splits) > 1 else [replace(splits[0], name="")], baseline, about


def _with_clicks(study: Study, splits: Sequence[QuerySplit]) -> tuple[Json, list[QuerySplit]]:
    """Return what the click log of a study has and lacks, and splits with what it tells of them."""
    from ranktune.solvers.clicks.judging.values import open_gains

    _, gains = open_gains(study.clicks, study.click_columns, study.propensities)
    first = splits[0]
    parts = [part for part in (first.train, first.vali, first.test) if part is not None]
    about = gains.about(parts)
    gains.check(about, first.train, listed(study.clicks))
    return about, [
        QuerySplit(
            split.name,
            gains.on(split.train),
            *(None if part is None else gains.on(part) for part in (split.vali, split.test)),
        )
        for split in splits
    ]


def _check_suspects(queries: Queries, options: ReadOptions, takes_columns: bool) -> None:
    """Warn of features that look wrong. Raises Undecided for copies of the grade that the options do not name.

    And for other likely leaks where the options can name columns.
    """
    suspicious = suspects(queries)
    asked = questions_on(suspicious, options.get("features"))
    if any(decision.is_needed for decision in asked) and (takes_columns or any(row.is_copy for row in suspicious)):
        raise Undecided(asked)
    warned = [suspect.decision for suspect in suspicious if suspect.kind != DATE]
    if warned:
        warn(questions(warned))
