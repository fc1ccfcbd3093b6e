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
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import DataError, listed
from ranktune.solvers.data.columns import roles
from ranktune.solvers.data.columns.grammar import json_of, number_of, values_by_name
from ranktune.solvers.data.columns.meanings import usual_grades
from ranktune.solvers.data.columns.roles import GRADES_RULE, MOST_GRADES, RATING, number_each
from ranktune.solvers.data.readers.parsing.streams import Position, lines_of

FORMS = (
    "Read are lines QUERY 0 DOCUMENT GRADE, csv and tsv with titles such as query,docid,rating, judgment lists of "
    "Elasticsearch LTR (GRADE qid:ID # DOCUMENT), and JSON of OpenSearch (judgmentRatings) or _rank_eval (requests)."
)
TITLES: Mapping[str, tuple[str, ...]] = {
    "qid": (*roles.QUERIES, "q_id", "query_text", "keywords", "topic"),
    "document": (*roles.DOCUMENTS, "doc", "corpus_id", "docno"),
    "grade": (*roles.GRADES, RATING, "score"),
}
"""Option that names the column -> titles that are recognised, in any capitals, with - or a space for _."""
_LISTED = re.compile(r"(\S+)\s+qid:(\S+)\s+#\s*(\S+).*")
_HEAD = re.compile(r"#\s*qid:([^\s:]+):\s*(.*)")


class Line(NamedTuple):
    """A judgment, its place, and its grade as it is written."""

    place: str
    query: str
    document: str
    grade: object


Judgment: TypeAlias = tuple[str, str, str, float]
"""A place, a query, a document and its grade."""


def judgment_lines(path: Path, named: JsonView) -> tuple[Iterator[Judgment], dict[str, str]]:
    """Return the judgments of a file, and query words -> query id where it has both.

    named are the options of reading, of which those that name columns of the file, and words for grades, hold for it.
    """
    known = values_by_name(named.get("grades") or (), GRADES_RULE, number_of)
    lines = list(enumerate(lines_of(Position(path)), start=1))
    lines = [(number, line) for number, line in lines if line.strip()]
    if not lines:
        return iter(()), {}
    if lines[0][1].lstrip()[0] in "{[":
        return _graded(_of_json(path, "\n".join(line for _, line in lines)), known), {}
    if any(_LISTED.fullmatch(line.strip()) for _, line in lines):
        heads = (_HEAD.fullmatch(line.strip()) for _, line in lines)
        return _graded(_of_list(path, lines), known), {hit[2].strip(): hit[1] for hit in heads if hit}
    return _graded(_of_rows(path, lines, named, known), known), {}


def _graded(lines: Iterator[Line], known: Mapping[str, float]) -> Iterator[Judgment]:
    """Return the judgments of the lines that have a grade; grades below 0, which TREC gives to spam, become 0.

    Raises Undecided for words whose numbers are not known.
    """
    read = [(line, str(line.grade)) for line in lines if line.grade not in ("", None)]
    numbers = {text: known.get(text, number_of(text)) for _, text in read}
    words = [text for text, number in numbers.items() if number is None or not math.isfinite(number)]
    if words:
        problem = f"{next(line.place for line, text in read if text == words[0])}: {words[0][:40]!r} is no grade."
        if len(words) > MOST_GRADES:
            raise DataError(f"{problem} {FORMS}")
        raise number_each(f"{problem} Is it a word for one?", words, known or usual_grades(list(numbers)))
    return ((*line[:3], max(numbers[text] or 0.0, 0.0)) for line, text in read)


def _of_list(path: Path, lines: Sequence[tuple[int, str]]) -> Iterator[Line]:
    for number, line in lines:
        hit = _LISTED.fullmatch(line.strip())
        if hit:
            yield Line(f"{path}:{number}", hit[2], hit[3], hit[1])
        elif not line.lstrip().startswith("#"):
            raise DataError(
                f"{path}:{number}: {line.strip()[:60]!r} is no line GRADE qid:ID # DOCUMENT, as others are."
            )


def _of_rows(
    path: Path, lines: Sequence[tuple[int, str]], named: JsonView, known: Mapping[str, object]
) -> Iterator[Line]:
    """Yield the judgments of lines, whose separator is the one that makes a judgment of each of them.

    Spaces part cells where nothing else does: between tabs or commas they belong to queries and documents.
    """
    first = lines[0][1]
    tables = [_cells(lines, sign) for sign in "\t,;" if sign in first]

    def found_in(tables: Sequence[Table], most: int = 0) -> list[tuple[Table, tuple[int, int, int, bool]]]:
        return [(table, columns) for table in tables if (columns := _columns(table, named, known, most))]

    found = found_in(tables)
    if not found:
        words = _cells(lines, None)
        for number, line in lines if _is_graded(words, -1, known) else ():
            if "\t" in line and any(" " in cell.strip() for cell in line.split("\t")):
                raise DataError(
                    f"{path}:{number}: has a tab and a space: which of them part query, document and grade is not "
                    "clear. Put a tab between them in every line."
                )
        found = found_in([words]) or found_in(tables, MOST_GRADES) or found_in([words], MOST_GRADES)
        tables.append(words)
    if len(found) != 1:
        raise DataError(f"{path}{_fault(tables[0], found, known)}. {FORMS}")
    table, (query, document, grade, titled) = found[0]
    for number, cells in table[titled:]:
        if len(cells) > 1:
            yield Line(f"{path}:{number}", cells[query], cells[document], cells[grade])
        elif "\t" in first and _columns([(number, cells[0].split())], {}, known):  # else a query without documents
            raise DataError(f"{path}:{number}: is parted by spaces, and other lines by tabs. Part all lines by tabs.")


