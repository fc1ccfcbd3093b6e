"""Reproducing tables: the protocols by hand on small folds, the command as a user runs it, one row on real data."""

from __future__ import annotations

import json
from concurrent.futures import BrokenExecutor, Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from ranktune.command_line import reproducing
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.linear.rank_svm import RankSVM
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.registry import SOLVERS
from ranktune.studies.papers import protocols
from ranktune.studies.papers.published import (
    MEAN_RANK,
    PAPERS,
    Claim,
    PublishedMeasure,
    PublishedSystem,
    PublishedTable,
    datasets,
    load_paper,
    recognised,
)
from ranktune.studies.papers.reproduce import Dataset, FigureRow, Reproduced, load_dataset, load_datasets, reproduce
from ranktune.tuner.evaluation import fitting
from tests.support.commands import ranktune, write_letor
from tests.support.small_papers import GRID, MAP, NDCG, paper, some_queries, split, svm


def figures(reproduced: list[Reproduced]) -> dict[tuple[str, str], float | None]:
    return {(row.algorithm, row.metric): row.ours for result in reproduced for row in result.rows}


def by_hand(fold: QuerySplit, chooser: PublishedMeasure, reported: PublishedMeasure) -> float:
    assert fold.vali is not None and fold.test is not None and chooser.metric and reported.metric
    models = [RankSVM(C=C).fit(fold.train) for C in GRID["C"]]
    metric, vali = chooser.metric, fold.vali
    best = max(models, key=lambda model: metric.mean(model.predict(vali), vali))
    return reported.metric.mean(best.predict(fold.test), fold.test)


@pytest.mark.parametrize("choose", ["map:letor", "each"])
def test_a_figure_is_the_mean_over_folds_of_what_validation_chose(tiny: Dataset, choose: str) -> None:
    (result,) = reproduce(paper(svm(choose=choose, published={"tiny": {"map": 0.5}}), tolerance=0.01), [tiny])
    ours = figures([result])
    for measure in (NDCG, MAP):
        chooser = measure if choose == "each" else MAP
        expected = np.mean([by_hand(fold, chooser, measure) for fold in tiny.splits])
        assert ours["RankSVM", measure.label] == pytest.approx(expected)
    ndcg, ap = result.rows
    assert ndcg.published is None and ndcg.difference is None and ndcg.within is None
    assert ap.ours is not None and ap.difference == pytest.approx(ap.ours - 0.5)
    assert ap.difference is not None and ap.difference > 0.01 and ap.within is False
    assert ap.convention == "map:letor"


def test_the_choice_never_looks_at_test() -> None:
    fold = split(1)
    assert fold.test is not None
    generator = np.random.default_rng(5)
    other = replace(fold, test=replace(fold.test, grades=generator.permutation(fold.test.grades)))
    chosen = protocols.one_fold(svm(choose="map:letor"), fold, 0).chosen
    still = protocols.one_fold(svm(choose="map:letor"), other, 0).chosen
    assert chosen == still
    assert fold.vali is not None
    turned = replace(fold, vali=replace(fold.vali, features=-fold.vali.features))  # now the worst is the best
    single = [replace(svm(choose="map:letor"), grid={"C": (C,)}) for C in GRID["C"]]
    values = [protocols.one_fold(entry, fold, 0).values for entry in single]
    worst = protocols.one_fold(svm(choose="map:letor"), turned, 0).chosen
    assert len({tuple(v[""].items()) for v in values}) > 1
    assert worst["map"] != chosen["map"]


@pytest.mark.thorough
def test_figures_do_not_depend_on_the_number_of_processes(tiny: Dataset) -> None:
    parts: list[tuple[int, int, str]] = []
    declared = paper(svm(choose="map:letor"))
    sequential = reproduce(declared, [tiny], jobs=1, on_part=lambda *part: parts.append(part))
    assert figures(sequential) == figures(reproduce(declared, [tiny], jobs=2))
    assert [done for done, _, _ in parts] == [1, 2] and {total for _, total, _ in parts} == {2}
    assert parts[0][2].startswith("tiny RankSVM, Fold1: C=")


