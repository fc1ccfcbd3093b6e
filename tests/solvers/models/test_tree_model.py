"""Models of trees: what they predict, that they come back to the bit, and that no hostile file is loaded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined, one_tree
from tests.support.model_file_samples import rewritten

NAMES = ("bm25", "title length", "page rank")


def three() -> Trees:
    """A tree of two splits, one of none and one of one."""
    deep = one_tree([2, 0], [0.25, -1.5], [1, -1], [-3, -2], [0.5, -0.0, 1e-310])
    return joined([deep, one_tree([], [], [], [], [0.125]), one_tree([1], [1.0 / 3.0], [-1], [-2], [-4.0, 7e100])])


def large(trees: int = 300) -> Trees:
    generator = np.random.default_rng(0)
    tree = [
        one_tree(
            generator.integers(0, 3, 2), generator.normal(size=2), [1, -1], [-3, -2], generator.normal(size=3) * 1e-5
        )
        for _ in range(trees)
    ]
    return joined(tree)


@pytest.fixture
def model() -> TreeModel:
    parameters: Any = {"trees": 3, "gain": "auto"}
    return TreeModel(three(), 3, "LambdaMART", parameters=parameters, feature_names=NAMES, metric="ndcg@10")


def test_scores_come_in_the_order_of_the_rows(model: TreeModel) -> None:
    X = np.random.default_rng(0).normal(size=(9, 3))
    expected = model.trees.scores(X)
    qid = [2, 1, 2, 1, 3, 3, 1, 2, 2]
    plain = TreeModel(model.trees, 3, "LambdaMART")
    for features in (X, sparse.csr_array(X), sparse.coo_matrix(X), np.asfortranarray(X), X.tolist()):
        assert plain.predict(features, qid=qid).tobytes() == expected.tobytes()
    assert model.predict(Queries.from_arrays(X, np.zeros(9), qid=qid)).tobytes() == expected.tobytes()
    frame = pd.DataFrame(X[:, [2, 0, 1]], columns=["page rank", "bm25", "title length"])
    assert model.predict(frame).tobytes() == expected.tobytes()
    assert (model.n_features, model.nonzeros) == (3, 3)
    assert TreeModel(one_tree([], [], [], [], [1.0]), 8, "x").nonzeros == 0


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="column 2 of 2 features"):
        TreeModel(three(), 2, "LambdaMART")
    with pytest.raises(DataError, match="2 feature names for 3 features"):
        TreeModel(three(), 3, "LambdaMART", feature_names=("a", "b"))


@pytest.mark.parametrize("trees", [three(), large(), one_tree([], [], [], [], [-0.0]), large(3)])
def test_what_is_loaded_is_what_was_saved_to_the_bit(tmp_path: Path, trees: Trees) -> None:
    saved = TreeModel(
        trees,
        3,
        "GBDTRanker",
        parameters={"trees": 3, "l2": 1e-300},
        feature_names=NAMES,
        metric="map",
        fingerprint="abc",
    )
    saved.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert isinstance(loaded, TreeModel)
    for name in ("feature", "threshold", "children", "value", "starts"):
        ours, theirs = getattr(loaded.trees, name), getattr(trees, name)
        assert ours.tobytes() == theirs.tobytes() and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    for name in ("columns", "solver", "parameters", "feature_names", "metric", "fingerprint"):
        assert getattr(loaded, name) == getattr(saved, name)
    X = np.random.default_rng(1).normal(size=(50, 3))
    assert loaded.predict(X).tobytes() == saved.predict(X).tobytes()


def test_the_file_says_how_the_trees_are(tmp_path: Path, model: TreeModel) -> None:
    model.save(tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    assert (content["kind"], content["trees"], content["splits"], content["n_features"]) == ("trees", 3, 3, 3)
    assert content["arrays"]["value"] == [
        *(2, 0, 1),  # splits of each tree
        *(2, 0, 1),  # features
        *(0.25, -1.5, 1.0 / 3.0),
        *(1, -1, -5),  # left: a split, or a leaf from -1 down
        *(-3, -2, -6),
        *(0.5, -0.0, 1e-310, 0.125, -4.0, 7e100),
    ]


# --- hostile files ---

SPLITS, FEATURE, THRESHOLD, LEFT, RIGHT, LEAF = 0, 3, 6, 9, 12, 15
"""Where each array of three() begins."""


def at(place: int, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda content: content["arrays"]["value"].__setitem__(place, value)


def field(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda content: content.__setitem__(name, value)


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "own parent": (at(LEFT, 0), "child"),
    "cycle": (at(LEFT + 1, 0), "child"),
    "child of another tree": (at(RIGHT, 2), "child"),
    "leaf of another tree": (at(RIGHT, -5), "child"),
    "leaf twice": (at(RIGHT, -1), "child"),
    "split that is not there": (at(LEFT, 3), "child"),
    "leaf that is not there": (at(RIGHT + 2, -7), "child"),
    "huge child": (at(LEFT, 2**40), "whole number"),
    "half a child": (at(LEFT, 0.5), "whole number"),
    "column out of range": (at(FEATURE, 3), "column 3 of 3"),
    "negative column": (at(FEATURE, -1), "below 0"),
    "half a column": (at(FEATURE, 0.5), "whole number"),
    "column beyond 32 bits": (at(FEATURE, 2**32), "whole number"),
    "NaN leaf": (at(LEAF, float("nan")), "not JSON"),
    "infinite threshold": (at(THRESHOLD, float("inf")), "not JSON"),
    "too many splits in a tree": (at(SPLITS, 3), "starts must rise"),
    "fewer than no splits": (lambda c: c["arrays"]["value"].__setitem__(slice(0, 3), [4, -2, 1]), "starts must rise"),
    "text among numbers": (at(LEAF, "1"), "cannot be read"),
    "true among numbers": (at(LEAF, True), "cannot be read"),
    "lists among numbers": (at(LEAF, [1.0]), "cannot be read"),
    "a number missing": (lambda c: c["arrays"]["value"].pop(), "do not fit"),
    "a number too many": (lambda c: c["arrays"]["value"].append(0.0), "do not fit"),
    "no arrays": (lambda c: c.pop("arrays"), "no weights"),
    "arrays are a list": (lambda c: c.__setitem__("arrays", c["arrays"]["value"]), "no weights"),
    "no trees": (field("trees", 0), "claims 0 trees"),
    "no number of trees": (lambda c: c.pop("trees"), "trees is 'None'"),
    "true trees": (field("trees", True), "must be int"),
    "fractional trees": (field("trees", 3.0), "must be int"),
    "negative splits": (field("splits", -1), "claims 3 trees with -1"),
    "more trees": (field("trees", 4), "do not fit"),
    "more splits": (field("splits", 4), "do not fit"),
    "huge number of trees": (field("trees", 2**62), "at most"),
    "huge number of splits": (field("splits", 2**26), "claims"),
    "no features": (field("n_features", 0), "claims"),
    "huge number of features": (field("n_features", 2**40), "claims 1099511627776 features"),
    "fewer features": (field("n_features", 2), "names|column"),
    "another kind": (field("kind", "linear"), "scaling|weights"),
    "unknown kind": (field("kind", "forest"), "kind 'forest'"),
    "a code for a kind": (field("kind", "os.system"), "kind 'os.system'"),
    "parameters that hold code": (field("parameters", {"trees": ["__import__('os')"]}), "plain"),
    "names that do not fit": (field("feature_names", ["a"]), "names 1 of 3"),
    "few numbers for many trees": (
        lambda c: c.update(trees=2**24, splits=0, arrays={"index": [0], "value": [1.0]}, feature_names=None),
        "do not fit",
    ),
    "sparse beyond its length": (lambda c: c["arrays"].update(index=list(range(2, 23))), "do not fit"),
}


@pytest.mark.parametrize("change", HOSTILE)
def test_a_hostile_file_is_refused(tmp_path: Path, model: TreeModel, change: str) -> None:
    model.save(tmp_path / "m.json")
    rewritten(tmp_path / "m.json", HOSTILE[change][0])
    with pytest.raises(ModelFormatError, match=HOSTILE[change][1]) as caught:
        load_model(tmp_path / "m.json")
    assert "m.json" in str(caught.value) and len(str(caught.value)) < 500
