"""What solvers can use of data, and what their models consist of, by name."""

from __future__ import annotations

from collections.abc import Mapping

QUERY_WEIGHTS, DOCUMENT_WEIGHTS, MONOTONE, POSITIONS = "query_weights", "document_weights", "monotone", "positions"
"""What a solver may or may not be able to use of the data, by the names of the arguments of fit."""
VERBS: Mapping[str, str] = {
    QUERY_WEIGHTS: "weigh queries",
    DOCUMENT_WEIGHTS: "weigh documents",
    MONOTONE: "keep monotone constraints",
}
"""What must not be ignored; positions are, by solvers that have no use for them."""

LINEAR, LIST, TREES, WITHIN, CUSTOM = "linear", "list", "trees", "within", "custom"  # kinds of parts of models
MISSING_WEIGHTS, MISSING_SIDES = "missing weights", "missing sides"
"""What a format must hold besides of models that learned from missing values: what these add, where trees send them."""
IN_WORDS: Mapping[str, str] = {
    LINEAR: "weights",
    LIST: "weights of features scaled by query",
    TREES: "trees",
    WITHIN: "trees that compare the documents of a query",
    CUSTOM: "what a solver of yours made",
    MISSING_WEIGHTS: "what missing values add",
    MISSING_SIDES: "where missing values go",
}
