"""The measures and their names, their options, and the conventions of other tools by name.

What papers and other tools call them:

p, prec, r, rr, ap               precision, recall, mrr, map
P_10, P.10, recall_10,           trec_eval's names mean what trec_eval computes: P_10 is precision@10:trec_eval,
ndcg_cut_10, map_cut_10,         recip_rank is mrr:trec_eval
recip_rank, Rprec

Options, each with its values, the default first:

gain      auto: exp2 if all grades are whole numbers from 0 to 30, else linear; exp2: 2^grade - 1; linear: the grade
discount  log2: 1 / log2(rank + 1); letor: 1 at ranks 1 and 2, then 1 / log2(rank)
ties      how documents of equal scores are put in order. average: the expected value over all their orders; input: as
          given; reverse: the last given first; pessimistic, optimistic: lowest or highest grade first; docid: the
          greater document id first, scores compared as float32; threshold (map only): a tied run counts as one step
empty     a query where no order is better than another (nothing relevant; for wta, pairwise, kendall and domination all
          grades equal; for auc all or none relevant): skip it (nan), or count it as 0 or 1
short     a query with fewer than k documents: pad with irrelevant ones; cut k to its length; 0: it scores 0
norm      average precision at k divides by: top, min(k, relevant documents); all, the relevant documents
relevant  the lowest grade that is relevant, default 1
highest   err: the highest grade of the scale, default 4, as gdeval and RankLib have it
p         rbp: the persistence, the probability of going on to the next document, default 0.8
"""

from __future__ import annotations

import math
import re
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.table import NamedTable

if TYPE_CHECKING:
    from ranktune.solvers.metrics.custom import CustomMetric

GAINS = ("exp2", "linear")
AUTO = "auto"
"""The gain that the grades decide: exp2 for whole numbers from 0 to 30, else linear."""
DISCOUNTS = ("log2", "letor")
HIGHEST_GRADE = 30
"""Under exp2: the gain doubles with every grade, and 2^31 is where the common tools stop as well."""
ALIASES = {"p": "precision", "prec": "precision", "r": "recall", "rr": "mrr", "ap": "map"}
TREC_EVAL = {
    "p": "precision",
    "recall": "recall",
    "ndcg_cut": "ndcg",
    "map_cut": "map",
    "recip_rank": "mrr",
    "rprec": "r-precision",
}
CLICK_METRICS = ("ips", "snips", "dr")
"""The measures of a click log, not of grades."""
CLICK_COLUMNS = (*CLICK_METRICS, "examination", "share")
"""Of Queries.clicks: the gain of each document by these, in clicks a search at the first position; the examination of
the k-th rank beside the k-th document of a query, since a column holds a number a document; and, the same for all
documents of a query, its searches in the log relative to their mean, NaN where it has none."""
ERROR_RATES = {"domination-error": "domination", "all-pairs-error": "pairwise", "pairwise-error": "pairwise"}
"""Error rates, and the metrics that are 1 minus them."""

_NAME_OF_TREC_EVAL = re.compile(r"(recip_rank|rprec)(?:@([0-9]+))?|(p|recall|ndcg_cut|map_cut)[_.]([0-9]+)")
_WITH_NUMBER = re.compile(r"(.*?)[-.]?([0-9]+)")


def is_of_clicks(spelling: str) -> bool:
    """Return whether a metric, by its standard spelling, measures a click log."""
    return re.split("[@:]", spelling, maxsplit=1)[0] in CLICK_METRICS


class Name(NamedTuple):
    """What a name means: a measure, its cutoff as written, and conventions; None is what the name does not say."""

    measure: str
    cutoff: str | None
    preset: str | None = None


def read_name(written: str) -> Name:
    """Return the meaning of NAME[@K] in lower case; a measure that is not known comes back as it is.

    Raises ParameterError for an error rate: metrics are maximised.
    """
    match = _NAME_OF_TREC_EVAL.fullmatch(written)
    if match is not None:
        return Name(TREC_EVAL[match[1] or match[3]], match[2] or match[4], "trec_eval")
    name, has_cutoff, cutoff = written.partition("@")
    name = name.replace("_", "-")
    if name == "bpref":
        raise ParameterError(
            "bpref leaves out the documents that are not judged, and here these have grade 0, as in the other "
            "measures of trec_eval. Write 'Rprec' or 'map:trec_eval', or have trec_eval compute it."
        )
    if name in ERROR_RATES:
        rate = ERROR_RATES[name]
        raise ParameterError(
            f"'{name}' is an error rate, and metrics are maximised: write '{rate}', which is 1 minus it."
        )
    return Name(ALIASES.get(name, name), cutoff if has_cutoff else None)


