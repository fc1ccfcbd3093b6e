"""Model files: a JSON manifest, and for many weights an npz of plain numbers beside it. Loading runs no code.

A manifest holds at least format ("ranktune-model"), version (1), kind ("linear", ...), and sha256, the digest of all
other fields in canonical form, which reveals any damage. Numbers and names have two forms, of which the second points
to a file in the manifest's folder, a sidecar.

few numbers   {"value": [..]}, or {"index": [..], "value": [..]} if most are zero, in decimals that read back exactly
many          {"file": NAME, "sha256": digest of the file, "shape": [entries], "dtype": "<f8", "sparse": true or false},
              an uncompressed zip of value.npy and, if sparse, index.npy
few names     [..]
many          {"file": NAME, "sha256": digest of the file, "bytes": its length}, a name a line, escaped as in JSON

What other code wrote is kept as it is: {"file": NAME, "sha256": digest of the file, "bytes": its length}.

Every file is written atomically. The manifest comes last, and the names of sidecars contain their digests, so that a
crash leaves the old or the new model.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import numpy as np

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.core.files.archives import read_archive, write_archive
from ranktune.solvers.core.files.atomic import atomic_write

Content: TypeAlias = Mapping[str, object]
"""A manifest as it was read: nothing in it is trusted."""

T = TypeVar("T")

FORMAT = "ranktune-model"
VERSION = 1
INLINE = 1_000
"""Up to this many numbers are kept in the manifest itself."""
INLINE_NAME_BYTES = 2**18
MAX_NAME_BYTES = 2**28
MAX_MANIFEST_BYTES = 4 * 2**20
MAX_BRACKETS = 100_000
"""A small file can claim much memory by many lists and objects; bounds on bytes and brackets prevent it."""
MAX_ENTRIES = 2**26
"""No model has more weights than this; a file that claims more is refused before anything is allocated."""
MAX_BLOB_BYTES = 2**30
MAX_EMPTY = 2**22
MAX_SPREAD = 1_000
"""A sparse array of k stored numbers has at most max(MAX_EMPTY, MAX_SPREAD k) entries."""

AGAIN = "Copy the file again from its origin, or save the model again."
PLACE = "Check the path: a study keeps its model in ranktune-runs/NAME/model.json."
SAVE_AGAIN = "Save the model again."
_PLAIN_NAME = re.compile(r"[^/\\\x00]+\.(npz|txt|bin)")


def write_manifest(
    path: Path,
    content: Mapping[str, object],
    arrays: Mapping[str, Floats],
    names: Mapping[str, Sequence[str]],
    blobs: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Write content as a model file at path, with each of arrays and names in it or beside it under its key.

    Each of blobs, what other code wrote, is kept beside it.

    Raises ModelFormatError for what a model file cannot hold (NaN, infinity), OSError where path cannot be written.
    """
    previous = _sidecars_of(path)
    whole: dict[str, object] = {"format": FORMAT, "version": VERSION, **content}
    files: dict[str, bytes] = {}
    for key, values in arrays.items():
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ModelFormatError(f"{path}: {key}[{at}] is {values[at]}: a model must be finite. Fit it again.")
        whole[key] = _encode(path, key, values, files)
    for key, texts in names.items():
        whole[key] = _encode_names(path, key, texts, files)
    for key, data in blobs.items():
        if len(data) > MAX_BLOB_BYTES:
            raise ModelFormatError(f"{path}: {key} has {len(data)} bytes, at most {MAX_BLOB_BYTES} fit.")
        whole[key] = {**_point(path, key, ".bin", data, files), "bytes": len(data)}
    try:
        whole["sha256"] = _digest(whole)
        lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in whole.items()]
    except (TypeError, ValueError) as error:
        raise ModelFormatError(f"{path}: the model has a value that JSON cannot hold ({error}).") from None
    manifest = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    if _is_too_large(manifest):
        raise ModelFormatError(f"{path}: the model's names and parameters are too long for a model file.")
    try:
        for name, data in files.items():
            atomic_write(path.parent / name, data)
        atomic_write(path, manifest)
    except OSError:
        _remove(path.parent, files.keys() - previous)
        raise
    _remove(path.parent, previous - files.keys())


