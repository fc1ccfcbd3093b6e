"""A solver that the user registered, with the interface of all solvers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker, Step
from ranktune.solvers.core.arrays import Floats, Ids, Sizes
from ranktune.solvers.core.errors import ParameterError, RankTuneError, nearest
from ranktune.solvers.core.registrations import Registration, made
from ranktune.solvers.core.space import Value, defaults
from ranktune.solvers.custom.conversion import converted, is_convertible, part_of
from ranktune.solvers.custom.fitting import fitted
from ranktune.solvers.custom.sweep import check_swept
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.query_columns.monotone import signs_of
from ranktune.solvers.models.base import Model, Origin
from ranktune.solvers.models.custom import CustomModel, estimator_scores, persistence
from ranktune.solvers.models.skops.files import rule_of


class CustomRanker(BaseRanker):
    """Base of the solvers that are made of a registration: their parameters are those of its space, and a seed."""

    takes_missing: ClassVar[bool] = True
    registration: ClassVar[Registration]

    @staticmethod
    def of(registration: Registration) -> type[BaseRanker]:
        """Return the class of a registered solver, named after it."""
        make = registration.make
        if isinstance(make, type) and issubclass(make, BaseRanker):
            same = make.__name__ == registration.name and tuple(make.space) == registration.space
            return make if same else type(registration.name, (make,), {"space": registration.space})
        about = getattr(make, "__doc__", None) if isinstance(make, type) or callable(make) else type(make).__doc__
        body = {
            "space": registration.space,
            "registration": registration,
            "takes_monotone": bool(getattr(make, "takes_monotone", False)),
            "__doc__": about or registration.name,
        }
        return type(registration.name, (CustomRanker,), body)

    @staticmethod
    def check(registration: Registration) -> None:
        """Raise ParameterError where a solver makes no estimator, or its models cannot be saved."""
        solver = CustomRanker.of(registration)
        if not issubclass(solver, CustomRanker):
            return
        try:
            estimator = made(registration, defaults(registration.space), 0)
        except RankTuneError as error:
            raise ParameterError(f"{error} It was made with the defaults of its space.") from error.__cause__
        saved = persistence(registration) is not None and (registration.save or hasattr(estimator, "save"))
        if not saved and not is_convertible(estimator):
            raise ParameterError(
                f"the models of '{registration.name}' could not be delivered: a {type(estimator).__name__} has no way "
                "to a file that RankTune knows. Give save=, a function(estimator, path), and load=, a function(path), "
                "or the class a method save(path) and a class method load(path); for estimators of scikit-learn "
                "save='skops' does."
            )
        if registration.save == "skops":
            rule_of(registration)

    def __init__(self, **parameters: Any) -> None:
        self._parameters: dict[str, Any] = {"random_state": None}
        self.set_params(**parameters)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted({parameter.name for parameter in cls.registration.space} | {"random_state"})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters that were given, and random_state; deep is ignored."""
        return dict(self._parameters)

    def set_params(self, **parameters: object) -> Self:
        """Set parameters by name. Raises ParameterError, with the nearest name, for an unknown one."""
        known = self._parameter_names()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter '{name}'. {nearest(name, known)}")
            self._parameters[name] = value
        return self

    def __repr__(self) -> str:
        """Show the parameters that were given."""
        given = [f"{name}={value!r}" for name, value in self._parameters.items() if value is not None]
        return f"{type(self).__name__}({', '.join(given)})"

    def _check_parameters(self) -> None:
        self._estimator()

    def _estimator(self) -> Any:
        given = {name: value for name, value in self._parameters.items() if name != "random_state"}
        return made(self.registration, given, self._parameters["random_state"])

    def _steps(self, queries: Queries) -> Iterator[Step]:
        self.estimator_ = fitted(self._estimator(), queries)
        self._sample = queries.select(np.arange(min(queries.n_queries, SAMPLE)))
        yield Step(1, float("nan"))

    def predict(self, X: object, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """Return the scores of the rows of X, (n_documents,); qid and group matter where the estimator takes qid."""
        self._check_fitted("estimator_")
        if not isinstance(X, Queries):
            return self.as_model().predict(X, qid=qid, group=group)
        return X.in_caller_order(estimator_scores(self.estimator_, X))

    def _model(self, **origin: Unpack[Origin]) -> Model:
        self._check_fitted("estimator_")
        constraints = origin.pop("monotone", {})
        model = converted(self.estimator_, self._sample, origin)
        if model is not None:
            return model.replaced(monotone=constraints)
        check_swept(self.predict, self._sample, signs_of(constraints, self.n_features_in_, origin["feature_names"]))
        model = CustomModel(self.estimator_, self.n_features_in_, self.registration.name, **origin)
        return model.replaced(monotone=constraints)

    @classmethod
    def model_parts(cls, parameters: Mapping[str, Value]) -> frozenset[str]:
        """Return the kind of model that the estimator of a configuration is likely to become."""
        return frozenset({part_of(made(cls.registration, {**defaults(cls.registration.space), **parameters}, 0))})


SAMPLE = 20
"""Queries by which a converted model is compared with its estimator."""
