"""Blocks of text parsed by two threads, in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np

from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.parsing.decimals import Bytes
from ranktune.solvers.data.readers.parsing.parse_buffers import Grouped, ParseBuffers
from ranktune.solvers.data.readers.parsing.parser import ParseResult
from ranktune.solvers.data.readers.parsing.streams import BLOCK, Position

THREADS = 2
"""More would wait for the one thread that places what they have parsed."""
MIN_SIZE = 8 * BLOCK
"""Bytes of a file that several threads parse."""

Parse: TypeAlias = Callable[[Bytes, ParseBuffers], ParseResult]


class Parsed(NamedTuple):
    """A block, what was parsed of it, and the number of lines before it. It is valid until the next one is taken."""

    text: Bytes
    into: ParseBuffers
    result: ParseResult
    lines: int


def in_order(texts: Iterator[Bytes], parse: Parse, position: Position) -> Iterator[Parsed]:
    """Yield the parsed blocks of texts; lines are counted in position as blocks are taken from texts.

    Once a block has shown whether lines have a qid, the other blocks of a large file are parsed by as many threads as
    there are processors for this process, at most THREADS. An error of texts is raised after the blocks before it.
    """
    into: ParseBuffers | None = None
    threads = min(processors(), THREADS)
    for text in texts:
        into = _large_enough(into, text)
        result, lines = parse(text, into), position.lines
        position.lines += result.n_lines
        yield Parsed(text, into, result, lines)
        if threads > 1 and result.grouped != Grouped.UNKNOWN and position.size >= MIN_SIZE:
            yield from _in_parallel(texts, parse, position, threads)


def _in_parallel(texts: Iterator[Bytes], parse: Parse, position: Position, threads: int) -> Iterator[Parsed]:
    waiting: deque[tuple[Bytes, ParseBuffers, Future[ParseResult], int]] = deque()
    slots = deque((np.empty(BLOCK, dtype=np.uint8), ParseBuffers.for_text_of(BLOCK)) for _ in range(threads + 2))
    failed: DataError | None = None

    def next_parsed() -> Parsed:
        text, into, future, lines = waiting.popleft()
        slots.append((text if text.base is None else text.base, into))
        return Parsed(text, into, future.result(), lines)

    with ThreadPoolExecutor(threads) as pool:
        try:
            for text in texts:
                kept, into = slots.popleft()
                kept = kept if len(kept) >= len(text) else np.empty(len(text), dtype=np.uint8)
                copy = kept[: len(text)]
                copy[:] = text
                into = _large_enough(into, copy)
                waiting.append((copy, into, pool.submit(parse, copy, into), position.lines))
                position.lines += int(np.count_nonzero(copy == 10))
                if len(waiting) > threads:
                    yield next_parsed()
        except DataError as error:
            failed = error
        while waiting:
            yield next_parsed()
    if failed is not None:
        raise failed


def _large_enough(into: ParseBuffers | None, text: Bytes) -> ParseBuffers:
    return ParseBuffers.for_text_of(len(text)) if into is None or len(into.columns) < len(text) // 4 + 2 else into


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
