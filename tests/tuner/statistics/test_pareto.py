"""Fronts, knees and limits: brute force over random options, laws, and what a wrong limit says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.statistics.pareto import COSTS, Option, best_within, cost_name, front, knee, parse_limits

COST = st.one_of(st.none(), st.just(math.nan), st.integers(0, 6).map(float))
BRIEFLY = settings(max_examples=60, deadline=None)
OPTIONS = st.lists(
    st.builds(
        Option,
        label=st.text(max_size=3),
        quality=st.one_of(st.just(math.nan), st.integers(0, 6).map(lambda k: k / 8)),
        nonzeros=COST,
        microseconds=COST,
    ),
    max_size=8,
)


def known(option: Option, cost: str = "nonzeros") -> bool:
    return not math.isnan(option.amount(cost)) and not math.isnan(option.quality)


def beats(option: Option, other: Option) -> bool:
    """At least as good in both and better in one."""
    ours, theirs = (option.quality, -option.amount("nonzeros")), (other.quality, -other.amount("nonzeros"))
    return ours != theirs and ours[0] >= theirs[0] and ours[1] >= theirs[1]


@BRIEFLY
@given(OPTIONS)
def test_front_is_what_nobody_beats(options: list[Option]) -> None:
    kept = front(options, "nonzeros")
    candidates = [option for option in options if known(option)]
    unbeaten = [option for option in candidates if not any(beats(other, option) for other in candidates)]
    expected = {(option.nonzeros, option.quality) for option in unbeaten}
    assert [(option.nonzeros, option.quality) for option in kept] == sorted(
        expected
    )  # each once, by cost, quality rising
    for option in kept:
        same = [o for o in candidates if (o.nonzeros, o.quality) == (option.nonzeros, option.quality)]
        assert option is same[0]


@BRIEFLY
@given(OPTIONS)
def test_knee_is_of_the_front(options: list[Option]) -> None:
    kept, result = front(options, "nonzeros"), knee(options, "nonzeros")
    assert (result is None) == (not kept)
    assert result is None or any(result is option for option in kept)
    if 0 < len(kept) < 3:
        assert result is kept[-1]


def test_an_infinite_cost_is_on_no_front() -> None:
    cheap, endless = Option("cheap", 0.1, seconds=1.0), Option("endless", 0.9, seconds=math.inf)
    assert front([cheap, endless], "seconds") == [cheap] and knee([endless], "seconds") is None
    assert best_within([cheap, endless], {}) is endless and best_within([cheap, endless], {"seconds": 9.0}) is cheap


def curve(costs: list[float], qualities: list[float]) -> list[Option]:
    return [Option(str(cost), quality, nonzeros=cost) for cost, quality in zip(costs, qualities, strict=True)]


def test_knee_lies_farthest_from_the_chord() -> None:
    """Brute force: the distance of each point from the line through the ends, by the cross product."""
    generator = np.random.default_rng(0)
    for _ in range(50):
        costs = np.sort(generator.choice(np.arange(1, 1_000), 12, replace=False)).astype(float)
        steps = np.sort(generator.random(11))[::-1]  # less and less is gained: every point lies above the chord
        slopes = steps * np.diff(np.log(costs))
        options = curve(list(costs), list(0.3 + np.concatenate([[0.0], np.cumsum(slopes)])))
        x = (np.log(costs) - np.log(costs[0])) / np.log(costs[-1] / costs[0])
        y = np.array([option.quality for option in options])
        y = (y - y[0]) / (y[-1] - y[0])
        distances = [abs(np.cross([1.0, 1.0, 0.0], [p, q, 0.0])[2]) / math.sqrt(2) for p, q in zip(x, y, strict=True)]
        assert knee(options, "nonzeros") is options[int(np.argmax(distances))]


def test_a_front_that_pays_more_and_more_has_its_knee_at_the_best() -> None:
    assert knee(curve([1, 10, 100], [0.1, 0.2, 0.9]), "nonzeros") == Option("100", 0.9, nonzeros=100)


def test_a_cost_of_nothing_has_a_place_too() -> None:
    assert knee(curve([0, 1, 2, 64], [0.1, 0.5, 0.8, 0.82]), "nonzeros") == Option("2", 0.8, nonzeros=2)


@BRIEFLY
@given(OPTIONS, st.dictionaries(st.sampled_from(["nonzeros", "features", "microseconds"]), st.integers(0, 6)))
def test_best_within_limits_is_the_best_of_those_that_keep_them(options: list[Option], limits: dict[str, int]) -> None:
    allowed = [
        option
        for option in options
        if not math.isnan(option.quality) and all(option.amount(name) <= most for name, most in limits.items())
    ]
    result = best_within(options, limits)
    assert (result is None) == (not allowed)
    if result is not None:
        assert any(result is option for option in allowed)
        assert result.quality == max(option.quality for option in allowed)
        rivals = [option for option in allowed if option.quality == result.quality]
        costs = [[option.amount(name) for name in limits] for option in rivals]
        assert [result.amount(name) for name in limits] == min(costs)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", {}),
        (" , ", {}),
        ("nonzeros<=29, microseconds<=0.5", {"nonzeros": 29.0, "microseconds": 0.5}),
        ("features <= 29", {"nonzeros": 29.0}),
        ("bytes<=10k,seconds<=1e2", {"bytes": 10_000.0, "seconds": 100.0}),
        ("bytes<=1.5M", {"bytes": 1_500_000.0}),
        ("features<=30,nonzeros<=20", {"nonzeros": 20.0}),  # two spellings of one cost: the tighter
        ("microseconds<=.5", {"microseconds": 0.5}),
    ],
)
def test_limits_are_read(text: str, limits: dict[str, float]) -> None:
    assert parse_limits(text) == limits


@BRIEFLY
@given(st.dictionaries(st.sampled_from(COSTS), st.floats(0, 1e12)))
def test_written_limits_are_read_back(limits: dict[str, float]) -> None:
    assert parse_limits(", ".join(f"{name}<={most!r}" for name, most in limits.items())) == limits


@pytest.mark.parametrize(
    "text", ["nonzeros", "nonzeros<29", "nonzeros<=", "nonzeros<=-1", "<=3", "nonzeros<=nan", "bytes<=1K", "bytes<=1 2"]
)
def test_what_is_no_limit_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(ParameterError, match=r"nonzeros<=29 or bytes<=10k.*microseconds, nonzeros, seconds"):
        parse_limits(text)


def test_an_infinite_limit_is_refused() -> None:
    with pytest.raises(ParameterError, match="Leave the limit out"):
        parse_limits("bytes<=1e999")


@pytest.mark.parametrize("call", [lambda: parse_limits("nonzero<=3"), lambda: cost_name("nonzero")])
def test_a_misspelt_cost_is_told_the_nearest(call: object) -> None:
    with pytest.raises(ParameterError, match="Did you mean 'nonzeros'"):
        call()  # type: ignore[operator]
    with pytest.raises(ParameterError, match="no cost"):
        front([Option("a", 1.0)], "latency")
