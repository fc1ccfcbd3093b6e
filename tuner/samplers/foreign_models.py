"""The parameters of an estimator of another library as a configuration of one of RankTune's solvers."""

from __future__ import annotations

from typing import Any

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Value
from ranktune.solvers.names import SAME_AS, SOLVERS


def configuration_of(solver: str, estimator: Any) -> dict[str, Value]:
    """Return the parameters that a solver shares with an estimator, with the values of the estimator.

    A number outside the range of the solver becomes the nearest inside, and what the solver does not know is left out.

    Parameters
    ----------
    solver : str
        The name of a solver of RankTune.
    estimator : estimator
        An object with get_params, such as lightgbm.LGBMRanker or sklearn.linear_model.Ridge.

    Raises
    ------
    ParameterError
        If they share no parameter.

    Examples
    --------
    >>> from lightgbm import LGBMRanker
    >>> configuration_of("LambdaMART", LGBMRanker(num_leaves=15, reg_lambda=0.0))["leaves"]
    15
    """
    params, result = estimator.get_params(deep=False), dict[str, Value]()
    for parameter in SOLVERS.find(solver).space:
        names = (parameter.name, *SAME_AS.get(parameter.name, ()))
        value = next((params[name] for name in names if params.get(name) is not None), None)
        if isinstance(parameter, Choice):
            if value in parameter.choices:
                result[parameter.name] = value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            kind = type(parameter.low)
            result[parameter.name] = kind(min(max(value, parameter.low), parameter.high))
    if not result:
        raise ParameterError(
            f"first: a {type(estimator).__name__} shares no parameter with {solver}. Give a table of parameters; "
            f"`ranktune solvers {solver}` shows them."
        )
    return result
