"""The forms of files of judgments, as lines of query, document and grade.

- separated by tabs, commas, semicolons or spaces, which every line of the file tells: QUERY 0 DOCUMENT GRADE as TREC
  gives it, QUERY DOCUMENT GRADE, or columns by their titles, as those of BEIR and Quepid. Only spaces part words, so
  that with another separator queries and documents may hold spaces,
- the judgment lists of Elasticsearch LTR: GRADE qid:ID # DOCUMENT ..., below lines # qid:ID: WORDS,
- JSON of OpenSearch (judgmentRatings) and of _rank_eval (requests).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import DataError, listed
from ranktune.solvers.data.columns.grammar import json_of, number_of, values_by_name
from ranktune.solvers.data.columns.roles import DOCUMENTS, GRADES, GRADES_RULE, QUERIES, RATING, number_each
from ranktune.solvers.data.readers.parsing.streams import Position, lines_of

FORMS = (
    "Read are lines QUERY 0 DOCUMENT GRADE, csv and tsv with titles such as query,docid,rating, judgment lists of "
    "Elasticsearch LTR (GRADE qid:ID # DOCUMENT), and JSON of OpenSearch (judgmentRatings) or _rank_eval (requests)."
)
TITLES: Mapping[str, tuple[str, ...]] = {
    "qid": (*QUERIES, "query_text", "keywords"),
    "document": (*DOCUMENTS, "corpus_id"),
    "grade": (*GRADES, RATING, "score"),
}
"""Option that names the column -> titles that are recognised, in any capitals, with - or a space for _."""
_LISTED = re.compile(r"(\S+)\s+qid:(\S+)\s+#\s*(\S+).*")
_HEAD = re.compile(r"#\s*qid:([^\s:]+):\s*(.*)")


class Line(NamedTuple):
    """A judgment and its place; the grade is NaN where the document is not judged."""

    place: str
    query: str
    document: str
    grade: float


def judgment_lines(path: Path, named: JsonView) -> tuple[Iterator[Line], dict[str, str]]:
    """Return the judgments of a file, and query words -> query id where it has both.

    named are the options of reading, of which those that name columns of the file hold for it.
    """
    named = {**named, "grades": values_by_name(named.get("grades") or (), GRADES_RULE, number_of)}
    lines = list(enumerate(lines_of(Position(path)), start=1))
    lines = [(number, line) for number, line in lines if line.strip()]
    first = lines[0][1].lstrip() if lines else ""
    if first[:1] in "{[" and first:
        return _of_json(path, "\n".join(line for _, line in lines), named), {}
    if any(_LISTED.fullmatch(line.strip()) for _, line in lines):
        heads = (_HEAD.fullmatch(line.strip()) for _, line in lines)
        return _of_list(path, lines, named), {hit[2].strip(): hit[1] for hit in heads if hit}
    return _of_rows(path, lines, named), {}


def _of_list(path: Path, lines: Sequence[tuple[int, str]], named: JsonView) -> Iterator[Line]:
    for number, line in lines:
        hit = _LISTED.fullmatch(line.strip())
        if hit:
            yield Line(f"{path}:{number}", hit[2], hit[3], _grade(f"{path}:{number}", hit[1], named))
        elif not line.lstrip().startswith("#"):
            raise DataError(
                f"{path}:{number}: {line.strip()[:60]!r} is no line GRADE qid:ID # DOCUMENT, as others are."
            )


def _of_rows(path: Path, lines: Sequence[tuple[int, str]], named: JsonView) -> Iterator[Line]:
    """Yield the judgments of lines, whose separator is the one that makes a judgment of each of them.

    Spaces part cells where nothing else does: between tabs or commas they belong to queries and documents.
    """
    words = [(number, line.split()) for number, line in lines]
    tables = [_cells(lines, sign) for sign in "\t,;" if lines and sign in lines[0][1]] or [words]
    found = [(table, columns) for table in tables if (columns := _columns(table, named))]
    if not found and tables != [words] and (columns := _columns(words, named)):
        found = [(words, columns)]
    if found and found[0][0] is words:
        for number, line in lines:
            if any(" " in cell.strip() for cell in line.split("\t")) and "\t" in line:
                raise DataError(
                    f"{path}:{number}: has a tab and a space: which of them part query, document and grade is not "
                    "clear. Put a tab between them in every line."
                )
    if len(found) != 1:
        raise DataError(f"{path}{_fault(tables[0], named, found)}. {FORMS}")
    table, (query, document, grade, titled) = found[0]
    for number, cells in table[titled:]:
        if len(cells) == 1:  # a query without documents
            continue
        yield Line(f"{path}:{number}", cells[query], cells[document], _grade(f"{path}:{number}", cells[grade], named))


Table = Sequence[tuple[int, list[str]]]
"""The number and the cells of each line."""


def _cells(lines: Sequence[tuple[int, str]], sign: str) -> Table:
    rows = csv.reader((line for _, line in lines), delimiter=sign)
    return [(number, [cell.strip() for cell in row]) for (number, _), row in zip(lines, rows, strict=False)]


def _columns(table: Table, named: JsonView) -> tuple[int, int, int, bool] | None:
    """Return the places of query, document and grade, and whether the first line has titles; None if there are none."""
    if not table:
        return None
    titles, sizes = list(map(_title, table[0][1])), {len(cells) for _, cells in table}
    known = [
        next((titles.index(name) for name in (_title(named.get(option)), *usual) if name in titles), None)
        for option, usual in TITLES.items()
    ]
    if None not in known and sizes <= {1, len(titles)} and _graded(table[1:], known[2] or 0, named):
        return known[0] or 0, known[1] or 0, known[2] or 0, True
    titled = not _is_grade(table[0][1][-1], named)
    if titled and not all(word.isidentifier() for word in titles):
        return None
    return (0, -2, -1, titled) if sizes <= {3, 4} and _graded(table[titled:], -1, named) else None


def _title(text: object) -> str:
    return str(text or "").lower().replace("-", "_").replace(" ", "_")


def _graded(rows: Table, place: int, named: JsonView) -> bool:
    return bool(rows) and all(len(cells) == 1 or _is_grade(cells[place], named) for _, cells in rows)


def _is_grade(cell: str, named: JsonView) -> bool:
    return not cell or cell in named["grades"] or ((number := number_of(cell)) is not None and math.isfinite(number))


def _fault(table: Table, named: JsonView, found: Sequence[object]) -> str:
    """Return what keeps a table from being judgments, by the first line that is none."""
    if found:
        return ": can be read with commas and with semicolons"
    if not table:
        return ": holds no judgments"
    titled = len(table) > 1 and not _is_grade(table[0][1][-1], named)
    for number, cells in table[titled:]:
        if len(cells) not in (3, 4) and not titled:
            return f":{number}: has {len(cells)} words"
        if len(cells) > 1 and not _is_grade(cells[-1], named):
            return f":{number}: {cells[-1][:40]!r} is no grade. If it is a word for one: {number_each(cells[-1:])}"
    return f": query, document and grade are not found among its columns {listed(table[0][1])}"


def _grade(place: str, text: object, named: JsonView) -> float:
    """Return a grade, NaN for an empty cell; grades below 0, which TREC gives to spam, become 0."""
    if text in ("", None):
        return math.nan
    grade = named["grades"].get(str(text), number_of(str(text)))
    if grade is None or not math.isfinite(grade):
        raise DataError(f"{place}: {str(text)[:40]!r} is no grade. {number_each([str(text)])} {FORMS}")
    return max(grade, 0.0)  # type: ignore[no-any-return] # JSON values


def _of_json(path: Path, text: str, named: JsonView) -> Iterator[Line]:
    try:
        content = json_of(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is no JSON ({error}). {FORMS}") from None
    found = False
    for judged in _judged(content):
        found = True
        query = judged.get("query", judged.get("id"))
        for rating in item if isinstance(item := judged.get("ratings"), list) else ():
            document = rating.get("docId", rating.get("_id")) if isinstance(rating, Mapping) else None
            if not isinstance(query, str | int) or not isinstance(document, str | int):
                raise DataError(f"{path}: a rating of query {str(query)[:40]!r} names no document. {FORMS}")
            yield Line(str(path), str(query), str(document), _grade(str(path), rating.get("rating"), named))
    if not found:
        raise DataError(f"{path}: is JSON without judgmentRatings and requests. {FORMS}")


def _judged(content: object) -> Iterator[Mapping[str, object]]:
    """Yield what has a query and its ratings: of judgments themselves, and of the documents that a search returns."""
    if isinstance(content, list):
        for part in content:
            yield from _judged(part)
    elif isinstance(content, Mapping):
        for name in ("judgmentRatings", "requests"):
            if isinstance(content.get(name), list):
                yield from (each for each in content[name] if isinstance(each, Mapping))
        for name in ("_source", "hits"):
            yield from _judged(content.get(name))
