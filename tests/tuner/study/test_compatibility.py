"""A study under the same name: what is the same, what widens it soundly, and what is refused with its name."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import ranktune
from ranktune.solvers.core.errors import Damaged, StudyError
from ranktune.solvers.core.space import Choice, Float, Int, When
from ranktune.solvers.names import current_names, former_names
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.splits.seals import write_sealed
from ranktune.tuner.storage.attributes import DIGEST, check_trial, trial_digest
from ranktune.tuner.storage.database import open_storage
from ranktune.tuner.storage.space_migration import migrate_space
from ranktune.tuner.study.compatibility import claim, of_today, saved_space, space_differences
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder
from tests.support.engine_samples import SOLVERS, graded, tuned

C = {"RankSVM.C": {"low": 0.1, "high": 10.0}}
DECLARED = Study(
    name="s", data="d", metric="ndcg@10", also=("map",), solvers=SOLVERS, trials=4, sampler="random",
    space={**C, "RankSVM.loss": ["l2"]}, reading={"missing": "zero"},
)  # fmt: skip


def folder_of(home: Path, study: Study, digest: str = "1") -> StudyFolder:
    folder = StudyFolder(home / "s")
    folder.path.mkdir()
    folder.declare(study, {"": digest})
    return folder


UNSOUND: dict[str, tuple[dict[str, Any], str]] = {
    "data": ({"data": "e"}, "data is 'd' there, 'e' here"),
    "test": ({"test": "none"}, "test is None there, 'none' here"),
    "seed": ({"seed": 1}, "seed is 0 there, 1 here"),
    "refit": ({"refit": False}, "refit is True there, False here"),
    "within": ({"within": "features<=3"}, "within is '' there, 'features<=3' here"),
    "sampler": ({"sampler": "tpe"}, "sampler is 'random' there, 'tpe' here"),
    "metric": ({"metric": "map", "also": ("ndcg@10",)}, "metric is 'ndcg@10' there, 'map' here; also is ['map'] there"),
    "plan": ({"plan": "nested", "folds": 3}, "plan is 'auto' there, 'nested' here; folds is None there, 3 here"),
    "acquisition": (
        {"sampler": "thompson", "acquisition": "ei"},
        "sampler is 'random' there, 'thompson' here; acquisition is 'mixed' there, 'ei' here",
    ),
    "reading": ({"reading": {}}, "reading is {'missing': 'zero'} there, {} here"),
    "a solver less": ({"solvers": SOLVERS[:2], "space": C}, "solvers is ['RankSVM', 'RidgeRanker', 'BestFeature'] th"),
    "another solver": ({"solvers": ("RankSVM", "RidgeRanker", "ListNet")}, "'ListNet'] here"),
    "a narrower range": (
        {"space": {**DECLARED.space, "RankSVM.C": {"low": 0.2, "high": 100.0}}},
        "'RankSVM.C' is 0.1 to 10.0 (log) there, 0.2 to 100.0 (log) here",
    ),
    "another scale": (
        {"space": {**DECLARED.space, "RankSVM.C": {"low": 0.1, "high": 10.0, "log": False}}},
        "'RankSVM.C' is 0.1 to 10.0 (log) there, 0.1 to 10.0 here",
    ),
    "a list for a range": (
        {"space": {**DECLARED.space, "RankSVM.C": [0.1, 1.0, 10.0]}},
        "'RankSVM.C' is 0.1 to 10.0 (log) there, one of 0.1, 1.0, 10.0 here",
    ),
    "another choice": (
        {"space": {**C, "RankSVM.loss": ["l1"]}},
        "'RankSVM.loss' is one of l2 there, one of l1 here",
    ),
}


@pytest.mark.parametrize("change", UNSOUND)
def test_what_is_another_study_is_refused_and_named_also_with_extend(tmp_path: Path, change: str) -> None:
    folder = folder_of(tmp_path, DECLARED)
    before = (folder.path / "study.json").read_bytes()
    changes, said = UNSOUND[change]
    other = replace(DECLARED, **changes)
    for extend in (False, True):
        for refused in (folder.check_settings, lambda study, **options: folder.declare(study, {"": "1"}, **options)):
            with pytest.raises(StudyError) as caught:
                refused(other, extend=extend)
            assert said in str(caught.value)
            assert str(caught.value).endswith("Choose another name (name=), or repeat its settings.")
    assert (folder.path / "study.json").read_bytes() == before


SOUND: dict[str, dict[str, Any]] = {
    "a solver more": {"solvers": (*SOLVERS, "ListNet")},
    "solvers in another order": {"solvers": ("ListNet", *SOLVERS[::-1])},
    "a wider range": {"space": {**DECLARED.space, "RankSVM.C": {"low": 0.1, "high": 100.0}}},
    "no bounds of our own": {"space": {"RankSVM.loss": ["l2"]}},
    "a choice more": {"space": {**C, "RankSVM.loss": ["l1", "l2"]}},
}


@pytest.mark.parametrize("change", SOUND)
def test_what_is_wider_needs_extend_and_says_so(tmp_path: Path, change: str) -> None:
    folder = folder_of(tmp_path, DECLARED)
    wider = replace(DECLARED, **SOUND[change])
    with pytest.raises(StudyError, match=r"repeat its settings, or widen the study \(extend=True\)\.$"):
        folder.check_settings(wider)
    with pytest.raises(StudyError, match="seed is 0 there, 1 here"):
        folder.check_settings(replace(wider, seed=1), extend=True)
    with pytest.raises(StudyError, match="other data"):
        folder.declare(wider, {"": "2"}, extend=True)
    folder.declare(wider, {"": "1"}, extend=True)
    kept = folder.check_settings(wider, extend=True)
    assert folder.study() == kept
    assert kept.solvers[:3] == SOLVERS
    assert set(kept.solvers) == set(wider.solvers)
    assert kept.space == wider.space


def test_more_trials_or_time_and_another_spelling_are_the_same_study(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, DECLARED)
    same = replace(
        DECLARED,
        metric="NDCG@10",
        trials=99,
        timeout=5.0,
        space={**DECLARED.space, "RankSVM.C": {"low": 0.1, "high": 10}},
    )
    assert folder.check_settings(same) == same
    folder.declare(same, {"": "1"})
    assert folder.study().trials == 99


def test_other_data_is_named_by_its_parts(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.declare(DECLARED, {"Fold1": "1", "Fold2": "2"})
    with pytest.raises(StudyError, match=r"other data \(the digest of Fold2 differs\)"):
        folder.declare(DECLARED, {"Fold1": "1", "Fold2": "3"})
    with pytest.raises(StudyError, match=r"its parts are \['Fold1', 'Fold2'\] there, \['Fold1'\] here"):
        folder.declare(DECLARED, {"Fold1": "1"})


def test_a_changed_space_of_a_solver_is_detected(tmp_path: Path) -> None:
    """As after an upgrade: what was searched is noted, so that the same declaration is no excuse."""
    folder = folder_of(tmp_path, replace(DECLARED, space={}))
    declared = json.loads((folder.path / "study.json").read_text())
    bounds = declared["space"]["RankSVM.C"]
    declared["space"]["RankSVM.C"] = bounds | {"high": 2 * bounds["high"]}
    write_sealed(folder.declaration, json.dumps(declared))
    with pytest.raises(StudyError, match=r"'RankSVM\.C' is .* there, .* here\. Choose another name"):
        folder.check_settings(folder.study())
    declared["space"]["RankSVM.C"] = bounds | {"high": bounds["high"] / 2}
    write_sealed(folder.declaration, json.dumps(declared))
    with pytest.raises(StudyError, match=r"\(extend=True\)"):
        folder.check_settings(folder.study())
    folder.declare(folder.study(), {"": "1"}, extend=True)
    assert json.loads((folder.path / "study.json").read_text())["space"]["RankSVM.C"] == bounds
    del declared["space"]  # as an older release left it
    write_sealed(folder.declaration, json.dumps(declared))
    assert folder.check_settings(folder.study()) == folder.study()


def test_a_parameter_that_comes_or_goes_or_changes_its_condition_is_no_widening() -> None:
    def noted(*parameters: Any) -> Any:
        return saved_space(UnionSpace({"A": parameters}))

    loss = Choice("loss", ("x", "y"), "x")
    size = Int("size", 1, 9, 3, when=When("loss", ("x",)))
    assert space_differences(noted(loss, size), noted(loss, size)) == []
    for other, said in (
        ((loss,), "'A.size' is searched there, not here"),
        ((loss, size, Float("c", 0.1, 1.0, 0.5)), "'A.c' is searched here, not there"),
        ((loss, replace(size, when=None)), "'A.size' is 1 to 9 where A.loss is x there, 1 to 9 here"),
        ((loss, Float("size", 1, 9, 3, when=size.when)), "'A.size' is 1 to 9 where"),
        ((Choice("loss", (True, "x", "y"), "x"), replace(size, low=2)), "'A.size' is 1 to 9"),
    ):
        result = space_differences(noted(loss, size), noted(*other))
        assert said in result[-1].text
        assert not result[-1].keeps_trials
    (changed,) = space_differences(noted(Choice("n", (1, 2), 1)), noted(Choice("n", (True, 2), True)))
    assert not changed.keeps_trials  # which Python takes for the same


def test_the_trials_of_a_record_get_the_wider_space_in_one_go(tmp_path: Path, storage_url: str | None) -> None:
    narrow = UnionSpace({"B": [Float("c", 0.1, 1.0, 0.5, log=True), Choice("k", ("p", None, True), "p")]})
    wide = UnionSpace(
        {
            "A": [Int("n", 1, 5, 2)],
            "B": [Float("c", 0.01, 9.0, 0.5, log=True), Choice("k", ("q", True, "p", None, 1.5), "p")],
        }
    )
    where = storage_url or tmp_path / "record.db"
    storage = open_storage(where)
    studies = [optuna.create_study(storage=storage, study_name=name) for name in ("mine", "other")]
    for study in studies:
        study.sampler = optuna.samplers.RandomSampler(seed=0)
        study.optimize(lambda trial: float(len(narrow.suggest(trial))), n_trials=12)
    before = [trial.params for trial in studies[0].trials]
    assert len({params["B.k"] for params in before}) == 3
    assert migrate_space(storage, "mine", narrow) == 0
    assert migrate_space(storage, "mine", wide) == 36
    assert migrate_space(storage, "mine", wide) == 0
    fresh = open_storage(where)
    for name, space in (("mine", wide), ("other", narrow)):
        result = optuna.load_study(study_name=name, storage=fresh)
        assert [trial.params for trial in result.trials] == before
        assert all(trial.distributions == {n: space.distributions[n] for n in trial.params} for trial in result.trials)
    with pytest.raises(StudyError, match=r"trials with 'B\.\w' .* here\. Choose another name"):
        migrate_space(storage, "mine", narrow)
    with pytest.raises(StudyError, match="it is not searched here"):
        migrate_space(storage, "mine", UnionSpace({"A": [Int("n", 1, 5, 2)], "B": []}))
    assert [trial.params for trial in optuna.load_study(study_name="mine", storage=fresh).trials] == before
    for opened in (fresh, storage):
        opened.remove_session()
        opened.engine.dispose()


def test_names_of_earlier_versions_become_those_of_today(tmp_path: Path) -> None:
    def space(prefix: str, weight: str) -> UnionSpace:
        hinge, squared_hinge, logistic = (f"{prefix}{name}" for name in ("hinge", "squared_hinge", "logistic"))
        parameters = (
            Choice("loss", (hinge, squared_hinge, logistic), logistic),
            Choice(weight, ("uniform", "ndcg"), "ndcg"),
            Int("at", 1, 50, 10, when=When(weight, ("ndcg",))),
            Choice("schedule", ("sqrt", "adagrad"), "adagrad", when=When("loss", (hinge, logistic))),
        )
        return UnionSpace({"ElasticRank": parameters})

    former, today = space("", "weight"), space("pairwise_", "pair_weight")
    assert space_differences(saved_space(former), saved_space(today)) != []
    assert space_differences(of_today(saved_space(former)), saved_space(today)) == []
    storage = open_storage(tmp_path / "record.db")
    study = optuna.create_study(storage=storage, study_name="s", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: float(len(former.suggest(trial))), n_trials=12)
    before = [trial.params for trial in study.trials]
    assert migrate_space(storage, "s", today) == 24
    result = optuna.load_study(study_name="s", storage=storage).trials
    assert [former_names(trial.params) for trial in result] == before
    for trial, old in zip(result, before, strict=True):
        assert trial.params == current_names(old) and trial.params["ElasticRank.loss"].startswith("pairwise_")
        assert trial.distributions == {name: today.distributions[name] for name in trial.params}
        attributes = {DIGEST: trial_digest("COMPLETE", 0.5, old, {})}
        check_trial("COMPLETE", 0.5, trial.params, attributes)
        with pytest.raises(Damaged):
            check_trial("COMPLETE", 0.6, trial.params, attributes)
    assert migrate_space(storage, "s", today) == 0
    storage.remove_session()
    storage.engine.dispose()
    given = Study(solvers=["ElasticRank"], space={"ElasticRank.weight": ["ndcg"], "ElasticRank.loss": "hinge"})
    assert given.space == {"ElasticRank.pair_weight": ["ndcg"], "ElasticRank.loss": "pairwise_hinge"}


WIDER = {"RankSVM.C": {"low": 1e-4, "high": 1e4}, "RankSVM.loss": ["l1", "l2"]}


@pytest.mark.thorough
@pytest.mark.parametrize(("sampler", "trials"), [("thompson", 30), ("tpe", 40), ("random", 70)])
def test_an_extended_study_keeps_its_trials_and_searches_what_is_new(tmp_path: Path, sampler: str, trials: int) -> None:
    run = partial(tuned, tmp_path, graded(24, 0), sampler=sampler)
    first = run(trials=12, space=DECLARED.space)
    before = [(trial.params, trial.value) for trial in first.optuna_study.trials]
    with pytest.raises(StudyError, match="extend=True"):
        run(solvers=["ListNet", *SOLVERS], trials=trials, space=WIDER)
    more = run(solvers=["ListNet", *SOLVERS], trials=trials, space=WIDER, extend=True)
    assert (first.trials, more.trials) == (12, trials)
    every = more.optuna_study.trials
    assert [(trial.params, trial.value) for trial in every[:12]] == before
    space = StudyFolder(tmp_path / "s").study().union_space()
    assert every[12].params == space.defaults()[3] and every[12].params["solver"] == "ListNet"  # which begins with them
    new = [trial.params for trial in every[12:]]
    assert any(not 0.1 <= params["RankSVM.C"] <= 10.0 for params in new if "RankSVM.C" in params)
    assert any(params.get("RankSVM.loss") == "l1" for params in new)
    declared = StudyFolder(tmp_path / "s").study()
    extended = run(solvers=declared.solvers, trials=trials + 1, space=declared.space)
    assert extended.trials == trials + 1  # what was extended is the study now


def test_an_extension_that_was_killed_before_the_record_is_finished_by_resuming(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=graded(24, 0).features, y=graded(24, 0).grades, qid=np.repeat(np.arange(24), 12))
    tuned(tmp_path, tmp_path / "d.npz", solvers=("RankSVM",), sampler="tpe", space=DECLARED.space)
    folder = StudyFolder(tmp_path / "s")
    wider = replace(folder.study(), solvers=("RankSVM", "RidgeRanker"), space={}, trials=8)
    folder.declare(wider, folder.digests(), extend=True)
    result = ranktune.resume("s", home=tmp_path, jobs=1)
    assert result.trials == 8
    assert {row.solver for row in result.leaderboard} >= {"RankSVM", "RidgeRanker"}


def test_the_record_says_whose_it_is() -> None:
    record = optuna.create_study(direction="maximize", study_name="s")
    claim(record, DECLARED, "1")
    claim(record, replace(DECLARED, trials=99, data="/elsewhere/d", solvers=(*SOLVERS, "ListNet")), "1")
    for other, digest, said in (
        (replace(DECLARED, metric="map", also=()), "1", "metric is 'ndcg@10' there, 'map' here; also is ['map'] there"),
        (replace(DECLARED, seed=3), "1", "seed is 0 there, 3 here"),
        (DECLARED, "2", "the digest of its data differs"),
    ):
        with pytest.raises(StudyError) as caught:
            claim(record, other, digest)
        assert f"the record of study 's' is another study's: {said}" in str(caught.value)
    with pytest.raises(StudyError, match="direction is 'minimize' there, 'maximize' here"):
        claim(optuna.create_study(direction="minimize"), DECLARED, "1")


def test_trials_scored_without_the_weights_of_queries_are_not_mixed_with_others() -> None:
    record = optuna.create_study(direction="maximize", study_name="s")
    claim(record, DECLARED, "1")  # as an earlier version did whatever the weights
    with pytest.raises(StudyError, match="an earlier version computed the values of its trials without the weights"):
        claim(record, DECLARED, "1", weighted=True)
    other = optuna.create_study(direction="maximize", study_name="w")
    for _ in range(2):
        claim(other, DECLARED, "1", weighted=True)


def test_a_space_is_noted_completely() -> None:
    space = UnionSpace({"A": [Float("c", 0.1, 1.0, 0.5, log=True), Choice("k", ("p", None), "p"), Int("n", 1, 5, 2)]})
    assert saved_space(space) == {
        "solver": {"choices": ["A"]},
        "A.c": {"low": 0.1, "high": 1.0, "log": True, "whole": False},
        "A.k": {"choices": ["p", None]},
        "A.n": {"low": 1, "high": 5, "log": False, "whole": True},
    }
