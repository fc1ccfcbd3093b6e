"""Decimal text to the nearest binary number, exactly: compiled for common numbers, Python for rare ones.

A number is w * 10^q, w its decimal digits as an integer. Three steps, each exact or deferring to the next:

1. w <= 2^53 and |q| <= 22: one multiplication or division of exact doubles (Clinger 1990), `read_number`.
2. w < 10^18: `nearest_double`, 128 bits of 5^q (Lemire 2021, "Number parsing at a gigabyte per second").
3. Numbers that step 2 declines (subnormal, overflow, too many significant digits): `exact_double`, `exact_single`.

float32 is rounded from the decimal, not from its double: rounding twice differs where the double lies midway
between two floats, and only there, because every such midpoint is a double.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.compiled import compiled, inlined

Bytes: TypeAlias = NDArray[np.uint8]
"""Text as its bytes, (n_bytes,)."""

LOWEST_POWER, HIGHEST_POWER = -325, 308
LARGEST_SINGLE = float(np.finfo(np.float32).max)
DECLINED = -1.0

_ONE, _THREE = np.uint64(1), np.uint64(3)
_LOW_HALF, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NONE, _TEN, _ZEROS, _EVERY_FOURTH = np.uint64(0), np.uint64(10), np.uint64(0x3030303030303030), np.uint64(0xFF000000FF)
_LOW_BITS, _HIGH_BITS, _TO_HIGH_BIT = (np.uint64(byte * 0x0101010101010101) for byte in (0x01, 0x80, 0x76))
_BY_FIRST, _BY_SECOND = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))
_UNSURE = np.uint64(0x1FF)  # the 9 bits of the high word below the 55 that decide

CLEAN, SLOW, WORD, BAD = 0, 1, 2, 3  # kinds: a number, one for exact arithmetic, a missing value, no number
_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _MINUS, _PLUS, _POINT, _E, _ZERO = 10, 13, 32, 9, 35, 45, 43, 46, 101, 48
_EXACT = 1 << 53
_DIGITS = 18  # that many digits always fit an int64
_FAR = 1 << 40  # a power beyond any text that fits in memory
_TENS = np.array([float(10**k) for k in range(23)])  # exact doubles
_WORDS = np.array(  # spellings of a missing value, in lower case
    [list(word.ljust(9, b"\0")) for word in (b"nan", b"null", b"na", b"none", b"inf", b"infinity")], dtype=np.uint8
)


def _powers_of_five() -> NDArray[np.uint64]:
    """Return (n_powers, 2) uint64: the leading 128 bits of 5^q, high word first, q from LOWEST_POWER up.

    Positive powers are cut off, negative ones rounded up, as the proof of step 2 requires.
    """
    table = np.empty((HIGHEST_POWER - LOWEST_POWER + 1, 2), dtype=np.uint64)
    for row, q in enumerate(range(LOWEST_POWER, HIGHEST_POWER + 1)):
        if q >= 0:
            five = 5**q
            bits = five.bit_length()
            value = five << (128 - bits) if bits <= 128 else five >> (bits - 128)
        else:
            five = 5**-q
            value = (1 << (five.bit_length() + 127)) // five + 1
        table[row] = value >> 64, value & 0xFFFFFFFFFFFFFFFF
    return table


_FIVES = _powers_of_five()


@inlined
def _multiplied(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the high and the low word of the 128-bit product of two uint64."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW_HALF, b >> _HALF, b & _LOW_HALF
    low, cross, other = a_low * b_low, a_high * b_low, a_low * b_high
    middle = (low >> _HALF) + (cross & _LOW_HALF) + other
    return a_high * b_high + (cross >> _HALF) + (middle >> _HALF), a * b


@compiled
def nearest_double(w: int, q: int) -> float:
    """Return the double nearest to w * 10^q for 0 < w < 10^18, or DECLINED where that is not certain."""
    if q < LOWEST_POWER or q > HIGHEST_POWER:
        return DECLINED
    scaled, leading = np.uint64(w), 0
    for step in (32, 16, 8, 4, 2, 1):  # shift the highest one to the top
        if scaled >> np.uint64(64 - step) == np.uint64(0):
            scaled = scaled << np.uint64(step)
            leading += step
    row = q - LOWEST_POWER
    high, low = _multiplied(scaled, _FIVES[row, 0])
    if high & _UNSURE == _UNSURE:
        carried, _ = _multiplied(scaled, _FIVES[row, 1])
        low = low + carried
        if low < carried:
            high = high + _ONE
    if low == _ALL and (q < -27 or q > 55):
        return DECLINED
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    mantissa = high >> shift  # 54 bits: 53 and the one that rounds
    exponent = ((217706 * q) >> 16) + 63 + (1 if top else 0) - leading  # 217706 / 2^16 is log2(10), of the leading bit
    if exponent <= -1022 or exponent >= 1023:
        return DECLINED
    midway = low <= _ONE and q >= -4 and q <= 23 and mantissa & _THREE == _ONE and mantissa << shift == high
    if not midway:  # an exact tie with an even neighbour below stays below
        mantissa = mantissa + (mantissa & _ONE)
    return math.ldexp(float(mantissa >> _ONE), exponent - 52)


@compiled
def ends_token(byte: np.uint8) -> bool:
    """Return whether byte ends a number or a query id."""
    return bool(byte == _SPACE or byte == _NEWLINE or byte == _TAB or byte == _RETURN or byte == _HASH)


@inlined
def _signed(number: np.unsignedinteger) -> int:
    return np.int64(number)  # type: ignore[return-value]  # int64 is compiled as int is


@compiled
def byte_at(text: Bytes, p: int) -> np.uint8:
    """Return the byte at offset p, which is not negative: an unsigned index spares numba a test for wrapping around."""
    return text[np.uint64(p)]  # type: ignore[no-any-return]


@compiled
def digit_at(text: Bytes, p: int) -> int:
    """Return the digit at offset p; below 0 or above 9 where there is none."""
    return _signed(byte_at(text, p)) - _ZERO


@inlined
def _eight_bytes(text: Bytes, p: int) -> np.uint64:
    """Return eight bytes from offset p on, the first one lowest, whatever the machine's byte order: one load."""
    word = np.uint64(byte_at(text, p))
    for k in range(1, 8):
        word |= np.uint64(byte_at(text, p + k)) << np.uint64(8 * k)
    return word


