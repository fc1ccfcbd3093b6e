import importlib.util
from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, SingleOnlySamplerTestCase

from ranktune.solvers.core import libraries
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.space import Choice, Float
from ranktune.tuner.samplers.registry import SAMPLERS, make_sampler
from ranktune.tuner.samplers.skopt import SkoptSampler
from ranktune.tuner.samplers.space import UnionSpace

SPACE = UnionSpace({"A": (Float("x", 0, 1, 0.5),), "B": (Float("y", 0, 1, 0.5), Choice("c", ("p", "q"), "p"))})
HERE = list(SAMPLERS)


@pytest.mark.thorough
class TestSkoptInOptuna(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: SkoptSampler(seed=0, startup=9)  # of ten trials or twenty, the last see a model


def objective(trial: optuna.Trial) -> float:
    params = SPACE.suggest(trial)
    return sum(value for value in params.values() if isinstance(value, float)) + (params["solver"] == "B")


def run(name: str, seed: int, trials: int, past: list[optuna.trial.FrozenTrial] | None = None) -> optuna.Study:
    study = optuna.create_study()
    study.add_trials(past or [])
    for number in range(len(study.trials), trials):
        study.sampler = make_sampler(name, seed=seed, number=number, space=SPACE, startup=5)
        study.optimize(objective, n_trials=1)
    return study


@pytest.mark.parametrize("name", HERE)
class TestEverySampler:
    def test_a_resumed_study_goes_on_as_it_would_have(self, name: str) -> None:
        whole = run(name, 0, 9)
        resumed = run(name, 0, 9, whole.trials[:7])
        assert [t.params for t in resumed.trials] == [t.params for t in whole.trials]

    def test_seeds_and_numbers_make_a_difference(self, name: str) -> None:
        first, second = run(name, 0, 4), run(name, 1, 4)
        drawn = [str(t.params) for t in (*first.trials, *second.trials)]
        assert len(set(drawn)) == 8


@pytest.mark.parametrize("name", ["thompson", "random", "skopt"])
def test_the_number_counts_not_the_place_in_a_study_in_memory(name: str) -> None:
    drawn = []
    for skipped in (0, 3):
        study = optuna.create_study()
        for _ in range(skipped):
            study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
        study.sampler = make_sampler(name, seed=0, number=4, space=SPACE)
        drawn.append(SPACE.suggest(study.ask()))
    assert drawn[0] == drawn[1]


def test_skopt_searches() -> None:
    study = run("skopt", 0, 12)
    assert study.best_params["solver"] == "A" and study.best_value < 0.1


def test_an_unknown_name_and_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"no sampler 'thomson'. Did you mean 'thompson'"):
        make_sampler("thomson", seed=0, number=0)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is here")
def test_gp_without_torch_says_what_to_install() -> None:
    with pytest.raises(ParameterError, match="pip install torch"):
        make_sampler("gp", seed=0, number=0)


def test_skopt_that_is_not_installed_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "is_installed", lambda library: library != "skopt")
    monkeypatch.setattr(libraries, "why_not", libraries.why_not.__wrapped__)
    with pytest.raises(ParameterError, match="scikit-optimize is not installed: pip install scikit-optimize"):
        make_sampler("skopt", seed=0, number=0)
