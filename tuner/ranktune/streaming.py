"""Data of any size: the functions one_pass, which tunes in one pass over them, and convert.

convert writes data into a folder that is opened without reading it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from ranktune.solvers.core.checks import check_count
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.core.files.atomic import atomic_write
from ranktune.solvers.data.blocks import block_of
from ranktune.solvers.data.conversion.convert import write_converted
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.formats import check_options, check_part, reader_of
from ranktune.solvers.data.readers.parsing.options import LoadOptions, ReadOptions
from ranktune.solvers.data.readers.parsing.streams import check_path
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.metrics.metrics import chosen_metric
from ranktune.solvers.metrics.presets import CLICK_METRICS
from ranktune.solvers.models.base import load_model
from ranktune.tuner.one_pass.result import RANKERS, OnePassResult
from ranktune.tuner.one_pass.tuning import OnePassTuning, tested
from ranktune.tuner.study.abilities import warn_of_ignored_positions

CHECKPOINT, STATE, MODEL, RESULT = "checkpoint.npz", "state.npz", "model.json", "result.json"
"""The files of a pass in its folder; the first one is there until the pass has ended, and then is the second."""


def one_pass(
    data: object,
    *,
    test: object = None,
    metric: str = "ndcg@10",
    solvers: Sequence[str] | str = (),
    configurations: int = 64,
    survivors: int = 16,
    held_out: float = 0.1,
    after: str | Path | None = None,
    folder: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[ReadOptions],
) -> OnePassResult:
    """Tune linear rankers in one pass over the data, for data that are too large, or too many, to be read often.

    Many configurations learn from each block of queries while it is in cache. Each query is scored by all of them
    before they learn from it, so that their means are those on data they had not seen (progressive validation). When
    the number of queries has doubled, those significantly worse than the best, paired by query, are dropped, at most
    half of the places stay, and fresh configurations join, half of them near survivors. The best one at the end is the
    model. Each configuration ends as it would have alone. Queries are taken in their order, which is best that of time.
    The first 32,768 documents set the scales of dense features; one that does not vary there is left out.

    Parameters
    ----------
    data : str, Path, data frame, tuple or Queries
        What read takes. A stored data set is mapped, and never in memory as a whole.
    test : str, Path, data frame, tuple or Queries, optional
        Test queries; by default the last ones of data, as many as held_out says.
    metric : str, default="ndcg@10"
        The metric.
    solvers : str or sequence of str, optional
        "ElasticRank" (by FOBOS with AdaGrad), "SOLAR1", or both, the default.
    configurations : int, default=64
        Configurations that learn from the first query on.
    survivors : int, default=16
        The number that looks do not go below by halving the places.
    held_out : float, default=0.1
        The share of the queries, the last ones, that are not learned from but judge the model; 0 for none. Without
        effect if test is given.
    after : str or Path, optional
        The folder of an earlier pass, such as that of the day before. The configurations that remained there learn on,
        and new ones join them until there are as many as configurations says. Features are read and scaled as there.
    folder : str or Path, optional
        A folder for model.json, result.json, the state that a later pass goes on from, and a checkpoint while the pass
        is under way: called again after an interruption, it continues from there. Without it nothing is written.
    seed : int, default=0
        Seed of the configurations that are drawn.
    progress : callable, optional
        Called with a line of text at each look.
    **options
        Options of read, such as qid="session" for a table.

    Returns
    -------
    OnePassResult
        The model, its metric on the test queries, all configurations with the metric before learning, and the looks.

    Raises
    ------
    DataError
        The data cannot be read, or have missing values, weights of queries or constraints, which a pass cannot use.
    ParameterError
        A parameter is out of its range.
    StudyError
        The folder holds a finished pass, a damaged checkpoint, or that of another pass. The earlier pass has not ended,
        or has learned from these data already.

    Examples
    --------
    >>> import ranktune
    >>> X = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.6]] * 60
    >>> result = ranktune.one_pass((X, [1, 0, 1, 0] * 60, [n // 2 for n in range(240)]), configurations=8)
    >>> result.queries, round(result.test["mean"], 3), result.best_model.n_features
    (108, 1.0, 2)
    """
    check_count("configurations", configurations)
    check_count("survivors", survivors)
    if not 0.0 <= held_out < 1.0:
        raise ParameterError(f"held_out={held_out}: the share of the queries must be at least 0 and below 1.")
    earlier = None if after is None else _ended(Path(after))
    home = None if folder is None else _opened(Path(folder))
    train, tests = _parts(data, test, held_out, earlier, options)
    chosen = chosen_metric(metric, train, tests)
    if chosen.name in CLICK_METRICS:
        raise ParameterError(
            f"metric={str(chosen)!r} measures a click log, which a single pass does not read: it scores each query "
            "once, as it comes. Choose a metric of grades, such as ndcg@10, or use ranktune.tune."
        )
    names = (solvers,) if isinstance(solvers, str) else tuple(solvers)
    path, state = home and home / CHECKPOINT, earlier and earlier / STATE
    tuning = OnePassTuning(train, chosen, names, configurations, survivors, seed, path, progress, after=state)
    warn_of_ignored_positions(names or RANKERS, (train,))
    try:
        result = tuning.run()
    except KeyboardInterrupt:
        if path is not None and path.exists() and progress is not None:
            progress(f"the checkpoint in {home} is kept: the same call continues from it")
        raise
    if tests is not None:
        result = replace(result, test=tested(result.best_model, tests, chosen, seed))
    if home is not None:
        tuning.save()
        result.best_model.save(home / MODEL)
        atomic_write(home / RESULT, json.dumps(result.as_dict(), indent=1))
        (home / CHECKPOINT).replace(home / STATE)  # the last: the pass has ended
    return result


def _ended(folder: Path) -> Path:
    """Return the folder of a pass that has ended, whose files are there."""
    if not all((folder / name).exists() for name in (RESULT, STATE, MODEL)):
        raise StudyError(
            f"{folder} does not have result.json, model.json and state.npz, which a pass ends with. Give the folder of "
            "a pass that has ended; releases up to 0.2.1 wrote no state."
        )
    return folder


def _opened(folder: Path) -> Path:
    """Return a folder for a pass, made if it is missing."""
    if (folder / RESULT).exists() and (folder / MODEL).exists() and not (folder / CHECKPOINT).exists():
        raise StudyError(f"{folder} holds a finished pass. Give another folder, or remove {folder / RESULT}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"cannot make {folder}: {error.strerror}. Give a folder you may write to.") from None
    return folder


def _parts(
    data: object, test: object, held_out: float, after: Path | None, options: ReadOptions
) -> tuple[Queries, Queries | None]:
    """Return the training and the test queries, with the features of an earlier pass if there is one."""
    if after is not None:
        loaded = load_model(after / MODEL)
        train = catalogue.read_for(loaded, data, **options)
        tests = None if test is None else catalogue.read_for(loaded, test, **options)
    else:
        splits = catalogue.load(data, test=test, **options)
        if len(splits) > 1:
            raise DataError(
                f"{data} has {len(splits)} folds, and a pass goes over one data set. Give one of its files."
            )
        train, tests = splits[0].train, splits[0].test
    if tests is not None or held_out == 0.0:
        return train, tests
    last = train.n_queries - max(1, round(held_out * train.n_queries))
    if last < 1:
        raise DataError(f"{train.n_queries} queries are too few to hold out some. Give held_out=0, or test queries.")
    return block_of(train, 0, last), block_of(train, last, train.n_queries)


def convert(
    data: object,
    output: str | Path,
    *,
    progress: Callable[[str], object] | None = None,
    **options: Unpack[LoadOptions],
) -> Queries:
    """Write data into a folder that every function and command takes as data, and that is opened without reading it.

    Ranking text of any size takes the memory of one block. Of csv, tsv, Parquet and Arrow files the features are read
    in batches, and ids, grades, dates and categories as a whole. Other files are read as a whole first.

    Parameters
    ----------
    data : str, Path, data frame, tuple or Queries
        What `read` takes.
    output : str or Path
        The new folder. It appears when it is complete.
    progress : callable, optional
        Called with a line of progress each second, after the first two.
    **options
        Options of `read`.

    Returns
    -------
    Queries
        What was written, mapped from the folder.

    Raises
    ------
    DataError
        The data cannot be read, or change meanwhile; or the folder exists already, or cannot be written.
    ParameterError
        An option does not exist for this kind of data, or has a value that it cannot have.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import ranktune
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     queries = ranktune.convert((np.eye(3), [2, 0, 1], ["a", "a", "b"]), Path(folder) / "small")
    ...     again = ranktune.read(Path(folder) / "small")
    >>> again.n_queries, again.grades.tolist()
    (2, [2.0, 0.0, 1.0])
    """
    check_path(data)
    check_path(output)
    reader = reader_of(data)
    check_part(reader, data)
    check_options(reader, options, data)
    return write_converted(data, Path(output), lambda: catalogue.read(data, **options), options, progress)