def test_every_point_has_its_figures(tiny: Dataset) -> None:
    measures = (PublishedMeasure("weights", None), PublishedMeasure("us/document", None), NDCG)
    grid = {"passes": (1, 2), "l1": (0.0, 0.3)}
    entry = PublishedSystem("RDA", "ElasticRank", measures, {"optimizer": "rda", "scaling": "list"}, grid)
    ours = figures(reproduce(paper(entry, protocol="every-point"), [tiny]))
    assert {algorithm for algorithm, _ in ours} == {
        f"RDA, passes={passes}, l1={l1}" for passes in (1, 2) for l1 in ("0", "0.3")
    }
    assert ours["RDA, passes=1, l1=0", "weights"] == 5
    assert ours["RDA, passes=1, l1=0.3", "weights"] < 5  # type: ignore[operator]
    assert 0 < ours["RDA, passes=1, l1=0", "us/document"] < 1000  # type: ignore[operator]


class Remembering:
    """An online learner that scores by what it has seen, and remembers in which order."""

    def __init__(self) -> None:
        self.coef_ = np.ones(5)

    def as_model(self) -> LinearModel:
        return LinearModel(self.coef_, "Remembering")

    def progressive(self, queries: Queries, order: np.ndarray) -> np.ndarray:
        assert sorted(order) == list(range(queries.n_queries))
        seen = np.empty(queries.n_queries)
        seen[order] = np.arange(len(order))
        return np.asarray(queries.features[:, 0] * np.where(seen[queries.query_of_document] < 10, -1.0, 1.0))


def test_progressive_goes_through_all_queries_in_random_orders(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "make", lambda *_: Remembering())
    entry = PublishedSystem("Remembering", "Remembering", (NDCG,))
    (result,) = reproduce(paper(entry, protocol="progressive", permutations=4), [tiny])
    queries = protocols.all_queries(tiny.splits[0])
    assert queries.n_queries == 38
    assert NDCG.metric is not None
    good = NDCG.metric.per_query(queries.features[:, 0], queries)
    bad = NDCG.metric.per_query(-queries.features[:, 0], queries)
    assert result.rows[0].ours is not None
    assert bad.mean() < result.rows[0].ours < good.mean()
    orders = np.random.default_rng([0, 1]).permuted(np.tile(np.arange(38), (4, 1)), axis=1)
    alone = [protocols.one_order(entry, queries, order, 0) for order in orders]
    assert len({part.values[""]["ndcg@3"] for part in alone}) > 1  # so that averaging over orders means something
    for part in alone:
        curve = part.curves[protocols.PROGRESSIVE]
        assert len(curve) == 38 and ((curve >= 0.0) & (curve <= 1.0)).all()


def test_pairs_weigh_queries_by_their_length() -> None:
    X = np.array([[1.0], [0.0], [3.0], [2.0], [1.0], [0.0]])
    queries = Queries.from_arrays(X, [1, 0, 0, 0, 0, 1], group=[2, 4])
    pooled = PublishedMeasure("accuracy_pct", parse_metric("pairwise"), over="pairs", scale=100.0)
    none, values = np.zeros(0), {"pairwise": parse_metric("pairwise").per_query(X[:, 0], queries)}
    assert protocols.measured(pooled, none, values, queries) == pytest.approx(100 * 1 / 4)
    assert protocols.measured(replace(pooled, over="queries"), none, values, queries) == pytest.approx(50.0)


def test_a_system_that_cannot_run_is_reported_and_the_others_go_on(tiny: Dataset) -> None:
    broken = PublishedSystem("Broken", "RankSVM", (NDCG,), {"C": -1.0}, published={"tiny": {"ndcg@3": 0.4}})
    (result,) = reproduce(paper(broken, svm()), [tiny])
    first, *others = result.rows
    assert first.ours is None and first.published == 0.4 and first.difference is None
    assert all(row.ours is not None for row in others)
    assert any("Broken could not run on tiny (Fold1): C=-1.0" in remark for remark in result.remarks)


