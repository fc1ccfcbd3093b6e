"""LightGBM's text, loaded and scored by LightGBM itself."""

from pathlib import Path

import lightgbm
import numpy as np

from ranktune.solvers.export import export
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import joined, one_tree
from tests.support.export_samples import NAMES, random_rows, random_trees, trees


def test_constants_and_unused_features_have_their_place() -> None:
    booster = lightgbm.Booster(model_str=str(export(trees(), "lightgbm")))
    X = np.round(np.random.default_rng(0).normal(size=(50, 5)), 1)
    np.testing.assert_array_equal(booster.predict(X), trees().predict(X))
    assert booster.num_trees() == 3
    assert booster.feature_name() == [
        "bm25_x28_title_x29_",
        "clicks",
        "page_x20_rank",
        "say_x20__x22_so_x22_",
        "gr_xf6__xdf_e",
    ]
    assert len(NAMES) == booster.num_feature()
    constant = TreeModel(joined([one_tree([], [], [], [], [0.5])]), 3, "GBDTRanker")
    booster = lightgbm.Booster(model_str=str(export(constant, "lightgbm")))
    np.testing.assert_array_equal(booster.predict(np.zeros((2, 3))), [0.5, 0.5])


def test_lightgbm_writes_it_back_alike(tmp_path: Path) -> None:
    model, X = TreeModel(random_trees(0), 6, "LambdaMART"), random_rows(3)
    export(model, "lightgbm", tmp_path / "model.txt")
    booster = lightgbm.Booster(model_file=str(tmp_path / "model.txt"))
    booster.save_model(str(tmp_path / "again.txt"))
    np.testing.assert_array_equal(lightgbm.Booster(model_file=str(tmp_path / "again.txt")).predict(X), model.predict(X))
