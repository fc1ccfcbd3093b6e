"""How often a process looks for garbage that holds itself in a ring."""

from __future__ import annotations

import gc

NEW_OBJECTS = 10_000
"""New objects between two looks at the youngest; Python's own number is 700, made for programs without libraries."""


def collect_seldom() -> None:
    """Have this process look seldom; for processes that are ours from their start, the command and its workers.

    Loading the libraries makes half a million objects that stay. Looking through all of them takes up to 0.1 s and
    finds nothing, and with Python's own number it would be done four times while they are loaded.
    """
    gc.set_threshold(NEW_OBJECTS)
