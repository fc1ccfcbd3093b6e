"""A problem: development queries with their validation plan, and the test queries, on disk for all workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from ranktune.solvers.clicks.judging.gains import by_searches
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.disk.stored import read_queries, write_queries
from ranktune.solvers.data.gathering import Gathering
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.registry import averages
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.policy.reserve import Durations
from ranktune.tuner.splits.plans import FRESH, GIVEN, PLAN, StoredPlan, fresh_plan, save_plan
from ranktune.tuner.splits.seals import reseal, seal
from ranktune.tuner.splits.split import (
    IN_MEMORY,
    WHOLE,
    Development,
    as_given,
    validation_plan,
    with_test,
    without_shared,
)
from ranktune.tuner.splits.store import read_development, read_part, read_plan, write_problem
from ranktune.tuner.study.baseline import check_covered
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.settings import NO_GAP, NO_TEST


@dataclass(frozen=True, eq=False)
class SplitProblem:
    """One split, prepared for trials.

    folder holds the arrays that workers map. plan scores the trials; fresh is another plan over all development
    queries, for configurations that plan does not distinguish (empty if there are too few queries). policy decides what
    a study does on it.
    """

    name: str
    folder: Path
    development: Queries
    plan: StoredPlan
    fresh: StoredPlan
    test: Queries | None
    policy: Policy = POLICY

    @classmethod
    def open(cls, folder: Path, name: str, policy: Policy = POLICY) -> Self:
        """Return the problem that write_split wrote into folder."""
        test = read_queries(folder / "test") if (folder / "test").is_dir() else None
        where = str(folder)
        plan, fresh = (read_plan(where, which) for which in (PLAN, FRESH))
        return cls(name, folder, read_development(where), plan, fresh, test, policy)

    def by_one_part(self) -> Self:
        """Return the problem whose trials are scored once, written for the workers: on the validation queries as given.

        Without given ones it is the first part of the plan, the last where times are known. It has no fresh plan: where
        trials are that expensive, there is no time to score any of them again.
        """
        assert isinstance(self.plan, tuple)
        stored = read_plan(str(self.folder), GIVEN)
        one = self.plan[:1] if self.development.times is None else self.plan[-1:]  # with most to learn from
        plan = stored if isinstance(stored, tuple) and stored else one
        save_plan(plan, self.folder / f"{PLAN}.npz")
        reseal(self.folder, f"{PLAN}.npz")
        return replace(self, plan=plan, fresh=())

    def __reduce__(self) -> tuple[Callable[[Path, str, Policy], SplitProblem], tuple[Path, str, Policy]]:
        """Pickle as the folder, which the other process maps too."""
        return type(self).open, (self.folder, self.name, self.policy)

    @property
    def validation(self) -> Ints:
        """Numbers of the development queries that trials are scored on, rising."""
        if not isinstance(self.plan, tuple):
            return np.arange(self.development.n_queries)
        return np.unique(np.concatenate([fold.vali for fold in self.plan]))

    @property
    def validation_queries(self) -> Queries:
        """The development queries that trials are scored on."""
        return read_part(str(self.folder), self.validation)

    @property
    def validation_weights(self) -> Floats | None:
        """Weights of the queries that trials are scored on, None if they have none."""
        weights = self.development.query_weights
        return None if weights is None else weights[self.validation]

    @property
    def test_weights(self) -> Floats | None:
        """Weights of the test queries, None if they have none."""
        return None if self.test is None else self.test.query_weights

    @property
    def facts(self) -> dict[str, int]:
        """The sizes of the data."""
        learnt, test = self.development, self.test
        sizes = {"queries": learnt.n_queries, "documents": learnt.n_documents, "features": learnt.n_features}
        return sizes if test is None else sizes | {"test_queries": test.n_queries, "test_documents": test.n_documents}

    @property
    def durations(self) -> Durations:
        """The durations of fits and of the end of a study on these data."""
        learnt, features, documents = self.development, self.development.features, self.development.n_documents
        cells = int(features.size if isinstance(features, np.ndarray) else features.nnz)
        parts, fresh = (len(plan if isinstance(plan, tuple) else plan.orders) for plan in (self.plan, self.fresh))
        documents += 0 if self.test is None else self.test.n_documents
        return Durations(learnt.n_queries, documents, cells, parts, fresh, averages, self.policy)

    @property
    def has_given_queries(self) -> bool:
        """Whether validation queries were given, also where the plan deals them into folds."""
        return self.given_split or read_plan(str(self.folder), GIVEN) != ()

    @property
    def given_split(self) -> bool:
        """Whether one validation set was given instead of folds."""
        return isinstance(self.plan, tuple) and len(self.plan) == 1


@dataclass(frozen=True, eq=False)
class Assembled:
    """The development queries of a split with their plan, its test queries, and how many lie in the gap between them.

    digest is that of its data.
    """

    name: str
    development: Development
    plan: StoredPlan
    test: Queries | None
    n_in_gap: int
    digest: str


def assemble(split: QuerySplit, study: Study, gathering: Gathering = IN_MEMORY) -> Assembled:
    """Return the queries of a split, each in one part, with a test set, and its validation plan."""
    untested = study.test == NO_TEST or (study.plan == "nested" and split.name == WHOLE)
    total = 0 if split.test is not None else split.train.n_queries
    split = split if untested else with_test(split, study.seed, gathering, study.gap)
    n_in_gap = total - split.train.n_queries - split.test.n_queries if total and split.test is not None else 0
    split = without_shared(split, gathering).allowing_missing()
    whole = Development.of(split, gathering)
    keeps = not study.refit and whole.n_vali > 0 and study.folds is None
    plan = validation_plan(
        whole,
        study.folds,
        study.seed,
        strict=study.one_split or keeps,
        repeats=study.repeats,
        permutations=study.permutations if study.plan == "progressive" else None,
        gap=study.gap,
    )
    vali = None if not isinstance(plan, tuple) else np.unique(np.concatenate([fold.vali for fold in plan]))
    development = by_searches(whole.queries, vali)
    test = None if split.test is None else by_searches(split.test)
    digest = development.fingerprint + ("" if test is None else test.fingerprint)
    return Assembled(split.name, replace(whole, queries=development), plan, test, n_in_gap, digest)


def write_split(split: Assembled, study: Study, parent: Path) -> None:
    """Write a split with its validation plan into a folder under parent."""
    development, plan = split.development.queries, split.plan
    if study.monotone:
        development = development.constrained(study.monotone)
    if study.baseline is not None and not (study.plan == "nested" and split.name == WHOLE):
        check_covered(study.baseline, development, plan, split.test)
    folder = parent / folder_name(split.name, split.digest, study)
    fresh = () if study.strict else fresh_plan(plan, development, study.seed)
    dealt = isinstance(plan, tuple) and len(plan) > 1 and study.folds is None and study.repeats == 1
    parts = as_given(split.development, study.gap) if dealt and not study.strict else ()
    write_problem(development, {PLAN: plan, FRESH: fresh, GIVEN: parts}, folder)
    if split.test is not None:
        write_queries(split.test, folder / "test", documents=True)
    seal(folder)


def folder_name(name: str, digest: str, study: Study) -> str:
    """Return the name of a split's folder, which depends on its data, folds, gap and monotone constraints.

    Others get another name, because workers cache what they have read.
    """
    dealt = (study.seed, study.plan, study.folds, study.repeats, study.outer, study.permutations, study.refit)
    more: list[object] = [sorted(study.monotone.items())] if study.monotone else []
    more += [study.gap] if study.gap != NO_GAP else []
    dealt_digest = hashlib.sha256(repr((digest, dealt, *more)).encode()).hexdigest()
    return f"{name or 'all'}-{dealt_digest[:16]}"
