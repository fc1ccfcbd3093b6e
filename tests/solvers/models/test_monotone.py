"""Monotone constraints of models: verified on the trees themselves, recorded, and believed by nobody unverified."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers import LinearModel, TreeModel, load_model
from ranktune.solvers.core.errors import DataError, ModelFormatError
from ranktune.solvers.models.blend import blended
from ranktune.solvers.models.tree_model import tree_violation
from ranktune.solvers.models.trees import ANY_VALUE, Trees, joined, stumps
from tests.support.tree_samples import grown

LIMITS = np.array([0.0, 1.0, 2.0, 3.0, ANY_VALUE])


def moves_against(trees: Trees, signs: np.ndarray, *, missing: bool) -> bool:
    """Return whether a score moves against a sign, by scoring a grid of all values that splits tell apart."""
    grid = [-0.5, 0.5, 1.5, 2.5, 3.5] + ([np.nan] if missing else [])
    points = np.stack(np.meshgrid(*[grid] * len(signs), indexing="ij"), axis=-1)
    scores = trees.scores(points.reshape(-1, len(signs))).reshape(points.shape[:-1])
    for feature, sign in enumerate(signs):
        along = np.moveaxis(scores, feature, 0)[:5]
        if sign and (np.diff(along, axis=0) * sign < 0.0).any():
            return True
    return False


@pytest.mark.parametrize("missing", [False, True])
def test_a_tree_violates_a_sign_exactly_where_some_document_shows_it(missing: bool) -> None:
    generator = np.random.default_rng(3)
    result = []
    for _ in range(400):
        splits = int(generator.integers(1, 6))
        tree = grown(int(generator.integers(2**31)), splits, 3, values=LIMITS if missing else LIMITS[:4], sides=missing)
        tree = replace(tree, value=generator.integers(0, 3, splits + 1).astype(float))  # so that some are monotone
        signs = generator.integers(-1, 2, 3)
        violated = tree_violation(tree, signs) is not None
        assert violated == moves_against(tree, signs, missing=missing)
        result.append(violated)
    assert 50 < sum(result) < 350


def test_the_feature_of_the_violation_is_named() -> None:
    falling = stumps([1], [0.5], [-1.0])
    with pytest.raises(DataError, match=r"falls somewhere with 'bm25', against its monotone constraint \+1"):
        TreeModel(falling, 3, "X", feature_names=("price", "bm25", "age"), monotone={"bm25": 1})
    with pytest.raises(DataError, match="rises somewhere with 'f1'"):
        LinearModel(np.array([1.0, 2.0]), "X", monotone={"f1": -1})


def test_one_differing_tree_of_many_is_enough() -> None:
    rising, falling = stumps([0], [0.5], [1.0]), stumps([0], [0.7], [-0.1])
    signs = np.array([1, 0])
    assert tree_violation(rising, signs) is None
    assert tree_violation(joined([rising, rising, falling]), signs) == 0


def test_constraints_are_saved_and_verified_when_loaded(tmp_path: Path) -> None:
    model = LinearModel(np.array([2.0, -1.0]), "X", feature_names=("bm25", "price"), monotone={"bm25": 1, "price": -1})
    model.save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["monotone"] == {"bm25": 1, "price": -1}
    assert load_model(tmp_path / "model.json").monotone == {"bm25": 1, "price": -1}


@pytest.mark.parametrize("claimed", [{"bm25": -1}, {"other": 1}, {"bm25": "up"}, [1, 1]])
def test_a_file_that_claims_what_its_model_does_not_keep_is_refused(tmp_path: Path, claimed: object) -> None:
    from ranktune.solvers.models.files import read_manifest, write_manifest

    path = tmp_path / "model.json"
    LinearModel(np.array([2.0, -1.0]), "X", feature_names=("bm25", "price")).save(path)
    write_manifest(path, {**read_manifest(path), "monotone": claimed}, {}, {})
    with pytest.raises(ModelFormatError):
        load_model(path)


def test_a_blend_keeps_the_constraints_of_all_its_members() -> None:
    linear = LinearModel(np.array([1.0, -1.0]), "A", monotone={"f1": 1, "f2": -1})
    trees = TreeModel(stumps([0], [0.5], [1.0]), 2, "B", monotone={"f1": 1})
    assert blended([linear, trees], [0.5, 0.5], "Blend", {}).monotone == {"f1": 1}
    with pytest.raises(DataError, match="f1"):
        blended([linear, trees], [0.5, 0.5], "Blend", {}).replaced(monotone={"f1": -1})