@inlined
def leading_digits(text: Bytes, p: int) -> tuple[int, int]:
    """Return (n, w): of the eight bytes from offset p on the first n are digits, and w is their number times 10^(8-n).

    All bytes are handled at once, in one word (Lemire 2021).
    """
    digits = _eight_bytes(text, p) ^ _ZEROS
    others = ((digits + _TO_HIGH_BIT) | digits) & _HIGH_BITS  # of the bytes that are no digits, the lowest is right
    n = 8
    if others != _NONE:
        below = ((others & (~others + _ONE)) >> np.uint64(7)) - _ONE  # the bytes below the lowest that is no digit
        digits &= below
        n = _signed(((below & _LOW_BITS) * _LOW_BITS) >> np.uint64(56))
    pairs = digits * _TEN + (digits >> np.uint64(8))
    first, second = (pairs & _EVERY_FOURTH) * _BY_FIRST, ((pairs >> np.uint64(16)) & _EVERY_FOURTH) * _BY_SECOND
    return n, _signed((first + second) >> _HALF)


@compiled
def read_number(text: Bytes, at: int) -> tuple[int, float, int]:
    """Return (kind, value, next offset) of the decimal number at `at`; for a bad one, the offset of the bad byte."""
    p = at
    byte = byte_at(text, p)
    negative = byte == _MINUS
    if negative or byte == _PLUS:
        p += 1
    first = p
    w = 0
    digit = digit_at(text, p)
    while 0 <= digit <= 9:
        w = w * 10 + digit
        p += 1
        digit = digit_at(text, p)
    digits = p - first
    q = 0
    if byte_at(text, p) == _POINT:
        p += 1
        point = p
        n = 8
        if digits <= _DIGITS - 8 and p + 8 <= len(text):
            n, fraction = leading_digits(text, p)
            w = w * 100_000_000 + fraction
            p += n
            q = n - 8  # so many zeros were added to the digits
        if n == 8:
            digit = digit_at(text, p)
            while 0 <= digit <= 9:
                w = w * 10 + digit
                p += 1
                digit = digit_at(text, p)
        digits += p - point
        q += point - p
    if digits == 0:
        word = _missing_word(text, first) if p == first else 0
        return (WORD, 0.0, first + word) if word else (BAD, 0.0, p)
    if not ends_token(byte_at(text, p)):
        if byte_at(text, p) | 32 != _E:
            return BAD, 0.0, p
        p, power = _power(text, p + 1)
        if p < 0:
            return BAD, 0.0, -p
        q += power
    if digits <= _DIGITS and w <= _EXACT and -22 <= q <= 22:
        value = w / _TENS[np.uint64(-q)] if q < 0 else w * _TENS[np.uint64(q)]
        return CLEAN, -value if negative else value, p
    value = _long_number(text, first, q, digits, w)
    if value == DECLINED:
        return SLOW, 0.0, p
    return CLEAN, -value if negative else value, p


