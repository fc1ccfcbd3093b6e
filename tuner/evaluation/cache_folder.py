"""The user's folder for what can be computed, or fetched, again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder for what can be computed again: RANKTUNE_CACHE, or the place the platform has for it."""
    chosen = os.environ.get("RANKTUNE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Caches/ranktune").expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path("~/AppData/Local").expanduser()) / "ranktune" / "Cache"
    # the XDG rule: a relative path in the variable is to be ignored
    xdg = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return (xdg if xdg.is_absolute() else Path("~/.cache")).expanduser() / "ranktune"
