"""ranktune.explain and `ranktune explain`: why a model ranks in its order, in numbers that add up."""

import json

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.dashboards.terminal import reports as explanations
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.columns.encoding import Category, TableEncoding
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from tests.support.commands import printed, succeeded
from tests.support.export_samples import random_trees

NAMES = ("bm25", "clicks", "age", "a name that is much longer than any column of a table can be")


def table(seed: int = 0, queries: int = 12) -> pd.DataFrame:
    """The grades follow bm25, and less the clicks."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(10 * queries, len(NAMES)))
    frame = pd.DataFrame(dict(zip(NAMES, X.T, strict=True)))
    frame["grade"] = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 1.0])
    frame["qid"] = np.repeat([f"q{q}" for q in range(queries)], 10)
    frame["document"] = [f"d{row % 10}" for row in range(len(frame))]
    return frame


def blend() -> Model:
    linear = LinearModel(np.array([2.0, 0.7, 0.0, 0.0]), "RankSVM", feature_names=NAMES)
    trees = TreeModel(random_trees(0, 5, len(NAMES)), len(NAMES), "LambdaMART", feature_names=NAMES)
    return blended([linear, trees], [1.0, 0.02], "Blend", {})


def test_contributions_add_up_to_the_difference_of_two_documents() -> None:
    frame, model = table(), blend()
    scores = ranktune.predict(model, frame)
    s = scores[(frame["qid"] == "q3").to_numpy()]
    result = ranktune.explain(model, frame, query="q3", documents=["d4", "d1"])
    assert [document["id"] for document in result["documents"]] == ["d4", "d1"]
    assert [document["score"] for document in result["documents"]] == [s[4], s[1]]
    assert [document["rank"] for document in result["documents"]] == [(s > s[row]).sum() + 1 for row in (4, 1)]
    assert sum(part["contribution"] for part in result["contributions"]) == pytest.approx(s[4] - s[1], abs=1e-9)
    first, second = (frame[(frame["qid"] == "q3") & (frame["document"] == name)].iloc[0] for name in ("d4", "d1"))
    assert all(part["values"] == [first[part["feature"]], second[part["feature"]]] for part in result["contributions"])
    sizes = [abs(contribution["contribution"]) for contribution in result["contributions"]]
    assert sizes == sorted(sizes, reverse=True)


def test_by_default_the_first_two_are_compared_and_one_with_the_mean_of_its_query() -> None:
    frame, model = table(), blend()
    scores = ranktune.predict(model, frame)[:10]
    result = ranktune.explain(model, frame, query="q0")
    assert [document["rank"] for document in result["documents"]] == [1, 2]
    alone = ranktune.explain(model, frame, query="q0", documents="d5")
    assert alone["difference"] == pytest.approx(scores[5] - scores.mean(), abs=1e-12)
    added = sum(contribution["contribution"] for contribution in alone["contributions"])
    assert added == pytest.approx(alone["difference"], abs=1e-9)
    single = ranktune.explain(model, frame.head(1), query="q0")
    assert (single["difference"], single["contributions"]) == (0.0, [])


def test_the_features_of_one_column_are_shuffled_together() -> None:
    frame = table()[["qid", "grade", "bm25"]]
    red = (np.arange(len(frame)) % 2).astype(float)
    frame["colour=red"], frame["colour=blue"] = red, 1.0 - red
    encoding = TableEncoding(columns={"colour": Category(("red", "blue"))})
    names = ("bm25", "colour=red", "colour=blue")
    model = LinearModel(np.array([1.0, 0.5, -0.5]), "RankSVM", feature_names=names, encoding=encoding)
    queries = ranktune.Queries.from_arrays(frame[list(names)], frame["grade"], qid=frame["qid"], feature_names=names)
    assert {feature["feature"] for feature in ranktune.explain(model, queries)["features"]} == {"bm25", "colour"}


def test_what_is_missing_is_said() -> None:
    frame = table().head(20)
    frame.loc[0, "bm25"] = np.nan
    with pytest.raises(DataError, match="'bm25' is missing"):
        ranktune.explain(blend(), frame, query="q0")
    weights, adds = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.5, 0.0, 0.0, 0.0])
    model = LinearModel(weights, "RankSVM", feature_names=NAMES, missing=adds)
    result = ranktune.explain(model, frame, query="q0", documents=["d0", "d1"])
    values = {contribution["feature"]: contribution["values"] for contribution in result["contributions"]}
    assert values["bm25"][0] is None
    assert sum(row["contribution"] for row in result["contributions"]) == pytest.approx(result["difference"], abs=1e-9)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"query": "q1", "documents": ["d1", "d"]}, "no document 'd'. Did you mean"),
        ({"query": "q1", "documents": ["d1", "d2", "d3"]}, "3 entries"),
        ({"documents": ["d1", "d2"]}, "none is given"),
        ({"query": "q1", "effect_of": "age"}, "ask for one"),
        ({"effect_of": "ages"}, "Did you mean 'age'"),
        ({"repeats": 0}, "repeats=0"),
        ({"max_queries": 0}, "max_queries=0"),
    ],
)
def test_what_cannot_be_explained_is_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises((DataError, ParameterError), match=said):
        ranktune.explain(blend(), table(), **asked)  # type: ignore[arg-type]


def test_a_feature_of_a_model_without_names_has_a_number() -> None:
    model = LinearModel(np.ones(4), "RankSVM")
    queries = ranktune.Queries.from_arrays(table()[list(NAMES)], table()["grade"], qid=table()["qid"])
    with pytest.raises(ParameterError, match="numbers 1 to 4"):
        ranktune.explain(model, queries, effect_of=5)
    assert ranktune.explain(model, queries, effect_of="2")["feature"] == "feature 2"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("explaining")
    table().to_csv(folder / "data.csv", index=False)
    blend().save(folder / "model.json")
    return str(folder / "model.json"), str(folder / "data.csv")


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), {}),
        (("--query", "q2"), {"query": "q2"}),
        (("--query", "q2", "--documents", "d3,d4"), {"query": "q2", "documents": ["d3", "d4"]}),
        (("--effect-of", "clicks"), {"effect_of": "clicks"}),
        (
            ("--metric", "map", "--max-queries", "5"),
            {"metric": "map", "max_queries": 5},
        ),
    ],
)
def test_the_command_prints_what_python_returns(
    files: tuple[str, str], words: tuple[str, ...], asked: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanations, "MOST_FEATURES", 3)
    result = ranktune.explain(*files, **asked)  # type: ignore[arg-type]
    assert json.loads(succeeded("explain", *files, *words, "--json")) == {"model": files[0], "data": files[1], **result}
    text = printed(explanations.explanation(result), 80)
    assert max(map(len, text.splitlines())) <= 80
    shown = succeeded("explain", *files, *words)
    assert "bm25" in shown or "clicks" in shown


def test_a_table_of_long_names_and_many_features_fits() -> None:
    names = tuple(f"{'very ' * 30}long name {j}" for j in range(30))
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 30)), columns=names)
    frame["qid"], frame["grade"] = np.repeat([1, 2], 10), np.tile([0, 1], 10)
    frame["document"] = [f"{'http://'}{'x' * 90}/{row}" for row in range(20)]
    model = LinearModel(np.arange(30.0), "RankSVM", feature_names=names)
    for explained in (ranktune.explain(model, frame), ranktune.explain(model, frame, query=1)):
        assert max(map(len, printed(explanations.explanation(explained), 80).splitlines())) <= 80
