"""The page on the life cycle is drawn from the table."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_drawing_is_current() -> None:
    draw = runpy.run_path(str(ROOT / "scripts" / "lifecycle_diagram.py"))["draw"]
    page = (ROOT / "docs" / "lifecycle.md").read_text(encoding="utf-8")
    assert page == draw(), "run: python scripts/lifecycle_diagram.py > docs/lifecycle.md"
