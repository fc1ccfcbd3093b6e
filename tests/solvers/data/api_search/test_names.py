"""What a name means: written in a See Also section, or typed by a person."""

from __future__ import annotations

import pytest

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.api_search.documentation import Documented
from ranktune.solvers.data.api_search.names import PublicNames

OBJECTS = [
    Documented("numpy.argsort", (), False, "numpy", ""),
    Documented("numpy.linalg.norm", ("scipy.stats.norm_again",), False, "numpy.linalg._linalg", ""),
    Documented("numpy.ma.argsort", (), False, "numpy.ma.core", ""),
    Documented("numpy.ma.sort", ("numpy.ma.core.sort",), False, "numpy.ma.core", ""),
    Documented("numpy.sort", (), False, "numpy", ""),
    Documented("scipy.linalg.norm", (), False, "scipy.linalg._misc", ""),
    Documented("scipy.stats.Normal", (), True, "scipy.stats._new", ""),
]
KNOWN = PublicNames.of_documents(OBJECTS)


@pytest.mark.parametrize(
    ("resolve", "name", "meant"),
    [
        ("numpy.argsort", "sort", "numpy.sort"),
        ("numpy.ma.argsort", "sort", "numpy.ma.sort"),  # the nearest module wins
        ("numpy.ma.argsort", "numpy.sort", "numpy.sort"),
        ("numpy.ma.argsort", "np.sort", "numpy.sort"),
        ("numpy.argsort", "ma.sort", "numpy.ma.sort"),
        ("numpy.argsort", "linalg.norm", "numpy.linalg.norm"),
        ("numpy.argsort", "norm", "numpy.linalg.norm"),  # the only one of the package
        ("scipy.linalg.norm", "Normal", "scipy.stats.Normal"),
        ("scipy.linalg.norm", "sort", None),  # another package's
        ("numpy.argsort", "ndarray.sort", None),  # a method is not an object of its own
        ("scipy.stats.Normal", "norm_again", "numpy.linalg.norm"),
    ],
)
def test_relative_names(resolve: str, name: str, meant: str | None) -> None:
    number = KNOWN.resolve(next(each for each in OBJECTS if each.name == resolve), name)
    assert (None if number is None else KNOWN.names[number]) == meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("numpy.argsort", "numpy.argsort"),
        ("np.argsort", "numpy.argsort"),
        (" np.argsort() ", "numpy.argsort"),
        ("ma.argsort", "numpy.ma.argsort"),
        ("core.sort", "numpy.ma.sort"),
        ("Normal", "scipy.stats.Normal"),
        ("normal", "scipy.stats.Normal"),
    ],
)
def test_names_that_a_person_types(typed: str, meant: str) -> None:
    assert KNOWN.names[KNOWN.find(typed)] == meant


def test_several_are_listed() -> None:
    with pytest.raises(DataError, match=r"several names: numpy\.argsort and numpy\.ma\.argsort\. Write one"):
        KNOWN.find("argsort")


def test_none_gets_the_nearest() -> None:
    with pytest.raises(DataError, match=r"called 'numpy\.argsrot'\. Nearest: numpy\.argsort"):
        KNOWN.find("numpy.argsrot")
    with pytest.raises(DataError, match="Known are the public functions and classes of numpy, scipy"):
        KNOWN.find("x y")
    with pytest.raises(DataError):
        KNOWN.find("")


def test_a_name_beats_an_alias() -> None:
    known = PublicNames.of(["a.x", "b.x"], [("b.x", 0), ("c.x", 1), ("c.x", 0)])
    assert known.exactly("b.x") == 1 and known.exactly("c.x") == 1
