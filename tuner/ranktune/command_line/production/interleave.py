"""The commands interleave, interleave-judge and interleave-plan.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktune.arguments import DataArguments
from ranktune.command_line.click_commands import pairs
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

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ranktune.solvers.core.arrays import Floats
    from ranktune.solvers.data.queries import Queries
    from ranktune.solvers.data.readers.parsing.options import ReadOptions
    from ranktune.solvers.models.base import Model
    from ranktune.tuner.interleaving.judging import Judged
    from ranktune.tuner.interleaving.planning import Plan

commands = typer.Typer()

HELP = """Write lists that show the rankings of A and B in one, for a test by clicks.

\b
team-draft  in each round both pick their next best, in the order of a coin.
            Clicks count for who picked
balanced    both alternate. Clicks count in both rankings, down to the
            smallest rank that covers them

A line of the file is a list: query, documents, and the team of each, A or B, or - where its clicks count for neither.
Balanced lists have the ranks in both too. Log each list that you show with the positions clicked, as "clicks": [1, 3],
and with the user. `ranktune interleave-judge` says who wins, `ranktune interleave-plan` how long the test takes.

A and B are given as MODEL of `ranktune evaluate`: models, scores or columns.

\b
Examples:
  ranktune interleave old.json new.json searches.csv -o shown.jsonl
  ranktune interleave column:bm25 model.json searches.csv -o shown.jsonl
"""

JUDGE_HELP = """Say which ranking users prefer, from a log of interleaved lists and clicks.

LOG is one or more files: csv, Parquet or jsonl. A line is a list as `ranktune interleave` wrote it, with clicks. Or it
is a document of a list: query or session, position, team and click. With users, the interval is by user, else by query.

\b
Examples:
  ranktune interleave-judge log.jsonl
  ranktune interleave-judge log.parquet --column user=visitor
"""

PLAN_HELP = """Say how many searches a test needs to find a preference, if there is one.

The preference is the share of searches that the better ranking wins, less the share that it loses. Its noise is the
share of ties: of a LOG so far, with how much the searches of a user are alike, or assumed.

\b
Examples:
  ranktune interleave-plan --effect 0.03 --ties 0.8
  ranktune interleave-plan log.jsonl --effect 0.03
"""

Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="ROLE=NAME of a column, such as user=visitor. Repeatable.", metavar="ROLE=NAME"),
]


@commands.command("interleave", help=HELP)
@takes_options(DataArguments)
def interleave(
    given: Given,
    *,
    a: Annotated[str, typer.Argument(help="A ranking: a model, scores or column:NAME.", metavar="A")],
    b: Annotated[str, typer.Argument(help="The other one.", metavar="B")],
    data: Annotated[str, typer.Argument(help="Documents of queries; no grades.", autocompletion=data_names)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .jsonl file to write.")],
    method: Annotated[str, typer.Option(help="team-draft or balanced.")] = "team-draft",
    length: Annotated[int, typer.Option(help="The most documents of a list.", min=1)] = 10,
    draws: Annotated[
        int, typer.Option(help="Lists of each query. Show one of them at random in each search.", min=1)
    ] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the coins.", min=0)] = 0,
    solver: Solvers = None,
    trust: Trust = None,
    as_json: Json = False,
) -> None:
    """Write the lists."""
    import numpy as np

    from ranktune.solvers.clicks.judgments import check_ending
    from ranktune.tuner.interleaving.lists import interleaved

    check_ending(output, "lists are", (".jsonl",))
    find_solvers(solver)
    queries, scores = _scores(confirmed(a, trust), confirmed(b, trust), data, reading(given))
    rows = interleaved(queries, *scores, np.random.default_rng(seed), method=method, length=length, draws=draws)
    write_output((json.dumps(row, ensure_ascii=False) + "\n" for row in rows), output)
    facts = {"a": a, "b": b, "data": data, "queries": queries.n_queries, "lists": draws * queries.n_queries}
    print_json({**facts, "method": method, "output": str(output)}) if as_json else print(
        f"{output}: {facts['lists']:,} lists of {queries.n_queries:,} queries by {method}.\nA: {a}\nB: {b}"
    )


def _scores(a: Model | str, b: Model | str, data: str, options: ReadOptions) -> tuple[Queries, tuple[Floats, Floats]]:
    """Return the queries of data, and the scores of two rankings."""
    from ranktune.studies.rankings.opening import open_ranking
    from ranktune.studies.rankings.parts import Part, read_for, scores_on

    first, second = open_ranking(a, data), open_ranking(b, data)
    queries = read_for(first, data, options, graded=False)
    return queries, (scores_on(first, Part(queries)), scores_on(second, Part(queries, data, options, graded=False)))


@commands.command("interleave-judge", help=JUDGE_HELP)
def interleave_judge(
    logs: Annotated[list[str], typer.Argument(help="Files of a log.", metavar="LOG...")],
    columns: Columns = None,
    method: Annotated[
        str | None, typer.Option(help="team-draft or balanced. (default: balanced if the log has ranks)")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Judge the log; print the verdict and its evidence."""
    from ranktune.tuner.interleaving import judge

    found = judge(*logs, columns=dict(pairs(columns, "--column ROLE=NAME")), method=method, random_state=seed)
    print_json(found.as_dict()) if as_json else console().print(judged_table(found), highlight=False)


@commands.command("interleave-plan", help=PLAN_HELP)
def interleave_plan(
    effect: Annotated[float, typer.Option(help="The smallest preference that matters, such as 0.03.")],
    logs: Annotated[list[str] | None, typer.Argument(help="Files of a log so far.", metavar="[LOG...]")] = None,
    ties: Annotated[float | None, typer.Option(help="The share of ties, where there is no log.")] = None,
    power: Annotated[float, typer.Option(help="The probability with which the test is to find it.")] = 0.8,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Plan a test; print the searches that it needs."""
    from ranktune.tuner.interleaving import judge, plan

    seen = judge(*logs, columns=dict(pairs(columns, "--column ROLE=NAME"))) if logs else None
    planned = plan(effect, ties=ties, seen=seen, power=power)
    print_json(planned.as_dict()) if as_json else console().print(plan_table(planned), highlight=False)


def judged_table(found: Judged) -> RenderableType:
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


def plan_table(planned: Plan) -> RenderableType:
    """Return the searches that are needed, also for other effects and powers."""
    from rich.console import Group
    from rich.text import Text

    from ranktune.dashboards.terminal.tables import table, titled
    from ranktune.tuner.interleaving.planning import MOST_SEARCHES, POWERS, sizes

    rows = table(("preference",), [f"power {power:.0%}" for power in POWERS])
    for effect, counts in sizes(planned):
        rows.add_row(f"{effect:g}", *(f"> {MOST_SEARCHES:,}" if count is None else f"{count:,}" for count in counts))
    noise = f"{planned.ties:.1%} of the searches are ties. Design effect {planned.design_effect:.2f}."
    text = (
        f"{planned.searches:,} searches find a preference of {planned.effect:g} with probability {planned.power:.3f}."
    )
    return Group(Text(f"{text}\n{noise}\n"), titled("Searches that a test needs", rows))
