"""The arguments of tune, run, resume and work, declared once for Python and the command line, and those of export.

As in ranktune.command_line.app, no module is imported that loads libraries.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, ParamSpec, TypeVar

from ranktune.solvers.core.declared import DeclaredField, declared, documented
from ranktune.solvers.data.api_search import NAME as API_SEARCH
from ranktune.solvers.data.columns.decisions import Undecided
from ranktune.tuner.study.settings import BASELINE, DATA, TEST, VALI, ColumnSettings, Settings, StudySetting

if TYPE_CHECKING:
    from ranktune.tuner.search.progress import Progress
    from ranktune.tuner.study.declaration import Study
    from ranktune.tuner.workers.executor import Executor

Parameters = ParamSpec("Parameters")
Arguments = TypeVar("Arguments")
Result = TypeVar("Result")

_SOURCES = (
    "data, vali and test are each a path, a name, a Queries, a data frame, a tuple (X, y, qid), a lightgbm.Dataset "
    "or an xgboost.DMatrix."
)
FAIL_UNLESS_BETTER = StudySetting(
    "Exit with code 4 unless the 95 percent interval of the gain is above 0 with p of at most 0.05: for CI.",
    options=("--fail-unless-better",),
)
HOME = StudySetting("Folder of all studies. (default: RANKTUNE_HOME or ./ranktune-runs)", option_type=Path)


@dataclass(frozen=True, kw_only=True)
class WorkerRuntime:
    """How a process runs trials, and where it finds the study."""

    jobs: Annotated[int | None, StudySetting("Processes that run trials. (default: all cores)", minimum=1)] = None
    trial_timeout: Annotated[float | None, StudySetting("Seconds after which one trial fails.", minimum=0.001)] = None
    trial_memory: Annotated[
        int | str | None,
        StudySetting("Memory beyond which one trial fails, such as 4GB."),
    ] = None
    memory: Annotated[
        int | str | None,
        StudySetting(
            "Memory of all processes together, such as 8GB. It limits each trial, and how many run at a time.",
            option_type=str,
        ),
    ] = None
    home: Annotated[str | Path | None, HOME] = None
    storage: Annotated[
        str | None,
        StudySetting(
            "PostgreSQL database for the record, which workers on other machines join: postgresql://USER@HOST/NAME. "
            "The password is best kept in PGPASSWORD or ~/.pgpass. (default: a file in the home)",
            variable="RANKTUNE_STORAGE",
        ),
    ] = None
    progress: Annotated[
        "Progress | None", StudySetting("Display of the progress. (default: on a terminal, a bar)", python_only=True)
    ] = None
    verbose: Annotated[
        bool | None,
        StudySetting(
            "True: progress in lines on standard error, one every few seconds, as for logs. False: none. None: a bar "
            "on a terminal and in a notebook, none elsewhere.",
            python_only=True,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class StudyRuntime(WorkerRuntime):
    """How a process runs a study."""

    executor: Annotated[
        "str | Executor",
        StudySetting(
            "Where trials run: processes (here), joblib (loky), joblib:dask, joblib:ray, or joblib:BACKEND.",
            python="Or an object with the methods of ranktune.tuner.workers.executor.Executor, such as "
            "ranktune.tuner.workers.joblib_executor.JoblibWorkers.",
            option_type=str,
        ),
    ] = "processes"
    address: Annotated[
        str | None, StudySetting("Address of the cluster: tcp://HOST:8786 of Dask, HOST:6379 of Ray.")
    ] = None
    extend: Annotated[
        bool, StudySetting("Continue the study of that name with more solvers, wider ranges or more choices.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class NewStudyRuntime(StudyRuntime):
    """How a process runs a study that may be new."""

    like: Annotated[
        str | None,
        StudySetting(
            "An earlier study, of similar data: the best configuration of each of its solvers is tried first."
        ),
    ] = None
    artifacts: Annotated[
        str | Path | None,
        StudySetting(
            "Folder that all machines see, or s3://BUCKET/PREFIX, for arrays and data. (default: the study's folder)"
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class TuneArguments(NewStudyRuntime, Settings):
    """What tune takes: the settings of a study, whose data may be in memory, and how it runs."""

    data: Annotated[Any, replace(DATA, python=_SOURCES)] = field(default=API_SEARCH, kw_only=False)
    vali: Annotated[Any, VALI] = None
    test: Annotated[Any, TEST] = None
    baseline: Annotated[Any, BASELINE] = None


@dataclass(frozen=True, kw_only=True)
class RunArguments(NewStudyRuntime):
    """What run takes."""

    study: Annotated[
        "Study | str | Path",
        StudySetting("A Study, or the path of a study file."),
    ] = field(kw_only=False)


@dataclass(frozen=True, kw_only=True)
class ResumeArguments(StudyRuntime):
    """What resume takes."""

    name: Annotated[str, StudySetting("The study; `ranktune show` shows them.", positional=True)] = field(kw_only=False)
    trials: Annotated[int | None, StudySetting("New total of trials (for each fold).", minimum=1)] = None


@dataclass(frozen=True, kw_only=True)
class RetuneArguments(StudyRuntime):
    """What retune takes."""

    name: Annotated[str, StudySetting("The study; any of its versions names it.", positional=True)] = field(
        kw_only=False
    )
    data: Annotated[Any, replace(DATA, help="The new data, given like those of `tune`.", python=_SOURCES)] = field(
        kw_only=False
    )
    vali: Annotated[Any, VALI] = None
    test: Annotated[Any, replace(TEST, help="New test data. (default: a fifth of the queries)")] = None
    trials: Annotated[
        int | None,
        StudySetting(
            "Configurations to try. (default: a tenth of those of the first study, at least those that are compared "
            "with its trials and one more)",
            minimum=1,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        StudySetting(
            "Seconds for the study. (default: a tenth of those of the first study, if it had any)", minimum=0.001
        ),
    ] = None
    version: Annotated[
        str | None,
        StudySetting("Name of the new version. (default: NAME@DATE, with the date of today)", options=("--as",)),
    ] = None


@dataclass(frozen=True, kw_only=True)
class WorkArguments(WorkerRuntime):
    """What work takes."""

    name: Annotated[str, StudySetting("The study, which another process runs.")] = field(kw_only=False)
    wait: Annotated[
        float, StudySetting("Seconds without the study, or a trial, after which it leaves.", minimum=0.0)
    ] = 600


def takes(
    declaration: Callable[Parameters, Arguments],
) -> Callable[[Callable[[Arguments], Result]], Callable[Parameters, Result]]:
    """Return a decorator by which a function of one declared value is called with the fields of the value."""
    assert isinstance(declaration, type)

    def decorate(function: Callable[[Arguments], Result]) -> Callable[Parameters, Result]:
        signature = inspect.Signature(
            [_parameter(field) for field in declared(declaration)],
            return_annotation=inspect.signature(function).return_annotation,
        )

        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                if str(error).startswith("missing a required"):
                    raise TypeError(f"{function.__name__}() {error}.") from None
                raise TypeError(f"{function.__name__}() {error}{_remedy(signature, kwargs)}") from None
            try:
                return function(declaration(*args, **kwargs))
            except Undecided as error:
                bound = signature.bind(*args, **kwargs).arguments
                raise error.in_call(function.__name__, bound) if "drop" in signature.parameters else error from None

        call.__signature__ = signature  # type: ignore[attr-defined]
        return documented(declaration)(call)

    return decorate


ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("label", "labels", "target", "relevance", "judgment", "rating", "y"), "grade"),
    **dict.fromkeys(("query", "query_id", "groups", "session", "session_id", "search_id"), "qid"),
    **dict.fromkeys(("doc", "docid", "doc_id", "product_id", "id"), "document"),
    **dict.fromkeys(("n_trials", "n_iter", "max_trials", "budget"), "trials"),
    **dict.fromkeys(("scoring", "eval_metric", "objective"), "metric"),
    **dict.fromkeys(("solver", "estimator", "estimators", "model", "models", "algorithm"), "solvers"),
    **dict.fromkeys(("cv", "n_folds", "n_splits"), "folds"),
    **dict.fromkeys(("random_state", "random_seed"), "seed"),
    **dict.fromkeys(("n_jobs", "threads", "processes", "workers"), "jobs"),
    **dict.fromkeys(("time_limit", "time_budget", "max_time", "seconds"), "timeout"),
    **dict.fromkeys(("train", "X", "df", "frame"), "data"),
    **dict.fromkeys(("valid", "validation", "eval_set", "dev"), "vali"),
    **dict.fromkeys(("sample_weight", "weights"), "document_weight"),
    **dict.fromkeys(("exclude", "ignore", "skip"), "drop"),
    **dict.fromkeys(("constraints", "monotone_constraints"), "monotone"),
    **dict.fromkeys(("limits", "limit", "constraint"), "within"),
    **dict.fromkeys(("output", "folder", "directory"), "home"),
}
"""Words of other tools and of the field, and what they are called here."""


def _remedy(signature: inspect.Signature, bound: Mapping[str, object]) -> str:
    """Return what to write instead of the first argument that a function does not take."""
    unknown = next((name for name in bound if name not in signature.parameters), None)
    if unknown is None:
        arrays = ": arrays are one argument, as in tune((X, y, qid))" if "data" in signature.parameters else ""
        return f". Only the first is given without its name{arrays}."
    if ELSEWHERE.get(unknown) in signature.parameters:
        return f". Here it is called '{ELSEWHERE[unknown]}'."
    from ranktune.solvers.core.errors import nearest
    from ranktune.solvers.data.readers.parsing.options import LoadOptions

    if unknown in LoadOptions.__annotations__ and "reading" in signature.parameters:
        return f". Options of readers go into reading={{'{unknown}': {bound[unknown]!r}}}."
    return f". {nearest(unknown, signature.parameters)}"


def _parameter(field: DeclaredField) -> inspect.Parameter:
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY if field.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if field.default is MISSING else field.default,
        annotation=field.type.__forward_arg__ if isinstance(field.type, ForwardRef) else field.type,
    )


@dataclass(frozen=True, kw_only=True)
class ReadArguments:
    """How missing values and the numbers of features are read: options of every command that reads data."""

    missing: Annotated[
        str, StudySetting("What to do with a missing value (NaN, NULL, empty): keep, error, or zero.")
    ] = "keep"
    zero_based: Annotated[
        bool, StudySetting("Feature numbers in text files begin at 0, not at 1.", options=("--zero-based",))
    ] = False


@dataclass(frozen=True, kw_only=True)
class DataArguments(ReadArguments, ColumnSettings):
    """How data are read that may be tables."""


@dataclass(frozen=True, kw_only=True)
class TrainingTableArguments:
    """Which table of the searches of a click log is written."""

    training: Annotated[
        Path | None,
        StudySetting("File for a table of the searches, with features as they were before each: .parquet, .csv."),
    ] = None
    documents: Annotated[
        Path | None, StudySetting("Table of documents whose columns become features of --training.")
    ] = None
    gap: Annotated[str, StudySetting("How late events may arrive: features are that much older.")] = "1h"


@dataclass(frozen=True, kw_only=True)
class ShowArguments:
    """How a command shows the result of a study."""

    fail_unless_better: Annotated[bool, FAIL_UNLESS_BETTER] = False
    verbose: Annotated[bool, StudySetting("Print every event of events.jsonl.", options=("--verbose", "-v"))] = False
    as_json: Annotated[
        bool, StudySetting("Print one JSON object, and nothing else on standard output.", options=("--json",))
    ] = False


@dataclass(frozen=True, kw_only=True)
class ExportArguments(DataArguments):
    """What is exported, to which system and how, and the data by which it is shipped, checked or made exportable."""

    model: Annotated[
        Path, StudySetting("A model.json, or trees of LightGBM, XGBoost or CatBoost.", positional=True)
    ] = field(kw_only=False)
    format: Annotated[str, StudySetting("One of the formats above.", options=("--format", "-f"))]
    model_name: Annotated[str, StudySetting("Name of the model in the other system.", options=("--name",))] = "ranktune"
    store: Annotated[str, StudySetting("Solr's feature store.")] = "_DEFAULT_"
    engine_version: Annotated[
        str | None,
        StudySetting(
            "Version of the engine, such as 8.15.3, which decides what a feature is that a document lacks. "
            "(default: the newest)",
            options=("--engine-version",),
        ),
    ] = None
    absent: Annotated[
        str | None,
        StudySetting(
            "What the engine gives a model for a feature that a document lacks, where you changed it: zero, nan."
        ),
    ] = None

    output: Annotated[
        Path | None,
        StudySetting(
            "File to write, with --replay the folder. (default: standard output)",
            options=("--output", "-o"),
        ),
    ] = None
    replay: Annotated[
        str | None, StudySetting("Ship it: documents of logged queries, whose scores must be those of the model.")
    ] = None
    to: Annotated[
        str | None,
        StudySetting(
            "With --replay: a running engine, http://HOST:8983/solr/COLLECTION of Solr, http://HOST:9200/INDEX of "
            "Elasticsearch and OpenSearch. It is given definitions and model."
        ),
    ] = None
    definitions: Annotated[
        Path | None,
        StudySetting(
            "Folder for definitions of the features, from the columns of the table (solr, elasticsearch, opensearch)."
        ),
    ] = None
    check: Annotated[
        str | None,
        StudySetting(
            "Data on which to compare the export's ranking with the model's (onnx, lightgbm, python). Of formats of "
            "engines the syntax is checked, and nothing is scored."
        ),
    ] = None
    distil: Annotated[
        str | None,
        StudySetting(
            "Data, such as the training data, by which a model that the format cannot hold becomes one of trees, "
            "or of weights, that scores alike. How much it loses is said."
        ),
    ] = None
    trees: Annotated[
        int | None,
        StudySetting(
            "With --distil: learn this number of trees from the scores, a smaller and faster model that loses "
            "more. The loss is overstated on the training data, which the model has memorised.",
            minimum=1,
        ),
    ] = None
