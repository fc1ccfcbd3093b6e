"""The command interleave.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ranktune.arguments import DataArguments
from ranktune.command_line.options import (
    Given,
    Json,
    Solvers,
    Trust,
    confirmed,
    console,
    data_names,
    find_solvers,
    print_json,
    reading,
    takes_options,
    write_output,
)
from ranktune.command_line.production.arguments import ListArguments, TrialArguments

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ranktune.solvers.models.base import Model
    from ranktune.tuner.interleaving.judging import TestOutcome, TestSize

commands = typer.Typer()

HELP = """Write, judge or plan a test that shows two rankings in one.

\b
A B DATA -o FILE  write lists that show the rankings of A and B in one
--judge LOG       say which ranking users prefer, by the clicks on such lists
--plan EFFECT     say how many searches a test needs to find a preference

\b
team-draft  in each round both pick their next best, in the order of a coin.
            Clicks count for who picked
balanced    both alternate. Clicks count in both rankings, down to the
            smallest rank that covers them

A and B are given as MODEL of `ranktune evaluate`: models, scores or columns. A line of the file is a list: query,
documents, and the team of each, A or B, or - where its clicks count for neither. Balanced lists have the ranks in both
too. Log each list that you show with the positions clicked, as "clicks": [1, 3], and with the user.

A log may also have a row for each document: query or session, position, team and click, as csv, Parquet or jsonl. With
users the interval is by user, else by query.

The preference is the share of searches that A wins, less the share that B wins. A plan rests on the share of ties: that
of the log, or an assumed one.

\b
Examples:
  ranktune interleave old.json new.json searches.csv -o shown.jsonl
  ranktune interleave --judge log.jsonl
  ranktune interleave --plan 0.03 --ties 0.8
  ranktune interleave --plan 0.03 --judge log.jsonl
