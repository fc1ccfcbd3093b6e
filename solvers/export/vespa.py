"""Models as a rank profile of Vespa's schema language, in double precision.

Every feature is a function of the profile, so that its meaning can be changed in one place. A name that is a rank
feature of Vespa with arguments, such as bm25(title), means that rank feature, and one that the columns of a table give
is computed from its attribute. All others mean the attribute of that name, which is NaN where the document has no
value: missing. A feature that no training document lacked is 0 then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set

from ranktune.solvers.export.definitions import (
    AGE,
    FIELD,
    FILL_IN,
    LEVEL,
    FeatureMeaning,
    is_match,
    is_rank_feature,
    meanings_of,
)
from ranktune.solvers.export.source import ExportedModel, check_distinct, escaped

LETTERS = "[A-Za-z0-9_]"


def vespa(source: ExportedModel) -> str:
    """Return a rank profile whose second phase is the weighted sum, the sum of trees as nested ifs, or that of both."""
    may_be_nan = set(source.differing())
    check_distinct(source)
    ends = [escaped(name, k, LETTERS) for name, k in zip(source.names, source.columns.tolist(), strict=True)]
    known = zip(meanings_of(source), ends, strict=True)
    meanings = [_meaning(meaning, end, meaning.feature in may_be_nan) for meaning, end in known]
    begin = "x_"
    while re.search(rf"\b{begin}", " ".join(meanings)):  # a field of the name of a function would be that function
        begin = f"x{begin}"
    words = {name: f"{begin}{end}" for name, end in zip(source.names, ends, strict=True)}
    functions = "".join(
        f"    # {json.dumps(name)}\n    function {word}() {{\n{meaning}\n    }}\n"
        for (name, word), meaning in zip(words.items(), meanings, strict=True)
    )
    total = _sum(_weighted(source, words, may_be_nan) + _nested(source, words, may_be_nan))
    listed = "".join(f"        {word}\n" for word in words.values())
    return (
        f"# {json.dumps(source.title)[1:-1]}. Made by RankTune.\n"
        "# Goes into the schema, after its document. What a feature is stands in its function: change it to what your\n"
        "# schema has.\n"
        f"rank-profile {escaped(source.name, 0, LETTERS)} inherits default {{\n"
        f"{functions}    second-phase {{\n        expression {{\n{total}        }}\n    }}\n"
        f"    match-features {{\n{listed}    }}\n}}\n"
    )


def _weighted(source: ExportedModel, words: Mapping[str, str], may_be_nan: Set[str]) -> list[str]:
    """Return the weighted features, or what they add where they are missing.

    Weights are no constants of the profile: the numbers of these have no exponent.
    """
    terms = []
    for k, weight in source.weighted():
        word = words[source.names[k]]
        term = f"{weight!r} * {word}"
        is_nan = source.names[k] in may_be_nan
        terms.append(f"if (isNan({word}) == 1, {source.added(k)!r}, {term})" if is_nan else term)
    return terms


def _nested(source: ExportedModel, words: Mapping[str, str], may_be_nan: Set[str]) -> list[str]:
    trees = source.trees
    thresholds = [] if trees is None else trees.threshold.tolist()
    sides = source.all_sides()

    def split(number: int, position: int, left: str, right: str) -> str:
        word = words[source.names[position]]
        test = f"{word} <= {thresholds[number]!r}"
        if source.names[position] in may_be_nan and sides[number]:
            test = f"({test}) || (isNan({word}) == 1)"  # || came before <= until 2022
        return f"if ({test}, {left}, {right})"

    return source.nested(split, repr)


def _sum(terms: list[str]) -> str:
    total = " +\n            ".join(terms)
    return f"            {total}\n"


def _meaning(meaning: FeatureMeaning, word: str, may_be_nan: bool) -> str:
    """Return the line of what a feature is, after that of what a person must do.

    A rank feature is 0 where nothing matches, and an attribute NaN where a document has no value. A comparison of texts
    compares their hashes.
    """
    name, kind, attribute = meaning.feature, meaning.kind, f"attribute({meaning.column})"
    if is_match(name):
        return _line(name if is_rank_feature(name) else f"bm25({meaning.column})")
    if kind == LEVEL:
        # A brace would end the expression, and \\b is b there.
        value = re.sub(r'[\x00-\x1f"\\{}]', lambda match: f"\\u{ord(match[0]):04x}", meaning.value)
        return _line(f'if ({attribute} == "{value}", 1.0, 0.0)')
    if kind not in (FIELD, AGE):  # a field begins with a letter, and what begins with a digit may be a number
        attribute = f"attribute({word if word[0].isalpha() else f'f_{word}'})"
    what = f"({meaning.before // 10**6} - {attribute}) / 86400.0" if kind == AGE else attribute
    value = what if may_be_nan else f"if (isNan({attribute}) == 1, 0.0, {what})"
    return _line(value, "" if kind in (FIELD, AGE) else f"        # {FILL_IN}: what the feature is in your schema\n")


def _line(expression: str, comment: str = "") -> str:
    return f"{comment}        expression: {expression}"
