"""A parameter that is declared once is in the constructor, the search space, the check and the docstring."""

import inspect
import pickle
from dataclasses import KW_ONLY
from typing import Annotated, Any

import pytest
from sklearn.base import clone

from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.checks import check_not_negative
from ranktune.solvers.core.declared import documented
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.core.parameters import Param, Range, part, with_parameters
from ranktune.solvers.core.space import Choice, Float, Int, When


@with_parameters
class Example(BaseRanker):
    """An example.

    {parameters}
    """

    strength: Annotated[float, Param("A strength.", check=check_not_negative)] = 0.5
    _: KW_ONLY
    kind: Annotated[str, Param("A kind.", choices=("a", "b", "c"), searched=("a", "b"))] = "b"
    count: Annotated[int | None, Param("A count.", low=1, high=9, log=True, when=When("kind", ("a",)))] = 3
    rate: Annotated[
        float,
        Param(
            "A rate.",
            ranges=(
                Range(low=0.1, high=1.0, when=When("kind", ("b",))),
                Range(low=1.0, high=9.0, default=2.0, when=When("kind", ("a",))),
            ),
        ),
    ] = 0.3
    flag: Annotated[bool, Param("A flag.")] = False


@with_parameters
class Narrower(Example):
    """One with a parameter more, and another default."""

    strength: Annotated[float, Param("A strength.", low=1.0, high=2.0)] = 1.0
    extra: Annotated[int, Param("One more.")] = 1
    flag = True
    space_order = ("kind", "strength")


class Fitting(BaseRanker):
    """A base.

    Attributes
    ----------
    coef_ : ndarray
        The weights,
        one a feature.
    n_iter_, score_ : float
        Two.
    """


@with_parameters
class FittingMore(Fitting):
    """A solver.

    {attributes}
    n_iter_, score_ : int
        Counts.
    more_ : int
        One more.

    References
    ----------
    Nobody.
    """


@with_parameters
class FittingTheSame(FittingMore):
    """A solver that fits the same.

    {attributes}
    """


def test_the_constructor_is_what_the_fields_say() -> None:
    assert str(inspect.signature(Example)).replace("'", '"') == (
        '(strength: float = 0.5, *, kind: str = "b", count: int | None = 3, rate: float = 0.3, flag: bool = False)'
    )
    example: Any = Example(0.0, kind="a")
    assert example.get_params() == {"strength": 0.0, "kind": "a", "count": 3, "rate": 0.3, "flag": False}
    assert repr(example) == "Example(kind='a', strength=0.0)"
    for copy in (clone(example), pickle.loads(pickle.dumps(example))):
        assert copy is not example and copy.get_params() == example.get_params()
    with pytest.raises(TypeError, match=r"Example has no parameter 'knd'\. Did you mean 'kind'"):
        Example(knd="a")  # type: ignore[call-arg]


def test_the_search_space_is_what_the_fields_say() -> None:
    space = (
        Choice("kind", ("a", "b"), "b"),
        Int("count", 1, 9, 3, log=True, when=When("kind", ("a",))),
        Float("rate", 0.1, 1.0, 0.3, when=When("kind", ("b",))),
        Float("rate", 1.0, 9.0, 2.0, when=When("kind", ("a",))),
    )
    assert Example.space == space
    assert Narrower.space == (space[0], Float("strength", 1.0, 2.0, 1.0), *space[1:])


def test_the_docstring_describes_the_fields() -> None:
    assert inspect.getdoc(Example) == (
        "An example.\n\nParameters\n----------\n"
        "strength : float, default=0.5\n    A strength.\n"
        'kind : {"a", "b", "c"}, default="b"\n    A kind.\n'
        "count : int or None, default=3\n    A count.\n"
        "rate : float, default=0.3\n    A rate.\n"
        "flag : bool, default=False\n    A flag."
    )


def test_a_section_is_indented_as_its_place_is() -> None:
    """Python 3.13 and later dedent docstrings when they compile."""

    def indented() -> None:
        """Do it.

        {parameters}
        """

    def dedented() -> None: ...

    dedented.__doc__ = inspect.cleandoc(indented.__doc__ or "")
    docstrings = [inspect.getdoc(documented(Example)(function)) for function in (indented, dedented)]
    assert docstrings[0] == docstrings[1] and "\nParameters\n----------\n" in str(docstrings[0])


def test_the_docstring_describes_what_the_bases_fit() -> None:
    attributes = (
        "Attributes\n----------\ncoef_ : ndarray\n    The weights,\n    one a feature.\n"
        "n_iter_, score_ : int\n    Counts.\nmore_ : int\n    One more."
    )
    assert inspect.getdoc(FittingMore) == f"A solver.\n\n{attributes}\n\nReferences\n----------\nNobody."
    assert inspect.getdoc(FittingTheSame) == f"A solver that fits the same.\n\n{attributes}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strength": -1.0}, "strength=-1.0: it must be a number of at least 0"),
        ({"kind": "d"}, "kind='d' is unknown"),
        ({"count": 0}, "count=0: it must be a whole number of at least 1"),
        ({"rate": 0.0}, "rate=0.0: it must be a positive number"),
        ({"flag": 1}, "flag=1: it must be True or False"),
    ],
)
def test_values_are_checked_by_type_and_choices(given: dict[str, Any], message: str) -> None:
    Example(count=None, kind="c").check_parameters()
    ranker = Example(**given)
    with pytest.raises(ParameterError, match=message):
        ranker.check_parameters()


def test_a_part_is_checked_when_it_is_made_and_equal_to_its_like() -> None:
    @part
    class Half:
        """Half of something.

        {parameters}
        """

        share: Annotated[float, Param("A share.")] = 0.5

    assert Half() == Half(0.5) and hash(Half()) == hash(Half(0.5)) and "share : float, default=0.5" in str(Half.__doc__)
    with pytest.raises(ParameterError, match="share=0: it must be a positive number"):
        Half(0)


def test_a_parameter_of_unknown_meaning_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Vague\.what has no check"):

        @with_parameters
        class Vague(BaseRanker):
            what: Annotated[list[int], Param("Anything.")] = None  # type: ignore[assignment]
