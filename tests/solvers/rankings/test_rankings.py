"""Rankings from outside: every kind gives the scores that its library, or a plain rule, gives the documents."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ranktune.solvers.core import libraries
from ranktune.solvers.core.errors import DataError, ModelFormatError, ParameterError, RankTuneWarning
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.rankings.base import WantedFeatures
from ranktune.solvers.rankings.opening import open_ranking
from ranktune.solvers.rankings.parts import QuerySource, scores_of_parts, scores_on

N = 60


@pytest.fixture
def queries() -> Queries:
    """Ten queries whose rows are not adjacent, with ids of documents."""
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(N, 4)), 3)
    ids = [f"d{row}" for row in range(N)]
    qid = generator.permutation(np.arange(N) % 10)
    return Queries.from_arrays(X, generator.integers(0, 3, N), qid=qid, document_ids=ids)


def rows_of(queries: Queries) -> np.ndarray:
    """The features in the order of the caller's rows."""
    return np.asarray(queries.in_caller_order(np.asarray(queries.features)))


def scored(given: object, queries: Queries) -> np.ndarray:
    """The scores that a ranking gives, in the order of the caller's rows."""
    return np.asarray(queries.in_caller_order(scores_on(open_ranking(given), QuerySource(queries))))


def test_an_array_and_a_file_of_it_are_in_the_order_of_the_rows(queries: Queries, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=N)
    (tmp_path / "scores.txt").write_text("\n".join(map(repr, values.tolist())))
    pd.DataFrame({"score": values}).to_csv(tmp_path / "scores.csv", index=False)
    for given in (values, values.tolist(), pd.Series(values), tmp_path / "scores.txt", tmp_path / "scores.csv"):
        np.testing.assert_array_equal(scored(given, queries), values)


def test_ids_place_the_scores_whatever_their_order(queries: Queries, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=N)
    qid = queries.in_caller_order(queries.query_ids[queries.query_of_document])
    frame = pd.DataFrame({"score": values, "query_id": qid, "docid": [f"d{row}" for row in range(N)]})
    mixed = frame.sample(frac=1.0, random_state=0)
    mixed.to_csv(tmp_path / "scores.tsv", sep="\t", index=False)
    for given in (mixed, tmp_path / "scores.tsv"):
        np.testing.assert_array_equal(scored(given, queries), values)


def test_what_a_run_does_not_rank_comes_below_all_that_it_ranks(queries: Queries, tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    kept = generator.random(N) < 0.6
    kept[[int(np.flatnonzero(queries.query_of_document == q)[0]) for q in range(10)]] = True
    values = generator.normal(size=N) * 1e6
    names = queries.query_ids[queries.query_of_document]
    assert queries.document_ids is not None
    triples = zip(names, queries.document_ids, values, kept, strict=True)
    lines = [f"{query} Q0 {document} 1 {float(value)!r} bm25" for query, document, value, known in triples if known]
    (tmp_path / "today.run").write_text("\n".join([*lines, "0 Q0 unknown 1 3.0 bm25"]))
    result = scores_on(open_ranking(tmp_path / "today.run"), QuerySource(queries))
    np.testing.assert_array_equal(result[kept], values[kept])
    for q in range(10):
        subset = queries.query_of_document == q
        if (subset & ~kept).any():
            assert result[subset & ~kept].max() < result[subset & kept].min()


def test_features_with_names_are_matched_by_name(queries: Queries, tmp_path: Path) -> None:
    import lightgbm

    X = pd.DataFrame(rows_of(queries), columns=["a", "b", "c", "d"])
    booster = lightgbm.train(
        {"verbosity": -1, "min_data_in_leaf": 2}, lightgbm.Dataset(X[["d", "a"]], X["a"] - X["d"]), 5
    )
    booster.save_model(str(tmp_path / "model.txt"))
    data = X.assign(qid=queries.in_caller_order(queries.query_of_document), grade=0)
    read = catalogue.read(data)
    np.testing.assert_allclose(scored(tmp_path / "model.txt", read), booster.predict(X[["d", "a"]]))
    without = catalogue.read(data.drop(columns="d"))
    with pytest.raises(DataError, match="needs the features d, which the data do not have"):
        scored(tmp_path / "model.txt", without)
    scores = scores_on(open_ranking(tmp_path / "model.txt"), QuerySource(without, data))
    np.testing.assert_array_equal(read.in_caller_order(scores), scored(tmp_path / "model.txt", read))


def test_exports_of_a_linear_model_score_as_it_does(queries: Queries, tmp_path: Path) -> None:
    from ranktune.solvers.export import export

    model = LinearModel(np.array([1.0, 0.0, -2.0, 0.5]), "RankSVM")
    model.save(tmp_path / "model.json")
    expected = model.predict(rows_of(queries))
    (tmp_path / "ranklib.txt").write_text(str(export(model, "ranklib", name="n", store="s")))
    content = export(model, "onnx", name="n", store="s")
    assert isinstance(content, bytes)
    (tmp_path / "model.onnx").write_bytes(content)
    for path in (*(tmp_path / name for name in ("model.json", "ranklib.txt", "model.onnx")), model):
        np.testing.assert_allclose(scored(path, queries), expected, atol=1e-5)


class OfSklearn:
    """What looks like an estimator of scikit-learn."""

    n_features_in_ = 4

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X[:, 2] * 3.0)


