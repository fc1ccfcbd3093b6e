"""The settings of a study, declared once: name, type, default, help text and bounds of each.

ranktune.tune, the options of `ranktune tune`, Study and its TOML keys take their fields from Settings: a new setting is
one field here. The module loads the standard library alone, because `ranktune --help` reads it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ranktune.solvers.core.declared import FieldMeaning, declared
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.data.columns.table import with_options
from ranktune.tuner.evaluation.names import PLANS
from ranktune.tuner.samplers.presets import PRESETS

NO_TEST, NO_GAP = "none", "0"
TIMED = "<Queries with times in memory>"
"""The data of a study, where these are queries in memory that have times."""
DECLARED = "declared"
"""User attribute of a record: what was declared."""
MIXED = "mixed"
"""The acquisition where none is given."""


@dataclass(frozen=True)
class StudySetting(FieldMeaning):
    """What the declaration of a field says besides its type and default.

    minimum      the smallest value
    options      names of its option, empty for --field-name
    positional   whether it is a positional argument of the command
    python_only  whether neither study files nor the command line have it
    option_type  what the command line takes where Python takes more
    variable     environment variable that sets the option
    content      what a table holds
    """

    minimum: float | None = None
    options: tuple[str, ...] = ()
    positional: bool = False
    python_only: bool = False
    option_type: object = None
    variable: str | None = None
    content: str = ""


_TRAINING = (
    "Training data: LETOR/SVMlight text, csv, tsv, Parquet, jsonl (also feature logs of search engines), a TREC run, "
    "npz, a folder Fold1..Fold5. `ranktune data --help` says more."
)
DATA = StudySetting(_TRAINING, positional=True, option_type=str)
VALI = StudySetting("Validation data. (default: cross-validation by query)", option_type=str)
TEST = StudySetting(
    "Test data, never used to choose; none: no test. (default: a fifth of the queries)", option_type=str
)


BASELINE = StudySetting(
    "Today's ranking, to which the chosen model is compared: a model file of RankTune, LightGBM, XGBoost, CatBoost, "
    "RankLib or ONNX; scores, one a row or with qid and docid (csv, TREC run); or column:NAME, whose highest values "
    "rank first, of positions the lowest, unless it is column:-NAME. It stays a feature unless --drop names it.",
    python="Scores by row are those of test, or of data, vali and test together. Also an array, or a model in memory.",
    option_type=str,
)


@dataclass(frozen=True, kw_only=True)
@with_options(lambda entry: Annotated[str | None, StudySetting(entry.help)])
class ColumnSettings:
    """Which columns of a table are what. They apply to every table that is read: data, vali and test."""

    if TYPE_CHECKING:
        weight: str | None = None
        document_weight: str | None = None
        position: str | None = None
        time: str | None = None

    qid: Annotated[
        str | None,
        StudySetting(
            "Column of query ids. (default: qid, query, query_id, queryid, group, group_id, search_id or session_id)",
        ),
    ] = None
    grade: Annotated[
        str | None,
        StudySetting("Column of grades. (default: grade, label, relevance, rel, y, judgment or rating)"),
    ] = None
    grades: Annotated[str | None, StudySetting("Numbers of grades that are words, such as 'Bad=0,Good=1'.")] = None
    document: Annotated[
        str | None,
        StudySetting(
            "Column of document ids. (default: document, docid, doc_id, document_id, _id, id or product_id)",
        ),
    ] = None
    features: Annotated[
        Sequence[str],
        StudySetting(
            "Feature columns: names, globs such as 'bm25*', both with commas. Repeatable. (default: all others)",
        ),
    ] = ()
    drop: Annotated[Sequence[str], StudySetting("Columns that are not used, given like features. Repeatable.")] = ()
    levels: Annotated[
        int | None,
        StudySetting(
            "Most features of a category, one for each value. `ranktune data --help` says more. (default: 64)",
            minimum=1,
        ),
    ] = None
    group_by_time: Annotated[
        str | None,
        StudySetting(
            "Column of times: the latest fifth of the queries is the test, the latest fifth of the others validates.",
        ),
    ] = None
    qrels: Annotated[
        str | None,
        StudySetting(
            "File of judgments, which give the grades by query and document id: of TREC, or the csv or Parquet file "
            "of `ranktune clicks`, which gives weights of documents too.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ClickSettings:
    """The click log by which rankings are measured."""

    clicks: Annotated[
        Sequence[str],
        StudySetting(
            "Click log by which ips, snips and dr measure rankings, as `ranktune clicks` reads it. Repeatable.",
        ),
    ] = ()
    click_columns: Annotated[
        Mapping[str, str],
        StudySetting(
            "ROLE=NAME of a column of the log whose name is not recognised, such as document=sku. Repeatable.",
            python='A mapping: {"document": "sku"}.',
            options=("--click-column",),
            option_type=list[str],
            content="columns by role",
        ),
    ] = field(default_factory=dict)
    propensities: Annotated[
        str | None,
        StudySetting(
            "csv or Parquet file with the columns position and propensity: examination that is known. (default: by the "
            "log)",
        ),
    ] = None


def given_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the column settings in values that are given."""
    return {field.name: values[field.name] for field in declared(ColumnSettings) if values.get(field.name)}


