"""Large files that were read before, converted, in the user's cache folder.

The first reading of a file leaves its converted form, and the next ones map that, if neither the file nor the form has
changed. What is in the cache can be removed at any time; it is at most LIMIT bytes, of which those that were used
longest ago go first. RANKTUNE_DATA_CACHE=off does without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ranktune.solvers.core.errors import DataError, warn
from ranktune.solvers.core.files.atomic import remove_drafts
from ranktune.solvers.core.files.private import cached, private_folder
from ranktune.solvers.data.conversion.convert import facts_of, write_into
from ranktune.solvers.data.disk.stored import is_stored, read_queries, source_of
from ranktune.solvers.data.disk.writer import INDEX, VERSION
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import LoadOptions

SMALLEST = 50 << 20
"""Bytes of a file whose converted form is kept; smaller ones are read as fast."""
LIMIT = 20 << 30
SWITCH = "RANKTUNE_DATA_CACHE"


def is_worth_keeping(path: Path) -> bool:
    """Return whether the converted form of a file is kept."""
    return os.environ.get(SWITCH) != "off" and path.is_file() and path.stat().st_size >= SMALLEST


def read_cached(path: Path, read: Callable[[], Queries], options: LoadOptions) -> Queries:
    """Return the queries of a file, from their converted form if there is one, and leave one if not.

    read reads the file into memory: it is called where the converted form cannot be written, after one warning.
    """
    facts = facts_of(path)
    qrels = options.get("qrels")
    judgments = [] if qrels is None else [facts_of(Path(qrels))]  # of other content they give other grades
    named = repr((VERSION, facts["path"], sorted(options.items()), *judgments))
    name = hashlib.blake2b(named.encode(), digest_size=16).hexdigest()

    def opened(folder: Path) -> Queries | None:
        with suppress(DataError):
            if source_of(folder) == facts:
                return read_queries(folder, check=True)
        return None

    def write(folder: Path) -> None:
        write_into(folder, path, read, options, sync=False)

    try:
        folder = private_folder("data") / name
        queries = cached(folder, opened, write)
        _make_room(folder)
    except OSError as error:
        warn(
            f"{path}: its converted form cannot be kept ({error.strerror or error}): it will be read anew each time. "
            "Set RANKTUNE_CACHE to another folder, of yours alone and with room."
        )
        return read()
    with suppress(OSError):
        os.utime(folder / INDEX)  # the time of its latest use
    return queries


def _make_room(used: Path) -> None:
    """Remove the folders that were used longest ago, other than the used one, while all take more than LIMIT bytes."""
    remove_drafts(used.parent)
    sizes = {folder: _size(folder) for folder in used.parent.iterdir()}  # drafts of other processes too
    for folder in sorted(filter(is_stored, sizes), key=_last_use):
        if sum(sizes.values()) <= LIMIT:
            return
        if folder != used:
            del sizes[folder]
            shutil.rmtree(folder, ignore_errors=True)


def _size(folder: Path) -> int:
    with suppress(OSError):
        return sum(path.stat().st_size for path in folder.iterdir())
    return 0


def _last_use(folder: Path) -> float:
    with suppress(OSError):
        return (folder / INDEX).stat().st_mtime
    return 0.0
