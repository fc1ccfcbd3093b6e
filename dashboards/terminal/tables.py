"""The style of tables in the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text


def table(left: tuple[str, ...], right: tuple[str, ...] = ()) -> Table:
    """Return an empty table: text in the columns of the left names, then numbers in those of the right ones."""
    found = Table(box=SIMPLE_HEAD)
    for name in left:
        found.add_column(escape(name), overflow="fold")
    for name in right:
        found.add_column(escape(name), justify="right", no_wrap=True)
    return found


def titled(title: str, below: Table) -> Group:
    """Return a table under a title that may be wider than it."""
    return Group(Text(title, style="bold"), below)


def four_digits(value: float | None) -> str:
    """Return value with four decimals, "" for None."""
    return "" if value is None else f"{value:.4f}"
