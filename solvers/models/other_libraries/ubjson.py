"""Universal Binary JSON, as XGBoost writes it: a marker before each value, and arrays of one type as their bytes.

Lengths are compared with what is left of the file before anything is made of them.

Source: https://ubjson.org, draft 12.
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.models.other_libraries.base import demand

NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
CONSTANTS = {"Z": None, "T": True, "F": False}
DEEPEST = 32


def decoded(content: bytes) -> object:
    """Return the value that content holds; arrays of numbers of one type are NumPy arrays.

    Raises DataError where it ends early, or holds what XGBoost does not write.
    """
    reading = _Reading(content)
    value = reading.value(reading.marker(), 0)
    demand(reading.at == len(content), "it goes on after its end")
    return value


class _Reading:
    """A place in content."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def marker(self) -> str:
        return self.take(1).decode("latin-1")

    def take(self, count: int) -> bytes:
        demand(count <= len(self.content) - self.at, "it ends early")
        self.at += count
        return self.content[self.at - count : self.at]

    def value(self, marker: str, depth: int) -> object:
        demand(depth < DEEPEST, f"it is nested more than {DEEPEST} deep")
        if marker in NUMBERS:
            number: int | float = self.numbers(marker, 1)[0].item()
            return number
        if marker == "S":
            return self.text()
        if marker == "[":
            return self.array(depth)
        if marker == "{":
            return self.object(depth)
        demand(marker in CONSTANTS, f"it holds the unknown type {marker!r}")
        return CONSTANTS[marker]

    def numbers(self, marker: str, count: int) -> Array:
        demand(marker in NUMBERS, f"it holds an array of the unknown type {marker!r}")
        dtype = np.dtype(NUMBERS[marker])
        return np.frombuffer(self.take(count * dtype.itemsize), dtype).astype(dtype.newbyteorder("="))

    def length(self) -> int:
        marker = self.marker()
        demand(marker in "iUIlL", "a length in it is no whole number")
        length = int(self.numbers(marker, 1)[0])
        demand(length >= 0, "a length in it is below 0")
        return length

    def text(self) -> str:
        return self.take(self.length()).decode()

    def array(self, depth: int) -> object:
        marker = self.marker()
        if marker == "$":
            kind = self.marker()
            demand(self.marker() == "#", "an array in it has no length")
            return self.numbers(kind, self.length())
        demand(marker == "#", "an array in it has no length")
        return [self.value(self.marker(), depth + 1) for _ in range(self.length())]

    def object(self, depth: int) -> dict[str, object]:
        fields: dict[str, object] = {}
        while self.content[self.at : self.at + 1] != b"}":
            name = self.text()
            fields[name] = self.value(self.marker(), depth + 1)
        self.at += 1
        return fields
