"""The pool of a run against trec_eval, with and without -c; what a metric is called; a model's own metric."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneWarning
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.linear import LinearModel
from tests.support.commands import succeeded

THEIRS = {
    "ndcg@10:trec_eval": "ndcg_cut_10",
    "ndcg@2:trec_eval": "ndcg_cut_2",
    "ndcg:trec_eval": "ndcg",
    "map:trec_eval": "map",
    "map@3:trec_eval": "map_cut_3",
    "precision@2:trec_eval": "P_2",
    "precision@10:trec_eval": "P_10",
    "recall@1:trec_eval": "recall_1",
    "recall@5:trec_eval": "recall_5",
    "mrr:trec_eval": "recip_rank",
    "r-precision:trec_eval": "Rprec",
}
Grades = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]


def drawn(seed: int, space: str) -> tuple[Scores, Grades]:
    """A run with ties and judgments with negative grades, of which either lacks queries and documents of the other."""
    random = np.random.default_rng(seed)
    queries, documents = ([f"{kind}{space}{k}" for k in range(n)] for kind, n in (("q", 5), ("dé", 8)))
    run = {q: {d: float(random.integers(4)) for d in documents if random.random() < 0.6} for q in queries[:4]}
    qrels = {q: {d: int(random.integers(-2, 4)) for d in documents if random.random() < 0.6} for q in queries[1:]}
    first = {queries[2]: {documents[0]: 1}}  # what both have
    return {q: run[q] for q in run if run[q]} | {queries[2]: {documents[0]: 1.0}}, {
        q: qrels[q] for q in qrels if qrels[q]
    } | first


def written(folder: Path, run: Scores, qrels: Grades, form: str) -> tuple[str, str, str]:
    """Write a run and judgments; return MODEL, DATA and the file of the judgments."""
    rows = [(q, d, value) for q, scores in run.items() for d, value in scores.items()]
    judged = [(q, d, value) for q, grades in qrels.items() for d, value in grades.items()]
    name = str(folder / ("data.csv" if form == "csv" else "data.run"))
    lines = [f"{q},{d},{s}" if form == "csv" else f"{q} Q0 {d} 1 {s} tag" for q, d, s in rows]
    Path(name).write_text("\n".join(["qid,docid,bm25"] * (form == "csv") + lines) + "\n")
    (folder / "qrels.tsv").write_text("\n".join(f"{q}\t0\t{d}\t{y}" for q, d, y in judged) + "\n")
    return name if form == "run" else "column:bm25" if form == "csv" else "column:tag", name, str(folder / "qrels.tsv")


@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
@pytest.mark.parametrize("form", ["csv", "run", "column of a run"])
@pytest.mark.parametrize("seed", range(6))
def test_metrics_by_the_names_of_trec_eval_are_those_of_trec_eval(seed: int, form: str, tmp_path: Path) -> None:
    import pytrec_eval

    run, qrels = drawn(seed, " " if form == "csv" else "")
    by_query = pytrec_eval.RelevanceEvaluator(qrels, set(THEIRS.values())).evaluate(run)
    model, data, judgments = written(tmp_path, run, qrels, form)
    for complete, n in ((False, len(by_query)), (True, len(qrels))):
        result = ranktune.evaluate(model, data, "P_2", also=list(THEIRS), qrels=judgments, complete=complete)
        for ours, theirs in THEIRS.items():
            expected = sum(values[theirs] for values in by_query.values()) / n
            assert result["metrics"][ours]["mean"] == pytest.approx(expected, abs=1e-9), ours
    outside = sum(d not in run.get(q, {}) for q, grades in qrels.items() for d in grades)
    assert (result["judged"]["outside"], result["judged"]["queries_outside"]) == (outside, len(qrels.keys() - run))


@pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
def test_the_pool_is_printed_and_data_are_refused_that_have_none(tmp_path: Path) -> None:
    run: Scores = {"1": {"a": 2.0, "b": 1.0}, "2": {"c": 1.0}}
    model, data, judgments = written(tmp_path, run, {"1": {"b": 1, "x": 1}, "3": {"y": 1}}, "run")
    shown = " ".join(
        succeeded("evaluate", model, data, "--qrels", judgments, "--metric", "P_1", "--also", "map").split()
    )
    assert "Judged and not ranked: 2 of 3 documents, 1 of 2 queries." in shown
    with pytest.raises(ParameterError, match="qrels"):
        ranktune.evaluate([1.0, 2.0], ([[1.0], [2.0]], [0, 1], [1, 1]), complete=True)
    twice = tmp_path / "twice.csv"
    twice.write_text("qid,docid,bm25\n1,b,1\n1,b,2\n1,a,1\n")
    with pytest.raises(DataError, match="document b twice"):
        ranktune.evaluate("column:bm25", str(twice), "P_1", qrels=judgments)


@pytest.mark.parametrize("grades", [(0, 1, 2.5), (0, 1, 31), (0.25, 0.5, 3)])
@pytest.mark.parametrize("metric", ["ndcg@10", "dcg@3", "ndcg:short=pad"])
def test_the_name_of_a_metric_says_the_gain_that_grades_decided(
    metric: str, grades: tuple[float, ...], tmp_path: Path
) -> None:
    metric = str(ranktune.parse_metric(metric.partition(":short")[0]))
    data = tmp_path / "data.csv"
    data.write_text("qid,grade,s\n" + "".join(f"{k // 3},{grades[k % 3]},{k % 2}\n" for k in range(6)))
    named = f"{metric}:gain=linear"
    result = ranktune.evaluate("column:s", str(data), metric, against="column:s")
    linear = ranktune.evaluate("column:s", str(data), named)
    assert result["metrics"] == linear["metrics"] and list(result["against"]["comparisons"]) == [named]
    assert ranktune.compare("column:s", "column:s", str(data), metric).metric == named
    assert re.search(rf"{named} ", succeeded("evaluate", "column:s", data, "--metric", metric))
    model = LinearModel(np.ones(1), "RidgeRanker", feature_names=("s",))
    assert ranktune.explain(model, str(data), metric=metric)["metric"] == named


def tuned(metric: str | None, weight: float = 1.0) -> Model:
    return LinearModel(np.array([weight]), "RidgeRanker", metric=metric)


@pytest.mark.parametrize("metric", ["ndcg@10:gain=linear", "map@2", "mrr:relevant=2"])
def test_a_model_is_measured_by_the_metric_it_was_tuned_for(metric: str, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("".join(f"{k % 3} qid:{k // 4} 1:{k % 4}\n" for k in range(24)))
    tuned(metric).save(tmp_path / "model.json")
    tuned(None, -1.0).save(tmp_path / "other.json")
    names = str(tmp_path / "model.json"), str(tmp_path / "other.json"), str(data)
    assert list(ranktune.evaluate(names[0], names[2])["metrics"]) == [metric]
    assert list(ranktune.evaluate(names[1], names[2], against=names[0])["metrics"]) == [metric]
    assert list(ranktune.evaluate(names[0], names[2], "ndcg@5")["metrics"]) == ["ndcg@5"]
    assert ranktune.compare(*names).metric == ranktune.explain(names[0], names[2])["metric"] == metric
    assert list(json.loads(succeeded("evaluate", names[0], names[2], "--json"))["metrics"]) == [metric]
    with pytest.warns(RankTuneWarning, match=f"is {re.escape(metric)}, .* tuned for {re.escape(metric)} and err@3"):
        ranktune.evaluate(names[0], names[2], against=tuned("err@3"))


@pytest.mark.parametrize("metric", ["bought@3", "dr@10", "os:getcwd", "ndcg@0", "pairwise-error"])
def test_a_metric_that_is_not_known_here_is_named_and_nothing_is_imported(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktune.solvers.metrics.metrics.metric_at", lambda path: pytest.fail(path))
    queries = ranktune.Queries.from_arrays(np.arange(4.0)[:, None], [0, 1, 0, 1], group=[2, 2])
    with pytest.warns(RankTuneWarning, match=f"is ndcg@10, .* {metric}"):
        assert list(ranktune.evaluate(tuned(metric), queries)["metrics"]) == ["ndcg@10"]
