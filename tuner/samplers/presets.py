"""Presets: settings of a search under one name, such as those of a published study.

The module loads the standard library alone, because `ranktune --help` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ranktune.solvers.core.table import NamedTable


@dataclass(frozen=True)
class Preset:
    """Settings of a study by name, which it has where it gives none: their defaults are empty or None.

    help    what it is, in a line
    values  setting -> value
    """

    help: str
    values: Mapping[str, object]

    def __str__(self) -> str:
        return _in_words(self.values)

    def missing(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Return the settings that these leave empty. The acquisition is one of sampler thompson alone."""
        inapplicable = () if settings["sampler"] == "thompson" else ("acquisition",)
        return {name: value for name, value in self.values.items() if not settings[name] and name not in inapplicable}

    def unchanged(self, settings: Mapping[str, object]) -> str:
        """Return in a line the settings that are as they are here: those that were not given otherwise."""
        return _in_words({name: value for name, value in self.values.items() if settings[name] == value})


def _in_words(values: Mapping[str, object]) -> str:
    texts = {name: " ".join(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


PRESETS: NamedTable[Preset] = NamedTable(
    "preset",
    {
        "elasticrank": Preset(
            "the search of the paper on ElasticRank",
            {"solvers": ("Ranker",), "acquisition": "thompson", "trials": 30},
        ),
    },
)
