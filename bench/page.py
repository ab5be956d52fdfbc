"""The page of the documentation that shows the last full run, and the last run of each group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs/benchmarks.md"
BEGIN = {
    "latest": "<!-- written by python -m bench: -->",
    "table": "<!-- written by python -m bench table: -->",
    "dashboard": "<!-- written by python -m bench dashboard: -->",
}
END = "<!-- so far -->"


def update(name: str, table: str, machine: dict[str, Any]) -> None:
    """Put a table in the place of the one that is there."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN[name])
    after = rest.split(END, 1)[1]
    where = (
        f"Python {machine['python']}, Linux {machine['kernel']}, {machine['cores']} cores, {machine['architecture']}."
    )
    PAGE.write_text(f"{before}{BEGIN[name]}\n\n{where}\n\n{table}\n\n{END}{after}", encoding="utf-8")
