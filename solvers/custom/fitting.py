"""Fitting estimators of other libraries, by the conventions of scikit-learn.

fit(X, y) gets the query of each row, or the lengths of the queries, under the name by which it takes them: qid, group
(LightGBM) or group_id (CatBoost), and the signs of monotone constraints as monotone where there are any. In a pipeline
the last step gets them. X is an array, or a data frame where the estimator chooses columns by name.
"""

from __future__ import annotations

from ranktune.solvers.core.registrations import parameters_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.custom import Estimator, inputs_of


def fitted(estimator: Estimator, queries: Queries) -> Estimator:
    """Fit an estimator to queries, and return it."""
    step, prefix = estimator, ""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:  # a pipeline
        (name, last) = steps[-1]
        if hasattr(last, "fit"):  # else it is "passthrough"
            step, prefix = last, f"{name}__"
    taken = next((name for name in ("qid", "group_id", "group") if name in parameters_of(step.fit)), None)
    more: dict[str, object] = {}
    if taken is not None:
        more[prefix + taken] = queries.lengths if taken == "group" else queries.query_of_document
    if queries.monotone is not None:
        more[f"{prefix}monotone"] = queries.monotone
    estimator.fit(inputs_of(estimator, queries), queries.grades, **more)
    return estimator
