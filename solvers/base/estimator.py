"""scikit-learn's protocol of an estimator, without importing scikit-learn before it is needed.

Importing sklearn.base takes most of a second and 60 to 100 MB, more than most fits, and the workers of a study never
need it, because they fit on Queries. Clones, pipelines and grid searches work by this protocol. Plain arrays are
validated by scikit-learn itself.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np

from ranktune.solvers.core.errors import ParameterError, nearest


class Estimator:
    """Base of estimators: the arguments of __init__ are the parameters, kept as attributes of the same names."""

    n_features_in_: int

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; deep is ignored, because no parameter is an estimator."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: object) -> Self:
        """Set parameters by name. Raises ParameterError, with the nearest name, for an unknown one."""
        known = self._parameter_names()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter '{name}'. {nearest(name, known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Show the parameters that differ from their defaults."""
        defaults = {name: p.default for name, p in inspect.signature(type(self).__init__).parameters.items()}
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if not _same(v, defaults[n])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> object:
        """Return tags for scikit-learn: sparse X and missing values (NaN) are accepted, y is required."""
        from sklearn.utils import InputTags, Tags, TargetTags

        inputs = InputTags(sparse=True, allow_nan=True)
        return Tags(estimator_type=None, target_tags=TargetTags(required=True), input_tags=inputs)

    def _validated(self, X: object, y: object = None, *, reset: bool, allow_missing: bool = False) -> Any:
        """Return X, or (X, y) where y is given, as scikit-learn validates them; notes number and names of features.

        Without y, X may be NaN if allow_missing; with y, Queries checks the values.
        """
        from sklearn.utils.validation import validate_data

        options: dict[str, object] = {
            "accept_sparse": "csr",
            "dtype": [np.float64, np.float32],
            "order": "C",
            "reset": reset,
        }
        if y is None and not reset:
            return validate_data(self, X, ensure_all_finite="allow-nan" if allow_missing else True, **options)
        return validate_data(self, X, y, y_numeric=True, ensure_all_finite=False, **options)

    def _check_fitted(self, attribute: str) -> None:
        """Raise scikit-learn's NotFittedError if the attribute is missing."""
        if hasattr(self, attribute):
            return
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(self).__name__} instance is not fitted yet. Call fit with training data before predict."
        )


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))