def read_manifest(path: Path) -> dict[str, object]:
    """Return the content of a model file whose digest is right.

    Raises ModelFormatError for a file that cannot be read, is damaged, not a model, or of another version.
    """
    raw = _read_capped(path, MAX_MANIFEST_BYTES)
    try:
        if _is_too_large(raw):
            raise ValueError("it has more lists than any model")
        content = json.loads(raw.decode("utf-8"), object_pairs_hook=_without_repeats)
        claimed = content.pop("sha256", None) if isinstance(content, dict) else None
        digest = _digest(content)  # which a number that is not finite has none of
    except RecursionError:
        raise ModelFormatError(f"{path} is nested too deeply to be a model. {AGAIN}") from None
    except ValueError as error:
        if raw.strip() and not raw.lstrip().startswith(b"{"):
            raise ModelFormatError(
                f"{path} is not a RankTune model, which is JSON. Give a model.json; where a model and data are given, "
                "the model comes first."
            ) from None
        raise ModelFormatError(f"{path} is not a whole JSON file ({str(error)[:200]}). {AGAIN}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFormatError(
            f'{path} is not a RankTune model: it does not say "format": "{FORMAT}". Give a model.json.'
        )
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise ModelFormatError(
            f"{path} is of format version {str(version)[:40]}; this RankTune reads version {VERSION}. "
            "Install the RankTune that wrote it, or a newer one."
        )
    if claimed != digest:
        raise ModelFormatError(f"{path} does not match its digest: it was damaged or changed by hand. {AGAIN}")
    return content


def field_of(path: Path, content: Content, name: str, kind: type[T], *, wanted: str = "") -> T:
    """Return a field of the manifest at path. Raises ModelFormatError where it is not exactly of that type."""
    value = content.get(name)
    if type(value) is not kind:
        raise ModelFormatError(
            f"{path}: {name} is {str(value)[:40]!r}: it must be {wanted or kind.__name__}. {SAVE_AGAIN}"
        )
    return value


def optional_field(path: Path, content: Content, name: str, kind: type[T]) -> T | None:
    """Return a field of the manifest at path that may be null or absent, as field_of does."""
    if content.get(name) is None:
        return None
    return field_of(path, content, name, kind, wanted=f"{kind.__name__} or null")


def read_numbers(path: Path, entry: object, n: int) -> Floats:
    """Return the n numbers that entry of the manifest at path holds or points to.

    Raises ModelFormatError where they are missing, damaged, not finite, or not n. Nothing is allocated before the
    claimed sizes agree with the size of the file.
    """
    if not 0 < n <= MAX_ENTRIES:
        raise ModelFormatError(f"{path} claims {n} weights: there must be 1 to {MAX_ENTRIES}. {AGAIN}")
    if not isinstance(entry, dict):
        raise ModelFormatError(f"{path} has no weights. {AGAIN}")
    try:
        index, value = _read_file(path, entry, n) if "file" in entry else _read_inline(entry)
    except ModelFormatError:
        raise
    except Exception as error:  # a hostile zip or array header can make the parsers raise anything
        raise ModelFormatError(
            f"{path}: its weights cannot be read ({type(error).__name__}: {error}). {AGAIN}"
        ) from None
    if not np.isfinite(value).all():
        raise ModelFormatError(f"{path} holds weights that are not finite: it cannot score anything. Fit it again.")
    if index is None and len(value) == n:
        return value
    if index is None or len(index) != len(value) or not _ascends_within(index, n) or n > _max_length(len(index)):
        raise ModelFormatError(f"{path} has {len(value)} weights that do not fit its {n} features. {AGAIN}")
    dense = np.zeros(n)
    dense[index] = value
    return dense


