"""Curves as an SVG file, small enough to read.

Leaves out   anything that a plotting library is for: this draws lines, on linear axes or on logarithmic ones.
Invariants   the same series give the same text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 30, 46
COLOURS = ("#1b6ca8", "#c8553d", "#2a9d5c", "#8e5ea2", "#b8860b", "#555555", "#00868b", "#a0522d")
DASHES = ("", "6 3", "2 3")


def draw(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    percent: bool = False,
    powers: bool = False,
) -> str:
    """An SVG document.

    Args:
        title, x_label, y_label: texts.
        series: name → points (x, y), joined in their order.
        percent: y is a share, shown in percent.
        powers: both axes are logarithmic; everything is above zero.
    """
    points = [point for one in series.values() for point in one]
    least = min(y for _, y in points)
    ticks = _powers if powers else _ticks
    x_ticks = ticks(min(x for x, _ in points), max(x for x, _ in points))
    y_ticks = ticks(least if powers else min(0.0, least), max(y for _, y in points))

    def share(value: float, axis: list[float]) -> float:
        low, value, high = map(math.log10, (axis[0], value, axis[-1])) if powers else (axis[0], value, axis[-1])
        return (value - low) / (high - low)

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = share(x, x_ticks), share(y, y_ticks)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, 18, title, "start", ' font-weight="bold"'),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label),
        text(16, (TOP + HEIGHT - BOTTOM) / 2, y_label, "middle", f' transform="rotate(-90 16 {HEIGHT / 2 - 8:.0f})"'),
    ]
    for tick in y_ticks:
        x, y = place(x_ticks[0], tick)
        out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(text(x - 6, y + 4, f"{tick * 100:.3g}%" if percent else f"{tick:,.6g}", "end"))
    for tick in x_ticks:
        x, y = place(tick, y_ticks[0])
        out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{y + 4:.1f}" stroke="#333"/>')
        out.append(text(x, y + 17, f"{tick:,.6g}"))
    for n, (name, one) in enumerate(series.items()):
        colour, dash = COLOURS[n % len(COLOURS)], DASHES[n // len(COLOURS) % len(DASHES)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in one))
        style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        out.append(f'<polyline points="{path}" {style}/>')
        y = TOP + 12 + 18 * n
        out.append(f'<polyline points="{WIDTH - RIGHT + 10},{y - 4} {WIDTH - RIGHT + 32},{y - 4}" {style}/>')
        out.append(text(WIDTH - RIGHT + 38, y, name, "start"))
    return "\n".join([*out, "</svg>"]) + "\n"


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` or less to `high` or more."""
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * one for one in (1, 2, 5, 10) if power * one >= span / 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [n * step for n in range(first, max(last, first + 1) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten from `low` or less to `high` or more."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return [10.0**n for n in range(first, max(last, first + 1) + 1)]
