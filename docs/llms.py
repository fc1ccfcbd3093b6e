"""The list of the pages for assistants and for `ranktune docs`, by the convention of llmstxt.org: docs/llms.txt.

It has the title and the summary of the first page, then a section for each part of the site: its pages in the order of the
site, each with its title and first sentence. A wheel holds the pages that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ranktune.docs.pages import FOLDER

PLACE = FOLDER / "llms.txt"

HELP = (
    "`ranktune --help` lists the commands, `ranktune COMMAND --help` their options; in Python, `help(ranktune.tune)`."
)


def llms_text() -> str:
    """Return the list as it should be."""
    first = _page("index")
    parts = [f"# {_title(first)}", f"> {_summary(first)}", HELP]
    for section in _listed(first):
        text = _page(section)
        folder = section.rpartition("/")[0]
        names = [f"{folder}/{name}" for name in _listed(text)] or [section]
        known = [name for name in names if (FOLDER / f"{name}.md").exists() and name not in GENERATED]
        if known:
            heading = "Tutorial" if folder == "tutorial" else _title(text)
            parts.append("\n".join([f"## {heading}", "", *(_line(name) for name in known)]))
    return "\n\n".join(parts) + "\n"


GENERATED = {"reference/command_line", "reference/study_file"}
GENERATED |= {f"benchmarks/{path.stem}" for path in FOLDER.glob("benchmarks/about/*.md")}
"""Pages that only a site has: what commands print, and stored results."""


def _page(name: str) -> str:
    path = FOLDER / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _title(text: str) -> str:
    return str(re.findall(r"^# (.+)$", text, flags=re.MULTILINE)[0])


def _listed(text: str) -> list[str]:
    """Return the names of the pages of the tables of contents."""
    tables = re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line.strip() for table in tables for line in table.splitlines()]
    return [re.sub(r".*<(.+)>", r"\1", line) for line in lines if line and not line.startswith(":")]


def _line(name: str) -> str:
    text = _page(name)
    summary = re.split(r"(?<=[.?!]) ", _summary(text))[0]
    return f"- [{_title(text)}]({name}.md)" + (f": {summary}" if summary else "")


def _summary(text: str) -> str:
    """Return the first paragraph, if the page begins with one."""
    return next(_paragraphs(re.split(r"^# .+$", text, maxsplit=1, flags=re.MULTILINE)[-1]), "")


def _paragraphs(text: str) -> Iterator[str]:
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\{\w+\}`(?:[^`<]*<)?/?([^`>]*)>?`", r"\1", text)
    for block in re.split(r"\n{2,}", text.strip()):
        if not re.match(r"[A-Za-z`*]", block) or block.startswith("```"):
            return
        yield re.sub(r"\s+", " ", block).rstrip(":").removesuffix(".") + "."
