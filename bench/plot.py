"""The figures as an SVG: how much of what each may take it takes, with a mark where the aim is."""

from __future__ import annotations

from html import escape

from bench.figure import Figure
from bench.report import number

ROW = 34
LABEL = 400
BAR = 360
WIDTH = LABEL + BAR + 180
COLOURS = {"aim": "#2e8b57", "must": "#d9a521", "missed": "#c0392b", "unbounded": "#888888"}


def plot(figures: list[Figure]) -> str:
    bounded = [figure for figure in figures if figure.must is not None]
    height = ROW * (len(bounded) + 2)
    rows = [_row(figure, ROW * (at + 1)) for at, figure in enumerate(bounded)]
    return "\n".join([*_sheet(height), *rows, _scale(height), "</svg>", ""])


def _sheet(height: int) -> list[str]:
    size = f'width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">'
    return [head, f'<rect {size} fill="white"/>']


def _row(figure: Figure, top: int) -> str:
    filled = BAR * min(_share(figure, figure.value), 1.25)
    parts = [
        _text(LABEL - 10, top + 20, figure.name, "end"),
        f'<rect x="{LABEL}" y="{top + 6}" width="{max(filled, 2):.0f}" height="20" fill="{COLOURS[figure.verdict]}"/>',
    ]
    if figure.aim is not None:
        x = LABEL + BAR * _share(figure, figure.aim)
        parts.append(
            f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{top + 2}" y2="{top + 30}" stroke="#333" stroke-dasharray="3,2"/>'
        )
    parts.append(_text(LABEL + int(max(filled, BAR)) + 8, top + 20, number(figure.value, figure.unit), "start"))
    return "\n".join(parts)


def _scale(height: int) -> str:
    x, foot = LABEL + BAR, height - 10
    line = f'<line x1="{x}" x2="{x}" y1="{ROW}" y2="{height - ROW + 6}" stroke="#333"/>'
    return "\n".join(
        [line, _text(x, foot, "must", "middle"), _text(LABEL, foot, "shorter is better; dashed: aim", "start")]
    )


def _share(figure: Figure, value: float) -> float:
    """Of what is allowed; where nothing is allowed, nothing is nothing and anything is too much."""
    part, whole = (figure.must, value) if figure.is_floor else (value, figure.must)
    if not part or not whole:
        return 1.25 if part else 0.0
    return part / whole


def _text(x: int, y: int, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
