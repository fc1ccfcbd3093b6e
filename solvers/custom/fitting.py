"""Making and fitting estimators of other libraries, by the conventions of scikit-learn.

fit(X, y) gets the query of each row, or the lengths of the queries, under the name by which it takes them: qid, group
(LightGBM) or group_id (CatBoost), and the signs of monotone constraints as monotone where there are any. In a pipeline
the last step gets them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.registrations import Registration, parameters_of
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.queries import Queries

SEEDS = ("random_state", "random_seed", "seed")
"""Parameters of an estimator that are its seed."""


def made(registration: Registration, parameters: Mapping[str, Value], seed: int | None = None) -> Any:
    """Return a new estimator. Raises ParameterError where it cannot be made, or has no fit or predict.

    A seed that the estimator has, None by default, gets the value of seed.
    """
    make = registration.make
    given = _with_seed(parameters_of(make), parameters, seed)
    try:
        if isinstance(make, type) or not hasattr(make, "get_params"):
            estimator = make(**given)
        else:
            from sklearn.base import clone

            estimator = clone(make).set_params(**given)
    except Exception as error:  # it is the user's
        shown = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        raise ParameterError(f"{registration.name}({shown}) fails: {type(error).__name__}: {error}") from error
    for method in ("fit", "predict"):
        if not callable(getattr(estimator, method, None)):
            raise ParameterError(
                f"'{registration.name}' makes a {type(estimator).__name__}, which has no {method}: a solver needs "
                "fit(X, y) and predict(X), as in scikit-learn. fit may also take qid, the query of each row."
            )
    return estimator


def _with_seed(known: Mapping[str, object], parameters: Mapping[str, Value], seed: int | None) -> dict[str, Value]:
    """Return parameters with seed for each seed, of steps of a pipeline too, that known says is None."""
    free = {name for name, usual in known.items() if usual is None and name.rpartition("__")[2] in SEEDS}
    return {name: seed for name in sorted(free) if seed is not None} | dict(parameters)


def fitted(estimator: Any, queries: Queries) -> Any:
    """Fit an estimator to queries, and return it."""
    step, prefix = estimator, ""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:  # a pipeline
        (name, last) = steps[-1]
        if hasattr(last, "fit"):  # else it is "passthrough"
            step, prefix = last, f"{name}__"
    taken = next((name for name in ("qid", "group_id", "group") if name in _arguments(step.fit)), None)
    more = {}
    if taken is not None:
        more[prefix + taken] = queries.lengths if taken == "group" else queries.query_of_document
    if queries.monotone is not None:
        more[f"{prefix}monotone"] = queries.monotone
    estimator.fit(queries.features, queries.grades, **more)
    return estimator


def _arguments(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # of compiled code
        return {}
