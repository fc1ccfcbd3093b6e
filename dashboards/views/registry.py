"""The views of a study in their order, and what the numbers of each mean.

The meanings need no other page, because reports are read without a network. Their terms are those of the glossary,
docs/explanation/glossary.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from ranktune.dashboards.figures.panels import Panel, panels_json
from ranktune.dashboards.records.study import StudyData
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.core.table import NamedTable, TableEntry

Panels: TypeAlias = Callable[[StudyData], list[Panel]]

TERMS: Mapping[str, str] = MappingProxyType({
    "metric": "How good the order of a query's documents is, from 0 to 1. Means are over queries.",
    "validation score": "The mean of the metric over validation queries. They choose: the best of many is too high.",
    "fresh folds": "The same on folds that no trial was scored on, where a time limit left time for it.",
    "test": "The mean of the metric over test queries, which choose nothing.",
    "estimate": "The metric to expect on new queries: by validation, corrected for the choice of the best of many.",
    "interval": "The mean lies within it with a probability of 95 percent: a bootstrap over queries.",
    "gain": "The mean difference over the same queries, chosen model less baseline.",
    "p value": "The probability of a difference at least as large if the two models were equal, by a paired test.",
    "Holm": "The correction of p values for the number of comparisons.",
    "baseline": "Today's ranking, to which the chosen model is compared.",
    "blend": "A weighted sum of models.",
    "trial": "One configuration, evaluated.",
    "default": "The configuration that a solver has without tuning: its first trial.",
    "incumbent": "The best trial of a search so far.",
    "early stopping": "A trial ends before its last fold because it is significantly worse than the incumbent.",
    "path": "The models for many values of one parameter, from one fit. The trial counts as its best.",
    "fold": "A part of the queries: validated on once, trained on otherwise.",
    "worker": "A process that evaluates trials.",
    "search space": "The ranges of the parameters, and when each is active.",
    "grade": "How relevant a document is for its query.",
    "score": "What a model gives a document. Documents are ranked by falling score.",
    "cost": "What the features of a model cost together, as the study was given it.",
    "us/doc": "Processor time to score one document, in microseconds.",
    "importance": "What the metric loses when a feature is shuffled among the documents of each query.",
    "Gaussian process": "A distribution over functions from configurations to scores: what the sampler expects.",
    "acquisition function": "What the sampler maximises to choose the next configuration.",
})  # fmt: skip


@dataclass(frozen=True)
class View(TableEntry[Panels]):
    """A view: the function that makes its panels, its title (help), the question that it answers, what it means.

    terms are those that it uses, with commas between.
    """

    question: str = field(kw_only=True)
    text: str = field(kw_only=True)
    terms: str = field(kw_only=True)

    @property
    def meaning(self) -> Json:
        """What the view answers, and its terms with what they mean."""
        return {"text": self.text, "terms": [[term, TERMS[term]] for term in self.terms.split(", ")]}


VIEWS: NamedTable[Panels] = NamedTable(
    "view",
    {
        "overview": View(
            "overview:panels",
            "Overview",
            question="Which model was chosen, and how good is it?",
            text="Which model was chosen, how good it will be on new queries, and whether it is better than what there "
            "was. Look at the estimate and at the gain. Models that do not differ significantly from the chosen "
            "one may be smaller or faster. Not significantly different does not mean equal: few queries show "
            "large differences only.",
            terms="metric, validation score, fresh folds, test, estimate, interval, gain, p value, Holm, baseline, "
            "blend",
        ),
        "progress": View(
            "progress:panels",
            "Progress",
            question="Did the search still improve at its end?",
            text="How the search went: each trial in its order, the best so far, and what the workers did. If the best "
            "still rises at the end, more trials may help.",
            terms="trial, incumbent, early stopping, worker",
        ),
        "solvers": View(
            "solvers:panels",
            "Solvers",
            question="Which solver is best, and by how much?",
            text="What each solver reached, in all of its trials and at its defaults, how long it took, and which "
            "solvers differ significantly. A solver whose curve still rises would profit from more queries or more "
            "trials.",
            terms="default, interval, p value, Holm, early stopping",
        ),
        "parameters": View(
            "parameters:panels",
            "Parameters",
            question="Which parameters matter, and where are good values?",
            text="Which parameters of a solver matter, and where good values lie. If the best values lie at the end of "
            "a range, a wider range may be better.",
            terms="search space, path, trial",
        ),
        "choices": View(
            "choices:panels",
            "Choices",
            question="Which losses, penalties and optimizers are good?",
            text="How the choices of a solver compare, such as losses and penalties, one by one and in pairs. An "
            "effect is that of the choice with all other parameters as they were tried.",
            terms="search space, interval, Gaussian process",
        ),
        "queries": View(
            "queries:panels",
            "Queries",
            question="On which queries is the chosen model better or worse?",
            text="For which queries the chosen model is better or worse than another, and the queries that it ranks "
            "worst, with their documents. Many ties mean that few queries decide.",
            terms="metric, grade, score, p value, interval",
        ),
        "trade-offs": View(
            "tradeoffs:panels",
            "Trade-offs",
            question="What does quality cost?",
            text="What quality costs in features, size and time. Models on the line are the best for their cost; take "
            "the cheapest that is good enough.",
            terms="cost, us/doc, trial",
        ),
        "weights": View(
            "weights:panels",
            "Weights",
            question="Which features does the model use?",
            text="Which features the models use. The importance is comparable between all kinds of models; a weight "
            "also depends on the unit of its feature.",
            terms="importance, interval, blend",
        ),
        "optimiser": View(
            "optimiser:panels",
            "Optimiser",
            question="What did the sampler try, and when?",
            text="What the sampler tried over time, what it expected and what happened. About 95 percent of the trials "
            "should lie within their intervals; otherwise its model of the search does not fit.",
            terms="Gaussian process, acquisition function, early stopping, trial",
        ),
        "trials": View(
            "progress:trials",
            "Trials",
            question="Which configurations were evaluated?",
            text="Every configuration that was evaluated. Save the table as CSV or JSON to work on it elsewhere.",
            terms="trial, validation score, early stopping, fold",
        ),
        "drift": View(
            "drift:panels",
            "Drift",
            question="Are new data like those of the study?",
            text="Whether new data are like the training data, and the model as good as promised, on each day that was "
            "watched. An alarm is a change of the features or a loss of the metric; look at which it is.",
            terms="metric, estimate, interval, p value",
        ),
    },
    package="ranktune.dashboards.views",
    error=StudyError,
)
"""Each is imported when it is first shown: some need models, one the Gaussian process."""

COMPARE = View(
    "compare:panels",
    "Compare",
    question="How do the studies differ?",
    text="What differs between studies, and whether their chosen models differ on the queries that they share.",
    terms="metric, test, p value, interval",
)
"""The page that compares studies, which is none of a study."""


def views_json() -> list[Json]:
    """Return the views' keys and titles and what they mean, in their order."""
    return [
        {"key": key, "title": view.help, "question": view.question, "meaning": view.meaning}
        for key in VIEWS
        if isinstance(view := VIEWS.entry(key), View)
    ]


def build(key: str, data: StudyData) -> list[Panel]:
    """Return the panels of a view. Raises StudyError, with the nearest key, where there is no such view."""
    return VIEWS.find(key)(data)


def view_json(key: str, data: StudyData) -> Json:
    """Return a view as JSON: its key, its title and its panels."""
    return {"key": key, "title": VIEWS.help(key), "panels": panels_json(build(key, data))}
