"""Loops over adjacent numbers that become vector instructions: logarithms, exponentials, losses of pairs, sums.

Vectors are (n,). Each loop writes two arrays at most, none of which it reads at another place, and its places are
unsigned, so that numba does not test for wrapping around. Results do not depend on the width of instructions.

A head is a document whose pairs with the first partners are looked at. signed are the weights of these pairs, below 0
where the partner is the better document. A rate is a weight times -phi', the derivative of the loss of a pair by the
difference z of its scores: hinge max(0, m - z), its square, or log(1 + exp(-z)).
"""

from __future__ import annotations

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.compiled import compiled, inlined

WIDE = 250.0
"""Scores of a list that are further apart are not taken to the exponent one by one: exp(250) is 1e109."""
ONE, MANTISSA, TWO_52 = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF, 0x4330000000000000
"""The bits of 1 and of 2^52, and those of a number that are not its exponent."""
OFFSET, ROOT, LOG_2 = 2.0**52 + 1023.0, 2.0**0.5, float(np.log(2.0))
LG = (
    0.6666666666666735130, 0.3999999999940941908, 0.2857142874366239149, 0.2222219843214978396,
    0.1818357216161805012, 0.1531383769920937332, 0.1479819860511658591,
)  # fmt: skip
"""log((1 + y) / (1 - y)) is y (2 + LG[0] y^2 + ... + LG[6] y^14) where |y| < 0.1716. Source: fdlibm, e_log.c."""
EXP = (
    1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05,
    -1.65339022054652515390e-06, 4.13813679705723846039e-08,
)  # fmt: skip
LOG_2_HIGH, LOG_2_LOW, ROUND = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.5 * 2.0**52
"""exp(r) is 1 + r + r c / (2 - c) for c = r - (EXP[0] r^2 + ... + EXP[4] r^10). Source: fdlibm, e_exp.c."""


@compiled
def exponentials(t: Floats, middle: float, e: Floats, inverse: Floats) -> None:
    """Overwrite e with exp(t - middle), as fdlibm has it for numbers from -WIDE to WIDE, and inverse with 1 / e.

    exp(y) = 2^k exp(r), r at most log(2) / 2: ROUND + y / log 2 has k as its lower bits, which go to the exponent.
    """
    bits, multiples = e.view(np.int64), inverse.view(np.int64)
    for p in range(np.uint64(len(t))):
        y = t[p] - middle
        shifted = y * (1.0 / LOG_2) + ROUND
        k = shifted - ROUND
        r = (y - k * LOG_2_HIGH) - k * LOG_2_LOW
        q = r * r
        c = r - q * (EXP[0] + q * (EXP[1] + q * (EXP[2] + q * (EXP[3] + q * EXP[4]))))
        e[p] = 1.0 + (r + np.divide(r * c, 2.0 - c))
        inverse[p] = shifted
    for p in range(np.uint64(len(t))):
        bits[p] += multiples[p] << 52
    for p in range(np.uint64(len(t))):
        inverse[p] = np.divide(1.0, e[p])


@compiled
def logistic_rates(
    e: Floats, inverse: Floats, signed: Floats, h: int, last: np.uint64, z: Floats, rates: Floats
) -> None:
    """Overwrite z with 1 + e_worse / e_better, of which phi is the logarithm, and rates with weights times -phi'."""
    exp_h, inverse_h = e[h], inverse[h]
    for p in range(last):
        worse, better = inverse_h * e[p], exp_h * inverse[p]
        ratio = worse if signed[p] > 0.0 else better
        z[p] = 1.0 + ratio
        rates[p] = signed[p] * np.divide(ratio, 1.0 + ratio)


@compiled
def rates_of(
    phi: int, margin: float, t: Floats, signed: Floats, h: int, last: np.uint64, values: Floats, rates: Floats
) -> None:
    """Add weights times phi to values, and overwrite rates with weights times -phi'."""
    mine = t[h]
    for p in range(last):
        weight, lead = signed[p], mine - t[p]
        value, change = phi_and_slope(phi, margin, lead if weight > 0.0 else -lead)
        values[p] += abs(weight) * value
        rates[p] = -weight * change


@compiled
def sum_of_logs(weights: Floats, z: Floats, powers: Floats, last: np.uint64) -> float:
    """Return the sum of weights, without sign, times the logarithms of the first z, which are at least 1.

    z = m 2^p, m from 1 to 2: log z = (p + 1/2) log 2 + log(m / sqrt(2)), the latter as that of fdlibm. The exponent p,
    the upper bits of z, becomes a number as the lower bits of 2^52 + p. z and powers become scratch.
    """
    bits, exponents = z.view(np.int64), powers.view(np.int64)
    for p in range(last):
        both = bits[p]
        exponents[p] = (both >> 52) | TWO_52
        bits[p] = (both & MANTISSA) | ONE
    for p in range(last):
        y = np.divide(z[p] - ROOT, z[p] + ROOT)
        q = y * y
        series = q * (LG[0] + q * (LG[1] + q * (LG[2] + q * (LG[3] + q * (LG[4] + q * (LG[5] + q * LG[6]))))))
        z[p] = abs(weights[p]) * ((powers[p] - OFFSET + 0.5) * LOG_2 + y * (2.0 + series))
    return total(z[:last])


HINGE, SQUARED_HINGE, LOGISTIC = 0, 1, 2


@inlined
def phi_and_slope(phi: int, margin: float, lead: float) -> tuple[float, float]:
    """Return phi(lead) and its derivative, lead = s_better - s_worse."""
    if phi == LOGISTIC:
        small = np.exp(-abs(lead))  # never overflows
        share = small / (1.0 + small) if lead > 0.0 else 1.0 / (1.0 + small)
        return max(-lead, 0.0) + np.log1p(small), -share
    short = margin - lead
    if short <= 0.0:
        return 0.0, 0.0
    if phi == HINGE:
        return short, -1.0
    return short * short, -2.0 * short


@inlined
def total(values: Floats) -> float:
    """Return the sum of values, by eight partial sums."""
    a = b = c = d = e = f = g = h = 0.0
    whole = len(values) // 8 * 8
    for p in range(0, whole, 8):
        a += values[p]
        b += values[p + 1]
        c += values[p + 2]
        d += values[p + 3]
        e += values[p + 4]
        f += values[p + 5]
        g += values[p + 6]
        h += values[p + 7]
    for p in range(whole, len(values)):
        a += values[p]
    return ((a + e) + (c + g)) + ((b + f) + (d + h))
