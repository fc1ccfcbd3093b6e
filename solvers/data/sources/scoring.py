"""From a model and a source of data to scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.blocks import SCORED_ROWS
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.models.base import Model, load_model


def predict(model: Model | str | Path, data: object, **options: Unpack[ReadOptions]) -> Floats:
    """Return the score of each document of data; a higher score ranks first.

    Parameters
    ----------
    model : Model, str or Path
        A model, or the file of one.
    data : str, Path, data frame, tuple, lightgbm.Dataset, xgboost.DMatrix or Queries
        What read takes. Of a table, the columns that the model knows by name are taken; grades are not needed.
    **options
        Options of read, such as qid="session" for a table.

    Returns
    -------
    ndarray of shape (n_documents,)
        float64, in the order of the rows.

    Raises
    ------
    DataError
        The data cannot be read, or lack features of the model.

    Examples
    --------
    >>> import pandas as pd
    >>> import ranktune
    >>> frame = pd.DataFrame({"qid": [1, 1, 2, 2], "grade": [0, 1, 0, 1], "bm25": [0.1, 0.7, 0.2, 0.4]})
    >>> train = ranktune.read(frame)
    >>> model = ranktune.RankSVM().fit(train).as_model(feature_names=train.feature_names)
    >>> scores = ranktune.predict(model, frame[["qid", "bm25"]])
    >>> scores.argsort().tolist()
    [0, 2, 3, 1]
    """
    chosen = model_of(model)
    return chosen.predict(catalogue.read_for(chosen, data, graded=False, **options))


def score_lines(model: Model | str | Path, data: object, **options: Unpack[ReadOptions]) -> Iterator[str]:
    """Yield what predict returns as text, a number a line, many lines at a time and as they are computed.

    Raises what predict raises, some of it after the first lines.
    """
    chosen = model_of(model)
    queries = catalogue.read_for(chosen, data, graded=False, **options)
    if queries.rows is None:
        blocks = chosen.score_blocks(queries)
    else:  # the rows of the data are in another order
        scores = chosen.predict(queries)
        blocks = (scores[first : first + SCORED_ROWS] for first in range(0, len(scores), SCORED_ROWS))
    for block in blocks:
        yield "".join(f"{score!r}\n" for score in block.tolist())


def model_of(model: Model | str | Path) -> Model:
    """Return a model as it is, or load it from its file."""
    if isinstance(model, Model):
        return model
    if isinstance(model, str | Path):
        return load_model(model)
    fitted = (
        " Call its as_model()." if hasattr(model, "as_model") else " Where data are given too, the model comes first."
    )
    raise ParameterError(f"a {type(model).__name__} is no model: give a Model, or the path of a model.json.{fitted}")
