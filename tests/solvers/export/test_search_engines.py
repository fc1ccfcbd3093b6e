"""What Solr and the plugins of Elasticsearch and OpenSearch hold in single precision, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.export import export
from ranktune.solvers.export.search_engines import SLACK, without_slack
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from tests.engines.cells import CELLS, GOLDEN, MADE, exported
from tests.support.export_samples import linear


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
@example(-0.49999997)
@example(1.0000000180025095e-35)
def test_what_solr_adds_is_taken_away(threshold: float) -> None:
    t = np.array([threshold], dtype=np.float32)
    reached = without_slack(t) + SLACK
    assert reached.dtype == np.float32 and reached[0] <= t[0]
    to_power = np.exp2(np.ceil(np.log2(abs(float(t[0]))))) - abs(float(t[0])) if threshold else 1.0
    if threshold == 0.0 or (abs(threshold) >= 2.0**-17 and (threshold > 0.0 or to_power > 2e-6)):
        assert reached[0] == t[0]
    else:  # no number plus the slack need give it: the last place is lost, or what is tiny beside the slack
        assert float(t[0]) - float(reached[0]) <= max(2.0**-42, float(np.spacing(np.abs(t[0]))))


@pytest.mark.parametrize("thresholds", [(1e-7, 3.0), (-2.5e-13, 1e-9), (1e-29, 8e3, 0.0)])
def test_values_that_are_tiny_beside_what_solr_adds_go_where_they_go_in_the_model(thresholds: tuple[float]) -> None:
    """Each threshold, its neighbours and 0 are told apart, in Solr's own arithmetic."""
    for threshold in thresholds:
        stumps = [one_tree([0], [t], [-1], [-2], [0.0, 1.0]) for t in (threshold, *thresholds)]
        model = json.loads(str(export(TreeModel(joined(stumps), 1, "x"), "solr")))
        tree, (feature,) = model["params"]["trees"][0]["root"], model["features"]
        limit = np.float32(tree["threshold"]) + np.float32(1e-6)
        low, high = (
            np.float32(feature.get("norm", {"params": {"min": 0, "max": 1}})["params"][end]) for end in ("min", "max")
        )
        near = np.float32(threshold) + np.spacing(np.float32(threshold)) * np.arange(-3, 4, dtype=np.float32)
        for x in (*near, np.float32(0.0), np.float32(-1.0), np.float32(50.0)):
            assert ((x - low) / (high - low) <= limit) == (float(x) <= threshold)


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "opensearch", "onnx"])
@pytest.mark.parametrize("weight", [1e39, -1e300, 1e-39, 5e-324])
def test_what_single_precision_cannot_hold_is_refused(format: str, weight: float) -> None:
    with pytest.raises(ParameterError, match=rf"{format} computes in single precision.*json, python"):
        export(LinearModel(np.array([0.0, weight]), "RankSVM"), format)


@pytest.mark.parametrize("format", ["solr", "elasticsearch", "onnx"])
def test_trees_that_single_precision_cannot_hold_are_refused(format: str) -> None:
    for threshold in (1e39, -1e299, 3.4028235e38):
        with pytest.raises(ParameterError, match=f"splits at .* and {format} compares in single precision"):
            export(TreeModel(one_tree([0], [threshold], [-1], [-2], [0.0, 1.0]), 1, "x"), format)
    with pytest.raises(ParameterError, match=f"and {format} computes in single precision"):
        export(TreeModel(one_tree([0], [0.0], [-1], [-2], [0.0, 1e40]), 1, "x"), format)


def test_names_of_the_model_and_of_the_store() -> None:
    made = json.loads(export(linear(), "solr", name="mine", store="features"))
    assert (made["name"], made["store"]) == ("mine", "features")
    assert json.loads(export(linear(), "solr"))["store"] == "_DEFAULT_"
    assert json.loads(export(linear(), "elasticsearch", name="mine"))["model"]["name"] == "mine"


@pytest.mark.parametrize("engine", json.loads(GOLDEN.read_text()))
def test_what_engines_were_given_is_what_is_written_and_they_scored_it_alike(engine: str) -> None:
    """The scores are those of the engines themselves; RANKTUNE_WRITE_GOLDEN has tests/engines note them again."""
    known = json.loads(GOLDEN.read_text())[engine]
    assert len(known) >= len(MADE) - 1
    for name, entry in known.items():
        cell = CELLS[name]()
        assert exported(engine, cell) == entry["export"], name
        absent_is_zero = engine == "opensearch 2.19.6" or not cell.model.takes_missing
        X = np.nan_to_num(cell.X) if absent_is_zero else cell.X
        X = np.maximum(X, 0.0) if engine.startswith("elasticsearch") else X  # as its documents were
        cell._replace(X=X).check(np.array(entry["scores"]))