def _ascends_within(index: Ints, n: int) -> bool:
    return len(index) == 0 or bool(index[0] >= 0 and index[-1] < n and (np.diff(index) > 0).all())


def read_names(path: Path, entry: object, n: int) -> tuple[str, ...]:
    """Return the n names that entry of the manifest at path holds or points to.

    Raises ModelFormatError where they are missing, damaged or not n.
    """
    if isinstance(entry, dict):
        raw = read_blob(path, entry, "names", MAX_NAME_BYTES)
        lines = raw.count(b"\n") + 1
        if lines != n:  # before any string is made
            raise ModelFormatError(f"{path} names {lines} of {n} features. {AGAIN}")
        try:
            entry = [json.loads(f'"{line}"') if "\\" in line else line for line in raw.decode().split("\n")]
        except ValueError as error:
            raise ModelFormatError(f"{path}: its names cannot be read ({error}). {AGAIN}") from None
    if not isinstance(entry, list) or not all(isinstance(name, str) for name in entry):
        raise ModelFormatError(f"{path}: names must be text. {AGAIN}")
    if len(entry) != n:
        raise ModelFormatError(f"{path} names {len(entry)} of {n} features. {AGAIN}")
    return tuple(entry)


def read_blob(path: Path, entry: object, what: str = "a file", most: int = MAX_BLOB_BYTES) -> bytes:
    """Return what other code wrote, or names, to which entry of the manifest at path points.

    Raises ModelFormatError where it is missing, damaged or of another length.
    """
    size = entry.get("bytes") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or type(size) is not int or not 0 <= size <= most:
        raise ModelFormatError(f"{path} claims {what} of {str(size)[:40]} bytes: at most {most}. {AGAIN}")
    raw = _read_beside(path, entry, size)
    if len(raw) != size:
        raise ModelFormatError(f"{path} claims a file of {size} bytes beside it that has {len(raw)}. {AGAIN}")
    return raw


def _max_length(stored: int) -> int:
    return max(MAX_EMPTY, MAX_SPREAD * stored)


def _encode(path: Path, key: str, values: Floats, files: dict[str, bytes]) -> dict[str, object]:
    """Return the entry for values in the manifest at path; the content of a sidecar is added to files."""
    nonzero = np.flatnonzero((values != 0) | np.signbit(values))  # -0.0 too, so that the same bits are read
    sparse = 2 * len(nonzero) < len(values) <= _max_length(len(nonzero))
    parts = {"value": (values[nonzero] if sparse else values).astype("<f8")}
    if sparse:
        parts["index"] = nonzero.astype("<i8")
    entries = len(parts["value"])
    if entries <= INLINE:
        return {name: part.tolist() for name, part in parts.items()}
    pointer = _point(path, key, ".npz", write_archive(parts), files)
    return {**pointer, "shape": [entries], "dtype": "<f8", "sparse": sparse}


def _encode_names(path: Path, key: str, names: Sequence[str], files: dict[str, bytes]) -> list[str] | dict[str, object]:
    data = "\n".join(json.dumps(name)[1:-1] for name in names).encode()
    if len(data) <= INLINE_NAME_BYTES:
        return list(names)
    if len(data) > MAX_NAME_BYTES:
        raise ModelFormatError(f"{path}: {key} has {len(data)} bytes, at most {MAX_NAME_BYTES} fit. Use shorter names.")
    return {**_point(path, key, ".txt", data, files), "bytes": len(data)}


def _point(path: Path, key: str, suffix: str, data: bytes, files: dict[str, bytes]) -> dict[str, object]:
    """Return an entry that points to data, and add data to files under its name."""
    digest = hashlib.sha256(data).hexdigest()
    name = f"{path.name.removesuffix('.json')}.{key}-{digest[:16]}{suffix}"
    files[name] = data
    return {"file": name, "sha256": digest}


