"""The report of one budget as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranktune.solvers.core.arrays import JsonView
from ranktune.studies.benchmarks.tables import Row, Table
from ranktune.studies.benchmarks.turnkey.cells import METRICS, Results
from ranktune.studies.benchmarks.turnkey.data import Case
from ranktune.studies.benchmarks.turnkey.overall import FAR, Overall, overall
from ranktune.studies.benchmarks.turnkey.peers import METRIC, OURS
from ranktune.studies.benchmarks.turnkey.results import Comparison, of_rivals, summary, verdicts
from ranktune.tuner.statistics.comparisons import ALPHA


def tables(results: Results, cases: Sequence[Case], rivals: Sequence[str], seconds: float, how: str) -> Iterator[Table]:
    """Yield the tables of one budget; how is part of the titles: the budget, the seeds and the partition."""
    ran = {(key[0], key[2]) for key in results}
    every = [summary(results, case.name, name) for case in cases for name in rivals if (case.name, name) in ran]
    for data in dict.fromkeys(row["data"] for row in every):
        rows = [row for row in every if row["data"] == data]
        yield Table(f"{data}: test queries, means over folds and seeds ({how})", [_quality(row) for row in rows])
        yield Table(f"{data}: what the tools did in {seconds:g} s", [_effort(row) for row in rows])
    if comparisons := of_rivals(results, cases, rivals):
        title = f"{OURS} less a rival, {METRIC}, paired by query; folds won and lost"
        yield Table(title, [_comparison(comparison) for comparison in comparisons])
    if together := overall(every):
        yield from _overall(together, how)
    published = [case.name for case in cases if case.letor and case.split_seed is None]
    if wanted := list(verdicts(every, comparisons, published)):
        yield Table(f"wanted of {OURS} ({seconds:g} s)", wanted)


def _quality(row: JsonView) -> Row:
    inside = "-" if row["inside_interval"] is None else f"{row['inside_interval']} of {row['runs']}"
    values = {metric: f"{row[metric]:.4f}" for metric in METRICS}
    return {"rival": row["rival"], **values, "estimate - test": f"{row['optimism']:+.4f}", "in interval": inside}


def _effort(row: JsonView) -> Row:
    tried, trees = ("-" if count is None else f"{count:.0f}" for count in (row["tried"], row["trees"]))
    seconds = {name: f"{row[name]:.1f}" for name in ("seconds", "longest")}
    return {"rival": row["rival"], "runs": row["runs"], "configurations": tried, "trees": trees, **seconds}


def _comparison(comparison: Comparison) -> Row:
    return {
        "rival": comparison.rival, "data": comparison.data, "queries": comparison.queries,
        "difference": f"{comparison.difference:+.4f}", "p": f"{comparison.p_value:.4f}",
        "won": comparison.wins, "lost": comparison.losses,
    }  # fmt: skip


def _overall(overall: Overall, how: str) -> Iterator[Table]:
    """Yield all data sets together: the tools by their mean rank, and ours beside the peers."""
    tools = sorted(overall.ranks, key=lambda tool: overall.ranks[tool])
    friedman = "" if overall.p_value is None else f"Friedman's p = {overall.p_value:.2g}. "
    left_out = f" Left out: {', '.join(overall.left_out)}." if overall.left_out else ""
    yield Table(
        f"{len(overall.data)} data sets: {METRIC}, and mean ranks by it ({how})",
        [{"tool": t, "mean": f"{overall.means[t]:.4f}", "mean rank": f"{overall.ranks[t]:.2f}"} for t in tools],
        f"{friedman}Critical difference of mean ranks (Nemenyi, {ALPHA:.0%}): {overall.critical:.2f}.{left_out}",
    )
    rows: list[Row] = [
        {
            "tool": lead.tool, "best single peer": lead.single, "lead over it": f"{lead.over_single:+.4f}",
            "less best of each": f"{lead.over_best:+.4f}",
            "far below": f"{len(lead.far_below)} of {len(overall.data)}",
        }
        for lead in overall.leads
    ]  # fmt: skip
    far = ", ".join(dict.fromkeys(name for lead in overall.leads for name in lead.far_below))
    note = f"far below: data sets more than {FAR:g} below their best peer{far and ': '}{far}"
    if rows:
        yield Table(f"beside the peers, {METRIC}", rows, note)
