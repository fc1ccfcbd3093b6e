"""Models whose score is a weighted sum of features.

Their files add scaling ("list" or null), weights and, where missing values are allowed, missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.products import scores
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Fields, Model, Origin
from ranktune.solvers.models.files import Content, optional_field, read_numbers


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Model):
    """A model whose score is a weighted sum of features.

    Parameters
    ----------
    weights : array-like of shape (n_features,)
        One weight per feature.
    solver : str
        Name of the solver that fitted the model.
    list_scaling : bool, default=False
        Whether the features of each query are first divided by their range in it.
    missing : array-like of shape (n_features,), optional
        What a missing value (NaN) of each feature adds to the score; with list_scaling, beside the mean of what the
        query has. Without it, features must not be missing.
    parameters : mapping of str to value, default={}
        Parameters of the solver.
    feature_names : tuple of str, optional
        Names of the features.
    metric, fingerprint, created, version : str, optional
        Where the model comes from: see Model.
    encoding : Encoding, optional
        How the columns of the training table became features.
    monotone : mapping of str to int, default={}
        Features with which the score may only rise (1) or only fall (-1), by name or f1, f2, ... Verified.

    Raises
    ------
    DataError
        The model does not keep a constraint of monotone.
        The weights are not one-dimensional, or the names do not fit them.

    Examples
    --------
    >>> from ranktune.solvers import LinearModel
    >>> model = LinearModel([2.0, 0.0, -1.0], "RankSVM", feature_names=("bm25", "length", "age"))
    >>> model.predict([[1.0, 5.0, 1.0], [0.0, 5.0, 1.0]])
    array([ 1., -1.])
    >>> model.nonzeros
    2
    """

    weights: Floats
    solver: str
    list_scaling: bool = False
    missing: Floats | None = None

    def __post_init__(self) -> None:
        """Check the shapes."""
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        if weights.ndim != 1 or len(weights) == 0:
            raise DataError(f"weights have shape {weights.shape}: a linear model needs one weight per feature.")
        object.__setattr__(self, "weights", weights + 0.0)  # a copy, in which -0.0 is 0.0 and takes no space
        if self.missing is not None:
            missing = np.ascontiguousarray(self.missing, dtype=np.float64)
            if missing.shape != weights.shape:
                raise DataError(f"missing has shape {missing.shape} for {len(weights)} weights: give one number each.")
            object.__setattr__(self, "missing", missing + 0.0)
        self._check_origin("weight")

    @property
    def n_features(self) -> int:
        """Number of features that predict expects."""
        return len(self.weights)

    @property
    def used_features(self) -> Ints:
        """The columns whose value, or absence, changes a score, ascending."""
        return np.flatnonzero(self.weights if self.missing is None else (self.weights != 0.0) | (self.missing != 0.0))

    def _violation(self, signs: Ints) -> int | None:
        wrong = np.flatnonzero(self.weights * signs < 0.0)
        return int(wrong[0]) if len(wrong) else None

    @property
    def bytes(self) -> int:
        """A weight and an index for each feature that influences the score, and what its absence adds."""
        return (12 if self.missing is None else 20) * self.nonzeros

    @property
    def takes_missing(self) -> bool:
        """Whether features may be missing (NaN)."""
        return self.missing is not None

    @property
    def _by_list(self) -> bool:
        return self.list_scaling

    def _spread(self, columns: Ints, n_features: int, feature_names: tuple[str, ...] | None) -> Fields:
        spread: Fields = {"weights": np.zeros(n_features)}
        spread["weights"][columns] = self.weights
        if self.missing is not None:
            spread["missing"] = np.zeros(n_features)
            spread["missing"][columns] = self.missing
        return spread

    def _scores(self, queries: Queries) -> Floats:
        if queries.has_missing:
            return self._scores_with_missing(queries)
        if not self.list_scaling:
            return scores(queries.features, self.weights)
        from ranktune.solvers.data.scaling import scaled_by_list

        return scores(scaled_by_list(queries.features, queries.starts), self.weights)

    def _scores_with_missing(self, queries: Queries) -> Floats:
        """Return the scores of what the documents have, and what their missing values add."""
        from ranktune.solvers.data.missing import Imputation, filled, missing_in

        assert self.missing is not None
        added = scores(missing_in(queries.features), self.missing)
        if self.list_scaling:
            return added + self._scores(Imputation.within_queries().completed(queries))
        return added + scores(filled(queries.features, None, np.zeros(self.n_features)), self.weights)

    def _content(self) -> tuple[Content, Mapping[str, Floats]]:
        arrays = {"weights": self.weights} | ({} if self.missing is None else {"missing": self.missing})
        return {"kind": "linear", "scaling": "list" if self.list_scaling else None}, arrays

    @classmethod
    def fields_of(
        cls, path: Path, content: Content, n_features: int, origin: Origin, trust: Sequence[str] = ()
    ) -> Fields:
        """Return weights, list_scaling and missing, of the manifest at path."""
        scaling = optional_field(path, content, "scaling", str)
        if scaling not in (None, "list"):
            raise ModelFormatError(f"{path} has the unknown scaling '{scaling[:40]}'. Update this RankTune.")
        weights, missing = read_weights(path, content, "weights", "missing", n_features)
        return {"weights": weights, "list_scaling": scaling == "list", "missing": missing}


def read_weights(path: Path, content: Content, name: str, added: str, n: int) -> tuple[Floats, Floats | None]:
    """Return n weights, and what missing values add if they may be missing, by their keys in the manifest at path."""
    missing = None if content.get(added) is None else read_numbers(path, content[added], n)
    return read_numbers(path, content.get(name), n), missing
