"""Models as a rank profile of Vespa's schema language, in double precision.

Every feature is a function of the profile, so that its meaning can be changed in one place. A name that is a rank
feature of Vespa with arguments, such as bm25(title), means that rank feature, and one that the columns of a table give
is computed from its attribute. All others mean the attribute of that name, which is NaN where the document has no
value: missing. A feature that no training document lacked is 0 then.
"""

from __future__ import annotations

import json
from collections.abc import Set

from ranktune.solvers.export.definitions.meanings import (
    AGE,
    FIELD,
    FILL_IN,
    LEVEL,
    Meaning,
    is_match,
    is_rank_feature,
    meanings_of,
)
from ranktune.solvers.export.source import Source, check_distinct, escaped

LETTERS = "[A-Za-z0-9_]"


def vespa(source: Source) -> str:
    """Return a rank profile whose second phase is the weighted sum, the sum of trees as nested ifs, or that of both."""
    return _written(source, _may_be_nan(source), "", "")


def vespa_phases(source: Source, first: Source, window: int) -> str:
    """Return a rank profile whose first phase is a linear model, and whose second phase scores its best documents.

    The features of the first model are some of those of the second. window is the number of documents, on each node.
    """
    words = [escaped(name, k, LETTERS) for name, k in zip(first.names, first.columns.tolist(), strict=True)]
    may_be_nan = _may_be_nan(first) | _may_be_nan(source)
    terms = [
        _term(words[k], first.added(k), first.names[k] in may_be_nan, repr(weight)) for k, weight in first.weighted()
    ]
    total = " +\n            ".join(terms)
    phase = f"    first-phase {{\n        expression {{\n            {total}\n        }}\n    }}\n"
    return _written(source, may_be_nan, phase, f"        rerank-count: {window}\n")


def _may_be_nan(source: Source) -> set[str]:
    """Return the names of the features whose absence is something else than 0."""
    return {name for name, is_zero in zip(source.names, source.is_zero_where_missing(), strict=True) if not is_zero}


def _written(source: Source, may_be_nan: Set[str], first_phase: str, count: str) -> str:
    """Return a rank profile with a first phase, and a line on the documents of the second.

    Features with a name of may_be_nan are NaN where they are missing, others are 0.
    """
    check_distinct(source)
    words = [escaped(name, k, LETTERS) for name, k in zip(source.names, source.columns.tolist(), strict=True)]
    weighted = [(words[k], weight) for k, weight in source.weighted()]
    constants = "".join(f"        w_{word}: {weight!r}\n" for word, weight in weighted)
    terms = [_term(words[k], source.added(k), source.names[k] in may_be_nan) for k, _ in source.weighted()]
    trees = source.trees
    thresholds = [] if trees is None else trees.threshold.tolist()
    sides = [] if trees is None else source.sides() or trees.zero_left.tolist()

    def split(number: int, position: int, left: str, right: str) -> str:
        word = words[position]
        is_left = source.names[position] in may_be_nan and sides[number]
        missing = f" || isNan(x_{word}) == 1" if is_left else ""
        return f"if (x_{word} <= {thresholds[number]!r}{missing}, {left}, {right})"

    terms += source.nested(split, repr)
    declared = f"    constants {{\n{constants}    }}\n" if constants else ""
    known = zip(meanings_of(source), words, strict=True)
    meanings = [_meaning(meaning, word, meaning.feature in may_be_nan) for meaning, word in known]
    return _profile(source, words, meanings, declared + first_phase, count, terms)


def _term(word: str, added: float, may_be_missing: bool, weight: str = "") -> str:
    """Return the weighted feature, by its constant or a number, or what it adds where it is missing."""
    product = f"{weight or f'w_{word}'} * x_{word}"
    return f"if (isNan(x_{word}) == 1, {added!r}, {product})" if may_be_missing else product


def _profile(source: Source, words: list[str], meanings: list[str], declared: str, count: str, terms: list[str]) -> str:
    functions = "".join(
        f"    # {json.dumps(name)}\n    function x_{word}() {{\n{meaning}\n    }}\n"
        for name, word, meaning in zip(source.names, words, meanings, strict=True)
    )
    total = " +\n            ".join(terms)
    listed = "".join(f"        x_{word}\n" for word in words)
    return (
        f"# {json.dumps(source.title)[1:-1]}. Made by RankTune.\n"
        "# Goes into the schema, after its document. What a feature is stands in its function: change it to what your\n"
        "# schema has.\n"
        f"rank-profile {escaped(source.name, 0, LETTERS)} inherits default {{\n"
        f"{functions}{declared}"
        f"    second-phase {{\n{count}        expression {{\n            {total}\n        }}\n    }}\n"
        f"    match-features {{\n{listed}    }}\n}}\n"
    )


def _meaning(meaning: Meaning, word: str, may_be_nan: bool) -> str:
    """Return the line of what a feature is, after that of what a person must do.

    A rank feature is 0 where nothing matches, and an attribute NaN where a document has no value. A comparison of texts
    compares their hashes.
    """
    name, kind, attribute = meaning.feature, meaning.kind, f"attribute({meaning.column})"
    if is_match(name):
        return _line(name if is_rank_feature(name) else f"bm25({meaning.column})")
    if kind == LEVEL:
        return _line(f"if ({attribute} == {json.dumps(meaning.value, ensure_ascii=False)}, 1.0, 0.0)")
    if kind not in (FIELD, AGE):
        attribute = f"attribute({word})"
    what = f"({meaning.before // 10**6} - {attribute}) / 86400.0" if kind == AGE else attribute
    value = what if may_be_nan else f"if (isNan({attribute}) == 1, 0.0, {what})"
    return _line(value, "" if kind in (FIELD, AGE) else f"        # {FILL_IN}: what the feature is in your schema\n")


def _line(expression: str, comment: str = "") -> str:
    return f"{comment}        expression: {expression}"