def nearest_name(measure: str, candidates: Iterable[str]) -> str:
    """Return a sentence that names the known measure nearest to one that is not known, as in ndcg@10 for ndcg-10."""
    names = list(candidates)
    match = _WITH_NUMBER.fullmatch(measure)
    if match is not None and ALIASES.get(match[1], match[1]) in names:
        return f"Did you mean '{match[1]}@{match[2]}'? Known: {', '.join(sorted(names))}."
    return nearest(measure, names)


_TIES = ("average", "input", "reverse", "pessimistic", "optimistic", "docid")
_EMPTY = ("skip", "0", "1")


@dataclass(frozen=True)
class MeasureForm:
    """What a measure takes: a cutoff "@k" (required, optional or none) and options with their values, default first.

    help says in a line what it is. range is that of its values.

    () in options stands for a number, see NUMBERS.
    """

    cutoff: str
    options: Mapping[str, tuple[str, ...]]
    help: str = ""
    range: tuple[float, float] = (0.0, 1.0)


class Number(NamedTuple):
    """An option that is a number between two bounds; meaning completes "... is not"."""

    default: str
    above: float
    below: float
    meaning: str


NUMBERS: Mapping[str, Number] = {
    "relevant": Number("1", -math.inf, math.inf, "a grade: give the lowest grade that counts, such as relevant=2"),
    "highest": Number(
        "4",
        0.0,
        HIGHEST_GRADE + 1,
        f"the highest grade of a scale: give a number above 0 and below {HIGHEST_GRADE + 1}, such as highest=4",
    ),
    "p": Number("0.8", 0.0, 1.0, "a probability between 0 and 1, such as p=0.8"),
}

_GRADED = {"gain": (AUTO, *GAINS), "discount": DISCOUNTS, "ties": _TIES, "empty": _EMPTY}
_BINARY: dict[str, tuple[str, ...]] = {"relevant": (), "ties": _TIES, "empty": _EMPTY}
_CLICKED = {"ties": _TIES, "empty": _EMPTY}
_TIED_PAIRS = {"ties": ("average", "pessimistic", "optimistic"), "empty": _EMPTY}

ANY = (-math.inf, math.inf)

MEASURES: NamedTable[MeasureForm] = NamedTable(
    "metric",
    {
        "ndcg": MeasureForm("optional", {**_GRADED, "short": ("pad", "0")}, "normalised discounted cumulative gain"),
        "dcg": MeasureForm(
            "optional", {**_GRADED, "short": ("pad", "0")}, "discounted cumulative gain", (0.0, math.inf)
        ),
        "mean-ndcg": MeasureForm("optional", _GRADED, "the mean of ndcg over all cutoffs up to k, as LETOR 4.0 has it"),
        "map": MeasureForm(
            "optional", {**_BINARY, "ties": (*_TIES, "threshold"), "norm": ("top", "all")}, "average precision"
        ),
        "mrr": MeasureForm("optional", _BINARY, "1 / the rank of the first relevant document"),
        "err": MeasureForm("optional", {"highest": (), "ties": _TIES, "empty": _EMPTY}, "expected reciprocal rank"),
        "rbp": MeasureForm("optional", {"p": (), **_BINARY}, "rank-biased precision"),
        "precision": MeasureForm(
            "required", {**_BINARY, "short": ("pad", "cut", "0")}, "the share of relevant documents among the first k"
        ),
        "recall": MeasureForm("required", _BINARY, "the share of the relevant documents that the first k hold"),
        "r-precision": MeasureForm("none", _BINARY, "precision at the number of relevant documents"),
        "wta": MeasureForm(
            "none", {"ties": _TIES, "empty": _EMPTY}, "whether the first document has the highest grade"
        ),
        "pairwise": MeasureForm("none", _TIED_PAIRS, "the share of pairs of unequal grades that are in order"),
        "kendall": MeasureForm("none", {"empty": _EMPTY}, "Kendall's tau-b of scores and grades", (-1.0, 1.0)),
        "auc": MeasureForm("none", {"relevant": (), **_TIED_PAIRS}, "the area under the ROC curve"),
        "domination": MeasureForm("none", _TIED_PAIRS, "1 minus the domination error"),
        "ips": MeasureForm(
            "optional", _CLICKED, "expected clicks a search, by inverse propensities of a click log", ANY
        ),
        "snips": MeasureForm(
            "optional", _CLICKED, "the same, of each document by the examination that it had in the log", ANY
        ),
        "dr": MeasureForm("optional", _CLICKED, "the same, by a click model that the log corrects: doubly robust", ANY),
    },
)
"""The measures of RankTune by name."""

CUSTOM: NamedTable[CustomMetric] = NamedTable(
    "metric", {}, group="ranktune.metrics", adopt="ranktune.solvers.metrics.custom:custom_metric"
)
"""The metrics that the user defined, and those that installed packages offer: see metrics.custom."""

