"""Parsing: the See Also section is found in all its spellings, gives its names, and leaves nothing behind."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from ranktune.solvers.data.api_search.docstrings import parse


def see_also(*lines: str) -> tuple[str, ...]:
    """The names found in a See Also section of these lines."""
    return parse("\n".join(["Do it.", "", "See Also", "--------", *lines])).see_also


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["sort"], ("sort",)),
        (["sort : Sort an array, see `argsort` for the order."], ("sort",)),
        (["sin, cos : Both of them."], ("sin", "cos")),
        (["sin , cos, tan"], ("sin", "cos", "tan")),
        (["sin, cos,", "tan : The last one."], ("sin", "cos", "tan")),
        (["sin, cos."], ("sin", "cos")),
        ([":func:`norm`"], ("norm",)),
        ([":func:`norm`, :py:class:`~scipy.stats.Normal` : two roles"], ("norm", "scipy.stats.Normal")),
        (["`numpy.sort` : in backticks"], ("numpy.sort",)),
        (["numpy.ma.sort: no space before the colon"], ("numpy.ma.sort",)),
        (["sort", "    Names of descriptions, such as argsort, are not targets.", "lexsort"], ("sort", "lexsort")),
        (["sort :", "    Goes on below.", "", "lexsort : Other."], ("sort", "lexsort")),
        (["Refer to `sort` and to :meth:`the other one <numpy.lexsort>` for more."], ("sort", "numpy.lexsort")),
        (["sort()"], ("sort",)),
        (["sort", "sort : again"], ("sort",)),
        (["    indented : as cleandoc leaves it not"], ()),
    ],
)
def test_names_of_a_section(lines: list[str], names: tuple[str, ...]) -> None:
    assert see_also(*lines) == names


def test_section_ends_at_the_next_heading_and_leaves_nothing() -> None:
    page = parse("Do it.\n\nSee Also\n--------\nsecret : hidden words\n    and more\n\nNotes\n-----\nShown.\n")
    assert page.see_also == ("secret",)
    assert page.body.split() == ["Notes", "-----", "Shown."]


@pytest.mark.parametrize(
    "block",
    [
        ".. seealso::\n    Use :func:`~pkg.secret` instead.\n\n    And `hidden`.",
        ".. seealso:: :func:`pkg.secret`\n    and `hidden`",
        "See also:\n    :class:`pkg.secret` and `hidden`",
    ],
)
def test_blocks_of_other_styles_are_judgments_too(block: str) -> None:
    page = parse(f"Do it.\n\n{block}\n\nArgs:\n    x: A number.\n")
    assert page.see_also == ("pkg.secret", "hidden")
    assert "secret" not in page.body and "hidden" not in page.body and "A number." in page.body


def test_the_words_see_also_inside_a_sentence_are_text() -> None:
    page = parse("Do it.\n\nNotes\n-----\nSee also `sort` for more.\n")
    assert page.see_also == () and "`sort`" in page.body


def test_summary_is_the_first_paragraph_of_prose_on_one_line() -> None:
    page = parse("add(x1, x2, /, out=None)\n\nAdd arguments\nelement-wise.\n\nParameters\n----------\nx1 : array\n")
    assert page.summary == "Add arguments element-wise."
    assert page.body.startswith("add(x1, x2") and "Add arguments" not in page.body


def test_a_sentence_that_calls_a_function_is_no_signature() -> None:
    assert parse("log(1 + x) for small x, accurately.\n\nMore.").summary == "log(1 + x) for small x, accurately."


def test_without_prose_the_summary_is_empty() -> None:
    assert parse("f(x)").summary == ""
    assert parse("").summary == "" and parse("").see_also == ()


def test_real_pages() -> None:
    sort = parse(np.argsort.__doc__ or "")
    assert {"sort", "lexsort", "argpartition", "take_along_axis"} <= set(sort.see_also)
    assert sort.summary == "Returns the indices that would sort an array."
    assert "take_along_axis : " not in sort.body and "Parameters" in sort.body
    assert {"RidgeClassifier", "RidgeCV"} <= {name.rpartition(".")[2] for name in parse(Ridge.__doc__).see_also}
