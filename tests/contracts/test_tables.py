"""Properties of every table: its entries can be imported, have a description, and are looked up by name."""

import ast
import re
from importlib import import_module
from typing import Any

import pytest

from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.core.table import NamedTable, named
from tests.contracts.test_layout import Module, modules
from tests.support.paths import ROOT, parsed

PLACE = re.compile(r"(ranktune|tests)(\.\w+)+:\w+")


def imported(module: Module) -> Any:
    return import_module(".".join(("ranktune", *module)).replace(".face", ""))


TABLES: dict[str, NamedTable[Any]] = {
    f"{'.'.join(module)}.{node.target.id}": getattr(imported(module), node.target.id)
    for module, path in modules().items()
    for node in parsed(path).body
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    if ast.unparse(node.annotation).startswith("NamedTable[")
}


@pytest.mark.parametrize("name", TABLES)
def test_entries_can_be_used_and_say_what_they_are(name: str) -> None:
    table = TABLES[name]
    for entry in table:
        assert table.find(entry.upper()) is table[entry]
        assert table.help(entry), entry
    with pytest.raises(RankTuneError, match=rf"there is no {table.kind} 'no such thing'\. .*{min(table, default='')}"):
        table.find("no such thing")


def test_every_place_that_is_named_can_be_imported() -> None:
    files = [*modules().values(), *(ROOT / "tests" / "support").rglob("*.py")]
    texts = [node.value for path in files for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)]
    texts += re.findall('"([^"]+)"', (ROOT / "pyproject.toml").read_text())
    places = {text for text in texts if isinstance(text, str) and PLACE.fullmatch(text)}
    assert len(places) > 4 and len(TABLES) > 14
    assert all(callable(named(place)) for place in places)
