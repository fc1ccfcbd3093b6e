import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktune.solvers.data.readers.parsing import decimals
from ranktune.solvers.data.readers.parsing.decimals import (
    BAD,
    CLEAN,
    DECLINED,
    SLOW,
    WORD,
    Bytes,
    exact_double,
    exact_single,
    nearest_double,
)


def nearest_single(text: str) -> float:
    """The float32 nearest to text, ties to even, by exact fractions."""
    exact = Fraction(Decimal(text))
    if exact == 0:
        return float(text)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(size / unit) * unit
    value = math.inf if rounded >= 2**128 else float(rounded)
    return math.copysign(value, -1.0 if exact < 0 else 1.0)


def text_of(line: str) -> Bytes:
    """Return the bytes of a line, which may be written, as the blocks of a file: for these the kernel is compiled."""
    return np.frombuffer(bytearray(line.encode()), dtype=np.uint8)


def read(text: str) -> tuple[int, float]:
    kind, value, after = decimals.read_number(text_of(f"{text}\n"), 0)
    assert kind in (CLEAN, SLOW), text
    assert after == len(text)
    return kind, value


def midpoint(value: float, single: bool) -> Fraction:
    above = float(np.nextafter(np.float32(value), np.float32(np.inf))) if single else math.nextafter(value, math.inf)
    return (Fraction(value) + Fraction(above)) / 2


def spelt(value: Fraction) -> str:
    """All digits of a fraction whose denominator is a power of two."""
    shift = value.denominator.bit_length() - 1
    digits = str(abs(value.numerator) * 5**shift).rjust(shift + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[: len(digits) - shift]}.{digits[len(digits) - shift :]}"


SPELLINGS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
    st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.floats(min_value=-(2.0**100), max_value=2.0**100, width=32).map(lambda x: spelt(midpoint(x, single=True))),
    st.floats(min_value=1e-10, max_value=1e15).map(lambda x: spelt(midpoint(x, single=False))),
    st.floats(min_value=2.0**-120, max_value=2.0**100, width=32).map(lambda x: spelt(midpoint(x, single=True)) + "001"),
    st.integers(min_value=2**24, max_value=2**26).map(str),
)


@settings(deadline=None)  # the first call compiles
@given(SPELLINGS)
@example("0")
@example("-0")
@example("-0.0e5")
@example("5.")
@example(".5")
@example("+3")
@example("1e5")
@example("000000000000000000000000001.5")
@example("0." + "0" * 400 + "1")
@example("1" + "0" * 400 + "e-400")
@example("9007199254740993")  # 2^53 + 1, a tie
@example("9007199254740993.0000000000000000000000000000001")
@example("2.2250738585072011e-308")  # the number that once hung PHP and Java
@example("4.9406564584124654e-324")
@example("123456789012345678e-22")
@example("8.5e-99999999999999999999")
def test_a_number_is_read_as_float_reads_it(text: str) -> None:
    kind, value = read(text)
    if kind == CLEAN:
        assert value == float(text)
        assert math.copysign(1.0, value) == math.copysign(1.0, float(text))
    assert exact_double(text) == float(text)


@given(SPELLINGS)
@example("16777217")
@example("1.00000005960464477539062500000000000000001")  # its double is a midpoint, it is above
@example("1.00000005960464477539062499999999999999999")
@example("1e-45")
@example("7.006492321624085e-46")  # half the smallest float32, and just above
@example("7.006492321624086e-46")
@example("3.4028235677973366e38")  # midway between the largest float32 and 2^128
@example("3.4028235677973365e38")
def test_float32_is_rounded_from_the_decimal(text: str) -> None:
    assert exact_single(text) == nearest_single(text)


@pytest.mark.parametrize("power", [-300, -30, -23, -5, 0, 3, 22, 23, 40, 289])
def test_most_long_numbers_stay_compiled(power: int) -> None:
    generator = np.random.default_rng(power + 400)
    numbers = [int(w) for w in generator.integers(10**16, 10**18, 300)]
    declined = 0
    for w in numbers:
        value = nearest_double(w, power)
        declined += value == DECLINED
        assert value in (DECLINED, float(f"{w}e{power}"))
    assert declined == 0


@pytest.mark.parametrize(
    ("text", "spoilt_at"),
    [("0x1", 1), ("1_000", 1), ("0,5", 1), ("1e", 2), ("1e+", 3), ("--1", 1), ("1.2.3", 3), (".", 1), ("-", 1),
     ("1e5f", 3), ("abc", 0), ("1f", 1), ("\0", 0), ("\uff11", 0), ("nano", 0), ("infinityx", 0)],
)  # fmt: skip
def test_what_is_no_number_is_refused_at_its_first_wrong_byte(text: str, spoilt_at: int) -> None:
    kind, _, at = decimals.read_number(text_of(f"{text}\n"), 0)
    assert (kind, at) == (BAD, spoilt_at)


@pytest.mark.parametrize("word", ["nan", "NaN", "NULL", "null", "NA", "None", "inf", "-inf", "+Infinity", "-nan"])
def test_words_for_missing_values_are_told_apart(word: str) -> None:
    kind, _, at = decimals.read_number(text_of(f"{word} 2:1\n"), 0)
    assert (kind, at) == (WORD, len(word))


def test_the_table_holds_the_leading_bits_of_five_to_each_power() -> None:
    for q in (-325, -28, -27, -1, 0, 1, 27, 55, 56, 308):
        high, low = (int(word) for word in decimals._FIVES[q - decimals.LOWEST_POWER])
        held = (high << 64) + low
        assert held.bit_length() == 128
        ratio = Fraction(5) ** q / held
        scaled = ratio / Fraction(2) ** (ratio.numerator.bit_length() - ratio.denominator.bit_length())
        error = min(abs(scaled - 1), abs(scaled * 2 - 1), abs(scaled / 2 - 1))
        assert error <= Fraction(1, 2**127)


def test_what_is_left_to_exact_arithmetic() -> None:
    assert read("123456789012345678")[0] == CLEAN
    assert read("1e-320")[0] == SLOW  # below the normal doubles
    assert read("9007199254740993." + "0" * 30 + "1")[0] == SLOW  # its 31st digit decides
    assert read("1e400")[0] == SLOW
