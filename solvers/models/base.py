"""The interface of models: scores from features, and a file that any machine can read.

A model file holds format, version, kind, solver, parameters, n_features, feature_names, metric (what the model was
chosen by), data (the fingerprint of its training data), created, ranktune (the version that wrote it), encoding (how
the columns of the training table became features: see ranktune.solvers.data.columns.encoding), monotone (sign by
feature, if the model keeps constraints), and what its kind, an entry of KINDS, adds: see the module of each.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints, python_value
from ranktune.solvers.core.errors import DataError, ModelFormatError, ParameterError, nearest
from ranktune.solvers.core.libraries import installed_version
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.blocks import scores_by_block
from ranktune.solvers.data.columns.encoding import TableEncoding
from ranktune.solvers.data.missing import refuse_missing
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns import name_of, named_signs, signs_of
from ranktune.solvers.data.values import as_features
from ranktune.solvers.models import files
from ranktune.solvers.models.columns import Origin as Origin
from ranktune.solvers.models.columns import as_taken, check_grouped, check_width, columns_of, positions, read_origin
from ranktune.solvers.models.files import MAX_ENTRIES, SAVE_AGAIN, Content, field_of

Fields: TypeAlias = dict[str, Any]
"""Values of the fields of a model by name."""
Blobs: TypeAlias = Mapping[str, bytes]
"""What code of the user's wrote, by key of the manifest."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Model(ABC):
    """A model that scores documents; each kind of model is a frozen dataclass with further fields before these.

    Attributes
    ----------
    solver : str
        Name of the solver that fitted the model.
    parameters : mapping of str to value
        Parameters of the solver.
    feature_names : tuple of str or None
        Names of the n_features features.
    metric : str or None
        The metric that the model was chosen by, such as "ndcg@10".
    fingerprint : str or None
        Fingerprint of the training data.
    created : str or None
        When the model was first saved, ISO 8601 in UTC.
    version : str or None
        The RankTune that first saved it.
    encoding : Encoding or None
        How the columns of the training table became features.
    monotone : mapping of str to int
        Features with which the score may only rise (1) or only fall (-1), by name or f1, f2, ...; always kept.
    """

    parameters: Mapping[str, Value] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None
    metric: str | None = None
    fingerprint: str | None = None
    created: str | None = None
    version: str | None = None
    encoding: TableEncoding | None = None
    monotone: Mapping[str, int] = field(default_factory=dict)

    if TYPE_CHECKING:  # a field of each kind, after what the kind is made of

        @property
        def solver(self) -> str:
            """Name of the solver that fitted the model."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.solver or 'unnamed'}, {self.nonzeros} of {self.n_features} features)"

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features that predict expects."""

    @property
    @abstractmethod
    def used_features(self) -> Ints:
        """The columns that influence a score, ascending."""

    @property
    def nonzeros(self) -> int:
        """Number of features that influence a score."""
        return len(self.used_features)

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Memory that the model needs where it is served: 8 for a weight, threshold or leaf, 4 for an index."""

    @abstractmethod
    def _scores(self, queries: Queries) -> Floats:
        """Return the scores of the documents of queries, whose features are the model's, in the order of queries."""

    @abstractmethod
    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        """Return what this kind adds to the manifest, kind first, and the arrays that it keeps there or beside it."""

    def _blobs(self) -> Blobs:
        """Return what code of the user's wrote, which is kept in files beside the manifest."""
        return {}

    def on_columns(self, columns: Ints, n_features: int, feature_names: tuple[str, ...] | None) -> Self:
        """Return the model of data with more features: it reads the given columns, the others have no effect.

        columns are (self.n_features,) different places among the n_features, in any order.
        """
        signs, own_signs = np.zeros(n_features, dtype=np.int64), self._signs
        if own_signs is not None:
            signs[columns] = own_signs
        spread = self._spread(columns, n_features, feature_names)
        return self.replaced(**spread, feature_names=feature_names, monotone=named_signs(signs, feature_names))

    @abstractmethod
    def _spread(self, columns: Ints, n_features: int, feature_names: tuple[str, ...] | None) -> Fields:
        """Return the fields of this kind for data with more features: see on_columns."""

    def replaced(self, **fields: Any) -> Self:
        """Return the model with other fields. Raises DataError where it does not keep monotone constraints of them."""
        return replace(self, **fields)

    @property
    def _signs(self) -> Ints | None:
        """The monotone constraint of each feature, (n_features,); None without any."""
        return signs_of(self.monotone, self.n_features, self.feature_names) if self.monotone else None

    @classmethod
    @abstractmethod
    def fields_of(
        cls, path: Path, content: Content, n_features: int, origin: Origin, trust: Sequence[str] = ()
    ) -> Fields:
        """Return the fields that this kind adds to origin, of the manifest at path; trust is that of load_model.

        Raises ModelFormatError or DataError where the manifest is not one of this kind.
        """

    @property
    def takes_missing(self) -> bool:
        """Whether features may be missing (NaN): whether the model learned from data with missing values."""
        return False

    @property
    def needs_queries(self) -> bool:
        """Whether predict needs to know which documents are ranked together."""
        return False

    @property
    def _by_list(self) -> bool:
        """Whether scores depend on which documents are ranked together."""
        return self.needs_queries

    def _check_origin(self, what: str) -> None:
        """Raise DataError where there are not n_features names, or the model violates its monotone constraints."""
        if self.feature_names is not None:
            object.__setattr__(self, "feature_names", tuple(str(name) for name in self.feature_names))
            if (count := len(self.feature_names)) != self.n_features:
                raise DataError(f"{count} feature names for {self.n_features} {what}s: give one name per {what}.")
        signs = self._signs
        if signs is not None and (column := self._violation(signs)) is not None:
            name, how = name_of(column, self.feature_names), "falls" if signs[column] > 0 else "rises"
            raise DataError(
                f"the model's score {how} somewhere with '{name}', against its monotone constraint {signs[column]:+d}."
            )

    @abstractmethod
    def _violation(self, signs: Ints) -> int | None:
        """Return a feature with which the score moves against its sign, (n_features,); None without such a feature."""

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Floats:
        """Return the score of each document; a higher score ranks first.

        Parameters
        ----------
        X : array-like, scipy sparse matrix, data frame or Queries, shape (n_documents, n_features)
            The features, NaN where a value is missing. Columns of a data frame, and features of Queries, are matched by
            name where both have names. Dates and categories become features as those of the training table did.
        qid : array-like of shape (n_documents,), optional
            The query of each row: of models that scale features by query, or compare its documents, which must know.
        group : array-like of int, optional
            The number of rows of each query, instead of qid. With neither, all rows are one query.

        Returns
        -------
        ndarray of shape (n_documents,)
            float64, in the order of the rows.

        Raises
        ------
        DataError
            X has another number of features, lacks a named column, or holds infinity; or it holds NaN, and the training
            data had no missing values; or a score is not finite; or queries are needed and not given.
        """
        if isinstance(X, Queries):
            queries = X
        else:
            features = as_features(columns_of(X, self.feature_names, self.encoding))
            check_width(features.shape[1], self.n_features)
            if features.shape[0] == 0:
                return np.zeros(0)
            if self._by_list:
                queries = Queries.from_arrays(features, np.zeros(features.shape[0]), qid=qid, group=group)
                check_grouped(queries.n_documents, self.needs_queries and qid is None and group is None)
            else:
                queries = Queries.to_score(features)
        return queries.in_caller_order(np.concatenate(list(self.score_blocks(queries))))

    def score_blocks(self, queries: Queries) -> Iterator[Floats]:
        """Yield what predict returns, in the order of queries, a block at a time: of mapped features no more is read.

        Raises DataError as predict does.
        """
        done = 0
        for scores in scores_by_block(queries, self._scores_of_block):
            finite = np.isfinite(scores)
            if not finite.all():
                at = int(np.flatnonzero(~finite)[0])
                row = done + at if queries.rows is None else int(queries.rows[done + at])
                raise DataError(
                    f"the score of row {row} is {scores[at]}: the weights of the model or its features are too large. "
                    "Rescale the features, or train the model anew."
                )
            done += len(scores)
            yield scores

    def _scores_of_block(self, block: Queries) -> Floats:
        block = self.arranged(block)
        if block.has_missing and not self.takes_missing:
            refuse_missing(block, self.feature_names)
        return self._scores(block)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; large arrays and long lists of names go into files beside it.

        A crash leaves the old or the new model.

        Parameters
        ----------
        path : str or path-like
            The file, such as "model.json".

        Raises
        ------
        ModelFormatError
            The model holds NaN or infinity, or is too large for a model file.
        OSError
            The file cannot be written.
        """
        fields, arrays = self._content()
        content = {
            "kind": fields["kind"],
            "solver": self.solver,
            "parameters": {str(name): python_value(value) for name, value in self.parameters.items()},
            "n_features": self.n_features,
            "feature_names": None,
            **fields,
            **({"monotone": dict(self.monotone)} if self.monotone else {}),
            "metric": self.metric,
            "data": self.fingerprint,
            "created": self.created or datetime.now(UTC).isoformat(timespec="seconds"),
            "ranktune": self.version or installed_version(),
            **({} if self.encoding is None else {"encoding": self.encoding.as_json()}),
        }
        names = {} if self.feature_names is None else {"feature_names": self.feature_names}
        files.write_manifest(Path(path), content, arrays, names, self._blobs())

    def arranged(self, queries: Queries) -> Queries:
        """Return queries with the model's features in the model's order, as the model takes them."""
        return as_taken(self._in_order(queries), self.solver, self.used_features)

    def _in_order(self, queries: Queries) -> Queries:
        names = queries.feature_names
        if names is None or self.feature_names is None or names == self.feature_names:
            check_width(queries.n_features, self.n_features)
            return queries
        return queries.with_columns(np.array(positions(names, self.feature_names)))


KINDS: Mapping[str, tuple[str, str]] = {
    "blend": ("models.blend", "BlendModel"),
    "custom": ("models.custom", "CustomModel"),
    "linear": ("models.linear", "LinearModel"),
    "trees": ("models.tree_model", "TreeModel"),
    "within": ("models.within", "WithinModel"),
}
"""Kind -> module and class, imported when a file of this kind is read."""


def load_model(path: str | os.PathLike[str], *, trust: Sequence[str] = ()) -> Model:
    """Load a model. No code of the file is run, and no file outside its folder is read.

    The file is what Model.save wrote, or holds trees of numbers of LightGBM (text), XGBoost (json, ubj) or CatBoost
    (json). A model of a solver that you registered is loaded by its load function: register the solver before.

    Parameters
    ----------
    path : str or path-like
        The model file, such as "model.json".
    trust : sequence of str, optional
        Full names of classes, module.Class, that files of solvers registered with save="skops" may hold besides those
        that their registration here allows. An error names what a file holds. Name only classes that do no harm
        whatever their attributes are: whoever wrote the file chose these.

    Returns
    -------
    Model
        A LinearModel, TreeModel, WithinModel, BlendModel or CustomModel. It predicts the same bits as the saved one. Of
        another library it predicts the scores before the transformation of the objective.

    Raises
    ------
    ModelFormatError
        The file is missing, damaged, not a model, or of an unknown version or kind; or it holds a class that is not
        allowed.
    ParameterError
        trust is no sequence of names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktune.solvers import LinearModel, load_model
    >>> path = Path(tempfile.mkdtemp()) / "model.json"
    >>> LinearModel([2.0, 0.0, -1.0], "RankSVM").save(path)
    >>> load_model(path).predict([[1.0, 5.0, 1.0], [0.0, 5.0, 1.0]])
    array([ 1., -1.])
    """
    if isinstance(trust, str):
        raise ParameterError(f"trust={trust!r}: give a sequence of full names of classes.")
    path = Path(path)
    try:
        content = files.read_manifest(path)
    except ModelFormatError:
        other: Model | None = import_module("ranktune.solvers.rankings.opening").model_in(path)
        if other is None:
            raise
        return other
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelFormatError(f"{path} holds a model of kind {str(kind)[:40]!r}. {nearest(str(kind)[:40], KINDS)}")
    module, name = KINDS[kind]
    model: type[Any] = getattr(import_module(f"ranktune.solvers.{module}"), name)
    n_features = field_of(path, content, "n_features", int)
    if not 0 < n_features <= MAX_ENTRIES:
        raise ModelFormatError(f"{path} claims {n_features} features: there must be 1 to {MAX_ENTRIES}. {SAVE_AGAIN}")
    origin = read_origin(path, content, n_features)
    try:
        loaded: Model = model(**model.fields_of(path, content, n_features, origin, trust), **origin)
        return loaded
    except (DataError, ParameterError) as error:
        raise ModelFormatError(f"{path}: {error} {SAVE_AGAIN}") from None