"""
WAYS = "Give A, B, DATA and --output to write lists, or --judge LOG, --plan EFFECT or both."


@commands.command("interleave", help=HELP)
@takes_options(DataArguments, ListArguments, TrialArguments)
def interleave(
    shared: Given,
    lists: Given,
    test: Given,
    *,
    a: Annotated[str | None, typer.Argument(help="A ranking: a model, scores or column:NAME.", metavar="[A]")] = None,
    b: Annotated[str | None, typer.Argument(help="The other one.", metavar="[B]")] = None,
    data: Annotated[
        str | None,
        typer.Argument(help="Documents of queries; no grades.", metavar="[DATA]", autocompletion=data_names),
    ] = None,
    solver: Solvers = None,
    trust: Trust = None,
    as_json: Json = False,
) -> None:
    """Write lists; or print what a log says, or how large a test must be."""
    from ranktune.solvers.core.errors import ParameterError

    if test["judge"] or test["plan"] is not None:
        if a is not None or lists["output"] is not None:
            raise ParameterError(f"{a or lists['output']} is given, and no lists are written. {WAYS}")
        _judge_and_plan(test, lists, as_json)
        return
    if a is None or b is None or data is None or lists["output"] is None:
        raise ParameterError(f"nothing can be written. {WAYS}")
    find_solvers(solver)
    facts = {"a": a, "b": b, "data": data, **_write(confirmed(a, trust), confirmed(b, trust), data, lists, shared)}
    print_json(facts) if as_json else print(
        f"{facts['output']}: {facts['lists']:,} lists of {facts['queries']:,} queries by {facts['method']}.\n"
        f"A: {a}\nB: {b}"
    )


def _write(a: Model | str, b: Model | str, data: str, lists: Given, shared: Given) -> Given:
    """Write the lists of two rankings, and return what was written."""
    import numpy as np

    from ranktune.solvers.clicks.judgments import check_ending
    from ranktune.solvers.rankings.opening import open_ranking
    from ranktune.solvers.rankings.parts import QuerySource, read_for, scores_on
    from ranktune.tuner.interleaving.lists import TEAM_DRAFT, interleaved

    output, method = lists["output"], lists["method"] or TEAM_DRAFT
    check_ending(output, "lists are", (".jsonl",))
    options, generator = reading(shared), np.random.default_rng(lists["seed"])
    first, second = (open_ranking(each, data, position=options.get("position")) for each in (a, b))
    queries = read_for(first, data, options, graded=False)
    scores = (
        scores_on(first, QuerySource(queries)),
        scores_on(second, QuerySource(queries, data, options, graded=False)),
    )
    rows = interleaved(queries, *scores, generator, method=method, length=lists["length"], draws=lists["draws"])
    write_output((json.dumps(row, ensure_ascii=False) + "\n" for row in rows), output)
    n = queries.n_queries
    return {"queries": n, "lists": lists["draws"] * n, "method": method, "output": str(output)}


def _judge_and_plan(test: Given, lists: Given, as_json: bool) -> None:
    """Print what a log says, how large a test must be, or both."""
    from ranktune.solvers.clicks.reading.roles import named_columns
    from ranktune.solvers.core.errors import ParameterError
    from ranktune.tuner.interleaving import judge, plan

    columns = named_columns(test["columns"] or (), "columns")
    logs, effect = test["judge"], test["plan"]
    seen = judge(*logs, columns=columns, method=lists["method"], random_state=lists["seed"]) if logs else None
    if effect is not None and (seen is None) == (test["ties"] is None):
        raise ParameterError("--plan needs the share of ties: give it, as in --ties 0.8, or a log: --judge LOG.")
    planned = None if effect is None else plan(effect, ties=test["ties"], seen=seen, power=test["power"])
    if as_json:
        print_json((seen.as_dict() if seen else {}) | ({"plan": planned.as_dict()} if planned else {}))
    elif seen is not None:
        console().print(judged_table(seen))
    if planned is not None and not as_json:
        console().print(plan_table(planned))


def judged_table(found: TestOutcome) -> RenderableType:
    """Return the verdict, wins by search and by query, and the account."""
    from rich.console import Group
    from rich.text import Text

    from ranktune.dashboards.terminal.tables import table, titled

    rows = table(("by",), ("A wins", "ties", "B wins", "p"))
    for name, tally in (("search", found.searches), ("query", found.queries)):
        rows.add_row(name, f"{tally.wins:,}", f"{tally.ties:,}", f"{tally.losses:,}", f"{tally.p:.4f}")
    rows.caption = "p: two-sided, of an exact sign test"
    interval = "" if found.low is None else f" (95%: {found.low:+.4f} to {found.high:+.4f})"
    units = f"{found.units:,} {'users' if found.unit == 'user' else 'queries'}"
    verdict = found.verdict if len(found.verdict) > 1 else f"{found.verdict} is preferred"
    lines = [
        f"Verdict: {verdict}.",
        f"Preference for A: {found.preference:+.4f}{interval}, by {units}. Design effect {found.design_effect:.2f}.",
        f"{found.clicked:,} searches have a click; the others are ties.",
        *found.remarks,
    ]
    text = "\n".join(lines)
    return Group(titled(f"Interleaving by {found.method}", rows), Text(f"{text}\n\n{found.account}"))


def plan_table(planned: TestSize) -> RenderableType:
    """Return the searches that are needed, also for other effects and powers."""
    from rich.console import Group
    from rich.text import Text

    from ranktune.dashboards.terminal.tables import table, titled
    from ranktune.tuner.interleaving.judging import MOST_SEARCHES, POWERS, sizes

    rows = table(("preference",), [f"power {power:.0%}" for power in POWERS])
    for effect, counts in sizes(planned):
        rows.add_row(f"{effect:g}", *(f"> {MOST_SEARCHES:,}" if count is None else f"{count:,}" for count in counts))
    noise = f"{planned.ties:.1%} of the searches are ties. Design effect {planned.design_effect:.2f}."
    text = (
        f"{planned.searches:,} searches find a preference of {planned.effect:g} with probability {planned.power:.3f}."
    )
    return Group(Text(f"{text}\n{noise}\n"), titled("Searches that a test needs", rows))
