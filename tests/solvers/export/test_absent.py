"""What a document lacks, by the version of the engine: readers of the formats against the model, and the warnings."""

import json
import warnings

import numpy as np
import pytest

from ranktune.solvers.core.errors import ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.distillation import distil
from ranktune.solvers.export import FORMATS, export
from ranktune.solvers.export.absent import ERAS, NAN, RIGHT, ZERO, arrival, unlike_training
from ranktune.solvers.export.source import source_of
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import needs_of
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.registry import SOLVERS, solver_class
from tests.support.export_evaluators import by_reader, documents
from tests.support.export_samples import trees
from tests.support.missing_samples import NAMES, SUMS, TREES, model_of, some_lacking

CASES = [(format, ".".join(map(str, era.since))) for format, eras in ERAS.items() for era in eras]
DOCUMENTS = 5_000


def absent_documents(seed: int) -> Queries:
    """Documents of which any feature is absent at random."""
    generator = np.random.default_rng(seed)
    X = np.resize(np.nan_to_num(some_lacking(0).features), (DOCUMENTS, len(NAMES))).astype(np.float32)
    X[generator.random(X.shape) < 0.3] = np.nan
    return Queries.from_arrays(X, np.zeros(DOCUMENTS), qid=np.arange(DOCUMENTS) // 10, feature_names=NAMES)


def of_kind(kind: str) -> Model:
    return distil(model_of("Blend", 0), some_lacking(0)) if kind == "copy" else model_of(kind, 0)


@pytest.mark.parametrize("kind", ["LambdaMART", "SymmetricGBDT", "CatBoostRanker", "RankBoost", "RankSVM", "copy"])
@pytest.mark.parametrize(("format", "version"), CASES)
def test_scores_are_those_of_the_model_unless_a_warning_names_the_feature(format: str, version: str, kind: str) -> None:
    """What a warning names is given a value; then 5,000 documents score as by the model, to single precision."""
    model, queries = of_kind(kind), absent_documents(0)
    if not FORMATS[format].holds(needs_of(model)):
        pytest.skip(f"{format} does not hold it")
    source = source_of(model, format, "x", "x")
    if (format, version) == ("solr", "0") and source.knows_missing:
        with pytest.raises(ParameterError, match=r"cannot say where trees send missing values.*Use 9\.2"):
            export(model, format, engine_version=version)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        content = export(model, format, engine_version=version)
    named = unlike_training(source, arrival(source, version, None).absent)
    said = "".join(str(warning.message) for warning in caught)
    assert [name for name in NAMES if name in said] == named and bool(named) == bool(caught)
    X = np.array(queries.features)[: 200 if format == "vespa" else DOCUMENTS].astype(np.float64)
    known = [NAMES.index(name) for name in named]
    score = by_reader(format, str(content), NAMES, arrival(source, version, None).absent)

    def difference() -> float:
        expected = model.predict(X)
        return float(np.abs(score(documents(X, NAMES)) - expected).max() / np.abs(expected).max())

    assert not named or difference() > 1e-3
    X[:, known] = np.nan_to_num(X[:, known])
    assert difference() <= 1e-6


def test_every_solver_of_trees_is_among_those_whose_missing_sides_are_tested() -> None:
    """The law of `tests.solvers.test_never_missing` holds for all of them."""
    boosted = {name for name in SOLVERS if ".boosting." in solver_class(name).__module__}
    assert boosted <= TREES.keys() | SUMS.keys()


def test_what_is_said_of_absent_features_replaces_the_version() -> None:
    model = of_kind("LambdaMART")
    source = source_of(model, "elasticsearch", "x", "x")
    assert arrival(source, None, None).absent == arrival(source, "8.9", "nan").absent == NAN
    assert arrival(source, "8.9", None).absent == arrival(source, None, "zero").absent == ZERO
    with pytest.warns(RankTuneWarning, match=r"in elasticsearch a feature .* is 0.*Leave absent='zero' out"):
        export(model, "elasticsearch", absent="zero")
    opensearch = source_of(trees(), "opensearch", "x", "x")
    assert arrival(opensearch, "3.7.1", "nan").absent == RIGHT  # NaN it is, and where it goes is not up to the model
    with pytest.warns(RankTuneWarning, match=r"opensearch 3\.5 sends .* right in all splits.*Use 3\.8"):
        export(trees(), "opensearch", engine_version="3.5")


def test_a_model_asks_for_0_where_the_engine_knows_that() -> None:
    made = (export(trees(), "opensearch", engine_version=version, absent=ZERO) for version in ("3.9", "3.8"))
    asking, plain = (json.loads(json.loads(content)["model"]["model"]["definition"]) for content in made)
    assert asking == {"missing_as_zero": True, "splits": plain}


@pytest.mark.parametrize(
    ("format", "options", "said"),
    [
        ("onnx", {"engine_version": "3"}, "the format of no engine whose versions differ"),
        ("solr", {"engine_version": "nine"}, "'nine' is no version: give numbers"),
        ("solr", {"absent": "null"}, "it must be zero or nan"),
    ],
)
def test_what_is_no_version_is_refused(format: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        export(LinearModel(np.ones(1), "RankSVM"), format, **options)


def test_a_score_of_text_is_never_missing_to_vespa() -> None:
    model = LinearModel(np.ones(2), "x", feature_names=("bm25(title)", "age"), missing=np.array([0.5, 0.5]))
    with pytest.warns(RankTuneWarning, match=r"the score of a text is 0 without a match.*of bm25\(title\)\. "):
        export(model, "vespa")
