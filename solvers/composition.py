"""A ranker put together from parts: loss x pair weight x penalty x one-pass optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ranktune.solvers.arrays import Floats
from ranktune.solvers.checks import check_choice, check_count
from ranktune.solvers.errors import ParameterError
from ranktune.solvers.list_scaling import list_scores
from ranktune.solvers.losses import PairwiseHinge, PairwiseLoss
from ranktune.solvers.one_pass import FOBOS, OnePass, check_parts, orders
from ranktune.solvers.penalties import L1, L2, Penalty
from ranktune.solvers.queries import Queries
from ranktune.solvers.ranker import LinearRanker, Step
from ranktune.solvers.weights import PairWeight

SCALINGS = ("list", "none")


@dataclass(frozen=True)
class Parts:
    """What a ranker is made of. Raises IncompatibleParts where the parts do not compose."""

    loss: PairwiseLoss
    penalty: Penalty
    optimizer: OnePass

    def __post_init__(self) -> None:
        """Check that the parts compose."""
        check_parts(self.loss, self.penalty, self.optimizer)
        self.optimizer.rule(self.penalty)


class OnePassRanker(LinearRanker):
    """A linear ranker that learns list by list; a subclass says of which parts it is made."""

    passes: int
    scaling: str
    random_state: Any

    def _parts(self) -> Parts:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        check_count("passes", self.passes)
        check_choice("scaling", self.scaling, SCALINGS)
        seed = self.random_state
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
        if not (seed is None or whole or isinstance(seed, np.random.Generator)):
            raise ParameterError(
                f"random_state={seed!r}: it must be a whole number of at least 0 or a numpy.random.Generator, "
                "which draw the order of the lists, or None to keep their order."
            )
        self._parts()

    def _steps(self, queries: Queries) -> Iterator[Step]:
        seed = self.random_state
        generator = None if seed is None else np.random.default_rng(seed)
        self._begin(queries)
        for order in orders(queries.n_queries, int(self.passes), generator):
            yield from self._learn(queries, order)

    def partial_fit(self, X: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> Self:
        """Learn from more lists, once, in their order, going on from what was learnt before.

        Takes what fit takes, whole lists at a time. Calls on the pieces of a data set leave the same bits as fit on all
        of it with passes=1 and random_state=None. Lists without two different grades change nothing.
        """
        self._check_parameters()
        first = not hasattr(self, "state_")
        queries = self._grouped(X, y, qid, group, reset=first)
        if first:
            self._begin(queries)
        for _ in self._learn(queries, np.arange(queries.n_queries)):
            pass
        return self

    def _begin(self, queries: Queries) -> None:
        self.state_ = self._parts().optimizer.start(queries.n_features)
        self.coef_ = np.zeros(queries.n_features)
        self.n_lists_seen_ = 0

    def _learn(self, queries: Queries, order: Any) -> Iterator[Step]:
        parts, scaled = self._parts(), self.scaling == "list"
        steps = parts.optimizer.learn(self.state_, parts.loss, parts.penalty, queries, order, scaled=scaled)
        for self.coef_, step in steps:
            self.n_lists_seen_ = step.iteration
            yield step

    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> Floats:
        """Return the scores of the rows of X, (n_documents,), in the order of the rows; higher is better.

        Under scaling="list" features are divided by their range within each list, so say which rows are a list by qid
        or group as in fit; with neither, all rows are one list.
        """
        if self.scaling != "list":
            return super().predict(X, qid=qid, group=group)
        check_is_fitted(self, "coef_")
        if isinstance(X, Queries):
            queries = X
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", reset=False)
            queries = Queries.from_arrays(X, np.zeros(X.shape[0]), qid=qid, group=group)
        return queries.in_caller_order(list_scores(queries.features, queries.starts, self.coef_))


class Ranker(OnePassRanker):
    """A linear ranker made of a loss, a pair weight, a penalty and a one-pass optimizer.

    loss          such as PairwiseHinge(); None: that one
    weight        such as DeltaNDCG(10), in place of the loss's own; None: the loss's own
    penalty       such as L1(1e-4); None: none
    optimizer     such as FOBOS(AdaGrad(0.1)); None: FOBOS()
    passes        how often to go through the lists
    scaling       "none": features as they are; "list": divided by their range within each list (predict needs qid)
    random_state  a seed or numpy.random.Generator that draws the order of the lists in each pass; None: as given

    Fitted: coef_ (n_features,), n_lists_seen_. Raises IncompatibleParts before training where the parts do not compose.
    """

    def __init__(
        self,
        loss: PairwiseLoss | None = None,
        weight: PairWeight | None = None,
        penalty: Penalty | None = None,
        optimizer: OnePass | None = None,
        *,
        passes: int = 1,
        scaling: str = "none",
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.weight = weight
        self.penalty = penalty
        self.optimizer = optimizer
        self.passes = passes
        self.scaling = scaling
        self.random_state = random_state

    def _parts(self) -> Parts:
        loss: Any = PairwiseHinge() if self.loss is None else self.loss
        if self.weight is not None:
            loss = replace(loss, weight=self.weight)
        optimizer = FOBOS() if self.optimizer is None else self.optimizer
        return Parts(loss, no_penalty(optimizer) if self.penalty is None else self.penalty, optimizer)


def no_penalty(optimizer: OnePass) -> Penalty:
    """Return a penalty of strength zero that optimizer takes."""
    return L1(0.0) if "truncate" in optimizer.needs.penalty else L2(0.0)