def toml_fields(path: str | Path) -> dict[str, Any]:
    """Return the fields of a study file, which is named after the file where it has no name.

    Data paths in it are relative to the file.
    """
    import tomllib  # not for --help

    path = Path(path)
    try:
        values = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ParameterError(f"cannot read the study {path}: {error.strerror}. Give the path of a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f'{path} is not TOML: {error}. Text is in quotes, as in data = "train.csv".') from None
    for name in ("data", "vali", "test", "qrels", "baseline", "propensities", "clicks"):
        if values.get(name):
            values[name] = _near(path, values[name])
    return {"name": path.stem} | values


def _near(path: Path, name: object) -> object:
    """Return a name, or each of a list, as a path beside the file where there is such a file."""
    if isinstance(name, list):
        return [_near(path, each) for each in name]
    beside = path.parent / str(name)
    return str(beside) if os.path.exists(beside) else name  # not Path.exists: it raises where a name is too long


@dataclass(frozen=True, kw_only=True)
class Settings(ClickSettings, ColumnSettings):
    """What is tuned on what. A study is declared by these fields."""

    data: Annotated[str, DATA] = ""
    test: Annotated[str | None, TEST] = None
    vali: Annotated[str | None, VALI] = None
    metric: Annotated[
        str,
        StudySetting(
            "What to maximise: ndcg@10, map, mrr, p@5, err@10, rbp, auc, domination, ndcg@10:letor, P_10, ..., or "
            "module:function; with --clicks also dr, ips or snips."
        ),
    ] = "ndcg@10"
    also: Annotated[Sequence[str], StudySetting("A further metric to report. Repeatable.")] = ()
    solvers: Annotated[
        Sequence[str],
        StudySetting(
            "A solver that competes, all, standard, or module:Name of a class. Repeatable. (default: standard)",
            python="Also a name that register_solver was given.",
            options=("--solver",),
        ),
    ] = ()
    trials: Annotated[
        int | None,
        StudySetting(
            "Configurations to try, for each fold of a folder. (default: as many as are expected to pay, or by timeout "
            "or until)",
            minimum=1,
        ),
    ] = None
    timeout: Annotated[float | None, StudySetting("Seconds for the study, with reading and refits.", minimum=0.001)] = (
        None
    )
    baseline: Annotated[str | None, BASELINE] = None
    name: Annotated[str, StudySetting("Name of the study. An existing study of that name is continued.")] = ""
    preset: Annotated[
        str | None,
        StudySetting(
            "Settings under one name; those that are given take precedence. "
            + " ".join(f"{name}: {PRESETS.help(name)} ({PRESETS[name]})." for name in PRESETS),
        ),
    ] = None
    plan: Annotated[
        str,
        StudySetting(
            f"auto: {PLANS.help('folds')}. split: {PLANS.help('split')}. nested: auto, evaluated by outer folds. "
            f"progressive: {PLANS.help('progressive')}.",
            python="With auto, 300 given validation queries or more replace cross-validation.",
            choices=("auto", "split", "nested", "progressive"),
        ),
    ] = "auto"
    permutations: Annotated[int, StudySetting("Orders of all queries for a progressive plan.", minimum=1)] = 10
    folds: Annotated[
        int | None, StudySetting("Folds of cross-validation. (default: 5; above 2 GB of features one of 5)", minimum=2)
    ] = None
    group: Annotated[
        str | None,
        StudySetting(
            "Column of sessions, or of users who come for a short while: with time, the queries of a group stay "
            "together, at its latest time."
        ),
    ] = None
    gap: Annotated[
        str,
        StudySetting(
            "Time between the training queries and those that are scored, in units of time, or of dates as 90s, 30m, "
            "12h, 7d, 2w."
        ),
    ] = NO_GAP
    repeats: Annotated[int, StudySetting("Repetitions of cross-validation, each with other folds.", minimum=1)] = 1
    outer: Annotated[int, StudySetting("Outer folds of plan nested.", minimum=2)] = 5
    full: Annotated[bool, StudySetting("Evaluate each trial in full: no early stopping, no regularization path.")] = (
        False
    )
    until: Annotated[
        float | None,
        StudySetting("Stop when the expected gain in the metric is below this. Needs sampler thompson.", minimum=0.0),
    ] = None
    sampler: Annotated[
        str,
        StudySetting(
            "What suggests configurations. thompson: a Gaussian process that decides by acquisition. random, "
            "tpe, gp: Optuna's. skopt: scikit-optimize's."
        ),
    ] = "thompson"
    acquisition: Annotated[
        str | None,
        StudySetting(
            "How sampler thompson decides. thompson: maximise one function drawn from the Gaussian process, whatever a "
            "trial costs. ei: maximise the expected improvement, divided by a power of the expected cost. mixed: at "
            "random ei, or the same with the mean of 16 drawn functions. (default: mixed)",
            choices=(MIXED, "thompson", "ei"),
        ),
    ] = None
    within: Annotated[
        str,
        StudySetting(
            "Limits of the model, such as 'cost<=40, features<=29, bytes<=10k, microseconds<=0.5'. Within limits of "
            "cost and features every trial chooses its features, by training queries."
        ),
    ] = ""
    costs: Annotated[
        Mapping[str, Any],
        StudySetting(
            "What features cost: 'bm25*=1, embedding*=20', or a table, in which a table is a group that is computed "
            "together and whose cost is paid once. (default: 1 each)",
            python='{"bm25*": 1.0, "embedding": {"features": ["emb_*"], "cost": 20}}.',
            options=("--cost",),
            content="costs",
        ),
    ] = field(default_factory=dict)
    serve: Annotated[
        Sequence[str],
        StudySetting(
            "System that must load the model: solr, elasticsearch, opensearch, vespa, onnx, pmml, ranklib, lightgbm, "
            "... (`ranktune export --help`). Repeatable: all of them must.",
        ),
    ] = ()
    mlflow: Annotated[
        str | None,
        StudySetting(
            "MLflow server or database that logs the study as it runs, such as http://127.0.0.1:5000. Needs "
            "ranktune[mlflow]. A password is best kept in MLFLOW_TRACKING_PASSWORD.",
        ),
    ] = None
    monotone: Annotated[
        Mapping[str, int],
        StudySetting(
            "Features with which the score may only rise or only fall: price=-1,bm25*=1 (names, globs, or numbers from "
            "0). Missing values are exempt. Repeatable.",
            python='Also a mapping: {"price": -1}.',
            content="signs by feature",
        ),
    ] = field(default_factory=dict)
    seed: Annotated[int, StudySetting("Seed of all random numbers.", minimum=0)] = 0
    refit: Annotated[bool, StudySetting("Fit the chosen configuration again on train and vali together.")] = True
    space: Annotated[
        Mapping[str, Any],
        StudySetting(
            'Narrower search space: {"RankSVM.C": {"low": 0.1, "high": 10}}, a list of choices, or one fixed value.',
            python="Also a distribution of Optuna or a dimension of scikit-optimize.",
            content="parameters",
        ),
    ] = field(default_factory=dict)
    first: Annotated[
        Mapping[str, Any],
        StudySetting(
            'Configurations that are tried first, by solver: {"RankSVM": {"C": 2.0}}, or a list of several. Parameters '
            "that are left out have their defaults. Also an estimator of another library, whose parameters are taken: "
            '{"LambdaMART": LGBMRanker(num_leaves=15)}.',
            content="configurations",
        ),
    ] = field(default_factory=dict)
    reading: Annotated[
        Mapping[str, Any],
        StudySetting('Options of readers: {"missing": "zero", "one_based": False}.', content="options"),
    ] = field(default_factory=dict)

    @property
    def n_trials(self) -> int:
        """The most trials of each split."""
        from ranktune.tuner.policy.policy import POLICY  # `ranktune --help` does without

        return self.trials or POLICY.scoring.trials

    @property
    def ends_by_count(self) -> bool:
        """Whether it ends after a number of trials that is known, not at a time or when little gain is expected."""
        return self.trials is not None

    @property
    def ends_by_gain(self) -> bool:
        """Whether it ends when what trials gained on other data says that more would not pay."""
        return self.trials is None and self.timeout is None and self.until is None


def check_name(name: str) -> None:
    """Raise ParameterError if name cannot be the name of a study, and so of a folder."""
    if any(c in name for c in "/\\\0") or name.startswith(".") or not name.isprintable():
        raise ParameterError(
            f"{name!r}: a study's name becomes a folder: it may not begin with a dot, nor hold a slash or a "
            "character that cannot be printed."
        )
