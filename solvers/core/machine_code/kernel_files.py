"""How numba reads and writes the files of a kernel: its own readers believe what they find, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path

from numba.core.caching import IndexDataCacheFile
from numba.core.event import trigger_event

from ranktune.solvers.core.files.atomic import locked
from ranktune.solvers.core.machine_code.folders import is_believed, keep

WAITING = "ranktune:waiting"


class KernelFiles(IndexDataCacheFile):
    """The index and the machine code of a kernel. One process compiles what is missing or not believed."""

    _held = ExitStack()

    def load(self, key: object) -> object:
        """Return the machine code of a signature, None where this process is to compile it."""
        self._held.close()  # after an error
        code = self._loaded(key)
        if code is None:
            self._held, path = ExitStack(), Path(self._index_path)
            with suppress(OSError):
                path.parent.mkdir(0o700, exist_ok=True)
                try:
                    self._held.enter_context(locked(path, 0.0))
                except TimeoutError:
                    with trigger_event(WAITING):
                        self._held.enter_context(locked(path))
                    code = self._loaded(key)
            if code is not None:
                self._held.close()
        return code

    def save(self, key: object, code: object) -> None:
        """Write the machine code of a signature, and of which: two processes may choose one name for two."""
        with self._held, suppress(OSError):
            super().save(key, (key, code))  # type: ignore[no-untyped-call]

    def _loaded(self, key: object) -> object:
        of, code = super().load(key) or (None, None)  # type: ignore[no-untyped-call]
        return code if of == key else None

    def _load_index(self) -> object:
        believed = is_believed(Path(self._index_path))
        return super()._load_index() if believed else {}  # type: ignore[no-untyped-call]

    def _load_data(self, name: str) -> object:
        believed = is_believed(Path(self._cache_path, name))
        return super()._load_data(name) if believed else None  # type: ignore[no-untyped-call]

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[BytesIO]:
        yield (content := BytesIO())
        keep(Path(path), content.getvalue())