def test_an_object_with_predict_is_a_ranking(queries: Queries) -> None:
    np.testing.assert_array_equal(scored(OfSklearn(), queries), rows_of(queries)[:, 2] * 3.0)


def test_a_column_is_a_feature_by_number_or_a_column_that_is_none(queries: Queries) -> None:
    np.testing.assert_array_equal(scored("column:3", queries), rows_of(queries)[:, 2])
    frame = pd.DataFrame({"qid": [1, 2, 1], "grade": [0, 1, 2], "x": [1.0, 2.0, 3.0], "today": [9.0, 8.0, 7.0]})
    read = catalogue.read(frame, drop="today")
    for given in ("column:today", "today"):
        result = scores_on(open_ranking(given, frame), QuerySource(read, frame, {"drop": "today"}))
        np.testing.assert_array_equal(result, [9.0, 7.0, 8.0])
    with pytest.raises(DataError, match="Give column:NUMBER"):
        scored("column:today", queries)
    with pytest.raises(DataError, match="needs 1 features, and the data have 4"):
        scored("column:5", queries)


def assert_refused(given: object, queries: Queries, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        scored(given, queries)


def test_wrong_numbers_of_scores_and_scores_that_are_none_are_refused(queries: Queries, tmp_path: Path) -> None:
    assert_refused(np.zeros(N - 1), queries, DataError, r"59 scores, and the data have 60 rows\. Give one a row")
    assert_refused(np.full(N, np.nan), queries, DataError, "60 are not finite")
    assert_refused(np.zeros((N, 2)), queries, DataError, "have shape")
    assert_refused(["high"] * N, queries, DataError, "not numbers")
    (tmp_path / "a.txt").write_text("0.5\nhigh\n")
    assert_refused(tmp_path / "a.txt", queries, DataError, "a.txt:2: 'high' is not a score")
    assert_refused(object(), queries, ParameterError, "a object gives no scores")


def test_features_that_text_leaves_out_are_few(queries: Queries) -> None:
    X = rows_of(queries)
    np.testing.assert_array_equal(WantedFeatures(count=6).arranged(queries, "it").features[:, 4:], np.zeros((N, 2)))
    for features in (X, sparse.csr_array(X)):
        with pytest.raises(DataError, match="it needs 1073741824 features, and the data have 4"):
            WantedFeatures(count=2**30).arranged(queries.with_features(features), "it")


def test_missing_queries_documents_and_doubles_are_refused(queries: Queries) -> None:
    qid = queries.in_caller_order(queries.query_ids[queries.query_of_document])
    frame = pd.DataFrame({"qid": qid, "docid": [f"d{row}" for row in range(N)], "score": np.arange(N)})
    assert_refused(frame[frame.qid != 3], queries, DataError, "no scores of 1 of 10 queries: 3")
    assert_refused(frame.drop(index=5), queries, DataError, "no score of document d5 of query")
    assert_refused(pd.concat([frame, frame[:1]]), queries, DataError, "two scores of document d0")
    assert_refused(frame.drop(columns="qid"), queries, DataError, "no column of the query id")
    assert_refused(frame.drop(columns="score"), queries, DataError, "no column of the score")
    assert_refused(
        frame.drop(columns="docid").sample(frac=1.0, random_state=1), queries, DataError, "in the order of the rows"
    )
    without = Queries.from_arrays(rows_of(queries), np.zeros(N), qid=qid)
    assert_refused(frame, without, DataError, "the data have no document ids")


def test_files_that_could_run_code_and_damaged_ones_are_refused(queries: Queries, tmp_path: Path) -> None:
    for name, content in (("model.pkl", b"x"), ("model.bin", pickle.dumps([1]))):
        (tmp_path / name).write_bytes(content)
        assert_refused(tmp_path / name, queries, ModelFormatError, "is a pickle, which runs code")
    (tmp_path / "lgb.txt").write_text("tree\nversion=v4\n")
    assert_refused(tmp_path / "lgb.txt", queries, ModelFormatError, "no whole model of LightGBM: its trees do not end")
    (tmp_path / "cat.json").write_text('{"oblivious_trees": [], "features_info": {}}')
    assert_refused(tmp_path / "cat.json", queries, ModelFormatError, "no whole model of CatBoost: it lacks float_feat")
    (tmp_path / "cat.cbm").write_bytes(b"CBM1\x10\x00\x00\x00")
    assert_refused(tmp_path / "cat.cbm", queries, ModelFormatError, 'a binary model.*save_model.*format="json"')
    (tmp_path / "ours.json").write_text('{"format": "ranktune-model"}')
    assert_refused(tmp_path / "ours.json", queries, ModelFormatError, "version")


def test_a_library_that_is_not_installed_is_named(
    queries: Queries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08")
    monkeypatch.setattr(libraries, "is_installed", lambda library: False)
    libraries.why_not.cache_clear()
    try:
        assert_refused(tmp_path / "m.onnx", queries, ParameterError, "pip install onnxruntime")
    finally:
        libraries.why_not.cache_clear()


def parts_of(queries: Queries) -> list[QuerySource | None]:
    return [
        QuerySource(queries.select(range(5))),
        QuerySource(queries.select(range(5, 7))),
        QuerySource(queries.select(range(7, 10))),
    ]


def test_scores_by_row_are_those_of_test_or_of_all_parts(queries: Queries) -> None:
    parts = parts_of(queries)
    sizes = [part.queries.n_documents for part in parts if part is not None]
    values = np.arange(float(N))
    result = scores_of_parts(open_ranking(values), parts)
    assert [None if of_part is None else len(of_part) for of_part in result] == sizes
    assert np.concatenate([of_part for of_part in result if of_part is not None]).tolist() == values.tolist()
    train, vali, test = scores_of_parts(open_ranking(values[: sizes[2]]), parts)
    assert train is None and vali is None and test is not None and test.tolist() == values[: sizes[2]].tolist()
    train, vali, test = scores_of_parts(open_ranking(values[: sizes[0]]), [parts[0], parts[1], None])
    assert vali is None and test is None and train is not None
    with pytest.raises(DataError, match=f"test data have {sizes[2]} rows, and all data together 60"):
        scores_of_parts(open_ranking(values[:7]), parts)


def test_scores_by_id_cover_the_parts_whose_queries_they_hold(queries: Queries) -> None:
    parts = parts_of(queries)
    test = queries.select(range(7, 10))
    assert test.document_ids is not None
    names = test.query_ids[test.query_of_document]
    frame = pd.DataFrame({"qid": names, "docid": test.document_ids, "score": np.arange(test.n_documents)})
    result = scores_of_parts(open_ranking(frame), parts)
    assert result[0] is None and result[1] is None and result[2] is not None
    with pytest.raises(DataError, match="of none of the"):
        scores_of_parts(open_ranking(frame.assign(qid="other")), parts)
    more = pd.concat([frame, pd.DataFrame({"qid": names[:1], "docid": ["unknown"], "score": [0.0]})])
    with pytest.warns(RankTuneWarning, match="1 documents that the data do not hold"):
        scores_of_parts(open_ranking(more), parts)


def test_a_path_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is a folder\. Give a model file"):
        open_ranking(str(tmp_path))
