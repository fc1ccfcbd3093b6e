"""A picture of intervals as SVG, without a library of figures; its text has the colour of the page around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ranktune.tuner.statistics.measured import Interval

LEFT, RIGHT, ROW = 190, 690, 24
COLOUR = "#3b82f6"
"""Legible on white and on black."""


def intervals(rows: Sequence[tuple[str, Interval]], unit: str) -> str:
    """Return a point with its interval for each row, and a dotted line through the first; "" where there is nothing."""
    rows = [(name, each) for name, each in rows if math.isfinite(each.low + each.high)]
    if not rows:
        return ""
    low, high = min(each.low for _, each in rows), max(each.high for _, each in rows)
    span, bottom = high - low or 1.0, ROW * len(rows)
    power = 10.0 ** math.floor(math.log10(span / 5.0))
    step = power * next(k for k in (1, 2, 5, 10) if span <= 5.0 * power * k)

    def line(first: float, last: float, top: float, end: float, style: str) -> str:
        x1, x2 = (LEFT + (RIGHT - LEFT) * (value - low) / span for value in (first, last))
        return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{top}" y2="{end}" {style}/>'

    parts = [line(rows[0][1].mean, rows[0][1].mean, 0, bottom, f'stroke="{COLOUR}" stroke-dasharray="2 3"')]
    texts = [((LEFT + RIGHT) / 2, bottom + 34, "middle", unit)]
    for k in range(math.ceil(low / step), math.floor(high / step) + 1):
        parts.append(line(k * step, k * step, 0, bottom, 'stroke="currentColor" stroke-opacity="0.2"'))
        texts.append((LEFT + (RIGHT - LEFT) * (k * step - low) / span, bottom + 16, "middle", f"{k * step:.6g}"))
    for k, (name, each) in enumerate(rows):
        y = ROW * k + ROW // 2
        texts.append((LEFT - 12, y + 4, "end", name if len(name) < 28 else f"{name[:26]}\u2026"))
        parts.append(line(each.low, each.high, y, y, f'stroke="{COLOUR}" stroke-width="2"'))
        parts.append(line(each.mean, each.mean, y, y, f'stroke="{COLOUR}" stroke-width="10" stroke-linecap="round"'))
    for x, y, anchor, words in texts:
        parts.append(f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" fill="currentColor">{escape(words)}</text>')
    size = f'viewBox="0 0 720 {bottom + 42}" style="width:720px;max-width:100%;font:13px sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{"".join(parts)}</svg>'
