"""Features that know what came after the ranking: by their names and by how well they rank beside the others."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.columns.decisions import Undecided
from ranktune.solvers.data.columns.usual import tells_after
from ranktune.solvers.data.sources.catalogue import read
from ranktune.solvers.data.sources.inspection import LEAK, suspects
from ranktune.tuner.workers.executor import InProcess

N_QUERIES, LENGTH = 120, 10
N = N_QUERIES * LENGTH


def table(seed: int = 0) -> tuple[pl.DataFrame, np.ndarray, np.random.Generator]:
    """Return queries with two honest features of moderate power and noise, their grades, and a generator."""
    generator = np.random.default_rng(seed)
    bm25, price, noise = generator.normal(size=(3, N))
    grade = np.digitize(bm25 - 0.7 * price + generator.normal(size=N), [0.7, 1.6])
    columns = {"qid": np.repeat(np.arange(N_QUERIES), LENGTH), "grade": grade, "bm25": bm25, "price": price}
    return pl.DataFrame({**columns, "noise": noise}), grade, generator


def asked(frame: pl.DataFrame, values: np.ndarray, name: str) -> bool | None:
    """Return whether a feature must be decided; None where it is not mentioned."""
    found = {suspect.name: suspect for suspect in suspects(read(frame.with_columns(pl.Series(name, values))))}
    assert set(found) <= {name}, "no honest feature is mentioned"
    assert all(type(suspect.is_asked) is bool for suspect in found.values()), "JSON has it"
    return found[name].is_asked if name in found else None


AFTER = (
    "clicks", "num_orders", "AddToCart", "purchases-total", "ctr", "gmv_eur", "dwell_time", "is_booked", "Klicks",
    "Käufe", "bestellungen", "achats", "réservations", "ventas", "carrinho", "aankopen", "prenotazioni", "zamówienia",
    "покупки",
)  # fmt: skip
BEFORE = (
    "past_ctr", "clicks_last_30_days", "orders_7d", "prior_purchases", "avg_revenue", "price", "on_sale", "ordinal",
    "conversational", "booklet", "letzte_Bestellungen", "ventes_derniere_semaine", "cartoon", "title_match",
)  # fmt: skip


@pytest.mark.parametrize("name", AFTER)
def test_names_of_what_comes_after_a_ranking_are_evidence(name: str) -> None:
    frame, grade, generator = table()
    clicks = generator.poisson(0.3 + 2.0 * grade)
    assert tells_after(name) and asked(frame, clicks, name)
    assert asked(frame, -np.sqrt(clicks), name), "it falls with the grade, in other numbers"
    assert asked(frame, generator.random(N) < 0.25 * (grade > 0), name), "it is 1 for a quarter of the good, else 0"
    assert not asked(frame, generator.normal(size=N), name) and not asked(
        frame, grade + 3.0 * generator.normal(size=N), name
    )


@pytest.mark.parametrize("name", BEFORE)
def test_other_names_are_none(name: str) -> None:
    frame, grade, generator = table()
    frame = frame.drop(name) if name in frame.columns else frame
    assert not tells_after(name)
    assert asked(frame, generator.poisson(5.0 + 2.0 * grade), name) is None


@pytest.mark.parametrize("name", ["x7", "score", "past_ctr"])
@pytest.mark.parametrize("seed", range(3))
def test_without_such_a_name_a_feature_must_rank_far_better_than_the_others(name: str, seed: int) -> None:
    frame, grade, generator = table(seed)
    noise = generator.normal(size=N)
    assert asked(frame, grade + 0.05 * noise, name) is True
    assert asked(frame, grade + 0.4 * noise, name) is False, "it is mentioned"
    assert asked(frame, grade + noise, name) is None
    alike = {f"f{k}": grade + 0.35 * generator.normal(size=N) for k in range(4)}
    assert suspects(read(frame.select("qid", "grade").with_columns(**alike))) == [], "all are as good"


@pytest.mark.parametrize("seed", range(5))
def test_honest_features_are_not_suspected(seed: int) -> None:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(N, 20)) @ generator.normal(size=(20, 20))
    utility = X @ (generator.normal(size=20) * (generator.random(20) < 0.4)) + X[:, 0]
    grade = np.digitize(
        utility + 0.3 * utility.std() * generator.normal(size=N), np.quantile(utility, [0.5, 0.8, 0.95])
    )
    order = np.argsort([-abs(np.corrcoef(x, grade)[0, 1]) for x in X.T])
    names = ["past_ctr", "clicks", *BEFORE[1:], *AFTER[1:]]
    frame = pl.DataFrame({"qid": np.arange(N) // LENGTH, "grade": grade, **dict(zip(names, X.T[order], strict=False))})
    assert suspects(read(frame)) == []


def test_a_leak_is_asked_about_in_a_study_and_named_if_it_is_known(tmp_path: Path) -> None:
    frame, grade, generator = table()
    data = frame.with_columns(clicks=generator.poisson(0.3 + 4.0 * grade))

    def tune(**options: Any) -> StudyResult:
        return ranktune.tune(
            data,
            home=tmp_path,
            trials=1,
            solvers="RidgeRanker",
            executor=InProcess(),
            name=f"s{len(options)}",
            **options,
        )

    with pytest.raises(Undecided, match=r"clicks alone orders 9\d.\d% .* Is it known before the ranking\?"):
        tune()
    assert "clicks" not in (tune(drop="clicks").best_model.feature_names or ())
    with pytest.warns(RankTuneWarning, match="clicks alone orders"):
        assert "clicks" in (tune(features="*,clicks", qid="qid").best_model.feature_names or ())
    with pytest.warns(RankTuneWarning, match="clicks alone orders"):  # they have no columns to leave out
        ranktune.tune(read(data), home=tmp_path, trials=1, solvers="RidgeRanker", executor=InProcess(), name="queries")
    (leak,) = suspects(read(data))
    assert (leak.kind, leak.is_copy) == (LEAK, False)
