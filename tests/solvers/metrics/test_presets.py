"""The conventions of other tools, against the tools themselves and what the official scripts print."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score

from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.judgements import Judgements
from ranktune.solvers.metrics.metrics import Metric, parse_metric
from ranktune.solvers.metrics.presets import MEASURES, PRESETS, check_option, conventions

CASES = {
    "untied": ([3, 0, 2, 1], [0.9, 0.8, 0.7, 0.1]),
    "nothing relevant": ([0, 0, 0, 0], [0.9, 0.8, 0.7, 0.1]),
    "tied": ([0, 3, 1, 0], [0.5, 0.5, 0.5, 0.5]),
    "tied, last relevant": ([0, 0, 0, 3], [0.5, 0.5, 0.5, 0.5]),
    "one document": ([2], [0.3]),
    "fewer than k": ([1, 0], [0.1, 0.9]),
}
# ndcg@3 of the cases in this order, as tools printed it that are not compared with below
MEASURED = {
    "ndcg@3:sklearn,ties=reverse": [0.8400, 0, 0.5869, 1, 1, 0.6309],  # ignore_ties=True
    "ndcg@3:xgboost,gain=linear": [0.8400, 1, 0.6590, 0, 1, 0.6309],
    "ndcg@3:gain=linear,ties=input,empty=0": [0.8400, 0, 0.6590, 0, 1, 0.6309],  # ranx ndcg
    "ndcg@3:ties=input,empty=0": [0.9049, 0, 0.6443, 0, 1, 0.6309],  # ranx ndcg_burges
    "ndcg@3:ranklib": [0.9049, 0, 0.6443, 0, 1, 0.6309],
}


@pytest.mark.parametrize("spelling", MEASURED)
def test_what_the_tools_print_for_the_hard_cases(spelling: str) -> None:
    for (case, (grades, scores)), expected in zip(CASES.items(), MEASURED[spelling], strict=True):
        ids = [f"d{i}" for i in range(len(grades))]
        queries = Queries.from_arrays(np.zeros((len(grades), 1)), grades, document_ids=ids)
        got = parse_metric(spelling).mean(np.array(scores), queries)
        assert got == pytest.approx(expected, abs=5.001e-5), case


@pytest.fixture(scope="module", params=[4, 2], ids=["graded", "binary"])
def ranked(request: pytest.FixtureRequest) -> tuple[np.ndarray, Queries]:
    """Scores with ties, and queries of 1 to 14 documents, some of them without a relevant one."""
    generator = np.random.default_rng(request.param)
    lengths = generator.integers(1, 15, 80)
    qid = np.repeat(np.arange(80), lengths)
    grades = generator.integers(0, request.param, len(qid)).astype(float)
    grades[qid % 9 == 0] = 0.0
    scores = np.round(generator.normal(size=len(qid)), 1).astype(np.float32).astype(float)
    ids = np.array([f"d{i}" for i in generator.permutation(len(qid))])
    return scores, Queries.from_arrays(np.zeros((len(qid), 1)), grades, qid=qid, document_ids=ids)


def by_query(scores: np.ndarray, queries: Queries) -> list[tuple[np.ndarray, np.ndarray]]:
    cuts = queries.starts[1:-1]
    return list(zip(np.split(scores, cuts), np.split(queries.grades, cuts), strict=True))


@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_scikit_learn_ndcg_and_dcg(k: int | None, ranked: tuple[np.ndarray, Queries]) -> None:
    scores, queries = ranked
    cutoff = "" if k is None else f"@{k}"
    ndcg = parse_metric(f"ndcg{cutoff}:sklearn").per_query(scores, queries)
    dcg = parse_metric(f"dcg{cutoff}:sklearn").per_query(scores, queries)
    compared = 0
    for q, (s, y) in enumerate(by_query(scores, queries)):
        if len(s) > 1:  # scikit-learn refuses one document
            assert ndcg[q] == pytest.approx(ndcg_score([y], [s], k=k), abs=1e-12)
            assert dcg[q] == pytest.approx(dcg_score([y], [s], k=k), abs=1e-12)
            compared += 1
    assert compared > 60


def test_scikit_learn_average_precision(ranked: tuple[np.ndarray, Queries]) -> None:
    scores, queries = ranked
    ours = parse_metric("map:sklearn").per_query(scores, queries)
    for q, (s, y) in enumerate(by_query(scores, queries)):
        expected = average_precision_score(y >= 1, s) if (y >= 1).any() else 0.0  # where it warns and returns 0
        assert ours[q] == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_lightgbm(ranked: tuple[np.ndarray, Queries]) -> None:
    import lightgbm

    scores, queries = ranked
    at = [1, 3, 5, 10]
    params = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": at, "verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(
        np.zeros((len(scores), 1)),
        label=queries.grades,
        group=queries.lengths,
        init_score=scores,
        params={"feature_pre_filter": False, "verbose": -1},
        free_raw_data=False,
    )
    booster = lightgbm.Booster(params, data)  # without a tree: its scores are the initial ones
    theirs = {name: got for _, name, got, *_ in booster.eval_train()}
    for k in at:
        for name in ("ndcg", "map"):
            ours = parse_metric(f"{name}@{k}:lightgbm").mean(scores, queries)
            assert ours == pytest.approx(theirs[f"{name}@{k}"], abs=1e-7), (name, k)


@pytest.mark.filterwarnings("ignore")
def test_xgboost(ranked: tuple[np.ndarray, Queries]) -> None:
    import xgboost

    scores, queries = ranked
    data = xgboost.DMatrix(np.zeros((len(scores), 1)), label=queries.grades, base_margin=scores)
    data.set_group(queries.lengths)
    names = {"ndcg@3": "ndcg@3:xgboost", "ndcg@3-": "ndcg@3:xgboost,empty=0", "ndcg": "ndcg:xgboost"}
    if queries.grades.max() == 1:  # all it takes for these
        names |= {"map": "map:xgboost", "map@3": "map@3:xgboost", "pre@3": "precision@3:xgboost"}
    for theirs, ours in names.items():
        booster = xgboost.train({"objective": "rank:ndcg", "eta": 0.0, "eval_metric": theirs, "nthread": 1}, data, 1)
        assert parse_metric(ours).mean(scores, queries) == pytest.approx(
            float(booster.eval(data).split(":")[-1]), abs=1e-9
        )


@pytest.mark.filterwarnings("ignore")
def test_catboost(ranked: tuple[np.ndarray, Queries]) -> None:
    from catboost.utils import eval_metric

    scores, queries = ranked
    names = {
        "NDCG:top=3;type=Base": "ndcg@3:catboost",
        "NDCG:top=3;type=Exp": "ndcg@3:catboost,gain=exp2",
        "NDCG:type=Base": "ndcg:catboost",
        "DCG:top=3;type=Base": "dcg@3:catboost",
        "MAP:top=3;border=0.5": "map@3:catboost",
        "MRR:border=0.5": "mrr:catboost",
        "MRR:top=2;border=0.5": "mrr@2:catboost",
        "PrecisionAt:top=10;border=0.5": "precision@10:catboost",
        "RecallAt:top=3;border=0.5": "recall@3:catboost",
    }
    for theirs, ours in names.items():
        expected = eval_metric(queries.grades, scores, theirs, group_id=queries.query_of_document)[0]
        assert parse_metric(ours).mean(scores, queries) == pytest.approx(expected, abs=1e-9), theirs


# --- the official LETOR scripts ---


def judgements_of(path: Path) -> Judgements:
    heads = [line.split(None, 2)[:2] for line in path.read_text().splitlines()]
    qid = np.array([head[1] for head in heads])
    starts = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1], [True]]))
    return Judgements(np.array([float(head[0]) for head in heads]), starts)


def expected_of(path: Path) -> dict[str, str]:
    """Return what the script printed: metric by our spelling -> the digits."""
    printed: dict[str, str] = {}
    names: list[str] = []
    for row in (line.split() for line in path.read_text().splitlines()):
        if row and row[0] == "qid":
            names = row[1:]
        elif row and row[0] == "Average":
            printed |= dict(zip(names, row[1:], strict=True))
        elif row:
            name = {"precision:": "P", "NDCG:": "NDCG", "MAP:": "MAP"}[row[0]]
            printed |= {name if name == "MAP" else f"{name}@{k}": digits for k, digits in enumerate(row[1:], start=1)}
    ours = {"P": "precision", "NDCG": "ndcg", "MAP": "map", "MeanNDCG": "mean-ndcg"}
    return {f"{ours[n]}{at}{k}:letor": digits for name, digits in printed.items() for n, at, k in [name.partition("@")]}


@pytest.mark.parametrize("kind", ["linear", "ties"])
@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_the_letor_scripts_to_every_printed_decimal(
    name: str, kind: str, real_data: Path, letor_folds: dict[str, Path]
) -> None:
    judgements = judgements_of(letor_folds[name] / "Fold1" / "test.txt")
    stem = real_data / "evaluation" / f"{name.lower()}_fold1_test.{kind}"
    scores = np.loadtxt(f"{stem}.scores.txt")
    expected = expected_of(Path(f"{stem}.expected.txt"))
    assert len(expected) == (22 if name == "MQ2008" else 21)
    for spelling, digits in expected.items():
        decimals = len(digits.partition(".")[2])
        got = parse_metric(spelling).mean(scores, judgements)
        assert abs(got - float(digits)) <= 0.5001 * 10.0**-decimals, (spelling, got, digits)


# --- the tables themselves ---


def test_every_preset_is_made_of_what_its_measure_takes() -> None:
    for preset, measures in PRESETS.items():
        for measure, options in measures.items():
            at = None if MEASURES[measure].cutoff == "none" else 5
            for option, value in options.items():
                assert check_option(measure, at, option, value) == value
            assert conventions(measure, at, preset).items() >= options.items()
            assert str(Metric(measure, at, preset)) == f"{measure}{'' if at is None else '@5'}:{preset}"


def test_conventions_without_a_preset_are_the_first_values() -> None:
    assert conventions("ndcg", 10, None) == {
        "gain": "auto",
        "discount": "log2",
        "ties": "average",
        "empty": "skip",
        "short": "pad",
    }
    assert "short" not in conventions("ndcg", None, None)
    assert conventions("map", 3, None)["relevant"] == "1"
