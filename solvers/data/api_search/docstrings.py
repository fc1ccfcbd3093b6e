"""Parsing of docstrings: summary, text, and the names in "See Also".

The "See Also" section is a human judgment of what is related. It is removed from the text, together with its other
spellings (the "seealso" directive of Sphinx, the "See also:" block of Google's style), so that no feature contains it.
The numpydoc package is not used because it depends on Sphinx and rejects docstrings that deviate from its format.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

_UNDERLINE = re.compile(r"\s*([-=~^])\1{2,}\s*$")
_BLOCK = re.compile(r"\s*(?:\.\.\s+seealso::(?P<rest>.*)|see also:\s*)$", re.IGNORECASE)
_LINK = re.compile(r"`(?P<target>[^`]+)`")  # of :func:`name`, :py:class:`~a.b`, `text <a.b>`, `name`
_TARGET = re.compile(r"(?:[^<]*<)?[~!]?(?P<name>[A-Za-z_][\w.]*)(?:\(\))?>?$")
_ITEM = re.compile(r"(?::(?:\w+:)?\w+:)?`[^`]+`|[A-Za-z_][\w.\-]*(?:\(\))?")
_ENTRY = re.compile(rf"(?P<names>(?:{_ITEM.pattern})(?:\s*,\s*(?:{_ITEM.pattern}))*)\s*[,.]?\s*(?::.*)?$")
_SIGNATURE = re.compile(r"[\w.]+\(.*[^.]\s*$")


@dataclass(frozen=True)
class Page:
    """The parts of a docstring: summary (its first paragraph of prose), body (the rest without See Also), see_also."""

    summary: str
    body: str
    see_also: tuple[str, ...]


def parse(docstring: str) -> Page:
    """Return the parts of docstring; see_also holds the names as written, without repetitions."""
    lines, names = _without_sections(inspect.cleandoc(docstring).splitlines())
    lines, more = _without_blocks(lines)
    summary, body = _summary(lines)
    return Page(summary, body, tuple(dict.fromkeys(names + more)))


def _is_heading(lines: list[str], at: int) -> bool:
    """Return whether the line is underlined, which makes it the heading of a section."""
    return at + 1 < len(lines) and bool(lines[at].strip()) and _UNDERLINE.match(lines[at + 1]) is not None


def _without_sections(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return lines without the See Also sections, and the names in them. A section ends at the next heading."""
    kept: list[str] = []
    names: list[str] = []
    taking = False
    for at, line in enumerate(lines):
        if _is_heading(lines, at):
            taking = line.strip(" \t:").lower() == "see also"
        if not taking:
            kept.append(line)
        else:
            names += _listed(line)
    return kept, names


def _without_blocks(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return lines without the See Also blocks, and the names linked to in them.

    A block continues while its lines are indented deeper than its first.
    """
    kept: list[str] = []
    names: list[str] = []
    depth: int | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if depth is not None and line.strip() and indent <= depth:
            depth = None
        if depth is None and (block := _BLOCK.match(line)):
            depth = indent
            names += _linked(block["rest"] or "")
        elif depth is None:
            kept.append(line)
        else:
            names += _linked(line)
    return kept, names


def _listed(line: str) -> list[str]:
    """Return the names in a line of a See Also section: `a, b : description`.

    Indented lines continue a description and contain no names; a sentence contains only the names that it links to.
    """
    if not line.strip() or line[0] in " \t":
        return []
    entry = _ENTRY.match(line.strip())
    if entry is None:
        return _linked(line)
    names: list[str] = []
    for item in _ITEM.findall(entry["names"]):
        names += _linked(item) if "`" in item else [item.removesuffix("()").strip(".-")]
    return names


def _linked(text: str) -> list[str]:
    """Return the names that text links to."""
    targets = [_TARGET.match(link["target"].strip()) for link in _LINK.finditer(text)]
    return [target["name"].rstrip(".") for target in targets if target is not None]


def _summary(lines: list[str]) -> tuple[str, str]:
    """Return the first paragraph that is prose, on one line, and all other lines.

    Functions written in C begin with their signature, which belongs to the body.
    """
    first = 0
    while first < len(lines):
        end = next((at for at in range(first, len(lines)) if not lines[at].strip()), len(lines))
        head = lines[first] if first < end else ""
        is_prose = bool(head) and not head.lstrip().startswith(("..", ">>>", "- ", ":")) and not _SIGNATURE.match(head)
        if is_prose and not _is_heading(lines, first):
            return " ".join(" ".join(lines[first:end]).split()), "\n".join(lines[:first] + lines[end:])
        first = end + 1
    return "", "\n".join(lines)
