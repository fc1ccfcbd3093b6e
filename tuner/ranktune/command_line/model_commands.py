"""The commands for models and data: predict, evaluate, explain, export, data, solvers, reproduce.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ranktune.arguments import FAIL_UNLESS_BETTER, DataArguments
from ranktune.command_line import exporting
from ranktune.command_line.messages import answering, as_options
from ranktune.command_line.options import (
    Given,
    Json,
    Solvers,
    Trust,
    Wide,
    confirmed,
    console,
    data_names,
    exit_unless_better,
    find_solvers,
    metric_names,
    named_model,
    print_json,
    reading,
    solver_names,
    takes_options,
    to_error,
    write_output,
)
from ranktune.solvers.data.columns.decisions import questions
from ranktune.solvers.data.readers.formats import help_rows
from ranktune.tuner.study.settings import ClickSettings

commands = typer.Typer()

DATA_HELP = f"""Describe DATA and likely mistakes in them, or convert them.

The description has queries, features and grades, and shows how each column is used.

These data can be read (text also compressed by gzip or bzip2):

\b
{help_rows("help")}

A feature log and a csv file may have their grades in --qrels FILE too.

Columns of tables become features as follows:

\b
numbers, true, false   as they are; an empty value stays missing
dates, ISO 8601 text   published:age_days, the days before the latest
categories             colour=red and others: 1 where the column has that
                       value, else 0; colour:missing if some are empty
text                   a category if values recur in several queries
ids, other text        none: --drop them

A category becomes at most 64 features, for the values that occur in most queries. --levels sets another number.

A model stores how its table was read: predict, evaluate and export need no options for columns of the same names.

With --output, DATA are written into a folder of arrays, .npy files. Every command takes the folder as DATA and maps it
into memory; all processes share it. `ranktune data FOLDER --check` compares the arrays with what was written. Files are
read as follows:

\b
{help_rows("note")}
{"other files":<30} are read as a whole first

\b
Examples:
  ranktune data train.txt
  ranktune data log.parquet -o log.data --qid session --grade clicked
  ranktune tune log.data
"""

EXPLAIN_HELP = """Explain why MODEL ranks the documents of DATA as it does.

\b
without an option     the importance of the features: what the metric loses if
                      the values of one are shuffled within queries
--query Q             the contribution of each feature to the difference of
                      the scores of two documents, by default the first two
--effect-of FEATURE   how the score changes with the value of a feature

\b
Examples:
  ranktune explain model.json test.txt
  ranktune explain model.json test.txt --query 7
  ranktune explain model.json test.txt --query 7 --documents A,B
  ranktune explain model.json test.txt --effect-of bm25