def _read_inline(entry: dict[str, object]) -> tuple[Ints | None, Floats]:
    value, index = entry["value"], entry.get("index")
    if not isinstance(value, list) or not all(type(number) in (int, float) for number in value):
        raise ValueError("value is not a list of numbers")
    if index is None:
        return None, np.array(value, dtype=np.float64)
    if not isinstance(index, list) or not all(type(number) is int for number in index):
        raise ValueError("index is not a list of whole numbers")
    return np.array(index, dtype=np.int64), np.array(value, dtype=np.float64)


def _read_file(path: Path, entry: dict[str, object], n: int) -> tuple[Ints | None, Floats]:
    shape, sparse = entry.get("shape"), entry.get("sparse")
    if not isinstance(shape, list) or len(shape) != 1 or type(shape[0]) is not int or not 0 <= shape[0] <= n:
        raise ModelFormatError(f"{path} claims weights of shape {str(shape)[:80]} for {n} features. {AGAIN}")
    if entry.get("dtype") != "<f8" or not isinstance(sparse, bool):
        raise ModelFormatError(
            f"{path} claims weights of type {str(entry.get('dtype'))[:40]!r}: it must be '<f8'. {AGAIN}"
        )
    raw = _read_beside(path, entry, 8 * shape[0] * (2 if sparse else 1) + 4096)
    arrays = read_archive(raw, len(raw))  # so that none of it is compressed
    found = {name: (array.dtype.str, list(array.shape)) for name, array in arrays.items()}
    wanted = {"value": ("<f8", shape)} | ({"index": ("<i8", shape)} if sparse else {})
    if found != wanted:
        raise ValueError(f"it holds {str(found)[:80]} instead of {wanted}")
    return arrays["index"].astype(np.int64) if sparse else None, arrays["value"].astype(np.float64)


def _read_beside(path: Path, entry: dict[str, object], max_bytes: int) -> bytes:
    """Return the content of the sidecar that entry points to, in the folder of path; size and digest are checked."""
    name = entry.get("file")
    if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name) or Path(name).name != name:
        raise ModelFormatError(
            f"{path} points to {str(name)[:80]!r}: it must be an .npz, .txt or .bin in the folder of the model."
        )
    beside = path.parent / name
    raw = _read_capped(beside, max_bytes)
    if hashlib.sha256(raw).hexdigest() != entry.get("sha256"):
        raise ModelFormatError(
            f"{beside} is not the file that {path.name} was saved with: damaged or mixed up. {AGAIN}"
        )
    return raw


def _read_capped(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file of at most max_bytes."""
    try:
        status = os.stat(path)  # before opening: opening a pipe would block
        if stat.S_ISREG(status.st_mode):
            with open(path, "rb") as stream:
                raw = stream.read(max_bytes + 1) if status.st_size <= max_bytes else b""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelFormatError(f"{path} cannot be read: {reason}. {PLACE}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ModelFormatError(f"{path} is not a file. {PLACE}")
    if status.st_size > max_bytes or len(raw) > max_bytes:
        raise ModelFormatError(f"{path} has {status.st_size} bytes, more than the {max_bytes} allowed. {AGAIN}")
    return raw


def _sidecars_of(path: Path) -> set[str]:
    """Return the sidecars that were written for the model now at path, if there is one."""
    try:
        content = read_manifest(path)
    except ModelFormatError:
        return set()
    pattern = re.compile(re.escape(path.name.removesuffix(".json")) + r"\.[a-z_0-9]+-[0-9a-f]{16}\.(npz|txt|bin)")
    names = {str(entry.get("file")) for entry in content.values() if isinstance(entry, dict)}
    return {name for name in names if pattern.fullmatch(name)}


def _digest(content: Mapping[str, object]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a field is given twice")
    return content


def _is_too_large(manifest: bytes) -> bool:
    return len(manifest) > MAX_MANIFEST_BYTES or manifest.count(b"[") + manifest.count(b"{") > MAX_BRACKETS


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
