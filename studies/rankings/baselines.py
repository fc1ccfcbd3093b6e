"""From what a user gives as the baseline of a study to its scores on the data of the study."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.data.split import Split
from ranktune.solvers.models.columns import TEXT_RULES
from ranktune.studies.rankings.base import FeatureRanking
from ranktune.studies.rankings.opening import COLUMN, open_ranking
from ranktune.studies.rankings.parts import Part, scores_of_parts, warn_if_worse_than_random
from ranktune.studies.rankings.scores import RowScores
from ranktune.tuner.study.baseline import PARTS, Baseline, load_baseline
from ranktune.tuner.study.declaration import Study


def baseline_text(given: object, data: object) -> str | None:
    """Return how the settings of a study write a baseline: a path, column:NAME, or the kind of an object in memory.

    Raises DataError for text that is neither a file nor a column of the data.
    """
    if given is None:
        return None
    if not isinstance(given, str | Path):
        return f"<{type(given).__name__} in memory>"
    if os.path.exists(given):
        return str(Path(given).resolve())
    if str(given).startswith(COLUMN):
        return str(given)
    ranking = open_ranking(given, data)
    assert isinstance(ranking, FeatureRanking)
    return ranking.name


def baseline_of(
    study: Study, splits: Sequence[Split], sources: tuple[object, ...], options: ReadOptions, home: Path
) -> Baseline | None:
    """Return the baseline of a study on splits as they were read from sources: data, vali, test and the baseline.

    Where the baseline is not given, that in the folder of the study is taken; without it, it is read again. A model may
    have learnt from the training and validation queries, so that it scores test queries alone where they are given; one
    of an earlier study has not.
    """
    if study.baseline is None:
        return None
    *read, given = sources
    if given is None:
        kept = load_baseline(home, study.baseline)
        if kept is not None:
            return kept
        given = study.baseline
    ranking = open_ranking(given, read[0], "the scores of the baseline", study.position)
    whole = len(splits) == 1 and splits[0].test is not None and read[2] is None  # the source holds several parts
    if isinstance(ranking, RowScores) and (whole or len(splits) > 1):
        raise DataError(
            f"{study.baseline} has scores in the order of rows, and {study.data} holds several parts. Give scores with "
            "query and document ids, a model, or a column."
        )
    is_model = isinstance(ranking, FeatureRanking) and not ranking.name.startswith(COLUMN)
    if is_model and not study.after and any(split.test is None for split in splits):
        warnings.warn(
            f"the baseline {study.baseline} is a model: on queries that it learned from it scores too high. Give test "
            "queries that it has not seen (test=).",
            RankTuneWarning,
            stacklevel=2,
        )
    rules = TEXT_RULES.get(ranking.wanted.solver, {})
    if rules and (whole or len(splits) > 1) and catalogue.is_text(read[0]):
        splits = catalogue.load(read[0], **{**options, **rules})
    scores: dict[tuple[str, str], Floats] = {}
    for split in splits:
        known = read if len(splits) == 1 and not whole else [None] * len(PARTS)
        parts = [
            None if queries is None else Part(queries, source, options)
            for queries, source in zip((split.train, split.vali, split.test), known, strict=True)
        ]
        if is_model and split.test is not None and not study.after:
            parts[:-1] = [None] * (len(PARTS) - 1)
        scores_of_part = zip(PARTS, scores_of_parts(ranking, parts), strict=True)
        scores |= {(split.name, part): values for part, values in scores_of_part if values is not None}
        compared = "train" if split.test is None else "test"
        if (values := scores.get((split.name, compared))) is not None:
            warn_if_worse_than_random(ranking, values, getattr(split, compared), study.metric)
    return Baseline(study.baseline, scores)
