"""Models as a rank profile of Vespa's schema language, in double precision.

Every feature is a function of the profile, so that its meaning can be changed in one place. A name that is a rank
feature of Vespa with arguments, such as bm25(title), means that rank feature, any other the attribute of that name,
which is NaN where the document has no value: missing.
"""

from __future__ import annotations

import json
import re

from ranktune.solvers.export.source import Source, check_distinct, escaped

LETTERS = "[A-Za-z0-9_]"
_RANK_FEATURE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\([A-Za-z0-9_.]+(, ?[A-Za-z0-9_.]+)*\)(\.[A-Za-z_][A-Za-z0-9_.]*)?")


def vespa(source: Source) -> str:
    """Return a rank profile whose second phase is the weighted sum, the sum of trees as nested ifs, or that of both."""
    return _written(source, "", "")


def vespa_phases(source: Source, first: Source, window: int) -> str:
    """Return a rank profile whose first phase is a linear model, and whose second phase scores its best documents.

    The features of the first model are some of those of the second. window is the number of documents, on each node.
    """
    words = [escaped(name, k, LETTERS) for name, k in zip(first.names, first.columns.tolist(), strict=True)]
    terms = [_term(words[k], first.added(k), first.missing is not None, repr(weight)) for k, weight in first.weighted()]
    total = " +\n            ".join(terms)
    phase = f"    first-phase {{\n        expression {{\n            {total}\n        }}\n    }}\n"
    return _written(source, phase, f"        rerank-count: {window}\n")


def _written(source: Source, first_phase: str, count: str) -> str:
    """Return a rank profile with a first phase, and a line on the documents of the second."""
    check_distinct(source)
    words = [escaped(name, k, LETTERS) for name, k in zip(source.names, source.columns.tolist(), strict=True)]
    weighted = [(words[k], weight) for k, weight in source.weighted()]
    constants = "".join(f"        w_{word}: {weight!r}\n" for word, weight in weighted)
    terms = [_term(word, source.added(k), source.missing is not None) for k, word in _positions(source, words)]
    thresholds, sides = [] if source.trees is None else source.trees.threshold.tolist(), source.sides()

    def split(number: int, position: int, left: str, right: str) -> str:
        word = words[position]
        missing = f" || isNan(x_{word}) == 1" if sides is not None and sides[number] else ""
        return f"if (x_{word} <= {thresholds[number]!r}{missing}, {left}, {right})"

    terms += source.nested(split, repr)
    declared = f"    constants {{\n{constants}    }}\n" if constants else ""
    return _profile(source, words, declared + first_phase, count, terms)


def _positions(source: Source, words: list[str]) -> list[tuple[int, str]]:
    return [(k, words[k]) for k, _ in source.weighted()]


def _term(word: str, added: float, may_be_missing: bool, weight: str = "") -> str:
    """Return the weighted feature, by its constant or a number, or what it adds where it is missing."""
    product = f"{weight or f'w_{word}'} * x_{word}"
    return f"if (isNan(x_{word}) == 1, {added!r}, {product})" if may_be_missing else product


def _profile(source: Source, words: list[str], declared: str, count: str, terms: list[str]) -> str:
    functions = "".join(
        f"    # {json.dumps(name)}\n    function x_{word}() {{\n        expression: {_meaning(name, word)}\n    }}\n"
        for name, word in zip(source.names, words, strict=True)
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


def _meaning(name: str, word: str) -> str:
    return name if len(name) <= 1000 and _RANK_FEATURE.fullmatch(name) else f"attribute({word})"
