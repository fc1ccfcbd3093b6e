"""Solvers and metrics of the user: how they are registered, what a study declares of them, and how they become known.

{"solvers": {NAME: {"make", "space", "save", "load"}}, "metrics": {NAME: {"function", "cutoff"}}}

Functions and classes stand there by their import path, module:Name. A declaration is read without importing them, so
that pages show the study anywhere; they are imported where trials of it are run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktune.solvers.clicks.reading.roles import ROLES, check_roles
from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.solvers.core.registrations import Registration, declared_space, described, find, restore
from ranktune.solvers.core.space import Parameter
from ranktune.solvers.metrics.custom import CustomMetric, described_metric, restore_metric
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.metrics.presets import CUSTOM, is_of_clicks
from ranktune.solvers.registry import NAMES, add_solver
from ranktune.tuner.samplers.foreign_spaces import parameters_of
from ranktune.tuner.study.settings import Settings

if TYPE_CHECKING:
    from skopt.space import Dimension


def declared_solvers(custom: JsonView) -> JsonView:
    """Return the descriptions of solvers by name."""
    solvers: JsonView = custom.get("solvers", {})
    return solvers


def spelling(metric: str, custom: JsonView) -> str:
    """Return the standard name of a metric; a metric that the study has declared has it already."""
    return metric if _name_of(metric) in custom.get("metrics", {}) else str(parse_metric(metric))


def metrics_of(settings: Settings, custom: JsonView) -> tuple[str, ...]:
    """Return the standard names of the metrics of a study: that it maximises, others, and one so that both kinds occur.

    With a click log both clicks and grades are measured. Raises ParameterError for a metric or an option that needs a
    click log, where there is none.
    """
    names = tuple(dict.fromkeys(spelling(name, custom) for name in (settings.metric, *settings.also)))
    check_roles(settings.click_columns, ROLES)
    of_clicks = [name for name in names if is_of_clicks(name)]
    if settings.clicks:
        return names if 0 < len(of_clicks) < len(names) else (*names, "ndcg@10" if of_clicks else "dr")
    if of_clicks:
        raise ParameterError(
            f"metric '{of_clicks[0]}' measures clicks, and there is no click log. Give it (clicks=), or take a metric "
            "of grades, such as ndcg@10."
        )
    if settings.click_columns or settings.propensities is not None:
        raise ParameterError(
            "click_columns and propensities are about a click log, and there is none. Give it (clicks=), or leave them "
            "out."
        )
    return names


def described_custom(solvers: Sequence[str], metrics: Sequence[str], custom: JsonView) -> Json:
    """Return custom with descriptions of all solvers and metrics that are not RankTune's; {} if all are."""
    described_solvers, described_metrics = dict(declared_solvers(custom)), dict(custom.get("metrics", {}))
    for name in solvers:
        if name not in NAMES and name not in described_solvers and (registration := find(name)) is not None:
            described_solvers[name] = described(registration)
    for name in map(_name_of, metrics):
        if name in CUSTOM and name not in described_metrics:
            described_metrics[name] = described_metric(CUSTOM[name])
    result = {"solvers": described_solvers, "metrics": described_metrics}
    return {kind: descriptions for kind, descriptions in result.items() if descriptions}


def restore_custom(name: str, custom: JsonView) -> None:
    """Make the solvers and metrics known that the study called name declares.

    Raises StudyError that says what is missing.
    """
    try:
        for custom_name, description in declared_solvers(custom).items():
            restore(custom_name, description)
        for custom_name, description in custom.get("metrics", {}).items():
            restore_metric(custom_name, description)
    except ParameterError as error:
        raise StudyError(f"study '{name}' cannot continue here: {error}") from None


def _name_of(metric: str) -> str:
    return str(metric).partition(":")[0].partition("@")[0]


def named_first(name: str, value: object) -> str:
    """Return what to give in place of a function, an estimator or a column, which a study knows by name."""
    if name in ("metric", "also") and callable(value):
        called = str(getattr(value, "__name__", "mine")).strip("<>")
        return f" Give it a name: ranktune.register_metric('{called}', {called}), and then {name}='{called}'."
    if name in ("qid", "grade", "document"):
        return f" Give the name of a column: {name}='NAME'; or give arrays as one argument, as in tune((X, y, qid))."
    if name != "solvers":
        return ""
    kinds = [each if isinstance(each, type) else type(each) for each in (value if isinstance(value, list) else [value])]
    ours = [kind.__name__ for kind in kinds if kind.__name__ in NAMES]
    if ours:
        return f" Give its name: solvers={ours}; a fixed parameter goes into space={{'{ours[0]}.NAME': value}}."
    return " Give it a name: ranktune.register_solver('Mine', estimator, space), and then solvers=['Mine']."


