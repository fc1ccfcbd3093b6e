"""The arguments of the commands for production. Types are no text here, as options are made from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from ranktune.arguments import RetuneArguments
from ranktune.tuner.study.settings import DATA, StudySetting


@dataclass(frozen=True, kw_only=True)
class VersionArguments(RetuneArguments):
    """What the command retune takes: it needs no data where it shows the versions, or goes back to one."""

    data: Annotated[Any, replace(DATA, help="The new data, given like those of `tune`.")] = field(
        default=None, kw_only=False
    )


@dataclass(frozen=True, kw_only=True)
class ListArguments:
    """How lists are written."""

    output: Annotated[Path | None, StudySetting("The .jsonl file to write.", options=("--output", "-o"))] = None
    method: Annotated[
        str | None,
        StudySetting("team-draft or balanced. (default: team-draft; of a log with ranks, balanced)"),
    ] = None
    length: Annotated[int, StudySetting("The most documents of a list.", minimum=1)] = 10
    draws: Annotated[int, StudySetting("Lists of each query. Show one at random in each search.", minimum=1)] = 1
    seed: Annotated[int, StudySetting("Seed of the coins, and of the interval.", minimum=0)] = 0


@dataclass(frozen=True, kw_only=True)
class TrialArguments:
    """What is said of a test."""

    judge: Annotated[Sequence[str], StudySetting("File of a log of lists and clicks. Repeatable.")] = ()
    columns: Annotated[
        Sequence[str], StudySetting("ROLE=NAME of a column, such as user=visitor. Repeatable.", options=("--column",))
    ] = ()
    plan: Annotated[float | None, StudySetting("The smallest preference that matters, such as 0.03.")] = None
    ties: Annotated[float | None, StudySetting("The share of ties, where there is no log.")] = None
    power: Annotated[float, StudySetting("The probability with which the test is to find it.")] = 0.8
