"""The figures as a table for users and as JSON for programs."""

from __future__ import annotations

import os
import platform
from typing import Any

from bench.figure import Figure
from bench.series import Series

WORDS = {"aim": "aim reached", "must": "must reached", "missed": "MISSED", "unbounded": ""}


def table(figures: list[Figure]) -> str:
    """Markdown, aligned, so that it reads the same in a terminal and in a page."""
    head = ("measure", "value", "must", "aim", "", "p50 / p90 / spread")
    rows = [head, *(_row(figure) for figure in figures)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def document(figures: list[Figure], scale: dict[str, Any], machine: dict[str, Any]) -> dict[str, Any]:
    return {"machine": machine, "scale": scale, "figures": [_as_json(figure) for figure in figures]}


def machine() -> dict[str, Any]:
    """What it is, and what else keeps it busy now."""
    return {
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "load": round(os.getloadavg()[0], 1),
    }


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.name,
        number(figure.value, figure.unit),
        _bound(figure, figure.must),
        _bound(figure, figure.aim),
        WORDS[figure.verdict],
        "; ".join(filter(None, [*(_summary(series, figure.unit) for series in figure.series), figure.note])),
    )


def _bound(figure: Figure, value: float | None) -> str:
    return "" if value is None else f"{'≥' if figure.is_floor else '≤'} {number(value, figure.unit)}"


def number(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
    return f"{text}{'' if unit == '×' else ' '}{unit}".strip()


def _summary(series: Series, unit: str) -> str:
    """Times behind a ratio are shown as times; everything else has the figure's own unit."""
    show = _seconds if unit in ("×", "s") else lambda value: number(value, unit)
    return f"{series.name} {show(series.p50)} / {show(series.p90)} / {series.spread:.0%}"


def _seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def _as_json(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "value": figure.value,
        "unit": figure.unit,
        "must": figure.must,
        "aim": figure.aim,
        "verdict": figure.verdict,
        "note": figure.note,
        "series": [
            {"name": s.name, "p50": s.p50, "p90": s.p90, "spread": s.spread, "values": list(s.values)}
            for s in figure.series
            if s.values
        ],
    }
