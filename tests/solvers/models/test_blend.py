"""Blends score as the sum of their members, and are as small as they can be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.base import Model, load_model
from ranktune.solvers.models.blend import BlendModel, blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import stumps

X = np.random.default_rng(0).normal(size=(30, 6))
QUERIES = Queries.from_arrays(X, np.zeros(30), qid=np.repeat(np.arange(5), 6))


def linear(seed: int, **more: Any) -> LinearModel:
    weights = np.random.default_rng(seed).normal(size=6) * [1, 1, 1, 0, 0, 0]
    return LinearModel(weights, solver="RankSVM", feature_names=tuple("abcdef"), metric="map", **more)


def trees(seed: int) -> TreeModel:
    generator = np.random.default_rng(seed)
    grown = stumps([3, 4, 3], generator.normal(size=3), generator.normal(size=3))
    return TreeModel(grown, 6, solver="LambdaMART", feature_names=tuple("abcdef"))


def mixed() -> Model:
    members = [linear(1), trees(2), linear(3, list_scaling=True), trees(4), linear(5)]
    return blended(members, [0.5, 2.0, -1.0, 0.25, 3.0], "Blend", {"RankSVM": 0.5})


def test_a_blend_scores_as_the_sum_of_its_members() -> None:
    members = [linear(1), trees(2), linear(3, list_scaling=True), trees(4), linear(5)]
    factors = [0.5, 2.0, -1.0, 0.25, 3.0]
    expected = sum(factor * member.predict(QUERIES) for member, factor in zip(members, factors, strict=True))
    np.testing.assert_allclose(mixed().predict(QUERIES), expected, rtol=1e-12)


def test_members_of_one_kind_make_one_model_of_that_kind() -> None:
    sum_of_linear = blended([linear(1), linear(2)], [2.0, 3.0], "LinearBlend", {})
    assert isinstance(sum_of_linear, LinearModel)
    np.testing.assert_allclose(sum_of_linear.weights, 2 * linear(1).weights + 3 * linear(2).weights)
    assert isinstance(blended([trees(1), trees(2)], [1.0, 1.0], "Blend", {}), TreeModel)


def test_a_blend_of_blends_is_flat() -> None:
    nested = blended([mixed(), mixed()], [1.0, 1.0], "Blend", {})
    assert isinstance(nested, BlendModel)
    assert len(nested.parts) == 3
    np.testing.assert_allclose(nested.predict(QUERIES), 2 * mixed().predict(QUERIES), rtol=1e-12)


def test_it_knows_its_size_and_where_it_comes_from() -> None:
    model = mixed()
    assert model.nonzeros == 5  # a, b, c and the columns 3 and 4
    assert model.bytes == 12 * 3 * 2 + 20 * 6 + 8 * 12
    assert (model.metric, model.feature_names, model.solver) == ("map", tuple("abcdef"), "Blend")


def test_what_is_read_scores_the_same_bits(tmp_path: Path) -> None:
    mixed().save(tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    assert isinstance(read, BlendModel)
    np.testing.assert_array_equal(read.predict(QUERIES), mixed().predict(QUERIES))
    assert read.parameters == {"RankSVM": 0.5}


@pytest.mark.parametrize("parts", [[], ["linear"], ["linear", "linear"], ["linear", "magic"], ["linear", ["trees"]], 7])
def test_a_file_with_other_parts_is_refused(tmp_path: Path, parts: Any) -> None:
    from ranktune.solvers.models.files import write_manifest

    mixed().save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    del content["sha256"], content["format"], content["version"]
    write_manifest(tmp_path / "model.json", content | {"parts": parts}, {}, {})
    with pytest.raises(ModelFormatError, match=r"parts|part of kind"):
        load_model(tmp_path / "model.json")


def test_members_must_fit_together() -> None:
    other = LinearModel(np.ones(5), solver="RankSVM")
    with pytest.raises(DataError, match="different numbers of features"):
        blended([linear(1), other], [1.0, 1.0], "Blend", {})
    with pytest.raises(DataError, match="at least one"):
        blended([], [], "Blend", {})
