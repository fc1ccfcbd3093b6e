"""The command docs: the pages of the documentation, without a network.

They are Markdown files beside the package, and llms.txt is their list. As in ranktune.command_line.app, modules that
load libraries are imported inside the functions.
"""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path
from textwrap import shorten
from typing import Annotated, NamedTuple

import typer

commands = typer.Typer()

HELP = """Show the documentation, without a network.

Without PAGE, its pages are listed. A page goes to the terminal with its headings and tables laid out, and to a file or
a pipe as Markdown.

\b
Examples:
  ranktune docs
  ranktune docs howto/data
  ranktune docs --search "missing values"
  grep -r monotone "$(ranktune docs --folder)"
"""


class Page(NamedTuple):
    """A page, as llms.txt lists it."""

    section: str
    name: str
    title: str


@commands.command("docs", help=HELP)
def docs(
    page: Annotated[str | None, typer.Argument(help="A page, such as howto/data.")] = None,
    search: Annotated[str | None, typer.Option(help="List the lines that have all of these words.")] = None,
    folder: Annotated[bool, typer.Option("--folder", help="Print the folder of the pages.")] = False,
) -> None:
    """List, print or search the pages."""
    root = Path(str(files("ranktune.docs") / "llms.txt")).resolve().parent
    if folder:
        print(root)
    elif search is not None:
        _print_found(root, search)
    elif page is not None:
        _print_page(root, page)
    else:
        _print_list(root)


def _pages(root: Path) -> list[Page]:
    pages, section = [], ""
    for line in (root / "llms.txt").read_text(encoding="utf-8").splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if entry := re.fullmatch(r"- \[(?P<title>.+?)\]\((?P<name>.+)\.md\)(?:: .*)?", line):
            pages.append(Page(section, entry["name"], entry["title"]))
    return pages


def _print_list(root: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from ranktune.command_line.options import console

    table = Table(box=None, pad_edge=False, show_header=False)
    section = ""
    for page in _pages(root):
        if page.section != section:
            section = page.section
            table.add_row(Text(section, style="bold"), "")
        table.add_row(f"  {page.name}", page.title)
    console().print(table)
    print("\nranktune docs PAGE prints one, ranktune docs --search WORDS finds words.")


def _print_page(root: Path, name: str) -> None:
    from ranktune.solvers.core.errors import ParameterError, nearest

    names = [page.name for page in _pages(root)]
    wanted = name.removesuffix(".md").strip("/")
    wanted = wanted if wanted in names else f"{wanted}/index"
    if wanted not in names:
        raise ParameterError(f"there is no page {name!r}. {nearest(name, names)}")
    text = readable((root / f"{wanted}.md").read_text(encoding="utf-8"))
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.markdown import Markdown

    from ranktune.command_line.options import console

    console().print(Markdown(text, hyperlinks=False))


def readable(text: str) -> str:
    """Return a page without what is for the builder of the site alone: comments, directives, roles.

    Parameters
    ----------
    text : str
        Markdown with the directives and roles of MyST.

    Returns
    -------
    str
        Plain Markdown.
    """
    text = re.sub(r"^<!--.*?-->\n*", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```\{glossary\}\n(.*?)^```$", _terms, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(`{3,}|:{3,})\{.*?^\1\n+", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^!\[(.*?)\]\(.*?\)(\{.*?\})?\n+", "", text, flags=re.MULTILINE)
    return re.sub(r"\{\w+\}`(?:([^`<]*?) <)?/?([^`>]*)>?`", _link, text)


def _terms(glossary: re.Match[str]) -> str:
    return re.sub(r"^(\S.*)\n +", r"**\1**: ", glossary[1], flags=re.MULTILINE)


def _link(role: re.Match[str]) -> str:
    return f"{role[1]} (`{role[2]}`)" if role[1] else f"`{role[2]}`"


def _print_found(root: Path, words: str) -> None:
    from ranktune.solvers.core.errors import ParameterError

    wanted = [word.casefold() for word in words.split()]
    if not wanted:
        raise ParameterError("--search needs a word, such as --search grades.")
    count = 0
    for page in _pages(root):
        text = readable((root / f"{page.name}.md").read_text(encoding="utf-8"))
        paragraphs = [" ".join(block.split()) for block in re.split(r"\n{2,}|^\|", text, flags=re.MULTILINE)]
        hits = [block for block in paragraphs if all(word in block.casefold() for word in wanted)]
        if hits:
            print(f"{page.name}: {page.title}")
        for block in hits:
            at = block.casefold().find(wanted[0])
            print(f"    {shorten(block[block.rfind(' ', 0, max(at - 25, 0)) + 1 :], 76, placeholder='')}")
        count += len(hits)
    if not count:
        raise ParameterError(f"no page has all of these words: {words}. Try fewer.")
