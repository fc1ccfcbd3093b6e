"""How good a configuration samplers find in few evaluations: the protocol "tuner".

Every point of the grid is evaluated once on every fold. All samplers and seeds then search the table of these values,
so that a run costs its suggestions alone, and the best value there is, from which regret is counted, is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.metrics.means import mean_of
from ranktune.studies.papers.claims import SIGNIFICANT, ClaimVerdict, verdict_from
from ranktune.studies.papers.lattice import search
from ranktune.studies.papers.protocols import PartResult, fits_of, present
from ranktune.studies.papers.published import Point, PublishedSystem

MARKS = (10, 20, 30)
"""Numbers of evaluations at which regrets are stated."""
ENOUGH = 0.005
"""A regret of that much NDCG counts as tuned."""
DEFAULT = "thompson"
"""Our sampler with the acquisition of studies: a row of the table."""


def lattice_values(entry: PublishedSystem, split: QuerySplit, seed: int) -> PartResult:
    """Return the metric of the choice of every point on split's validation and test queries, (n_points,)."""
    present(split.vali, split, "vali")
    values = [(mean_of(fit.vali[entry.choose]), mean_of(fit.test[entry.choose])) for fit in fits_of(entry, split, seed)]
    on_vali, on_test = np.array(values).T
    return PartResult(curves={"vali": on_vali, "test": on_test})


def sampler_runs(entry: PublishedSystem, folds: Sequence[PartResult], seeds: Sequence[int]) -> PartResult:
    """Return the regret of the pick after each evaluation, (n_seeds, evaluations), and the final picks' test metric.

    half, (1,), is the regret that half of all points do not exceed.
    folds are the results of lattice_values; a point's value is its mean over them.
    """
    for fold in folds:
        if fold.error:
            return PartResult(error=fold.error)
    vali, test = (np.mean([fold.curves[name] for fold in folds], axis=0) for name in ("vali", "test"))
    number = {_key(point): k for k, point in enumerate(entry.points)}
    regrets, picks = [], []
    for seed in seeds:
        visited = search(
            entry.grid,
            lambda point: float(vali[number[_key(point)]]),
            sampler=entry.sampler,
            seed=seed,
            evaluations=entry.evaluations,
        )
        values = np.array([value for _, value in visited])
        values = np.pad(values, (0, entry.evaluations - len(values)), mode="edge")
        regrets.append(vali.max() - np.maximum.accumulate(values))
        best, _ = visited[int(np.argmax(values[: len(visited)]))]
        picks.append(test[number[_key(best)]])
    half = np.array([vali.max() - np.median(vali)])
    return PartResult(curves={"regret": np.array(regrets), "test": np.array(picks), "half": half})


def figures(parts: Sequence[PartResult], metric: str) -> Mapping[str, float]:
    """Return the median regret at each mark, and the mean test metric of the final picks."""
    regrets = regrets_of(parts)
    medians = {f"regret@{mark}": float(np.median(regrets[:, mark - 1])) for mark in MARKS if mark <= regrets.shape[1]}
    return {**medians, f"test {metric}": float(np.mean(np.concatenate([part.curves["test"] for part in parts])))}


def regrets_of(parts: Sequence[PartResult]) -> Floats:
    """Return the regrets of all runs, (n_seeds, evaluations)."""
    return np.concatenate([part.curves["regret"] for part in parts])


def verdicts(
    source: str,
    entries: Sequence[PublishedSystem],
    results: Mapping[tuple[str, str], Sequence[PartResult]],
    names: Sequence[str],
) -> Iterator[ClaimVerdict]:
    """Yield whether the first entry is tuned after its evaluations, and whether it beats each of the others."""
    first, *others = entries
    for name in names:
        ours = regrets_of(results[first.name, name])[:, -1]
        tuned = float(np.mean(ours <= ENOUGH))
        yield verdict_from(
            source,
            f"about {first.evaluations} evaluations of Bayesian optimisation are enough ({name})",
            tuned >= 0.5,
            f"After {first.evaluations} of {len(first.points)} points the pick of {first.name} is within {ENOUGH:g} "
            f"of the best in {tuned:.0%} of {len(ours)} runs; its median regret is {np.median(ours):.4f}.",
            contrary=np.where(ours <= ENOUGH, 0.5, -0.5),
        )
    for other in others:
        if other.sampler == DEFAULT:
            continue  # the paper does not speak of it
        yield _compared(source, first, other, results, names)


def _compared(
    source: str,
    first: PublishedSystem,
    other: PublishedSystem,
    results: Mapping[tuple[str, str], Sequence[PartResult]],
    names: Sequence[str],
) -> ClaimVerdict:
    """Return whether first's final regrets are below other's: significantly on one data set, and above on none.

    It is refuted where they are significantly above on one, and below on none. The level is divided by the data sets.
    """
    better, worse, shown, near = 0, 0, [], []
    level = SIGNIFICANT / len(names)
    for name in names:
        ours, theirs = (regrets_of(results[entry.name, name])[:, -1] for entry in (first, other))
        p = mann_whitney(ours, theirs)
        lower = float(np.mean(ours)) < float(np.mean(theirs))
        better += p < level and lower
        worse += p < level and not lower
        half = float(results[first.name, name][0].curves["half"][0])
        near.append(f"{half:.3f} ({name})")
        shown.append(f"{name}: mean {np.mean(ours):.4f} against {np.mean(theirs):.4f}, p = {p:.2g}")
    claim = f"{first.name} tunes better in {first.evaluations} evaluations than {other.name}"
    reason = f"Regret, two-sided Mann-Whitney test: {'; '.join(shown)}."
    if not better and not worse:
        reason += (
            f" No difference that these runs can show: half of all points are within {' and '.join(near)} of the best."
        )
    return verdict_from(source, claim, better > 0 and not worse, reason, contrary=worse > 0 and not better)


def mann_whitney(a: Floats, b: Floats) -> float:
    """Return the two-sided p-value of the Mann-Whitney test; 1 where all values are equal."""
    from scipy.stats import mannwhitneyu  # takes a third of a second to import

    same = np.ptp(np.concatenate([a, b])) == 0.0
    return 1.0 if same else float(mannwhitneyu(a, b, alternative="two-sided").pvalue)


def _key(point: Point) -> tuple[object, ...]:
    return tuple(point.values())