"""


@commands.command()
@takes_options(DataArguments)
def predict(
    shared: Given,
    *,
    model: Annotated[Path, typer.Argument(help="A model.json, or trees of LightGBM, XGBoost or CatBoost.")],
    data: Annotated[str, typer.Argument(help="The documents to score.", autocompletion=data_names)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. (default: standard output)")
    ] = None,
    solver: Solvers = None,
    trust: Trust = None,
) -> None:
    """Print the score of each document of DATA. One per line, in the order of the file; higher scores rank first."""
    from ranktune.solvers.data.sources.scoring import score_lines

    find_solvers(solver)
    write_output(score_lines(confirmed(str(model), trust), data, **reading(shared)), output)


@commands.command()
@takes_options(DataArguments, ClickSettings)
def evaluate(
    shared: Given,
    log: Given,
    *,
    model: Annotated[
        str,
        typer.Argument(help="A model, ours or of another library, or scores: a file or column:NAME; see below."),
    ],
    data: Annotated[str, typer.Argument(help="Documents with grades.", autocompletion=data_names)],
    against: Annotated[
        str | None, typer.Option(help="What to compare it with, query by query: given like MODEL.")
    ] = None,
    fail_unless_better: Annotated[bool, typer.Option("--fail-unless-better", help=FAIL_UNLESS_BETTER.help)] = False,
    metric: Annotated[
        str | None,
        typer.Option(
            help="ndcg@10, map, mrr, p@5, err@10, auc, ndcg@10:letor, ndcg_cut_10 or P_10 as trec_eval, ... (default: "
            "that of MODEL, else ndcg@10)"
        ),
    ] = None,
    also: Annotated[
        list[str] | None, typer.Option(help="A further metric to report. Repeatable.", autocompletion=metric_names)
    ] = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Count judged queries without results as 0, as trec_eval -c.")
    ] = False,
    solver: Solvers = None,
    trust: Trust = None,
    as_json: Json = False,
) -> None:
    """Print the means of metrics of MODEL on DATA, with intervals. The means are over queries, the level is 95 percent.

    With --against the means are compared: difference, p of a paired randomisation test, queries won and lost.

    With --clicks the log estimates the clicks a search too, with intervals over its sessions.

    MODEL is a model.json, a model file of LightGBM (text), XGBoost (json, ubj), CatBoost (json), RankLib or ONNX, or a
    ranking: a file of scores, one a line in the order of the rows; a csv or tsv file with columns qid, docid and score;
    a TREC run, in which unranked documents come below all ranked ones; or column:NAME, a column of DATA. The name of a
    study is its current model.
    """
    from ranktune.command_line.commands import evaluation_table
    from ranktune.comparing import evaluate

    if fail_unless_better and against is None:
        raise typer.BadParameter("needs --against.", param_hint="--fail-unless-better")
    find_solvers(solver)
    other = None if against is None else named_model(against)
    measured = evaluate(
        confirmed(model, trust),
        data,
        metric,
        also=also or (),
        against=other,
        complete=complete,
        **{name: value for name, value in log.items() if value},
        **reading(shared),
    )
    evaluation = {"model": model, "data": data, **measured}
    print_json(evaluation) if as_json else console().print(evaluation_table(evaluation))
    if fail_unless_better:
        exit_unless_better(next(iter(evaluation["against"]["comparisons"].values())))


@commands.command(help=EXPLAIN_HELP)
@takes_options(DataArguments)
def explain(
    shared: Given,
    *,
    model: Annotated[Path, typer.Argument(help="A model.json, or trees of LightGBM, XGBoost or CatBoost.")],
    data: Annotated[str, typer.Argument(help="Documents, with grades for the importance.", autocompletion=data_names)],
    query: Annotated[str | None, typer.Option(help="The id of a query.")] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            help="A,B: two documents of the query, by their ids, or by their numbers from 1 where the data have no "
            "ids. A: one, compared with the mean of the query. (default: the two that rank first)"
        ),
    ] = None,
    effect_of: Annotated[
        str | None, typer.Option(help="A feature: its name, or its number from 1 where the model has no names.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric of the importance. (default: that of MODEL, else ndcg@10)")
    ] = None,
    max_queries: Annotated[
        int, typer.Option(help="The most queries of which the importance is computed, drawn at random.", min=1)
    ] = 500,
    solver: Solvers = None,
    trust: Trust = None,
    as_json: Json = False,
) -> None:
    """Print the explanation as a table, or as JSON."""
    from ranktune.dashboards.terminal.reports import explanation
    from ranktune.explaining import explain

    find_solvers(solver)
    explained = explain(
        confirmed(str(model), trust),
        data,
        query=query,
        documents=None if documents is None else documents.split(","),
        effect_of=effect_of,
        metric=metric,
        max_queries=max_queries,
        **reading(shared),
    )
    print_json({"model": str(model), "data": data, **explained}) if as_json else console().print(explanation(explained))


commands.command(help=exporting.HELP)(exporting.export)


@commands.command("data", help=DATA_HELP)
@takes_options(DataArguments)
def describe_data(
    shared: Given,
    *,
    context: typer.Context,
    data: Annotated[
        str, typer.Argument(help="File, folder or name of documents with grades.", autocompletion=data_names)
    ] = "api-search",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the data into this new folder.")] = None,
    as_json: Json = False,
    wide: Wide = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only compare a converted folder, byte by byte, with what was written.")
    ] = False,
) -> None:
    """Describe DATA, or write them into a folder that every command opens without reading it."""
    from ranktune.command_line.commands import check_converted, conversion_facts, data_table, describe

    if check:
        print(check_converted(data))
        return
    if output is not None:
        from ranktune.streaming import convert

        facts = conversion_facts(convert(data, output, progress=to_error, **reading(shared)), data, output)
        print_json(facts) if as_json else print(
            f"{output}: {facts['queries']:,} queries, {facts['documents']:,} documents, {facts['features']:,} features "
            f"({facts['layout']} {facts['dtype']}), {facts['megabytes']:,} MB. Give it as DATA."
        )
        return
    described = describe(data, **reading(shared))
    root = context.find_root().command
    for column in described.get("columns", ()):
        column["note"] = as_options(column["note"], root)
    asked = [row._replace(question=as_options(row.question, root)) for row in described.pop("decisions", ())]
    command = answering(asked, root) if asked else ""
    if as_json:
        decisions = {"decisions": [row._asdict() for row in asked], "command": command.partition("\n")[2]}
        print_json(described | decisions)
    else:
        console(wide).print(data_table(described))
        if asked:
            print(f"\n{questions(asked)}\n{command}")
    if "error" in described:
        from ranktune.solvers.core.errors import DataError

        raise DataError(described["error"])


@commands.command("solvers")
def list_solvers(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Solvers. (default: a table of all)", metavar="NAME", autocompletion=solver_names),
    ] = None,
    warm: Annotated[
        bool,
        typer.Option(
            "--warm", help="Compile what they use: NAME..., all, or by default those that compete by default."
        ),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(help="With --warm: processes that compile. (default: all cores)", min=1)
    ] = None,
    as_json: Json = False,
    wide: Wide = False,
) -> None:
    """List the solvers, describe some, or compile them.

    A description has the ranges in which parameters are tuned.

    --warm compiles before the first study what is not in the wheel. The machine code is kept in the cache folder
    (RANKTUNE_CACHE), or where NUMBA_CACHE_DIR says, and serves processors of the same kind.
    """
    if warm:
        from ranktune.command_line import warming

        compiled = warming.warm(names or [], jobs)
        print_json(compiled) if as_json else print(warming.warm_lines(compiled))
        return
    from ranktune.command_line.commands import all_solvers, solver_page, solvers_table

    if as_json:
        wanted = {name.lower() for name in names or ()}
        print_json({"solvers": [row for row in all_solvers() if not names or row["name"].lower() in wanted]})
    else:
        for shown in map(solver_page, names) if names else [solvers_table(all_solvers())]:
            console(wide).print(shown)


@commands.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="Whose tables: solar, ranksvm, domination, elasticrank or adarank.")],
    data: Annotated[
        list[str] | None,
        typer.Option(help="A folder Fold1 ... Fold5 with train.txt, vali.txt and test.txt. Repeatable."),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Its name in the paper. (default: recognised by its size)"),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes that share the work. (default: all cores)", min=1)] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            help="Draw the paper's figures too, on our data: PAPER.html and an SVG file each, in this folder."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list of {dataset, algorithm, metric, published, ours, ...}.")
    ] = False,
) -> None:
    """Compare published figures of a PAPER with those of RankTune. Both are of the same data.

    Every system is trained as in the paper: validation queries choose its parameters, test queries give the figure.
    Each statement of the paper has a verdict with the reason: confirmed, refuted (significantly the other
    way), not shown (the data cannot tell), or cannot be checked.

    For data without published figures, only those of RankTune are printed. On two cores MQ2008 and OHSUMED together
    take up to three minutes, figures included.

    Example:  ranktune reproduce solar --data MQ2008 --data OHSUMED --figures out
    """
    from ranktune.command_line import reproducing

    try:
        outcome = reproducing.reproduce_paper(paper, data or [], dataset, jobs, figures)
    except KeyboardInterrupt:
        print("Interrupted. Nothing was saved.", file=sys.stderr)
        raise typer.Exit(130) from None
    print_json(reproducing.as_list(outcome.tables)) if as_json else console().print(reproducing.summary(outcome))
