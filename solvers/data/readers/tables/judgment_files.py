"""The forms of files of judgments, as rows of query, document, grade and weight.

- tables: csv and tsv with titles, as those of BEIR and Quepid, Parquet, Arrow and JSON lines,
- lines without titles, separated by tabs, commas, semicolons or spaces, which every line of the file tells: QUERY 0
  DOCUMENT GRADE as TREC gives it, or QUERY DOCUMENT GRADE. Only spaces part words, so that with another separator
  queries and documents may hold spaces,
- the judgment lists of Elasticsearch LTR: GRADE qid:ID # DOCUMENT ..., below lines # qid:ID: WORDS,
- JSON of OpenSearch (judgmentRatings) and of _rank_eval (requests).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import DataError, unguarded
from ranktune.solvers.data.columns.grammar import MISSING, json_of, number_of, values_by_name
from ranktune.solvers.data.columns.roles import DOCUMENTS, GRADES_RULE, MOST_GRADES, number_each
from ranktune.solvers.data.columns.usual import find_roles, usual, usual_grades
from ranktune.solvers.data.readers.formats import first_line
from ranktune.solvers.data.readers.parsing.streams import Position, lines_of
from ranktune.solvers.data.readers.tables.arrow_files import kind_of
from ranktune.solvers.data.readers.tables.batches import OpenTable, reading
from ranktune.solvers.data.readers.tables.delimited import Cells, CsvFile, cells_of, dialect_of
from ranktune.solvers.data.readers.tables.opening import open_table, read_roles

FORMS = (
    "Read are lines QUERY 0 DOCUMENT GRADE, csv and tsv with titles such as query,docid,rating, Parquet and JSON lines "
    "alike, judgment lists of Elasticsearch LTR (GRADE qid:ID # DOCUMENT), and JSON of OpenSearch (judgmentRatings) or "
    "_rank_eval (requests)."
)
ROLES: Mapping[str, Sequence[str]] = {
    "qid": usual("qid", "group", "query", "topic"),
    "document": DOCUMENTS,
    "grade": usual("grade", "rating", "graded"),
    "document_weight": usual("document_weight"),
}
_LISTED = re.compile(r"\s*(\S+)\s+qid:(\S+)\s+#\s*(\S+).*")
_HEAD = re.compile(r"\s*#\s*qid:([^\s:]+):\s*(.*)")


class JudgmentRow(NamedTuple):
    """A judgment, whose grade is first as it is written and then a number, and its weight if the file has weights."""

    query: str
    document: str
    grade: object
    weight: float | None = None


def judgments_in(path: Path, named: JsonView) -> tuple[list[JudgmentRow], dict[str, str]]:
    """Return the judgments of a file, and query words -> query id where it has both.

    named are the options of reading, of which those that name columns of the file, and words for grades, hold for it.
    """
    grade_of = values_by_name(named.get("grades") or (), GRADES_RULE, number_of)
    table, words = _table(path, named, grade_of), dict[str, str]()
    if table is not None:
        return _graded(path, _of_table(table, named), grade_of), words
    lines = [(number, line) for number, line in enumerate(lines_of(Position(path)), start=1) if line.strip()]
    rows: Iterable[JudgmentRow] = ()
    if any(map(_LISTED.fullmatch, (line for _, line in lines))):
        words = {hit[2].strip(): hit[1] for _, line in lines if (hit := _HEAD.fullmatch(line))}
        rows = _of_list(path, lines)
    elif lines:
        text = "\n".join(line for _, line in lines)
        rows = _of_json(path, text) if text.lstrip()[0] in "{[" else _of_rows(path, lines, grade_of)
    return _graded(path, rows, grade_of), words


def _graded(path: Path, rows: Iterable[JudgmentRow], grade_of: Mapping[str, float]) -> list[JudgmentRow]:
    """Return the judgments of the rows that have a grade, and a weight above 0 if any have a weight.

    Grades below 0, which TREC gives to spam, become 0. Raises Undecided for words whose numbers are not known.
    """
    graded = ((row, str(row.grade)) for row in rows if row.weight is None or row.weight > 0.0)
    read = [(row, text) for row, text in graded if text not in MISSING]
    values = {text: grade_of.get(text, number_of(text)) for _, text in read}
    words = [text for text, value in values.items() if value is None or not math.isfinite(value)]
    if words:
        row = next(row for row, text in read if text == words[0])
        problem = f"{path}: {words[0][:40]!r} is no grade, of document {row.document} of query {row.query}."
        if len(words) > MOST_GRADES:
            raise DataError(f"{problem} {FORMS}")
        raise number_each(f"{problem} Is it a word for one?", words, grade_of or usual_grades(list(values)))
    if not read:
        raise DataError(f"{path}: holds no judgments: no row has a grade, and a weight where there are any. {FORMS}")
    return [row._replace(grade=max(values[text] or 0.0, 0.0)) for row, text in read]


def _table(path: Path, named: JsonView, grade_of: Mapping[str, object]) -> OpenTable | None:
    """Return a file with titles as a table, None for any other."""
    if kind_of(path) in ("parquet", "arrow"):
        return open_table(path)
    first = first_line(path)
    if first[:1] in "{[":
        with suppress(ValueError, RecursionError):
            if isinstance(value := json_of(first), Mapping) and not list(_judged(value)):
                return open_table(path)
        return None
    dialect = dialect_of(path)
    titles = cells_of([(1, first)], dialect.separator)[0][1]
    roles = find_roles(titles, ROLES, named)
    if not roles or _is_grade(titles[-1] or "-", grade_of):
        return None
    with reading(str(path)):
        return OpenTable(str(path), CsvFile(path, dialect._replace(is_loose="document_weight" not in roles)))


def _of_table(table: OpenTable, named: JsonView) -> Iterable[JudgmentRow]:
    """Return the judgments of a table with titles; RankTune guards texts in csv against spreadsheets."""
    needed = ("qid", "document", "grade")
    roles = {**ROLES, **find_roles(table.names, ROLES, named)}
    columns = read_roles(open_table(table, roles, dict.fromkeys(needed), needed))
    weights = columns.get("document_weight", repeat(None))
    clean = unguarded if isinstance(table.source, CsvFile) and "document_weight" in columns else str
    texts = (map(clean, columns[role]) for role in needed)
    return map(JudgmentRow, *texts, weights)


def _of_list(path: Path, lines: Sequence[tuple[int, str]]) -> Iterator[JudgmentRow]:
    for number, line in lines:
        if hit := _LISTED.fullmatch(line):
            yield JudgmentRow(hit[2], hit[3], hit[1])
        elif line.lstrip()[0] != "#":
            raise DataError(
                f"{path}:{number}: {line.strip()[:60]!r} is no line GRADE qid:ID # DOCUMENT, as others are."
            )


def _of_rows(path: Path, lines: Sequence[tuple[int, str]], grade_of: Mapping[str, object]) -> Iterator[JudgmentRow]:
    """Yield the judgments of lines, whose separator is the one that makes a judgment of each of them.

    Spaces part cells where nothing else does: between tabs or commas they belong to queries and documents.
    """
    parted, words = [cells_of(lines, sign) for sign in "\t,;" if sign in lines[0][1]], cells_of(lines, None)
    found = [table for table in parted if _is_judged(table, grade_of)]
    for number, line in lines if not found and _is_graded(words, grade_of) else ():
        if "\t" in line and any(" " in cell.strip() for cell in line.split("\t")):
            raise DataError(
                f"{path}:{number}: has a tab and a space: which of them part query, document and grade is not clear. "
                "Put a tab between them in every line."
            )
    for tables, most in (([words], 0), (parted, MOST_GRADES), ([words], MOST_GRADES)):
        found = found or [table for table in tables if _is_judged(table, grade_of, most)]
    if len(found) != 1:
        bad = (number for number, cells in [*parted, words][0] if not _is_judged([(number, cells)], grade_of))
        number = next(bad, lines[0][0])
        raise DataError(f"{path}:{number}: {dict(lines)[number][:60]!r} is not clear as a judgment. {FORMS}")
    for _, cells in found[0]:
        yield JudgmentRow(cells[0], cells[-2], cells[-1])


def _is_judged(table: Cells, grade_of: Mapping[str, object], most: int = 0) -> bool:
    """Return whether rows are of three cells, or of four, where the second is TREC's iteration.

    most is how many words that are not known may be grades.
    """
    plain = all(len(cells) < 4 or _is_grade(cells[1].upper().removeprefix("Q"), grade_of) for _, cells in table)
    return plain and {len(cells) for _, cells in table} <= {3, 4} and _is_graded(table, grade_of, most)


def _is_graded(table: Cells, grade_of: Mapping[str, object], most: int = 0) -> bool:
    return len({cells[-1] for _, cells in table if not _is_grade(cells[-1], grade_of)}) <= most


def _is_grade(cell: str, grade_of: Mapping[str, object]) -> bool:
    return cell in MISSING or cell in grade_of or ((number := number_of(cell)) is not None and math.isfinite(number))


def _of_json(path: Path, text: str) -> Iterator[JudgmentRow]:
    try:
        content = json_of(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is no JSON ({error}). {FORMS}") from None
    for judged in _judged(content):
        query = judged.get("query", judged.get("id"))
        for rating in item if isinstance(item := judged.get("ratings"), list) else ():
            document = rating.get("docId", rating.get("_id")) if isinstance(rating, Mapping) else None
            if not isinstance(query, str | int) or not isinstance(document, str | int):
                raise DataError(f"{path}: a rating of query {str(query)[:40]!r} names no document. {FORMS}")
            yield JudgmentRow(str(query), str(document), rating.get("rating"))


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
