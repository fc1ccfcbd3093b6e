"""AdaRank: accuracy (Figures 2 to 5), errors by grade (6), pairs (7, 8), cross-measure (9, 10), learning (11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import make
from ranktune.studies.papers.claims import SIGNIFICANT, below_zero
from ranktune.studies.papers.figures.work import Material, PrintedFigure, shown
from ranktune.studies.papers.published import PublishedSystem

DATA = "OHSUMED"
"""The data set of the paper that is here."""
MAP, NDCG = "map:letor,relevant=2", "ndcg@5:letor"
"""What AdaRank.MAP and AdaRank.NDCG maximise; as in the paper only the highest grade is relevant to MAP."""
MEASURES = {"MAP": MAP, "@1": "ndcg@1:letor", "@3": "ndcg@3:letor", "@5": NDCG, "@10": "ndcg@10:letor"}
PAIRS = {"d-n": (2, 0), "d-p": (2, 1), "p-n": (1, 0)}
"""Definitely, possibly and not relevant: the kinds of pairs of Figure 6."""
BM25 = {"OHSUMED": 41, "MQ2007": 25, "MQ2008": 25}
"""The number of the feature BM25 of the whole document in LETOR, from 1."""
SYSTEMS = ("BM25", "Ranking SVM", "RankBoost", "AdaRank.MAP", "AdaRank.NDCG")
GROUPS = 8
"""Groups of queries by their number of pairs."""
FEW_PAIRS = 3000
"""Pairs below which the paper has AdaRank ahead."""


@dataclass(frozen=True)
class FoldStudy:
    """What a fold gives: by system the measures of each test query, the shares of wrong pairs, and training figures.

    test      by system and measure, (n_queries,)
    errors    by system and kind of pair: wrong pairs and all pairs
    training  by system: its metrics MAP and NDCG@5 on the training queries, (n_queries,)
    pairs     of each training query
    curve     MAP of AdaRank.MAP on the training queries after each round, by the paper's own rule
    """

    test: Mapping[str, Mapping[str, Floats]]
    errors: Mapping[str, Mapping[str, tuple[float, float]]]
    training: Mapping[str, Mapping[str, Floats]]
    pairs: Floats
    curve: Floats


Studies: TypeAlias = Mapping[str, Sequence[FoldStudy]]
"""By data set, a study of each fold."""


def figures(material: Material) -> Iterator[PrintedFigure]:
    """Yield Figures 2 to 11."""
    systems = material.paper.systems
    calls = [(systems, split, BM25.get(d.name, 0)) for d in material.datasets for split in d.splits]
    fold_studies = iter(material.all_of(fold_study, calls))
    studies = {d.name: [next(fold_studies) for _ in d.splits] for d in material.datasets}
    draw: dict[str, Callable[[PrintedFigure, Studies], None]] = {
        "Figure 2": _accuracy,
        "Figure 6": _errors,
        "Figure 7": _pairs,
        "Figure 8": _groups,
        "Figure 9": partial(_cross_measure, measure="MAP", trained="AdaRank.MAP", other="AdaRank.NDCG"),
        "Figure 10": partial(_cross_measure, measure="NDCG@5", trained="AdaRank.NDCG", other="AdaRank.MAP"),
        "Figure 11": _curve,
    }
    for declared in material.paper.figures:
        figure = PrintedFigure(declared)
        if not declared.missing:
            draw[declared.source](figure, studies)
        yield figure


def fold_study(systems: Mapping[str, PublishedSystem], split: QuerySplit, bm25: int) -> FoldStudy:
    """Fit all systems on a fold."""
    train, vali, test = split.train, split.vali, split.test
    assert vali is not None and test is not None
    models = {name: _chosen(systems[name], train, vali) for name in SYSTEMS[1:]}
    scores: dict[str, Floats] = {name: np.asarray(model.predict(test)) for name, model in models.items()}
    if 0 < bm25 <= test.n_features:
        scores = {"BM25": np.asarray(test.features[:, bm25 - 1], dtype=np.float64), **scores}
    on_train = {name: np.asarray(model.predict(train)) for name, model in models.items()}
    printed, metric = systems["AdaRank.MAP, as printed"], parse_metric(MAP)
    path = make(printed.solver, printed.parameters, 0).fit_path(train, [int(str(r)) for r in printed.grid["rounds"]])
    curve = [metric.mean(model.predict(train), train) for _, model in path]
    return FoldStudy(
        test={name: _per_query(values, test, MEASURES) for name, values in scores.items()},
        errors={name: wrong_pairs(values, test) for name, values in scores.items() if name != "BM25"},
        training={name: _per_query(values, train, {"MAP": MAP, "NDCG@5": NDCG}) for name, values in on_train.items()},
        pairs=np.asarray(Judgements.of(train).pairs(), dtype=np.float64),
        curve=np.array(curve),
    )


def _chosen(system: PublishedSystem, train: Queries, vali: Queries) -> BaseRanker:
    """Return the point of a system's grid, fitted, that is best on validation queries."""
    models = [make(system.solver, system.at(point), 0).fit(train, vali=vali) for point in system.points]
    if len(models) == 1:
        return models[0]
    metric = parse_metric(system.choose)
    return max(models, key=lambda model: metric.mean(model.predict(vali), vali))