class Dying:
    jobs = 1

    def submit(self, *_: object) -> Future[object]:
        future: Future[object] = Future()
        future.set_exception(BrokenExecutor("gone"))
        return future

    def __enter__(self) -> Dying:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_the_death_of_a_worker_is_an_error(tiny: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranktune.studies.papers.reproduce.make_executor", lambda _: Dying())
    with pytest.raises(StudyError, match=r"a worker process died.*--jobs 1"):
        reproduce(paper(svm()), [tiny])


def test_mean_ranks_over_data_sets() -> None:
    good = PublishedSystem("Good", "RankSVM", (NDCG,), {"C": 1.0}, ranks={"ndcg@3": 1.25})
    same = replace(good, name="Same", ranks={})
    bad = PublishedSystem("Bad", "BestFeature", (NDCG,))
    result = reproduce(paper(good, bad, same), [Dataset("a", (split(1),)), Dataset("b", (split(2),))])
    ranks = {row.algorithm: row for row in result[0].rows if row.dataset == "mean rank"}
    assert (ranks["Good"].ours, ranks["Bad"].ours, ranks["Same"].ours) == (1.5, 3.0, 1.5)
    assert ranks["Good"].published == 1.25 and ranks["Good"].metric == "rank by ndcg@3"


def test_folds_without_test_are_refused() -> None:
    result = reproduce(paper(svm()), [Dataset("half", (QuerySplit("Fold1", some_queries(20, 1)),))])[0]
    assert any("Fold1 has no test.txt: the protocol of the papers needs" in remark for remark in result.remarks)
    with pytest.raises(DataError, match=r"tiny has no Fold3, on which 'Table 1' was measured"):
        reproduce(paper(svm(), folds=("Fold3",)), [Dataset("tiny", (split(1),))])


def test_data_sets_are_recognised_by_their_shape() -> None:
    generator = np.random.default_rng(0)
    group = np.full(784, 19)
    group[:315] += 1  # 15,211 documents, as MQ2008
    X, y = generator.random((group.sum(), 46)), generator.integers(0, 3, group.sum())
    queries = Queries.from_arrays(X, y, group=group)
    parts = [queries.select(np.arange(*limits)) for limits in ((0, 470), (470, 627), (627, 784))]
    assert recognised([QuerySplit("Fold1", *parts)]) == "MQ2008"
    assert recognised([QuerySplit("Fold1", *parts[:2])]) is None
    shapes = [(s["queries"], s["features"], s["documents_per_query"]) for s in datasets().values()]
    assert len(set(shapes)) == len(shapes) == 9


@pytest.mark.parametrize("name", PAPERS)
def test_every_declaration_is_sound(name: str) -> None:
    """Whatever a paper declares exists: solvers and their parameters, data sets, measures."""
    declared = load_paper(name)
    for system in declared.systems.values():
        for point in system.points:
            SOLVERS[system.solver](**system.at(point)).check_parameters()
    assert all(claim.text for figure in declared.figures for claim in figure.claims.values())
    for table in declared.tables:
        names = {entry.name for entry in table.entries}
        assert len(names) == len(table.entries)
        for claim in table.claims:
            assert claim.text and (claim.measures or claim.reason)
            assert {claim.higher, *claim.lower} - {""} <= names and claim.dataset in ("", MEAN_RANK, *datasets())
            for measure in claim.measures:
                assert all(measure.removeprefix("rank by ") in entry.labels for entry in table.entries)
        for entry in table.entries:
            solver = SOLVERS[entry.solver]
            for point in entry.points:
                known = solver().get_params()
                assert set(entry.at(point)) <= set(known)
                solver(**entry.at(point)).check_parameters()
            assert table.protocol != "progressive" or (hasattr(solver, "progressive") and len(entry.points) == 1)
            labels = {measure.label for measure in entry.measures}
            assert set(entry.ranks) <= labels
            assert set(entry.published) <= set(datasets())
            assert all(set(printed) <= labels for printed in entry.published.values())


@pytest.fixture(scope="module")
def folds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folds")
    for number in (1, 2):
        fold = split(number)
        (folder / f"Fold{number}").mkdir()
        for part in ("train", "vali", "test"):
            queries = getattr(fold, part)
            file = folder / f"Fold{number}" / f"{part}.txt"
            write_letor(file, queries.features, queries.grades, queries.query_of_document)
    return folder


@pytest.mark.thorough
def test_the_command_prints_a_list_for_programs(folds: Path) -> None:
    words = ("reproduce", "adarank", "--data", folds, "--dataset", "OHSUMED", "--json", "--jobs", 1)
    done = ranktune(*words, cwd=folds)
    result = json.loads(done.stdout)
    assert {"dataset", "algorithm", "metric", "published", "ours"} <= set(result[0])
    assert {row["dataset"] for row in result} == {"OHSUMED"}
    assert all(isinstance(row["ours"], float) for row in result)
    assert "of" in done.stderr and "Fold2" in done.stderr


def test_one_data_set_is_given_once(folds: Path) -> None:
    assert load_dataset(folds).name == folds.name
    with pytest.raises(ParameterError, match="both hold"):
        load_datasets([folds, folds])


def shown(reproduced: list[Reproduced]) -> str:
    console = Console(width=150)
    with console.capture() as captured:
        console.print(reproducing.tables(reproduced))
    return captured.get()


def test_tables_say_plainly_what_is_not_reached() -> None:
    rows = (
        FigureRow("T", "data", "A", "ndcg@1", 0.5, 0.45, "ndcg@1", 0.01),
        FigureRow("T", "data", "A", "ndcg@5", 0.5, 0.505, "ndcg@5", 0.01),
        FigureRow("T", "data", "B", "ndcg@1", None, 0.6, "ndcg@1"),
        FigureRow("T", "data", "B", "ndcg@5", 0.5, None, "ndcg@5", 0.01),
    )
    table = PublishedTable("T", "folds", (), tolerance=0.01, note="Why so.")
    lines = shown([Reproduced(table, rows, ("B could not run",))]).splitlines()
    words = {tuple(line.split()[1:3]): line.split()[3:] for line in lines if line.strip().startswith("data ")}
    assert words["A", "ndcg@1"] == ["0.5000", "0.4500", "-0.0500", "NO"]
    assert words["A", "ndcg@5"] == ["0.5000", "0.5050", "+0.0050", "yes"]
    assert words["B", "ndcg@1"] == ["-", "0.6000", "-", "-"]
    assert words["B", "ndcg@5"] == ["0.5000", "-", "-", "-"]
    assert "1 of 2 figures within 0.01 of those published." in lines
    assert "Why so." in lines and "B could not run" in lines


def test_a_claim_of_a_table_is_checked_by_its_figures(tiny: Dataset) -> None:
    good = PublishedSystem("Good", "RankSVM", (NDCG,), {"C": 1.0})
    bad = PublishedSystem("Bad", "BestFeature", (NDCG,))
    claims = (Claim("Good leads", "Good", ("Bad",), ("ndcg@3",)), Claim("Bad leads", "Bad", ("Good",), ("ndcg@3",)))
    (result,) = reproduce(paper(good, bad, claims=claims), [tiny])
    assert [(verdict.source, verdict.claim, verdict.finding) for verdict in result.verdicts] == [
        ("Table 1", "Good leads", "confirmed"), ("Table 1", "Bad leads", "not shown"),
    ]  # fmt: skip


@pytest.mark.thorough
def test_rank_svm_reproduces_letor(letor_folds: dict[str, Path]) -> None:
    """The averages over five folds that LETOR 4.0 publishes for RankSVM on MQ2008."""
    declared = load_paper("ranksvm")
    first = replace(declared.tables[0], entries=declared.tables[0].entries[:1])
    (result,) = reproduce(replace(declared, tables=(first,)), [load_dataset(letor_folds["MQ2008"])])
    assert {row.dataset for row in result.rows} == {"MQ2008"}
    compared = [row for row in result.rows if row.published is not None]
    assert len(compared) == 12
    assert all(row.within for row in compared), [row for row in compared if not row.within]
