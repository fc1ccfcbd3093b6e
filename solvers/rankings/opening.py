"""From what a user gives as a ranking (a file, a column, an array, a model of any library) to a Ranking."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, dense
from ranktune.solvers.core.errors import DataError, ModelFormatError, ParameterError, nearest, warn
from ranktune.solvers.data.columns.arrow import is_frame
from ranktune.solvers.data.columns.grammar import number_of
from ranktune.solvers.data.columns.usual import USUAL, plain
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.formats import READERS, ending, first_line, reader_of
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.data.sources.inspection import are_positions
from ranktune.solvers.models.base import Model, load_model
from ranktune.solvers.models.other_libraries.base import LibraryModel
from ranktune.solvers.models.other_libraries.catboost import read_catboost
from ranktune.solvers.models.other_libraries.lightgbm import read_lightgbm
from ranktune.solvers.models.other_libraries.ranklib import read_ranklib
from ranktune.solvers.models.other_libraries.xgboost import read_xgboost
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from ranktune.solvers.rankings import libraries
from ranktune.solvers.rankings.base import FeatureRanking, Ranking, WantedFeatures
from ranktune.solvers.rankings.scores import scores_by_line, scores_of_array, scores_of_run, scores_of_table

COLUMN = "column:"
"""Prefix of the name of a column."""
FEW = 3
"""Queries of three or more documents whose counted documents tell a position, where it says only which way to rank."""
PICKLES = (".pkl", ".pickle", ".joblib", ".sav")
_KINDS = (
    "a model file of RankTune, LightGBM (text), XGBoost (json, ubj), CatBoost (json), RankLib or ONNX, a "
    "file of scores (one a line, csv, tsv, TREC run), or column:NAME"
)


def open_ranking(
    ranker: object, source: object = None, name: str = "the scores", position: str | None = None
) -> Ranking:
    """Return the ranking that a user gives.

    Parameters
    ----------
    ranker : str, Path, array, data frame, Model or a model of another library
        A file: a model of RankTune, LightGBM, XGBoost, CatBoost, RankLib or ONNX; scores one a line in the order of the
        rows; a table with columns qid, docid and score; or a TREC run. Or column:NAME, a column of the data; for
        numbered features column:3 is the third. The name of a column alone suffices where no file has that name. The
        highest values rank first, of positions the lowest; column:-NAME turns that round. Or in memory: scores
        (n_documents,), a frame as a table, a Model, a Booster, an object with predict(X).
    source : object
        The data, of which ranker may be a column.
    name : str
        What an object in memory is called.
    position : str, optional
        The column of the data that holds positions; others are recognised by name, or as they count documents.

    Raises
    ------
    DataError, ModelFormatError, ParameterError
        It cannot be read, is damaged, of an unknown kind, or needs a package that is not installed.
    """
    if isinstance(ranker, str | Path):
        return _from_text(ranker, source, position)
    if isinstance(ranker, Model):
        return of_model(ranker, ranker.solver)
    if isinstance(ranker, list | tuple | np.ndarray):
        return scores_of_array(ranker, name)
    if is_frame(ranker):
        return scores_of_table(ranker, name)
    if (ranking := libraries.of_object(ranker, type(ranker).__name__)) is not None:
        return ranking
    if hasattr(ranker, "to_numpy"):  # a series
        return scores_of_array(ranker.to_numpy(), name)
    raise ParameterError(
        f"a {type(ranker).__name__} gives no scores. Give scores (n_documents,), a model, or {_KINDS}."
    )


def of_model(model: Model, name: str) -> FeatureRanking:
    """Return the ranking of a model of RankTune."""
    wanted = WantedFeatures(model.feature_names, model.n_features, encoding=model.encoding, solver=model.solver)
    return FeatureRanking(name, wanted, lambda queries: model.predict(queries), model.metric)


def _from_text(ranker: str | Path, source: object, position: str | None) -> Ranking:
    text = str(ranker)
    path = Path(ranker)
    if path.is_file():
        return _from_file(path)
    if isinstance(ranker, str) and text.startswith(COLUMN):
        return of_column(text.removeprefix(COLUMN), source, position)
    if path.is_dir():
        raise DataError(f"{path} is a folder. Give {_KINDS}.")
    columns = _columns_of(source)
    if text in columns:
        return of_column(text, source, position)
    hint = f" {nearest(text, columns)}" if columns else ""
    raise DataError(f"{text}: there is no such file, and no such column of the data.{hint} Give {_KINDS}.")


@dataclass(frozen=True, eq=False)
class ColumnRanking(FeatureRanking):
    """A ranking by a column, the highest value first, or, if it holds positions, the lowest; turned: the other way."""

    column: str = field(kw_only=True)
    turned: bool = field(kw_only=True)
    is_position: bool = field(kw_only=True)

    def scores(self, queries: Queries) -> Floats:
        """Return the score of each document. Warns (RankTuneWarning) where the column was taken to hold positions."""
        names, number = queries.feature_names, int(self.column) if self.column.isdecimal() else 0
        if names is None and not number:
            raise DataError(f"{self.name}: the features of the data have no names. Give {COLUMN}NUMBER, from 1.")
        wanted = self.wanted
        if names is not None and 0 < number <= len(names) and self.column not in names:
            wanted = WantedFeatures((names[number - 1],), 1)
        values = FeatureRanking(self.name, wanted, self.score).scores(queries)
        guessed = plain(self.column) in USUAL["position"].names or are_positions(values, queries, FEW)
        if guessed and not self.is_position:
            warn(
                f"{self.name} ranks the {'highest' if self.turned else 'lowest'} first, since {self.column!r} looks "
                f"like a position. {COLUMN}{'' if self.turned else '-'}{self.column} turns it round."
            )
        return values if (guessed or self.is_position) == self.turned else -values


def of_column(name: str, source: object = None, position: str | None = None) -> FeatureRanking:
    """Return the ranking by a column of the data, or by a numbered feature where the features have numbers only.

    A name with - before it turns the ranking round, unless a column has that name. position is as in open_ranking.
    """
    columns = _columns_of(source)
    turned = name.startswith("-") and name not in columns
    column = name[1:] if turned else name
    if columns and column not in columns:
        raise DataError(f"{COLUMN}{name}: there is no such column of the data. {nearest(column, columns)}")
    wanted = WantedFeatures((f"f{column}" if column.isdecimal() and column not in columns else column,), 1)
    is_position = column == position
    return ColumnRanking(
        f"{COLUMN}{name}", wanted, _first_column, column=column, turned=turned, is_position=is_position
    )


def _columns_of(source: object) -> Collection[str]:
    """Return the names of the columns of a table, or of the features of Queries; none of other sources."""
    if isinstance(source, Queries):
        return source.feature_names or ()
    table = catalogue.open_table(source) if source is not None and catalogue.is_table(source) else None
    return () if table is None else tuple(table.frame.column_names)


def _first_column(queries: Queries) -> Floats:
    values: Floats = dense(queries.features)[:, 0].astype(np.float64)
    return values


def _from_file(path: Path) -> Ranking:
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}. Give a file that you may read.") from None
    if path.suffix.lower() in PICKLES or head[:1] == b"\x80":
        raise ModelFormatError(
            f"{path} is a pickle, which runs code when it is loaded: it is not read. Save the model in the format of "
            'its library, such as booster.save_model("model.txt"), or its scores, one a line.'
        )
    start = head.lstrip()
    if path.suffix.lower() == ".onnx":
        return libraries.onnx_file(path)
    if (other := read_other(path, head)) is not None:
        return libraries.of_trees(other, str(path))
    if start[:1] == b"{" and ending(path) != ".jsonl":
        model = load_model(path)
        return of_model(model, str(path))
    if start.startswith(b"## "):
        model = read_ranklib(path)
        ranking = of_model(model, str(path))
        return replace(ranking, wanted=WantedFeatures(count=model.n_features, more=True))
    if not head.startswith((b"PAR1", b"ARROW1")) and number_of(first_line(path)) is not None:
        return scores_by_line(path)
    reader = reader_of(path)
    if reader is READERS["run"]:
        return scores_of_run(path)
    if reader.is_table_file:
        return scores_of_table(path, str(path))
    table = catalogue.open_table(path)
    return scores_by_line(path) if table is None else scores_of_table(table.frame, str(path))


HEAD = 1 << 14
"""So many bytes of a file tell what it is."""
_DUMPS = {
    "XGBoost": re.compile(
        rb'(?s)\[?\s*{\s*"(nodeid|leaf)"|\[\s*"|(booster\[0\]:\s*)?(0:(\[[^\]]+\] yes=|leaf=)|digraph {)'
        rb'|{.*"model/xgboost\+json"|{\s*("objective"\s*:\s*"[^"]*",\s*)?"splits"'
    ),
    "LightGBM": re.compile(rb'{\s*("name"\s*:\s*"tree"|"average_output")'),
}
"""What dump_model and get_dump write begins so, also for Elasticsearch. It lacks some of what a score is made of."""
_CATBOOST = re.compile(rb'\s*{\s*"(ctr_data|features_info|oblivious_trees)"')


def read_other(path: Path, head: bytes) -> LibraryModel | None:
    """Return the model in a file that begins with head, None where none of the libraries wrote it.

    Raises ModelFormatError for a model that is damaged, or of a kind that is not read.
    """
    start = head.lstrip()
    if start.startswith(b"CBM1"):
        raise ModelFormatError(
            f"{path} is a binary model of CatBoost, which only CatBoost reads. Save the model as JSON: "
            'CatBoost().load_model(FILE), then save_model("model.json", format="json").'
        )
    for library, dump in _DUMPS.items():
        if dump.match(start):
            raise ModelFormatError(
                f"{path} is a dump of a model of {library}, which lacks parts of the model. Save the model by "
                f"save_model, and give that file."
            )
    if start.startswith((b"tree\n", b"tree\r\n")):
        return read_lightgbm(path)
    if _CATBOOST.match(head):
        return read_catboost(path)
    by_xgboost = start[:1] == b"{" and b'"learner"' in head and b'"ranktune-model"' not in head
    return read_xgboost(path) if by_xgboost or path.suffix.lower() == ".ubj" else None


def model_in(path: Path) -> TreeModel | None:
    """Return the model of another library in a file, None where the file is of another kind or cannot be read.

    Its score is the sum of the values of its trees; the base of the library is the first of them.

    Raises ModelFormatError as read_other does, and for trees that compare anything but numbers.
    """
    read = read_other(path, _head(path))
    if read is None:
        return None
    if read.columns.computed or read.levels:
        raise ModelFormatError(
            f"{path} has splits by categories, or takes 0 for missing, which trees of RankTune do not. It can be "
            f"evaluated, or be a baseline. For other uses, train it in {read.library} without them."
        )
    trees = joined([one_tree([], [], [], [], [read.base], []), read.trees]) if read.base else read.trees
    return TreeModel(trees, read.n_features, read.library, feature_names=read.names)


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, none where it is no file or cannot be read."""
    if not path.is_file():  # a pipe would wait
        return b""
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""
