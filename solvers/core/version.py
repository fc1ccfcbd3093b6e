"""The version of RankTune."""

from __future__ import annotations

import importlib.metadata


def installed_version() -> str | None:
    """Return the installed version of RankTune, None where it runs from a source tree that was never installed."""
    try:
        return importlib.metadata.version("ranktune")
    except importlib.metadata.PackageNotFoundError:
        return None


def this_version() -> str:
    """Return the version of RankTune that runs."""
    return installed_version() or "of a source tree"
