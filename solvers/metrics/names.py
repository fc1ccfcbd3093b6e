"""The names of metrics as papers and other tools write them.

p, prec, r, rr, ap               precision, recall, mrr, map
P_10, P.10, recall_10,           trec_eval's names mean what trec_eval computes: P_10 is precision@10:trec_eval,
ndcg_cut_10, map_cut_10,         recip_rank is mrr:trec_eval
recip_rank
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ranktune.solvers.core.errors import ParameterError, nearest

ALIASES = {"p": "precision", "prec": "precision", "r": "recall", "rr": "mrr", "ap": "map"}
TREC_EVAL = {"p": "precision", "recall": "recall", "ndcg_cut": "ndcg", "map_cut": "map", "recip_rank": "mrr"}
ERROR_RATES = {"domination-error": "domination", "all-pairs-error": "pairwise", "pairwise-error": "pairwise"}
"""Error rates, and the metrics that are 1 minus them."""

_TREC_EVAL = re.compile(r"(recip_rank)(?:@([0-9]+))?|(p|recall|ndcg_cut|map_cut)[_.]([0-9]+)")


_WITH_NUMBER = re.compile(r"(.*?)[-.]?([0-9]+)")


class Name(NamedTuple):
    """What a name means: a measure, its cutoff as written, and conventions; None is what the name does not say."""

    measure: str
    cutoff: str | None
    preset: str | None = None


def read_name(written: str) -> Name:
    """Return the meaning of NAME[@K] in lower case; a measure that is not known comes back as it is.

    Raises ParameterError for an error rate: metrics are maximised.
    """
    match = _TREC_EVAL.fullmatch(written)
    if match is not None:
        return Name(TREC_EVAL[match[1] or match[3]], match[2] or match[4], "trec_eval")
    name, has_cutoff, cutoff = written.partition("@")
    name = name.replace("_", "-")
    if name in ERROR_RATES:
        rate = ERROR_RATES[name]
        raise ParameterError(
            f"'{name}' is an error rate, and metrics are maximised: write '{rate}', which is 1 minus it."
        )
    return Name(ALIASES.get(name, name), cutoff if has_cutoff else None)


def nearest_name(measure: str, known: Iterable[str]) -> str:
    """Return a sentence that names the known measure nearest to one that is not known, as in ndcg@10 for ndcg-10."""
    names = list(known)
    match = _WITH_NUMBER.fullmatch(measure)
    if match is not None and ALIASES.get(match[1], match[1]) in names:
        return f"Did you mean '{match[1]}@{match[2]}'? Known: {', '.join(sorted(names))}."
    return nearest(measure, names)
