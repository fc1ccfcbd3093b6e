"""What commands cost in these tests: their table is made once, and no worker processes are started by default."""

from collections.abc import Iterator
from functools import cache

import pytest
import typer.testing


@pytest.fixture(scope="module", autouse=True)
def cheap_commands() -> Iterator[None]:
    """Keep the table of commands, which a process makes once, and let a study have one job where it names none."""
    with pytest.MonkeyPatch.context() as patch:
        table = cache(typer.main.get_command)
        patch.setattr(typer.main, "get_command", table)
        patch.setattr(typer.testing, "_get_command", table)
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")
        yield
