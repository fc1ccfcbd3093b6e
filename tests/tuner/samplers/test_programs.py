"""Random define-by-run programs: what they ask for is learnt, and no configuration of theirs is tried twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import optuna
import pytest

from ranktune.tuner import ThompsonSampler
from ranktune.tuner.samplers.history import TrialHistory, read, seen_distributions
from tests.support.optuna_studies import optimised

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")  # of what enumerates

Guard: TypeAlias = Callable[[Mapping[str, float]], bool]


def seeds(usual: int, thorough: int, slow: int) -> list[object]:
    """Return 0, 1, ...: so many for every run, the next up to thorough and then up to slow with these marks."""
    marked = ((pytest.mark.thorough, range(usual, thorough)), (pytest.mark.slow, range(thorough, slow)))
    return [*range(usual), *(pytest.param(seed, marks=mark) for mark, numbers in marked for seed in numbers)]


@dataclass(frozen=True)
class Question:
    """A parameter of a program: what it is, when it is asked for, and how much it matters."""

    name: str
    kind: str
    guard: Guard
    weight: float
    size: int

    def ask(self, trial: optuna.Trial) -> float:
        match self.kind:
            case "float":
                return trial.suggest_float(self.name, 0.0, 1.0)
            case "int":
                return trial.suggest_int(self.name, 0, self.size)
            case "flag":
                return trial.suggest_int(self.name, 0, 1)
        return 1.0 * "abcdefgh".index(str(trial.suggest_categorical(self.name, "abcdefgh"[: self.size])))


@dataclass(frozen=True)
class Program:
    """A random program: questions, each asked where its guard holds, and `for i in range(n)` over some of them."""

    questions: tuple[Question, ...]

    @classmethod
    def random(cls, seed: int, numbers: bool) -> Program:
        """Return a program of about ten questions, the later ones guarded by values of the earlier ones."""
        generator = np.random.default_rng(seed)
        questions: list[Question] = []
        kinds = ["float", "int", "flag", "category"] if numbers else ["int", "flag", "category"]
        while len(questions) < 10:
            name, kind = f"p{len(questions)}", str(generator.choice(kinds))
            guard = _always if len(questions) < 2 else _guard(generator, questions)
            size = int(generator.integers(2, 5))
            questions.append(Question(name, kind, guard, float(generator.normal()), size))
            if kind == "int" and generator.random() < 0.5:  # for i in range(n)
                questions += [
                    Question(f"{name}_{i}", str(generator.choice(kinds)), _above(name, i), 1.0, 2) for i in range(size)
                ]
        return cls(tuple(questions))

    def __call__(self, trial: optuna.Trial) -> float:
        values: dict[str, float] = {}
        for question in self.questions:
            if question.guard(values):
                values[question.name] = question.ask(trial)
        return float(sum(q.weight * np.sin(3 * values[q.name]) for q in self.questions if q.name in values))

    def count(self, most: int) -> int:
        """Return how many configurations the program has, at most that many."""
        if any(question.kind == "float" for question in self.questions):
            return most
        every = optimised(self, most, sampler=optuna.samplers.BruteForceSampler(seed=0))
        return len({asked(trial) for trial in every.trials})


def _always(values: Mapping[str, float]) -> bool:
    return True


def _above(name: str, least: float) -> Guard:
    return lambda values: values.get(name, -1.0) > least


def _among(name: str, allowed: set[float]) -> Guard:
    return lambda values: values.get(name) in allowed


def _guard(generator: np.random.Generator, before: list[Question]) -> Guard:
    """Return nothing to hold, or a rule on one earlier value or two: a set of values, a threshold, and, or."""
    if generator.random() < 0.3:
        return _always
    rules: list[Guard] = []
    for _ in range(2):
        other = before[int(generator.integers(len(before)))]
        if other.kind == "float":
            rules.append(_above(other.name, float(generator.uniform(0.3, 0.7))))
        else:
            allowed = {float(v) for v in generator.choice(4, 2, replace=False)}
            rules.append(_among(other.name, allowed))
    first, second = rules
    match int(generator.integers(3)):
        case 0:
            return first
        case 1:
            return lambda values: first(values) and second(values)
    return lambda values: first(values) or second(values)


def asked(trial: optuna.trial.FrozenTrial) -> str:
    return str(sorted(trial.params.items()))


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("seed", seeds(2, 8, 30))
def test_the_suggestions_to_a_random_program_are_not_repeated(seed: int, numbers: bool) -> None:
    program = Program.random(seed, numbers)
    study = optimised(program, 24, sampler=ThompsonSampler(seed=seed, startup=5))
    assert len({asked(trial) for trial in study.trials}) == min(24, program.count(24))


@pytest.mark.parametrize("seed", seeds(2, 6, 20))
def test_running_trials_of_other_processes_are_seen_and_not_repeated(seed: int) -> None:
    """Four workers, each with its own sampler and study object, as processes on one storage have them."""
    program, storage = Program.random(seed, numbers=False), optuna.storages.InMemoryStorage()
    name = optuna.create_study(storage=storage).study_name
    waiting: list[tuple[optuna.Study, optuna.Trial, float]] = []
    for number in range(28):
        sampler = ThompsonSampler(seed=seed, startup=5)
        study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
        trial = study.ask()
        waiting.append((study, trial, program(trial)))
        if number >= 4:
            others, other, value = waiting.pop(0)
            others.tell(other, value)
            seen = history_of(study)
            assert len(seen.trials.pending) == len(waiting) and seen.completed == number - 3
    trials = optuna.load_study(study_name=name, storage=storage).trials
    assert len({asked(trial) for trial in trials[5:]}) >= 0.95 * min(23, program.count(28) - 5)


def history_of(study: optuna.Study) -> TrialHistory:
    return read(study, None, seen_distributions(study.get_trials(deepcopy=False)))


def rules_of(program: Callable[[optuna.Trial], float], trials: int) -> TrialHistory:
    study = optimised(program, trials, sampler=optuna.samplers.RandomSampler(seed=0))
    return history_of(study)


def by_integer(trial: optuna.Trial) -> float:
    return sum(trial.suggest_float(f"x{i}", 0, 1) for i in range(trial.suggest_int("n", 1, 6)))


def by_threshold(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 0, 1) if trial.suggest_int("k", 0, 99) > 49 else trial.suggest_float("y", 0, 1)


def by_either(trial: optuna.Trial) -> float:
    a, b = trial.suggest_int("a", 0, 1), trial.suggest_categorical("b", ["p", "q", "r"])
    return trial.suggest_float("x", 0, 1) if a or b == "r" else 0.0


def by_two(trial: optuna.Trial) -> float:
    a, b = trial.suggest_int("a", 0, 1), trial.suggest_int("b", 0, 9)
    return trial.suggest_float("x", 0, 1) if a and 3 <= b < 7 else 0.0


def by_an_odd_number(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 0, 1) if trial.suggest_int("n", 0, 5) % 2 else trial.suggest_float("y", 0, 1)


def by_what_a_category_asks(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    if kind == "b" and trial.suggest_categorical("own", [True, False]):
        return trial.suggest_int("below", 1, 5)
    return trial.suggest_float("x", 0, 1) if kind == "a" else 0.0


@pytest.mark.parametrize(
    "program", [by_integer, by_threshold, by_either, by_two, by_an_odd_number, by_what_a_category_asks]
)
def test_what_decides_is_learnt(program: Callable[[optuna.Trial], float]) -> None:
    """From 80 random trials; of others, at least 95 of 100 ask for what was learnt."""
    seen = rules_of(program, 80)
    fresh = optimised(program, 300, sampler=optuna.samplers.RandomSampler(seed=1))
    names = list(seen.distributions)
    right = 0
    for trial in fresh.trials:
        values = [trial.params.get(name, 0.0) for name in names]
        internal = [seen.distributions[n].to_internal_repr(v) if n in trial.params else 0.0
                    for n, v in zip(names, values, strict=True)]  # fmt: skip
        row = np.array([[a.encode(np.array([v]))[0] for a, v in zip(seen.encoding.axes, internal, strict=True)]])
        active = seen.encoding.activity(row)[0]
        right += {n for n, is_active in zip(names, active, strict=True) if is_active} == set(trial.params)
    assert right >= 285


def test_trials_that_nothing_tells_apart_leave_a_parameter_active() -> None:
    def whimsical(trial: optuna.Trial) -> float:
        return trial.suggest_int("n", 0, 1) + (trial.suggest_float("x", 0, 1) if trial.number % 2 else 0.0)

    seen = rules_of(whimsical, 20)
    assert seen.encoding.activity(np.array([[0.25, 0.5], [0.75, 0.5]])).all()


def test_a_value_that_is_no_longer_a_choice_takes_nothing() -> None:
    study = optuna.create_study()
    old = optuna.distributions.CategoricalDistribution(("a", "old"))
    trial = optuna.trial.create_trial(
        value=0.0,
        params={"k": 1, "c": "old"},
        distributions={"k": optuna.distributions.IntDistribution(0, 3), "c": old},
    )
    study.add_trial(trial)
    new = {"c": optuna.distributions.CategoricalDistribution(("a", "b")), "k": trial.distributions["k"]}
    assert len(read(study, None, new).tried) == 0
    assert len(read(study, None, {**new, "c": old}).tried) == 1
