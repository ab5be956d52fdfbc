"""Every test of a verb has the instance of its module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import run_cli


@pytest.fixture(autouse=True)
def clean(instance: Path) -> Iterator[None]:
    """Nothing of one test runs in the next."""
    yield
    run_cli("kill", "--all", "--grace", "0.2")
