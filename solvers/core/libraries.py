"""Libraries of models that are loaded when they are first needed, and what to do where they cannot be.

A package may be missing, or be installed without the shared libraries that it needs, such as OpenMP's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.errors import ParameterError

if TYPE_CHECKING:
    import ctypes

INSTALL = {
    "lightgbm": "pip install lightgbm",
    "xgboost": 'pip install "ranktune[trees]"',
    "catboost": 'pip install "ranktune[catboost]"',
    "onnxruntime": "pip install onnxruntime",
    "torch": "pip install torch",
    "skopt": "pip install scikit-optimize",
}
NAMES = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "onnxruntime": "ONNX Runtime",
    "torch": "PyTorch",
    "skopt": "scikit-optimize",
}
_OPENMP = "apt install libgomp1, or brew install libomp on a Mac"


@lru_cache
def is_installed(library: str) -> bool:
    """Return whether the package is installed. Cheap: it is not imported."""
    return find_spec(library) is not None


@lru_cache
def why_not(library: str) -> str | None:
    """Return in one line why a library cannot be loaded and what to install, or None where it can.

    Only the shared library of the package is loaded, if any, which takes a hundredth of the time of the import.
    """
    if not is_installed(library):
        return f"{NAMES[library]} is not installed: {INSTALL[library]}"
    try:
        import ctypes

        places = _shared_libraries(library)
        for place in places:
            ctypes.CDLL(str(place))
        if not places:  # no shared library: only the import shows an error
            import_module(library)
    except Exception as error:  # libraries raise different errors where a shared library is missing
        return _cannot(library, error)
    return None


def load(library: str) -> Any:
    """Return the imported package. Raises ParameterError, with what to install, where it cannot be imported."""
    if not is_installed(library):
        raise ParameterError(f"{why_not(library)}.")
    try:
        return import_module(library)
    except Exception as error:
        raise ParameterError(f"{_cannot(library, error)}.") from None


def shared(library: str) -> ctypes.CDLL:
    """Return the shared library of a package, which is not imported. Raises ParameterError, with what to install."""
    places = _shared_libraries(library)
    reason = why_not(library) if places else _cannot(library, OSError("its package holds no shared library"))
    if reason:
        raise ParameterError(f"{reason}.")
    import ctypes

    return ctypes.CDLL(str(places[0]))


def _shared_libraries(library: str) -> list[Path]:
    """Return the shared libraries that a package brings with it."""
    spec = find_spec(library)
    roots = [] if spec is None else [Path(root) for root in spec.submodule_search_locations or ()]
    names = [f"{start}{library}{suffix}" for start in ("lib", "lib_", "_", "") for suffix in (".so", ".dylib", ".dll")]
    places = [root / folder / name for root in roots for folder in ("lib", "bin", "") for name in names]
    return [place for place in places if place.is_file()]


def _cannot(library: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
    what = (
        f"install it ({_OPENMP})"
        if "gomp" in str(error) or "omp" in str(error)
        else f"install it again ({INSTALL[library]})"
    )
    return f"{NAMES[library]} cannot be loaded ({reason}): {what}"


def installed_version(package: str = "ranktune") -> str | None:
    """Return the installed version of a package, None of RankTune in a source tree that was never installed."""
    from importlib import metadata  # its import takes as long as that of a small library

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def versions_of(names: Iterable[str]) -> dict[str, str | None]:
    """Return the version of each package, or of Python; None where it is not installed."""
    return {name: python_version() if name == "Python" else installed_version(name) for name in names}


def this_version() -> str:
    """Return the version of RankTune that runs."""
    return installed_version() or "of a source tree"