Table = Sequence[tuple[int, list[str]]]
"""The number and the cells of each line."""


def _cells(lines: Sequence[tuple[int, str]], sign: str | None) -> Table:
    """Return the cells of each row; quotes that are not those of csv belong to the text."""
    if sign is not None:
        rows = csv.reader((f"{line}\n" for _, line in lines), delimiter=sign, strict=True)
        with suppress(csv.Error):
            return [(lines[rows.line_num - 1][0], [cell.strip() for cell in row]) for row in rows]
    return [(number, [cell.strip() for cell in line.split(sign)]) for number, line in lines]


def _columns(
    table: Table, named: JsonView, known: Mapping[str, object], most: int = 0
) -> tuple[int, int, int, bool] | None:
    """Return the places of query, document and grade, and whether the first line has titles; None if there are none.

    Where all lines have three cells, titles that are not known but names are of these in turn. Without titles they are
    the first, the last but one and the last of three cells, or of four, where the second is TREC's iteration. most is
    how many words that are not known may be grades; then titles must be known.
    """
    head, sizes = table[0][1], {len(cells) for _, cells in table}
    titles = [_title(cell) for cell in head]
    others = (0, 1, 2) if sizes == {3} and not most and all(map(str.isidentifier, titles)) else (-1, -1, -1)
    places = [
        next((titles.index(name) for name in (_title(named.get(option)), *usual) if name in titles), place)
        for place, (option, usual) in zip(others, TITLES.items(), strict=True)
    ]
    query, document, grade = places
    if min(places) >= 0 and not _is_grade(head[grade], known):
        is_whole = len(set(places)) == 3 and sizes <= {1, len(head)} and _is_graded(table[1:], grade, known, most)
        return (query, document, grade, True) if is_whole else None
    plain = all(len(cells) < 4 or _is_grade(cells[1].upper().removeprefix("Q"), known) for _, cells in table)
    return (0, -2, -1, False) if sizes <= {3, 4} and plain and _is_graded(table, -1, known, most) else None


def _title(text: object) -> str:
    return str(text or "").lower().replace("-", "_").replace(" ", "_")


def _is_graded(rows: Table, place: int, known: Mapping[str, object], most: int = 0) -> bool:
    others = {cells[place] for _, cells in rows if len(cells) > 1 and not _is_grade(cells[place], known)}
    return bool(rows) and len(others) <= most


def _is_grade(cell: str, known: Mapping[str, object]) -> bool:
    return not cell or cell in known or ((number := number_of(cell)) is not None and math.isfinite(number))


def _fault(table: Table, found: Sequence[object], known: Mapping[str, object]) -> str:
    """Return what keeps a table from being judgments, by the first line that is none."""
    if found:
        return ": can be read with commas and with semicolons"
    titled = len(table) > 1 and not _is_grade(table[0][1][-1], known)
    for number, cells in table[titled:]:
        if len(cells) not in (3, 4) and not titled:
            return f":{number}: has {len(cells)} words"
        if len(cells) > 1 and not _is_grade(cells[-1], known):
            return f":{number}: {cells[-1][:40]!r} is no grade"
    return (
        f": query, document and grade are not found among its columns {listed(table[0][1])}. Name "
        'them: qid="COLUMN", document="COLUMN", grade="COLUMN"'
    )


def _of_json(path: Path, text: str) -> Iterator[Line]:
    try:
        content = json_of(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is no JSON ({error}). {FORMS}") from None
    every = list(_judged(content))
    if not every:
        raise DataError(f"{path}: is JSON without judgmentRatings and requests. {FORMS}")
    for judged in every:
        query = judged.get("query", judged.get("id"))
        for rating in item if isinstance(item := judged.get("ratings"), list) else ():
            document = rating.get("docId", rating.get("_id")) if isinstance(rating, Mapping) else None
            if not isinstance(query, str | int) or not isinstance(document, str | int):
                raise DataError(f"{path}: a rating of query {str(query)[:40]!r} names no document. {FORMS}")
            yield Line(str(path), str(query), str(document), rating.get("rating"))


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