def _per_query(scores: Floats, queries: Queries, metrics: Mapping[str, str]) -> dict[str, Floats]:
    return {name: parse_metric(metric).per_query(scores, queries) for name, metric in metrics.items()}


def wrong_pairs(scores: Floats, queries: Queries) -> dict[str, tuple[float, float]]:
    """Return for each kind of pair how many are ranked wrong, equal scores counting a half, and how many there are."""
    counts = dict.fromkeys(PAIRS, (0.0, 0.0))
    for a, b in zip(queries.starts[:-1], queries.starts[1:], strict=True):
        values, grades = scores[a:b], queries.grades[a:b]
        for name, (high, low) in PAIRS.items():
            gap = values[grades == high][:, None] - values[grades == low][None, :]
            wrong, every = counts[name]
            counts[name] = (wrong + float((gap < 0).sum() + 0.5 * (gap == 0).sum()), every + gap.size)
    return counts


def _present(folds: Sequence[FoldStudy]) -> list[str]:
    return [name for name in SYSTEMS if name in folds[0].test]


def _joined(folds: Sequence[FoldStudy], system: str, measure: str) -> Floats:
    return np.concatenate([fold.test[system][measure] for fold in folds])


def _label(measure: str) -> str:
    return measure if measure == "MAP" else f"NDCG{measure}"


def _accuracy(figure: PrintedFigure, studies: Studies) -> None:
    labels = tuple(map(_label, MEASURES))
    for name, folds in studies.items():
        places = range(len(MEASURES))
        bars = {s: (places, [_joined(folds, s, m).mean() for m in MEASURES]) for s in _present(folds)}
        title = f"{name}: ranking accuracies"
        figure.draw(title, "", "mean over test queries", bars, style="bars", categories=labels)
    for ours, measure in (("AdaRank.MAP", "MAP"), ("AdaRank.NDCG", "@5")) if DATA in studies else ():
        for rival in _present(studies[DATA])[:3]:
            _say_who_is_ahead(figure, studies[DATA], ours, rival, measure)


def _say_who_is_ahead(figure: PrintedFigure, folds: Sequence[FoldStudy], ours: str, rival: str, measure: str) -> None:
    """Say whether ours is ahead of rival in every measure, and significantly in one."""
    from scipy.stats import ttest_rel  # takes a third of a second to import

    gains = {_label(m): _joined(folds, ours, m) - _joined(folds, rival, m) for m in MEASURES}
    measured = f"Differences: {shown(gains, '+.4f')}."
    behind = any(below_zero(gain, SIGNIFICANT / len(gains)) for gain in gains.values())
    ahead = min(float(gain.mean()) for gain in gains.values()) > 0.0
    figure.say("ahead", ahead, measured, contrary=behind, ours=ours, rival=rival)
    p, label = float(ttest_rel(_joined(folds, ours, measure), _joined(folds, rival, measure)).pvalue), _label(measure)
    gain = gains[label]
    measured = f"Mean difference {gain.mean():+.4f}, paired t-test p = {p:.2g}."
    holds = p < SIGNIFICANT and gain.mean() > 0.0
    figure.say("significant", holds, measured, contrary=gain, ours=ours, rival=rival, measure=label)


def _errors(figure: PrintedFigure, studies: Studies) -> None:
    for name, folds in studies.items():
        rates = {system: error_rates(folds, system) for system in _present(folds) if system != "BM25"}
        curves = {system: (range(3), list(kinds.values())) for system, kinds in rates.items()}
        title = f"{name}: pairs ranked wrong"
        figure.draw(title, "grades of the pair", "share of pairs", curves, categories=tuple(PAIRS))
        for kind in ("d-n", "d-p") if name == DATA else ():
            shares = {system: kinds[kind] for system, kinds in rates.items()}
            fewer = max(shares["AdaRank.MAP"], shares["AdaRank.NDCG"]) < min(shares["Ranking SVM"], shares["RankBoost"])
            figure.say("errors", fewer, f"Shares: {shown(shares)}.", kind=kind)


