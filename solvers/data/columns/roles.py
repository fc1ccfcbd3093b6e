"""Which column of a table is the query id, the grade, the document id, a weight, a time, or a feature.

A column is taken by the name that the user gives, else by a name that is recognised. All others are features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Self, TypeAlias

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import DataError, listed, nearest
from ranktune.solvers.data.columns.decisions import COLUMN, NUMBER, ColumnQuestion, Undecided, as_list, left_out
from ranktune.solvers.data.columns.grammar import number_of
from ranktune.solvers.data.columns.table import COLUMNS, OPTIONS, with_options
from ranktune.solvers.data.columns.usual import (
    AFTER_WORDS,
    GRADE_WORDS,
    QUERY_WORDS,
    USUAL,
    Role,
    find_roles,
    named_like,
    no_column,
    plain,
    shown,
    usual,
)

GRADES_RULE = "grades={}: write pairs of WORD=NUMBER, such as Bad=0,Good=1."
MOST_GRADES = 20
"""More words are no grades."""
QUERIES, GRADES, DOCUMENTS = usual("qid", "group"), usual("grade"), usual("document", "row")
DOCUMENT_WEIGHT, POSITION = "document_weight", "position"
"""The columns of training tables of click logs that are no features."""
_LEAKS = {DOCUMENT_WEIGHT: "weights of clicked documents tell what was clicked", POSITION: "it tells the old ranking"}

_LIKELY = {
    "qid": (QUERIES, (QUERY_WORDS,)),
    "grade": (usual("grade", "rating"), (GRADE_WORDS, AFTER_WORDS)),
}
"""By option the names that are recognised, and words of others, the likeliest first."""

ROLES: Mapping[str, Role] = {
    "query": USUAL["qid"],
    "grade": USUAL["grade"],
    "document": USUAL["document"],  # of several columns, that of the first name
    **{option: Role("", str, COLUMNS[name].what, option) for option, name in OPTIONS.items()},
    "order": Role("", str, "time", "group_by_time"),
    "session": Role("", str, "group", "session"),
}

RESERVED = {
    name: USUAL[role] for role in ("qid", "group", "grade", "document", "row", "weight") for name in USUAL[role].names
}
"""Names that no feature has in a format that says itself which columns are features."""

Columns: TypeAlias = Mapping[str, None]
"""Names of columns in their order, with fast look-up."""

_GLOB = frozenset("*?[")


@dataclass(frozen=True, kw_only=True)
@with_options(lambda entry: "str | None")
class WantedRoles:
    """What a user says about the columns of a table, which has a row per document; OPTIONS name columns too.

    Attributes
    ----------
    qid : str, default="qid"
        Column of the query ids, numbers or text, in any order; without one of the default name, that of `QUERIES`.
    grade : str or None, default="grade"
        Column of the grades; without one of the default name, that of `GRADES`. With None, all grades are 0.
    document : str, optional
        Column of the document ids. By default the first of `DOCUMENTS`, if there is one.
    group_by_time : str, optional
        Column by whose latest document the queries are put in order.
    session : str, optional
        Column of ids: every row has the latest time of its session, so that divisions by time keep sessions together.
    features : str or sequence of str, optional
        The feature columns: names, globs such as "bm25*", or both separated by commas. By default all other columns.
        Numbers and truth values are features as they are. Dates, also ISO 8601 text, become ages: the days before the
        latest one. Categories, and text whose values recur in several queries, become a feature a value, such as
        colour=red, which is 1 where the column has it.
    drop : str or sequence of str, optional
        Columns that are not used, in the same way.
    levels : int, default=64
        The most features of a category: those of its values that occur in most queries.
    grades : str or mapping, optional
        The numbers of grades that are words, such as "Bad=0,Good=1".
    """

    qid: str = "qid"
    grade: str | None = "grade"
    document: str | None = None
    group_by_time: str | None = None
    session: str | None = None
    features: Sequence[str] | str | None = None
    drop: Sequence[str] | str = ()
    levels: int = 64
    grades: object = None

    @property
    def named(self) -> set[str]:
        """The columns that are not features and are called by name."""
        return {getattr(self, role.option) for role in ROLES.values()} - {None, WantedRoles.qid, WantedRoles.grade}

    @classmethod
    def of(cls, options: JsonView) -> Self:
        """Return those of the options of reading that are about columns."""
        return cls(**{field.name: options[field.name] for field in fields(cls) if field.name in options})


@dataclass(frozen=True)
class Roles:
    """How each column of a table is taken.

    Attributes
    ----------
    columns : mapping of str to str
        Role -> column; no query where the queries are known from elsewhere.
    features : tuple of str
        The feature columns, in their order.
    dropped : mapping of str to str
        The columns that are not used, and why.
    """

    columns: Mapping[str, str]
    features: tuple[str, ...]
    dropped: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, role: str) -> str | None:
        """Return the column of a role, None where there is none."""
        return self.columns.get(role)

    @property
    def keys(self) -> dict[str, str]:
        """The columns that are not features: column -> what it is."""
        return {column: ROLES[role].what for role, column in self.columns.items()}


HEADLESS = " The first line of a file must hold the titles of its columns: is it missing?"
RULE = "Features are numbers, dates, and categories, whose values recur in several queries."


def no_features(columns: Mapping[str, str], ids: Sequence[str] = ()) -> Undecided:
    """Return the question about columns that cannot be features, by what they hold; ids look like ids of documents."""
    document, rest = list(ids[:1]), [name for name in columns if name not in ids[:1]]
    drop = f'Leave out what is neither: drop="{",".join(rest)}".'
    if document:
        drop = drop if rest else f'If it is not, leave it out: drop="{ids[0]}".'
        drop = f'{ids[0]!r} looks like the id of the document: document="{ids[0]}". {drop}'
    answer = [*(("document", name) for name in document), *left_out(rest)]
    return Undecided([ColumnQuestion(f"no feature can be made of {described(columns)}. {RULE} {drop}", answer)])


def name_grades(problem: str, others: Sequence[str]) -> Undecided:
    """Return the question which of other columns has the grades."""
    found = likely("grade", others)
    perhaps = f" Perhaps it is {found!r}." * (found != COLUMN)
    return Undecided([ColumnQuestion(f'{problem} Name the grades: grade="COLUMN".{perhaps}', [("grade", found)])])


def number_each(
    problem: str, words: Sequence[str], numbers: Mapping[str, float], others: Sequence[str] = ()
) -> Undecided:
    """Return the question which numbers words for grades stand for, or which of others has the grades if they are many.

    numbers are those of some words.
    """
    if len(words) > MOST_GRADES:
        return name_grades(problem, others)
    grade_of = {word: f"{number:.15g}" for word, number in numbers.items()}
    pairs = ",".join(f"{word}={grade_of.get(word, NUMBER)}" for word in dict.fromkeys([*grade_of, *words]))
    return Undecided([ColumnQuestion(f'{problem} Give the number of each: grades="{pairs}".', [("grades", pairs)])])


def described(columns: Mapping[str, str]) -> str:
    """Return names of columns with the contents of each."""
    return listed(f"{name!r} ({what})" for name, what in columns.items())


def roles(
    names: Sequence[str],
    wanted: WantedRoles,
    *,
    known_features: Sequence[str] | None = None,
    grouped: bool = False,
    qrels: bool = False,
) -> Roles:
    """Return how each of the columns of these names is taken.

    known_features are the features where the format of the file says which they are. grouped: the queries are known
    from elsewhere, so that no column of query ids is needed. qrels: the same of the grades. Raises Undecided
    with all that the names leave open, and DataError for a column that is named and absent.
    """
    asked = list[ColumnQuestion]()
    columns = dict.fromkeys(names)
    dropped = dict.fromkeys(_selected(columns, wanted.drop, "drop"), "drop") if wanted.drop else {}
    for name in wanted.named:
        dropped.pop(name, None)
    left = {name: None for name in columns if name not in dropped}
    chosen = set(as_list(wanted.features)) if wanted.features is not None else set(known_features or ())
    free = [name for name in left if name not in chosen]
    query = None if grouped and wanted.qid not in left else _column(left, free, wanted, "qid", asked)
    assigned = {"query": query, "grade": _grade(left, free, wanted, qrels, asked)}
    assigned["document"] = _document(free)
    for role, about in ROLES.items():
        named = getattr(wanted, about.option)
        if role not in ("grade", "query") and named is not None:
            assigned[role] = _present(left, named)
    by_role = {role: column for role in ROLES if (column := assigned.get(role)) is not None}
    used = set(by_role.values())
    if wanted.features is not None:
        selected = _selected(columns, wanted.features, "features")
        features = [name for name in selected if name in left and (name in chosen or name not in used)]
        reason = "not among features"
    elif known_features is not None:
        features = [name for name in known_features if name in left and name not in used]
        reason = "not a logged feature"
    else:
        features, reason = [name for name in left if name not in used], ""
    features = [name for name in features if name not in _answers(asked)]
    unnamed = [name for name in features if name not in exact_names(wanted.features) | set(known_features or ())]
    if assigned["grade"] is not None:
        asked += _second_grades(assigned["grade"], unnamed)
    asked += _of_click_logs(unnamed)
    if wanted.document is None and assigned["document"] is not None:
        asked += _documents(assigned["document"], features)
    if asked:
        raise Undecided(asked)
    used.update(features)
    dropped |= {name: reason for name in left if name not in used}
    if not features:
        raise DataError(f"there are no feature columns, only {shown(names)}. Add numeric columns.")
    return Roles(by_role, tuple(features), dropped)


def _answers(asked: Sequence[ColumnQuestion]) -> set[str]:
    """Return the columns that answers name."""
    return {name for decision in asked for _, name in decision.answer}


def _of_click_logs(unnamed: Sequence[str]) -> list[ColumnQuestion]:
    """Return what is asked about features that are called as a column of a click log."""
    found = {name: plain(name) for name in sorted(unnamed) if plain(name) in _LEAKS}
    weighted = DOCUMENT_WEIGHT in found.values()  # a table of `ranktune clicks`
    return [
        ColumnQuestion(
            f'{name!r} would become a feature, and {_LEAKS[role]}. Name its role: {role}="{name}", or leave '
            f'it out: drop="{name}". If it is known when documents are ranked, {named(name)}',
            [(role, name)] if weighted else left_out([name]),
        )
        for name, role in found.items()
    ]


def named(names: str) -> str:
    """Return how features are named that would be asked about."""
    return f'name it: features="*,{names}".'


def exact_names(features: Sequence[str] | str | None) -> set[str]:
    """Return the names in what a user gives as features; a glob is its name."""
    listed = [] if features is None else as_list(features)
    return {part.strip() for name in listed for part in (str(name), *str(name).split(","))}


def _second_grades(grade: str, unnamed: Sequence[str]) -> list[ColumnQuestion]:
    """Return what is asked about features that are called as grades are."""
    others = [name for name in unnamed if plain(name) in GRADES]
    names = ",".join(others)
    question = (
        f"beside the grade {grade!r} the table has {listed(map(repr, others))}, called as grades are, which would "
        f'become a feature. Leave it out: drop="{names}". If it is known when documents are ranked, {named(names)}'
    )
    return [ColumnQuestion(question, left_out(others))] if others else []


def _documents(document: str, features: Sequence[str]) -> list[ColumnQuestion]:
    """Return what is asked where the document is not named, and another column that may be one would be a feature."""
    others = [name for name in features if plain(name) in DOCUMENTS]
    question = (
        f"several columns may be the document id ({', '.join([document, *others])}). Name it: "
        f'document="COLUMN", and leave the others out: drop="COLUMN".'
    )
    return [ColumnQuestion(question, [("document", document), *left_out(others)])] if others else []


def id_columns(names: Sequence[str], wanted: WantedRoles) -> list[str]:
    """Return those of the columns of these names that are taken, or may be, as ids of queries and documents."""
    chosen = set() if wanted.features is None else set(as_list(wanted.features))
    free = [name for name in names if name not in chosen]
    queries = [wanted.qid] if wanted.qid in names else [name for name in free if plain(name) in QUERIES]
    document = _document(free) if wanted.document is None else wanted.document
    return [name for name in names if name in queries or name == document]


def _grade(
    left: Columns, free: Sequence[str], wanted: WantedRoles, qrels: bool, asked: list[ColumnQuestion]
) -> str | None:
    if wanted.grade is None or (qrels and wanted.grade not in left):  # it may name the column of the judgments
        columns = find_roles(free, {"grade": GRADES}).get("grade", ())
        return columns[0] if len(columns) == 1 else None
    return _column(left, free, wanted, "grade", asked)


def _column(
    left: Columns, free: Sequence[str], wanted: WantedRoles, option: str, asked: list[ColumnQuestion]
) -> str | None:
    """Return the column given, or, where that is the default and missing, the only one of the known names.

    Of none or several, the likeliest is returned, and what is asked about them is added to asked.
    """
    named, usual, what = getattr(wanted, option), _LIKELY[option][0], f"{USUAL[option].what}s"
    if named in left:
        return str(named)
    if named != option:
        raise DataError(f"there is no column {named!r} for the {what}. {nearest(named, left)}")
    candidates = find_roles(free, {option: usual}).get(option, [])
    if len(candidates) == 1:
        return candidates[0]
    found = (
        candidates[0] if candidates else likely(option, [n for n in free if n not in wanted.named | _answers(asked)])
    )
    naming = f'Name it: {option}="COLUMN"'
    if candidates:
        question = f"the table has several columns that may be the {what} ({', '.join(candidates)}). {naming}."
    elif found != COLUMN:
        question = f"the table {no_column(what, naming)} Perhaps it is {found!r}."
    else:
        headless = HEADLESS if any(number_of(name) is not None for name in left) else ""
        question = f"the table {no_column(what, naming, usual, list(left))}{headless}"
    others = [name for name in candidates[1:] if plain(name) in RESERVED]
    asked.append(ColumnQuestion(question, [(option, found), *left_out(others)]))
    return None if found == COLUMN else found


def likely(option: str, names: Sequence[str]) -> str:
    """Return the name that is likeliest by its words to be that of the query ids or of the grades, else COLUMN."""
    return next((name for words in _LIKELY[option][1] for name in named_like(words, names)), COLUMN)


def _document(free: Sequence[str]) -> str | None:
    """Return the column that is likeliest the document id; None for none."""
    return next(iter(find_roles(free, {"": DOCUMENTS}).get("", ())), None)


def _present(columns: Columns, name: str) -> str:
    if name not in columns:
        raise DataError(f"there is no column {name!r}. {nearest(name, columns)}")
    return name


def _selected(columns: Columns, names: Sequence[str] | str, argument: str) -> list[str]:
    """Return the columns that names select, each once: names, globs such as "bm25*", and both separated by commas."""
    selected: dict[str, None] = {}
    for name in map(str, as_list(names)):
        for part in [name] if name in columns else filter(None, (pattern.strip() for pattern in name.split(","))):
            selected |= dict.fromkeys(_matching(columns, part, argument))
    return list(selected)


def _matching(columns: Columns, name: str, argument: str) -> list[str]:
    if name in columns:
        return [name]
    if not _GLOB & set(name):
        return [_present(columns, name)]
    matching = [column for column in columns if fnmatchcase(column, name)]
    if not matching:
        raise DataError(f"{argument}={name!r} matches no column. Its columns: {shown(list(columns))}.")
    return matching
