"""Readers of exports: they score documents as the systems say that they do, and share no code with the writers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ranktune.solvers.export.readers.plugin import read_plugin
from ranktune.solvers.export.readers.ranklib import read_ranklib
from ranktune.solvers.export.readers.solr import read_solr
from ranktune.solvers.export.readers.trees import Score
from ranktune.solvers.export.readers.vespa import read_vespa

READERS: Mapping[str, Callable[[str, str], Score]] = {
    "solr": read_solr,
    "elasticsearch": read_plugin,
    "opensearch": read_plugin,
    "vespa": read_vespa,
    "ranklib": read_ranklib,
}
"""Format -> function(text, what an absent feature is in the engine) that returns what scores documents."""
