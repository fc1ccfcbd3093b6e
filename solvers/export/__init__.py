"""Models in the formats of the systems that serve them."""

from ranktune.solvers.export.exporting import export
from ranktune.solvers.formats import FORMATS

__all__ = ["FORMATS", "export"]