KNOWN: Mapping[str, MeasureForm | CustomMetric] = ChainMap(cast(Any, CUSTOM), cast(Any, MEASURES))
"""Every measure by name."""

_ONLY_WITH_CUTOFF = ("short", "norm")
_EXP2 = {"gain": "exp2"}
_LETOR = {"ties": "input", "empty": "0"}
_BOOSTING = {"ties": "input", "empty": "1"}
_TREC_EVAL = {"ties": "docid", "empty": "0"}
_CATBOOST = {"ties": "pessimistic", "empty": "0"}

PRESETS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "letor": {
        "ndcg": {**_LETOR, **_EXP2, "discount": "letor", "short": "0"},
        "mean-ndcg": {**_LETOR, **_EXP2, "discount": "letor"},
        "map": _LETOR,
        "precision": _LETOR,
    },
    "lightgbm": {"ndcg": {**_BOOSTING, **_EXP2}, "map": _BOOSTING},
    "xgboost": {"ndcg": {**_BOOSTING, **_EXP2}, "map": _BOOSTING, "precision": {**_LETOR, "short": "cut"}},
    "catboost": {
        "ndcg": {**_CATBOOST, "gain": "linear", "empty": "1"},
        "dcg": {**_CATBOOST, "gain": "linear"},
        "map": _CATBOOST,
        "mrr": _CATBOOST,
        "precision": {**_CATBOOST, "short": "cut"},
        "recall": {**_CATBOOST, "empty": "1"},
    },
    "sklearn": {
        "ndcg": {"gain": "linear", "empty": "0"},
        "dcg": {"gain": "linear", "empty": "0"},
        "map": {"ties": "threshold", "empty": "0"},
    },
    "trec_eval": {
        "ndcg": {**_TREC_EVAL, "gain": "linear"},
        "map": {**_TREC_EVAL, "norm": "all"},
        "mrr": _TREC_EVAL,
        "precision": _TREC_EVAL,
        "recall": _TREC_EVAL,
        "r-precision": _TREC_EVAL,
    },
    "ranklib": {
        "ndcg": {**_LETOR, **_EXP2},
        "dcg": {**_LETOR, **_EXP2},
        "map": _LETOR,
        "mrr": _LETOR,
        "precision": {**_LETOR, "short": "cut"},
    },
}
"""What each tool does by preset and measure, where it departs from the defaults. letor: the evaluation scripts of LETOR
3.0 and 4.0. catboost: its type=Base; type=Exp is gain=exp2 on top. xgboost: its ndcg@k- is empty=0 on top, its
ndcg_exp_gain=false gain=linear."""


def conventions(measure: str, at: int | None, preset: str | None) -> dict[str, str]:
    """Return the value of every option that matters to measure at the cutoff, as the preset has it, else the default.

    Raises ParameterError for a measure or preset that is not known, or a preset that does not have the measure.
    """
    if measure not in KNOWN:
        raise ParameterError(f"metric '{measure}' is unknown. {nearest(measure, KNOWN)}")
    options = {name: values[0] if values else NUMBERS[name].default for name, values in KNOWN[measure].options.items()}
    if preset is not None:
        if preset not in PRESETS:
            raise ParameterError(f"metric convention '{preset}' is unknown. {nearest(preset, PRESETS)}")
        if measure not in PRESETS[preset]:
            having = [name for name, measures in PRESETS.items() if measure in measures]
            hint = f"Conventions for it: {', '.join(having)}." if having else "It has no named convention."
            raise ParameterError(f"'{preset}' does not have the metric '{measure}'. {hint}")
        options.update(PRESETS[preset][measure])
    return {name: value for name, value in options.items() if at is not None or name not in _ONLY_WITH_CUTOFF}


def check_option(measure: str, at: int | None, name: str, value: str) -> str:
    """Return value in its one spelling; raises ParameterError where measure does not take that option or value."""
    options = KNOWN[measure].options
    if name not in options:
        raise ParameterError(f"the metric '{measure}' has no option '{name}'. {nearest(name, options)}")
    if at is None and name in _ONLY_WITH_CUTOFF:
        raise ParameterError(
            f"'{name}' matters only under a cutoff: write {measure}@10:{name}={value}, or leave it out."
        )
    if options[name]:
        if value not in options[name]:
            raise ParameterError(f"{measure} cannot have {name}={value}. {nearest(value, options[name])}")
        return value
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    rule = NUMBERS[name]
    if not rule.above < number < rule.below:
        raise ParameterError(f"{name}={value} is not {rule.meaning}.")
    return str(int(number)) if number == int(number) else repr(number)
