"""Tables of named things."""

import sys
from collections import Counter, OrderedDict
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from ranktune.solvers.core import libraries, table
from ranktune.solvers.core.errors import ParameterError, StudyError
from ranktune.solvers.core.table import NamedTable, TableEntry
from tests.support.commands import ended, output_of

GROUP = "tests.kinds"


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> NamedTable[Any]:
    """A thing that is here, two that are imported when they are used, and one whose library is not installed."""
    monkeypatch.setitem(libraries.INSTALL, "no_such_library", "pip install no_such_library")
    monkeypatch.setitem(libraries.NAMES, "no_such_library", "NSL")
    rows: dict[str, Any] = {
        "here": 7,
        "Counter": TableEntry("collections"),
        "ordered": TableEntry("collections:OrderedDict", "Keeps an order."),
        "lacking": TableEntry("collections", library="no_such_library"),
    }
    offers = {
        "packaged": EntryPoint("packaged", "collections:ChainMap", GROUP),
        "broken": EntryPoint("broken", "collections:Nothing", GROUP),
    }
    monkeypatch.setattr(table, "offered", lambda group: offers if group == GROUP else {})
    return NamedTable("kind", rows, group=GROUP, remedy="Or write one.", error=StudyError)


def test_names_stand_in_their_order_and_what_can_be_used_is_found(kinds: NamedTable[Any]) -> None:
    assert list(kinds) == ["here", "Counter", "ordered"] and len(kinds) == 3
    assert kinds.names == ("here", "Counter", "ordered", "lacking", "broken", "packaged")
    assert kinds["here"] == 7 and kinds["Counter"] is Counter and kinds.find("COUNTER") is Counter
    assert kinds.find("Ordered") is OrderedDict
    assert "lacking" not in kinds and "counter" not in kinds
    with pytest.raises(KeyError):
        kinds["lacking"]


def test_help_is_that_of_the_entry_or_of_the_docstring(kinds: NamedTable[Any]) -> None:
    assert kinds.help("ordered") == "Keeps an order."
    assert kinds.help("Counter") == str(Counter.__doc__).strip().partition("\n")[0]


def test_errors_name_the_nearest_and_what_to_install(kinds: NamedTable[Any]) -> None:
    with pytest.raises(StudyError, match=r"no kind 'count'\. Did you mean 'Counter'\? Known: .* Or write one\.$"):
        kinds.find("count")
    with pytest.raises(StudyError, match=r"lacking: NSL is not installed: pip install no_such_library\.$"):
        kinds.find("lacking")


def test_installed_packages_offer_more(kinds: NamedTable[Any]) -> None:
    assert kinds.find("PACKAGED").__name__ == "ChainMap"
    assert "packaged" in kinds and kinds.names[-2:] == ("packaged", "broken")
    with pytest.raises(ParameterError, match="'broken' cannot be imported from collections:Nothing"):
        kinds.find("broken")


def test_what_a_package_offers_is_made_an_entry(kinds: NamedTable[Any]) -> None:
    adopting: NamedTable[Any] = NamedTable("kind", {}, group=GROUP, adopt="tests.solvers.core.test_table:named_pair")
    assert adopting.find("packaged") == ("packaged", "ChainMap")


def named_pair(name: str, value: type) -> tuple[str, str]:
    return name, value.__name__


def test_things_are_added_and_removed(kinds: NamedTable[Any]) -> None:
    kinds["more"] = 8
    assert kinds.find("More") == 8 and list(kinds)[-1] == "more"
    del kinds["more"]
    assert kinds.spelling("more") is None
    assert kinds.completions("all")("") == ["all", "here", "Counter", "ordered", "lacking"]
    assert kinds.completions()("C") == ["Counter"]


def test_nothing_is_imported_before_it_is_used() -> None:
    code = (
        "import sys; from ranktune.solvers.core.table import NamedTable, TableEntry;"
        "kinds = NamedTable('kind', {'Fraction': TableEntry('fractions')}, package='');"
        "list(kinds), kinds.names, kinds.spelling('fraction'), 'Fraction' in kinds;"
        "print('fractions' in sys.modules, 'numpy' in sys.modules)"
    )
    assert output_of(code) == "False False\n"


def test_the_current_folder_is_searched_once_a_module_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A library that is not installed is not taken from there."""
    (tmp_path / "lies_here.py").write_text("Mine = 1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    ended(monkeypatch, "solvers", "RidgeRanker")
    assert str(tmp_path) not in sys.path
    assert table.named("lies_here:Mine") == 1