@inlined
def _power(text: Bytes, at: int) -> tuple[int, int]:
    """Return (next offset, power) of the exponent after an e; a negative offset is that of a bad byte."""
    p = at
    negative = text[p] == _MINUS
    if negative or text[p] == _PLUS:
        p += 1
    first = p
    power = 0
    digit = digit_at(text, p)
    while 0 <= digit <= 9:
        power = power * 10 + digit if power < _FAR else _FAR
        p += 1
        digit = digit_at(text, p)
    if p == first or not ends_token(text[p]):
        return -p, 0
    return p, -power if negative else power


@inlined
def _long_number(text: Bytes, at: int, q: int, digits: int, w: int) -> float:
    """Return the double nearest to w * 10^q, or DECLINED; where w has overflowed, read its leading digits again."""
    if digits > _DIGITS:
        p = at
        w = n_digits = dropped = 0
        lost = False
        while text[p] == _POINT or 0 <= digit_at(text, p) <= 9:
            if text[p] != _POINT:
                digit = digit_at(text, p)
                if n_digits < _DIGITS:
                    w = w * 10 + digit
                    n_digits += w > 0  # leading zeros do not count
                else:
                    dropped += 1
                    lost = lost or digit > 0
            p += 1
        q += dropped
        if lost:  # between w and w + 1: certain where both round to the same double
            value = nearest_double(w, q)
            return value if w + 1 < 10**18 and value == nearest_double(w + 1, q) else DECLINED
    return 0.0 if w == 0 else nearest_double(w, q)


@inlined
def _missing_word(text: Bytes, at: int) -> int:
    """Return the length of the word for a missing value (NULL, NaN, inf ...) at `at`, or 0."""
    for row in range(_WORDS.shape[0]):
        k = 0
        while _WORDS[row, k] != 0 and text[at + k] | 32 == _WORDS[row, k]:
            k += 1
        if _WORDS[row, k] == 0 and ends_token(text[at + k]):
            return k
    return 0


def exact_double(text: str) -> float:
    """Return the double nearest to text, a decimal number; infinity where it is too large."""
    return float(text)


def exact_single(text: str) -> float:
    """Return the float32 nearest to text, ties to even, as a double; infinity where it is too large."""
    double = float(text)
    size = abs(double)
    if size == 0.0 or math.isinf(size):
        return double
    with np.errstate(over="ignore"):
        single = np.float32(size)
    if float(single) == size:
        return double
    below = single if float(single) < size else np.nextafter(single, np.float32(0.0))
    above = np.nextafter(below, np.float32(np.inf)) if below < LARGEST_SINGLE else np.float32(np.inf)
    ceiling = 2.0**128 if np.isinf(above) else float(above)
    if size - float(below) == ceiling - size:  # the double is a midpoint: compare the decimal with it
        side = Decimal(text).copy_abs().compare(Decimal(size))
        single = single if side == 0 else above if side > 0 else below
    return math.copysign(float(single), double)
