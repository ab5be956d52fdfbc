"""The page on the life cycle is drawn from the table."""

from __future__ import annotations

from pathlib import Path

from holdfast.model.lifecycle_diagram import draw

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_the_drawing_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == draw(), (
        "run: python -m holdfast.model.lifecycle_diagram > docs/lifecycle.md"
    )
