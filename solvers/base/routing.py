"""What scikit-learn routes to an estimator where metadata routing is enabled: the keywords of its methods."""

from __future__ import annotations

import inspect
from typing import Any, Self, TypeAlias

Request: TypeAlias = bool | str | None
"""Whether scikit-learn passes metadata on, or the name under which it gets them; None where they must not be given."""

METHODS = ("fit", "partial_fit", "score", "predict")


class Routed:
    """An estimator that asks for every keyword of its fit, score and predict, unless it is set otherwise."""

    _metadata_request: Any

    @classmethod
    def _keywords(cls, method: str) -> list[str]:
        parameters = inspect.signature(getattr(cls, method)).parameters.values()
        return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn routes here where metadata routing is enabled: every keyword, unless set otherwise.

        Returns
        -------
        MetadataRequest
        """
        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=type(self).__name__)
        for method in METHODS:
            for name in self._keywords(method) if hasattr(self, method) else ():
                getattr(request, method).add_request(param=name, alias=True)
        request.score.add_request(param="sample_weight", alias=None)  # a pipeline asks for it, with None
        return request

    def set_fit_request(self, **requests: Request) -> Self:
        """Say what scikit-learn passes to fit where metadata routing is enabled.

        Parameters
        ----------
        **requests : bool, str or None
            A keyword of fit, such as qid, group, query_weights or document_weights. True passes it, which is the
            default, False does not, a name passes the metadata of that name, and with None it must not be given.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If fit has no such keyword.

        Examples
        --------
        >>> from ranktune import RankSVM
        >>> RankSVM().set_fit_request(qid="query").get_metadata_routing().fit.requests["qid"]
        'query'
        """
        return self._requesting("fit", requests)

    def set_score_request(self, **requests: Request) -> Self:
        """Say what scikit-learn passes to score where metadata routing is enabled, as set_fit_request does for fit."""
        return self._requesting("score", requests)

    def set_predict_request(self, **requests: Request) -> Self:
        """Say what scikit-learn passes to predict where routing is enabled, as set_fit_request does for fit."""
        return self._requesting("predict", requests)

    def _requesting(self, method: str, requests: dict[str, Request]) -> Self:
        """Set what is passed to a method; a clone of the estimator requests the same."""
        request, known = self.get_metadata_routing(), self._keywords(method)
        for name, alias in requests.items():
            if name not in known:
                weights = " Weights are document_weights (one a row) and query_weights (by query id)."
                raise TypeError(
                    f"set_{method}_request() got '{name}', and {method} of {type(self).__name__} takes "
                    f"{', '.join(known)}.{weights if 'weight' in name and method == 'fit' else ''}"
                )
            getattr(request, method).add_request(param=name, alias=alias)
        self._metadata_request = request
        return self
