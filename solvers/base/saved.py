"""A saved model as an estimator of scikit-learn."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Self

import numpy as np

from ranktune.solvers.base.estimator import Estimator
from ranktune.solvers.core.arrays import Floats, Ids, Sizes
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.models.base import Model, load_model


class SavedRanker(Estimator):
    """A model that is fitted already, as an estimator of scikit-learn: for pipelines, inspection and scoring.

    `fit` changes nothing, as that of scikit-learn's FrozenEstimator.

    Parameters
    ----------
    model : str, path or Model
        The file of a model, or a model.

    Attributes
    ----------
    n_features_in_ : int
        The number of features.

    Raises
    ------
    ModelFormatError
        When it is first used and the file is not a readable model.

    Examples
    --------
    >>> from ranktune.solvers import RidgeRanker, SavedRanker
    >>> model = RidgeRanker().fit([[0.0], [1.0], [2.0]], [0, 1, 2]).as_model()
    >>> ranker = SavedRanker(model)
    >>> ranker.n_features_in_, ranker.score([[3.0], [1.0]], [2, 0], group=[2])
    (1, 1.0)
    """

    def __init__(self, model: str | os.PathLike[str] | Model) -> None:
        self.model = model

    @cached_property
    def _model(self) -> Model:
        if isinstance(self.model, Model):
            return self.model
        if isinstance(self.model, str | os.PathLike):
            return load_model(self.model)
        raise ParameterError(f"model={self.model!r}: it must be the path of a model or a model.")

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        """The number of features."""
        return self._model.n_features

    @property
    def feature_names_in_(self) -> Any:
        """The names of the features, (n_features,); without names there is no such attribute."""
        names = self._model.feature_names
        if names is None:
            raise AttributeError("the model has no feature names")
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        """Return that it is fitted."""
        return True

    def set_params(self, **parameters: object) -> Self:
        """Set the model."""
        self.__dict__.pop("_model", None)
        return super().set_params(**parameters)

    def fit(self, X: object, y: object = None, *, qid: Ids | None = None, group: Sizes | None = None) -> Self:
        """Return self; the model is fitted already."""
        return self

    def predict(self, X: object, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """Return the scores of the rows of X, (n_documents,), as the model gives them."""
        return self._model.predict(X, qid=qid, group=group)
