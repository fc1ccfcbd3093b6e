"""A frame of a warehouse becomes, by what the messages say, a model that three systems load and score alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.columns.decisions import Undecided, answered
from ranktune.solvers.export import export
from ranktune.solvers.export.absent import NAN
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.tuner.workers.executor import InProcess
from tests.support.commands import called
from tests.support.export_readers import READERS

N_QUERIES, LENGTH = 5_000, 8
UNWANTED = (
    "sku", "url", "title", "session_hash", "row", "impression", "place", "rank_shown", "clicks_after", "revenue",
    "judged_as", "batch",
)  # fmt: skip


def warehouse() -> pd.DataFrame:
    """Return documents with text, dates, categories, truth values, missing values, real-valued grades and leaks."""
    generator, n = np.random.default_rng(0), N_QUERIES * LENGTH
    number = np.arange(n)
    frame = pd.DataFrame({
        "query_id": [f"session-{k // LENGTH:05d}" for k in number],
        "bm25": generator.gamma(2.0, 2.0, n),
        "price": generator.lognormal(3.0, 1.0, n).round(2),
        "published": pd.Timestamp("2025-01-01") + pd.to_timedelta(generator.integers(0, 365 * 24, n), unit="h"),
        "brand": generator.choice(["acme", "umbrella corp", "initech", "hooli"], n, p=[0.4, 0.3, 0.2, 0.1]),
        "size": pd.Categorical(generator.choice(["S", "M", "L"], n)),
        "in_stock": generator.random(n) < 0.8,
    })  # fmt: skip
    age = (frame["published"].max() - frame["published"]).dt.days
    utility = 0.3 * frame["bm25"] - 0.01 * age + 1.5 * (frame["brand"] == "hooli") + frame["in_stock"]
    frame["relevance"] = (1.0 / (1.0 + np.exp(2.0 - utility + generator.normal(size=n)))).round(3)
    frame.loc[generator.random(n) < 0.2, "price"] = np.nan
    frame.loc[generator.random(n) < 0.1, "published"] = pd.NaT
    frame.loc[generator.random(n) < 0.1, "brand"] = None
    return frame.assign(
        sku=[f"P{k:06d}" for k in generator.permutation(n)],
        url=[f"https://shop.example/{k}" for k in number],
        title=[f"item {k} of {k % 977}" for k in number],
        session_hash=[f"{k // LENGTH * 2654435761 % 2**32:08x}x" for k in number],
        row=generator.permutation(n),
        impression=number + 10**9,
        place=number % LENGTH + 1,
        rank_shown=number[::-1] % LENGTH,
        clicks_after=10.0 * frame["relevance"] + 1e-3 * generator.normal(size=n),
        revenue=-(frame["relevance"] ** 2),
        judged_as=[f"{grade:.2f}" for grade in frame["relevance"]],
        batch=np.repeat(generator.permutation(N_QUERIES), LENGTH),
    )


@pytest.mark.thorough
def test_a_table_of_a_warehouse_becomes_models_of_three_systems(tmp_path: Path) -> None:
    frame = warehouse()
    with pytest.raises(Undecided) as info:
        ranktune.tune(frame, home=tmp_path)
    print(info.value)
    answers: Any = answered({}, info.value.decisions)
    assert answers["document"] == "sku" and {"sku", *answers["drop"]} == set(UNWANTED)

    result = ranktune.tune(
        frame,
        **answers,
        serve=["solr", "onnx", "lightgbm"],
        trials=2,
        home=tmp_path,
        executor=InProcess(),
    )
    model = result.best_model
    assert isinstance(model, TreeModel) and model.takes_missing
    new = frame.drop(columns=[*UNWANTED, "relevance"]).tail(320)
    scores = ranktune.predict(model, new)
    names = [model.feature_names[k] for k in model.used_features] if model.feature_names else []
    assert any(new[name].isna().any() for name in ("price", "published", "brand"))

    named = {name: by_name(name, new, frame["published"].max()) for name in model.feature_names or ()}
    X = np.column_stack(list(named.values()))
    print(f"{result.best.solver}, test {result.best.test}")
    for format in ("solr", "onnx", "lightgbm"):
        path = tmp_path / f"model.{format}"
        export(model, format, path)
        theirs = SCORED[format](path, names, named, X)
        print(f"{format}: {path.stat().st_size} bytes, largest difference {np.abs(theirs - scores).max():.2g}")
        np.testing.assert_allclose(theirs, scores, rtol=0.0, atol=1e-5)

    new.assign(relevance=frame["relevance"]).to_csv(tmp_path / "new.csv", index=False)
    printed = called("predict", result.model, str(tmp_path / "new.csv"))
    assert [float(word) for word in printed.stdout.split()] == scores.tolist()
    measured = called("evaluate", result.model, str(tmp_path / "new.csv"), "--json")
    assert json.loads(measured.stdout)["queries"] == 40


def by_name(name: str, rows: pd.DataFrame, latest: pd.Timestamp) -> Floats:
    """Return a feature as a search engine computes it, by what its name says."""
    column, level = name.partition("=")[::2]
    if level:
        return np.asarray(rows[column] == level, dtype=np.float64)
    column, what = name.partition(":")[::2]
    if what == "age_days":
        return np.asarray((latest - rows[column]) / pd.Timedelta(days=1), dtype=np.float64)
    return np.asarray(rows[column].isna() if what == "missing" else rows[column], dtype=np.float64)


def by_solr(path: Path, names: list[str], named: Mapping[str, Floats], X: Floats) -> Floats:
    return READERS["solr"](path.read_text(), NAN)({name: named[name] for name in names}, len(X))


def by_onnx(path: Path, names: list[str], named: Mapping[str, Floats], X: Floats) -> Floats:
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    used = np.column_stack([named[name] for name in names]).astype(np.float32)
    return np.asarray(session.run(["score"], {"features": used})[0][:, 0], dtype=np.float64)


def by_lightgbm(path: Path, names: list[str], named: Mapping[str, Floats], X: Floats) -> Floats:
    return np.asarray(lightgbm.Booster(model_file=str(path)).predict(X), dtype=np.float64)


SCORED = {"solr": by_solr, "onnx": by_onnx, "lightgbm": by_lightgbm}
