"""Making estimators of other libraries, by the conventions of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.registrations import Registration, parameters_of
from ranktune.solvers.core.space import Choice, Value, defaults

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


def made_of_each_kind(registration: Registration) -> list[Any]:
    """Return new estimators: with the defaults, and with each value of each choice that goes with the defaults.

    Raises ParameterError where none can be made with the defaults.
    """
    usual = defaults(registration.space)
    found = [made(registration, usual)]
    for choice in (own for own in registration.space if isinstance(own, Choice)):
        for value in choice.choices:
            try:
                found.append(made(registration, {**usual, choice.name: value}))
            except ParameterError:  # it goes with other values of the other parameters
                continue
    return found


def _with_seed(known: Mapping[str, object], parameters: Mapping[str, Value], seed: int | None) -> dict[str, Value]:
    """Return parameters with seed for each seed, of steps of a pipeline too, that known says is None."""
    free = {name for name, usual in known.items() if usual is None and name.rpartition("__")[2] in SEEDS}
    return {name: seed for name in sorted(free) if seed is not None} | dict(parameters)
