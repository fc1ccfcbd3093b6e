"""Properties of every table: its entries can be imported, have a description, and are looked up by name."""

from typing import Any

import pytest

from ranktune.dashboards.views.registry import VIEWS
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.core.table import NamedTable
from ranktune.solvers.data.readers.formats import READERS
from ranktune.solvers.formats import FORMATS
from ranktune.solvers.metrics.presets import MEASURES
from ranktune.solvers.names import PARTS, SOLVERS
from ranktune.tuner.evaluation.names import PLANS
from ranktune.tuner.samplers.presets import PRESETS
from ranktune.tuner.samplers.registry import SAMPLERS

TABLES: tuple[NamedTable[Any], ...] = (SOLVERS, PARTS, MEASURES, FORMATS, READERS, VIEWS, SAMPLERS, PLANS, PRESETS)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_entries_can_be_used_and_say_what_they_are(table: NamedTable[Any]) -> None:
    for name in table:
        assert table.find(name.upper()) is table[name]
        assert table.help(name), name
    with pytest.raises(RankTuneError, match=rf"there is no {table.kind} 'no such thing'\. Known: {sorted(table)[0]}"):
        table.find("no such thing")
