"""Which end of a column or file ranks first: the lowest of positions, else the highest, unless it is turned."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.solvers.core.errors import RankTuneWarning


def shop(n_queries: int = 30, seed: int = 0) -> pd.DataFrame:
    """Documents in the order of their grades but for noise, at known positions; the cheaper are better."""
    generator, n = np.random.default_rng(seed), 8
    utility = generator.normal(size=(n_queries, n))
    places = np.argsort(np.argsort(-utility - 0.3 * generator.normal(size=utility.shape), axis=1), axis=1)
    table = {
        "qid": np.repeat(np.arange(n_queries), n),
        "docid": [f"d{k}" for k in range(utility.size)],
        "grade": np.digitize(utility.ravel(), [0.0, 1.0]),
        "slot": places.ravel() + 1,
        "odd": 2 * places.ravel() + 1,
        "rank": 3 * places.ravel(),
        "price": np.exp(-utility.ravel() - 0.6 * generator.normal(size=utility.size)),
        "bm25": utility.ravel() + generator.normal(size=utility.size),
    }
    return pd.DataFrame(table)


DATA = shop()
OPTIONS: dict[str, Any] = {"qid": "qid", "grade": "grade", "document": "docid"}


def ndcg(given: object, **options: Any) -> float:
    found = ranktune.evaluate(given, DATA, **OPTIONS | options)
    return float(found["metrics"]["ndcg@10"]["mean"])


@pytest.mark.parametrize(
    ("column", "sign", "options", "said"),
    [
        ("odd", -1.0, {"position": "odd"}, None),  # by its role
        ("rank", -1.0, {}, "column:rank ranks the lowest first, .* column:-rank turns it round"),  # by its name
        ("slot", -1.0, {}, "column:slot ranks the lowest first, .* column:-slot turns it round"),  # by inspection
        ("-slot", 1.0, {}, "column:-slot ranks the highest first, .* column:slot turns it round"),
        ("bm25", 1.0, {}, None),
        ("-price", -1.0, {}, None),
        ("-odd", 1.0, {"position": "odd"}, "worse than a random order"),
        ("price", 1.0, {}, "column:price ranks worse than a random order.*column:-NAME turns"),
    ],
)
def test_a_column_ranks_from_the_end_that_is_said(
    column: str, sign: float, options: dict[str, str], said: str | None
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ndcg(f"column:{column}", **options)
        texts = " ".join(str(warning.message) for warning in caught)
        assert found == pytest.approx(ndcg(sign * DATA[column.removeprefix("-")].to_numpy(), **options), abs=1e-12)
    assert re.search(said, texts) if said else not texts


def test_a_column_whose_name_begins_with_a_hyphen_is_itself() -> None:
    data = DATA.rename(columns={"bm25": "-price"})
    found = ranktune.evaluate("column:-price", data, **OPTIONS)["metrics"]["ndcg@10"]["mean"]
    assert found == pytest.approx(ndcg("column:bm25"))
    with pytest.warns(RankTuneWarning, match="column:--price ranks worse than a random order"):
        turned = ranktune.compare("column:--price", data["-price"].to_numpy(), data, **OPTIONS)
    assert turned.difference < 0.0


def test_numbered_features_are_turned_too(tmp_path: Path) -> None:
    rows = zip(DATA["grade"], DATA["qid"], DATA["price"], DATA["slot"], strict=True)
    (tmp_path / "d.txt").write_text("\n".join(f"{y} qid:{q} 1:{price!r} 2:{slot}" for y, q, price, slot in rows))
    data = str(tmp_path / "d.txt")
    turned = ranktune.evaluate("column:-1", data)["metrics"]["ndcg@10"]["mean"]
    assert turned == pytest.approx(ndcg("column:-price"), abs=1e-6)
    with pytest.warns(RankTuneWarning, match="column:2 ranks the lowest first"):
        found = ranktune.evaluate("column:2", data)["metrics"]["ndcg@10"]["mean"]
    assert found == pytest.approx(ndcg(-DATA["slot"].to_numpy()))


@pytest.mark.parametrize("kind", ["rank", "pos", "score"])
def test_files_of_ranks_and_of_scores(kind: str, tmp_path: Path) -> None:
    table = DATA[["qid", "docid"]].assign(**{kind: -DATA["slot"] if kind == "score" else DATA["slot"]})
    table.to_csv(tmp_path / "given.csv", index=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ndcg(str(tmp_path / "given.csv"))
    assert found == pytest.approx(ndcg(-DATA["slot"].to_numpy()))
    assert [("lowest first" in str(each.message)) for each in caught] == [True] * (kind != "score")


@pytest.mark.parametrize(("score", "said"), [("slot", True), ("bm25", False)])
def test_a_run_whose_scores_rise_with_its_ranks_is_said_to_be_upside_down(
    score: str, said: bool, tmp_path: Path
) -> None:
    ordered = DATA.sort_values(["qid", score], ascending=[True, score == "slot"])
    rows = enumerate(ordered[["qid", "docid", score]].itertuples(index=False))
    (tmp_path / "a.run").write_text("\n".join(f"{q} Q0 {d} {k % 8 + 1} {s!r} tag" for k, (q, d, s) in rows))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ndcg(str(tmp_path / "a.run"))
    assert any("rise with its ranks" in str(each.message) for each in caught) == said


@pytest.mark.filterwarnings("ignore:RidgeRanker learns without positions")
@pytest.mark.parametrize(("position", "column"), [("odd", "column:odd"), (None, "column:-price")])
def test_a_baseline_is_compared_in_its_direction(position: str | None, column: str, tmp_path: Path) -> None:
    columns = {**OPTIONS, "solvers": "RidgeRanker", "trials": 2, "sampler": "random", "folds": 3, "drop": "slot,rank"}
    columns |= {"position": position} if position else {"drop": "slot,rank,odd"}
    test = shop(20, 1)
    result = ranktune.tune(DATA, test=test, baseline=column, home=tmp_path, **columns)
    assert result.gain is not None
    wanted = ranktune.evaluate(-test[column[7:].removeprefix("-")].to_numpy(), test, **OPTIONS)
    assert result.gain.comparison.mean_b == pytest.approx(wanted["metrics"]["ndcg@10"]["mean"])
