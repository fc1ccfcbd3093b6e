"""Models in the formats of the systems that serve them."""

from ranktune.solvers.export.formats import FORMATS, export

__all__ = ["FORMATS", "export"]