def register_solver(
    name: str,
    make: Any,
    space: Sequence[Parameter] | Sequence[Dimension] | JsonView | None = None,
    *,
    save: Callable[[Any, Path], object] | str | None = None,
    load: Callable[[Path], Any] | None = None,
    trusted: Sequence[str] = (),
) -> None:
    """Let studies tune a ranker of your own under a name, beside the solvers that RankTune has.

    The ranker follows scikit-learn's conventions: fit(X, y) and predict(X), where X is an array of shape (n_documents,
    n_features), or a scipy.sparse.csr_array, y are the grades, and a higher prediction ranks first. A fit that takes
    qid, group or group_id gets the query of each row (group: the number of rows of each query). Where a step chooses
    columns by name, as a ColumnTransformer does, or the ranker has the attribute takes_frame = True, X is a
    pandas.DataFrame of the columns of the table: categories as such, dates as ages in days, missing values as NaN.

    Parameters
    ----------
    name : str
        What studies call it: solvers=[name].
    make : type, callable or estimator
        A class or function that is called with values of the parameters and returns a ranker, or a ranker with
        get_params and set_params, such as a scikit-learn Pipeline, which is copied. A subclass of
        ranktune.solvers.base.ranker.BaseRanker is taken as it is.
    space : sequence of Float, Int and Choice, or mapping of str to distribution, optional
        What is searched, as declared by classes of ranktune.solvers, by Optuna's distributions, or by dimensions of
        scikit-optimize (Real, Integer, Categorical), which may also be a sequence if they have names. By default the
        attribute space of make. The defaults of the parameters, or else the middle of the ranges, are tried first.
    save : callable or "skops", optional
        save(ranker, path) writes a fitted ranker to a file. By default its method save(path). "skops" is a format for
        estimators of scikit-learn (pip install skops), which may hold no functions. Not needed for linear models and
        trees of scikit-learn, LightGBM and XGBoost, which become models of RankTune, with all its export formats.
    load : callable, optional
        load(path) returns the ranker of such a file. By default the method load of the class.
    trusted : sequence of str, optional
        Full names of classes, module.Class, that files of save="skops" may hold besides those of the ranker and of
        its parameters, and those that scikit-learn itself adds when it fits them. Name only classes that do no harm
        whatever their attributes are: whoever writes the file chooses these.

    Raises
    ------
    ParameterError
        If the name is taken, the ranker cannot be made with the defaults, or its models could not be saved.

    Notes
    -----
    Worker processes know the solver too: a class of a module by its name, one of a script or a notebook by value. A
    study keeps the import path of make, save and load, so that resume finds them; where there is none, register the
    solver again before you call resume. RankTune never pickles a model into a file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import ranktune
    >>> from ranktune.solvers import Float
    >>> from sklearn.linear_model import Ridge
    >>> ranktune.register_solver("MyRidge", Ridge, [Float("alpha", 1e-3, 1e3, log=True)])
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y, qid = (X[:, 0] + X[:, 1] > 0).astype(int), np.repeat(np.arange(20), 10)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     result = ranktune.tune((X, y, qid), solvers=["MyRidge", "RidgeRanker"], trials=6, jobs=1, home=home)
    >>> sorted(row.solver for row in result.leaderboard if not row.is_blend)
    ['MyRidge', 'RidgeRanker']
    """
    parameters = declared_space(name, make) if space is None else parameters_of(space)
    if isinstance(save, str) and save != "skops":
        raise ParameterError(f"save={save!r} is unknown: give a function(ranker, path), or 'skops'.")
    if isinstance(trusted, str) or (trusted and save != "skops"):
        raise ParameterError(
            f"trusted={trusted!r} with save={save!r}: it is a sequence of names of classes, and for save='skops' alone."
        )
    add_solver(Registration(name, make, parameters, save, load, tuple(trusted)))


def register_metric(name: str, function: Callable[..., float], *, cutoff: str = "none") -> None:
    """Let studies maximise a metric of your own, or report it: metric=name.

    Parameters
    ----------
    name : str
        What studies call it; letters, digits and single hyphens or underscores.
    function : callable
        function(grades) returns the metric of one query, higher is better, or NaN to skip the query. grades is an array
        of shape (n_documents,), those of the query in ranking order, the document of the highest score first.
    cutoff : {"none", "optional", "required"}, default="none"
        Whether the metric takes a cutoff, as in "name@5". Then it is called as function(grades, k); k is None without.

    Raises
    ------
    ParameterError
        If the name cannot be, or is that of another metric.

    Notes
    -----
    Documents of equal scores are in the order of rising grades, so that ties never help: "name:ties=pessimistic".
    Other orders are "name:ties=input", "reverse" and "optimistic", as those of the other metrics.

    Worker processes and resume find the function as they find a solver: see register_solver.

    Examples
    --------
    >>> import numpy as np
    >>> import ranktune
    >>> def success(grades, k):
    ...     return float((grades[:k] > 0).any())
    >>> ranktune.register_metric("success", success, cutoff="optional")
    >>> queries = ranktune.Queries.from_arrays(np.zeros((4, 1)), [0, 1, 0, 0], qid=[1, 1, 2, 2])
    >>> ranktune.parse_metric("success@1").per_query(np.array([1.0, 2.0, 3.0, 4.0]), queries).tolist()
    [1.0, 0.0]
    """
    metric = CustomMetric(name, function, cutoff)
    CUSTOM[metric.name] = metric