def error_rates(folds: Sequence[FoldStudy], system: str) -> dict[str, float]:
    """Return the share of wrong pairs of all test queries, by kind."""
    totals = {kind: np.sum([fold.errors[system][kind] for fold in folds], axis=0) for kind in PAIRS}
    return {kind: float(wrong / max(every, 1.0)) for kind, (wrong, every) in totals.items()}


def groups_of(pairs: Floats) -> tuple[Ints, tuple[str, ...]]:
    """Return the group of each query by its number of pairs, (n_queries,), and the names of the groups."""
    width = 1000 if pairs.max() >= 2000 else max(1, int(np.ceil(pairs.max() / GROUPS)))
    numbers = np.minimum(pairs // width, GROUPS - 1).astype(np.int64)
    ends = [f"{k}k" if width == 1000 else f"{k * width}" for k in range(GROUPS)]
    return numbers, (*(f"{low}-{high}" for low, high in pairwise(ends)), f"{ends[-1]}+")


def _pairs(figure: PrintedFigure, studies: Studies) -> None:
    for name, folds in studies.items():
        numbers, labels = groups_of(folds[0].pairs)
        bars = {"queries": (range(len(labels)), np.bincount(numbers, minlength=len(labels)))}
        title = f"{name}, training queries of Fold1"
        figure.draw(title, "pairs of the query", "queries", bars, style="bars", categories=labels)
        if name == DATA:
            low, high = np.quantile(folds[0].pairs, (0.1, 0.9))
            measured = f"A tenth of the queries have at most {low:,.0f} pairs, a tenth at least {high:,.0f}."
            figure.say("varies", high > 3 * low, measured, contrary=True)


def _groups(figure: PrintedFigure, studies: Studies) -> None:
    for name, folds in studies.items():
        pairs, training = folds[0].pairs, folds[0].training
        numbers, labels = groups_of(pairs)
        gap = training["AdaRank.MAP"]["MAP"] - training["RankBoost"]["MAP"]
        groups = np.unique(numbers)
        means = [float(np.nanmean(gap[numbers == k])) for k in groups]
        bars, axis = {"AdaRank.MAP less RankBoost": (groups, means)}, "AdaRank.MAP - RankBoost"
        title = f"{name}, Fold1: difference in MAP"
        figure.draw(title, "pairs of the query", axis, bars, style="bars", categories=labels)
        if name == DATA:
            average = float(np.mean(means))
            measured = f"The mean over groups is {average:+.4f}."
            figure.say("ahead", average >= 0.015, measured, contrary=np.array(means) - 0.015)
            few = pairs < FEW_PAIRS
            if few.all() or not few.any():
                figure.say("few", None, f"All queries are on one side of {FEW_PAIRS:,} pairs.")
            else:
                small, large = float(np.nanmean(gap[few])), float(np.nanmean(gap[~few]))
                measured = f"Below {FEW_PAIRS:,} pairs {small:+.4f}, above {large:+.4f}."
                figure.say("few", small > max(large, 0.0), measured)


def _cross_measure(figure: PrintedFigure, studies: Studies, measure: str, trained: str, other: str) -> None:
    for name, folds in studies.items():
        trials = tuple(f"trial {k + 1}" for k in range(len(folds)))
        values = {
            system: [float(np.nanmean(fold.training[system][measure])) for fold in folds]
            for system in ("AdaRank.MAP", "AdaRank.NDCG")
        }
        curves = {system: (range(len(folds)), means) for system, means in values.items()}
        figure.draw(f"{name}: {measure} on training queries", "", measure, curves, categories=trials)
        if name == DATA:
            ahead = sum(a >= b for a, b in zip(values[trained], values[other], strict=True))
            means = f"means {np.mean(values[trained]):.4f} and {np.mean(values[other]):.4f}"
            gains = np.array(values[trained]) - np.array(values[other])
            figure.say("own", 2 * ahead > len(folds), f"In {ahead} of {len(folds)} trials; {means}.", contrary=gains)


def _curve(figure: PrintedFigure, studies: Studies) -> None:
    for name, folds in studies.items():
        curve = folds[0].curve
        rounds = np.arange(1, len(curve) + 1)
        title, axis = f"{name}, Fold1: learning curve", "MAP on training queries"
        figure.draw(title, "round", axis, {"AdaRank.MAP": (rounds, curve)}, style="line")
        if name == DATA:
            peak = int(np.argmax(curve))
            falls = float(np.maximum(-np.diff(curve[: peak + 1]), 0.0).sum())
            rise = float(curve[peak] - curve[0])
            reached = f"From {curve[0]:.4f} to {curve[peak]:.4f} in {peak + 1} rounds"
            measured = f"{reached}; on the way it falls by {falls:.4f} in all."
            figure.say("steady", rise > 0.0 and falls <= 0.25 * rise, measured, contrary=True)
